//! Counts the answers of this process to calls for records. They start at zero with the process.

use std::sync::atomic::{AtomicU64, Ordering};

use redrive_core::idempotency::{Change, Changed, Operation, Reserved, State};
use redrive_store::RecordChanged;

/// The counters.
#[derive(Debug, Default)]
pub struct Totals {
    reservations: AtomicU64,
    replays: AtomicU64,
    in_progress: AtomicU64,
    mismatches: AtomicU64,
    takeovers: AtomicU64,
    completions: AtomicU64,
    fenced: AtomicU64,
    released: AtomicU64,
    new_events: AtomicU64,
    duplicate_events: AtomicU64,
    events_in_progress: AtomicU64,
    submission_replays: AtomicU64,
    submission_mismatches: AtomicU64,
}

/// The counters at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TotalsSnapshot {
    /// Reservations that were granted.
    pub reservations: u64,
    /// Reservations that were answered with a stored result.
    pub replays: u64,
    /// Reservations that were refused because another execution was under way.
    pub in_progress: u64,
    /// Reservations that were refused because the key belongs to another request.
    pub mismatches: u64,
    /// Granted reservations whose previous owner had not reported a result when its lease ended.
    pub takeovers: u64,
    /// Results that owners reported, successes and failures, also of events.
    pub completions: u64,
    /// Changes that were refused because another execution had taken over, also of events.
    pub fenced: u64,
    /// Records that their owners gave up, also of events.
    pub released: u64,
    /// Events that were new.
    pub new_events: u64,
    /// Events that had been seen before.
    pub duplicate_events: u64,
    /// Events that another execution was processing.
    pub events_in_progress: u64,
    /// Submissions that were answered with the task of an earlier one.
    pub submission_replays: u64,
    /// Submissions that were refused because the key belongs to another one.
    pub submission_mismatches: u64,
}

impl TotalsSnapshot {
    /// Each counter, with the name of the outcome that it counts.
    pub(crate) fn by_outcome(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        [
            ("reserved", self.reservations),
            ("replay", self.replays),
            ("in-progress", self.in_progress),
            ("other-request", self.mismatches),
            ("takeover", self.takeovers),
            ("completed", self.completions),
            ("fenced", self.fenced),
            ("released", self.released),
            ("new-event", self.new_events),
            ("duplicate-event", self.duplicate_events),
            ("event-in-progress", self.events_in_progress),
            ("submission-replay", self.submission_replays),
            ("submission-other-request", self.submission_mismatches),
        ]
        .into_iter()
    }
}

impl Totals {
    /// Counts the answer to a reservation, once it is the final one.
    pub(crate) fn reserved(&self, operation: &Operation, answer: &Reserved) {
        let is_event = matches!(operation, Operation::Inbox(_));
        let counter = match (answer, is_event) {
            (Reserved::Granted { .. }, true) => &self.new_events,
            (Reserved::Granted { .. }, false) => &self.reservations,
            (Reserved::Ended(_), true) => &self.duplicate_events,
            (Reserved::Ended(_), false) => &self.replays,
            (Reserved::InProgress { .. }, true) => &self.events_in_progress,
            (Reserved::InProgress { .. }, false) => &self.in_progress,
            (Reserved::OtherRequest, _) => &self.mismatches,
        };
        add_one(counter);
        if matches!(answer, Reserved::Granted { previous: Some(previous), .. } if previous.state == State::InProgress) {
            add_one(&self.takeovers);
        }
    }

    /// Counts a submission whose key was used before, for the same request or for another one.
    pub(crate) fn resubmitted(&self, is_same_request: bool) {
        add_one(if is_same_request { &self.submission_replays } else { &self.submission_mismatches });
    }

    /// Counts the answer to a change.
    pub(crate) fn changed(&self, change: &Change, answer: &RecordChanged) {
        match (answer, change) {
            (RecordChanged::Decided(Changed::Fenced), _) => add_one(&self.fenced),
            (RecordChanged::Decided(Changed::Done(_)), Change::Release) => add_one(&self.released),
            (RecordChanged::Decided(Changed::Done(_)), Change::Renew(_)) => {}
            (RecordChanged::Decided(Changed::Done(_)), _) => add_one(&self.completions),
            _ => {}
        }
    }

    /// The counters now.
    pub fn snapshot(&self) -> TotalsSnapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TotalsSnapshot {
            reservations: read(&self.reservations),
            replays: read(&self.replays),
            in_progress: read(&self.in_progress),
            mismatches: read(&self.mismatches),
            takeovers: read(&self.takeovers),
            completions: read(&self.completions),
            fenced: read(&self.fenced),
            released: read(&self.released),
            new_events: read(&self.new_events),
            duplicate_events: read(&self.duplicate_events),
            events_in_progress: read(&self.events_in_progress),
            submission_replays: read(&self.submission_replays),
            submission_mismatches: read(&self.submission_mismatches),
        }
    }
}

/// The counters are independent of each other: no order between them is promised.
fn add_one(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
