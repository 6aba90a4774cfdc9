//! What is counted: by lane, and for the whole process.
//!
//! Everything is behind one lock (`Metrics`), which is held for less than a microsecond for an event. A scrape copies
//! the counts and formats the copy.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use redrive_core::guards::breaker;
use redrive_core::{Attempt, Lane, Outcome, PolicyId, Reason, Status, Task, TenantId, Timestamp};
use redrive_engine::events::{EndedBy, Event, Report, SentAttempt};
use redrive_store::{Next, Settlement};

use super::busiest::Busiest;
use super::histogram::{Histogram, LONG, SHORT};

/// Attempt numbers above this one share a series.
const NUMBERS: usize = 10;

/// The most policies that have series of their own.
const POLICIES: usize = 50;

/// The most pairs of a lane and a policy that have series of their own.
const LANE_POLICIES: usize = 250;

/// The most tenants whose lanes without a place have series of their own.
const TENANTS: usize = 100;

/// The label of what shares a series.
pub(crate) const OTHER: &str = "other";

/// Everything that is counted.
#[derive(Debug)]
pub(super) struct Counts {
    busiest: Busiest,
    /// By place.
    named: Vec<LaneCounts>,
    /// By tenant: the lanes without a place.
    others: BTreeMap<TenantId, LaneCounts>,
    known_policies: BTreeSet<PolicyId>,
    /// How many pairs of a lane and a policy have series of their own.
    lane_policies: usize,
    process: ProcessCounts,
}

/// What is counted for a lane.
#[derive(Debug, Clone)]
pub(crate) struct LaneCounts {
    pub(super) attempts: BTreeMap<PolicyId, AttemptTable>,
    /// The attempts of policies without series of their own.
    pub(super) attempts_of_others: AttemptTable,
    /// By the position of the reason in [`Reason::ALL`].
    pub(super) exhausted: [u64; Reason::ALL.len()],
    pub(super) dead_letters: u64,
    pub(super) breaker_opened: u64,
    pub(super) duration: Histogram,
}

/// Attempts by outcome and number.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AttemptTable([[u64; NUMBERS + 1]; Outcome::ALL.len()]);

/// What is counted for the whole process.
#[derive(Debug, Clone)]
pub(super) struct ProcessCounts {
    /// By tenant.
    pub(super) accepted: BTreeMap<TenantId, u64>,
    /// By tenant and the position of the status in [`ENDS`].
    pub(super) ended: BTreeMap<TenantId, [u64; ENDS.len()]>,
    pub(super) backoff: Histogram,
    /// By the position of the status in [`ENDS`].
    pub(super) age: [Histogram; ENDS.len()],
    pub(super) due_to_wire: Histogram,
    pub(super) submit: Histogram,
    pub(super) alerts: u64,
    pub(super) taken_over: u64,
    pub(super) leases_lost: u64,
    pub(super) store_outages: u64,
}

/// The statuses in which a task may end.
pub(super) const ENDS: [Status; 4] = [Status::Succeeded, Status::Failed, Status::Exhausted, Status::Cancelled];

/// A copy of the counts.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// The lanes with series of their own.
    pub(crate) named: Vec<(Lane, LaneCounts)>,
    pub(super) others: BTreeMap<TenantId, LaneCounts>,
    pub(super) process: ProcessCounts,
}

impl Default for LaneCounts {
    fn default() -> Self {
        LaneCounts {
            attempts: BTreeMap::new(),
            attempts_of_others: AttemptTable::default(),
            exhausted: Default::default(),
            dead_letters: 0,
            breaker_opened: 0,
            duration: Histogram::new(SHORT),
        }
    }
}

impl Default for Counts {
    fn default() -> Self {
        let process = ProcessCounts {
            accepted: BTreeMap::new(),
            ended: BTreeMap::new(),
            backoff: Histogram::new(LONG),
            age: ENDS.map(|_| Histogram::new(LONG)),
            due_to_wire: Histogram::new(SHORT),
            submit: Histogram::new(SHORT),
            alerts: 0,
            taken_over: 0,
            leases_lost: 0,
            store_outages: 0,
        };
        Counts {
            busiest: Busiest::default(),
            named: Vec::new(),
            others: BTreeMap::new(),
            known_policies: BTreeSet::new(),
            lane_policies: 0,
            process,
        }
    }
}

impl Counts {
    /// Whether this event changes a count. Asked before the lock is taken.
    pub(super) fn counts(event: &Event<'_>) -> bool {
        match event {
            Event::Accepted(_)
            | Event::Stored { .. }
            | Event::Sent(_)
            | Event::AttemptEnded(..)
            | Event::Settled(..)
            | Event::LeaseLost(_)
            | Event::TakenOver(_)
            | Event::Breaker(_, breaker::Change::Opened { .. })
            | Event::Ended(..)
            | Event::DeadLetter(_) => true,
            Event::Report(report) => matches!(report, Report::StoreOutageBegan(..)),
            _ => false,
        }
    }

    pub(super) fn on(&mut self, event: &Event<'_>) {
        match *event {
            Event::Accepted(task) => {
                *self.process.accepted.entry(task.lane.tenant.clone()).or_default() += 1;
                self.adopt(&task.lane);
            }
            Event::Stored { took } => self.process.submit.observe(took),
            Event::Sent(SentAttempt { due_at: Some(due_at), sent_at, .. }) => {
                self.process.due_to_wire.observe(sent_at.since(due_at));
            }
            Event::AttemptEnded(task, attempt) => self.attempt_ended(task, attempt),
            Event::Settled(claimed, settlement, status) => self.settled(&claimed.task, settlement, status),
            Event::Ended(task, status, by) => self.ended(task, status, by),
            Event::LeaseLost(_) => self.process.leases_lost += 1,
            Event::TakenOver(_) => self.process.taken_over += 1,
            Event::Breaker(lane, breaker::Change::Opened { .. }) => self.lane(lane).breaker_opened += 1,
            Event::DeadLetter(_) => self.process.alerts += 1,
            Event::Report(Report::StoreOutageBegan(..)) => self.process.store_outages += 1,
            _ => {}
        }
    }

    fn attempt_ended(&mut self, task: &Task, attempt: &Attempt) {
        self.count_attempt(task, attempt);
        if let Some(backoff) = attempt.backoff {
            self.process.backoff.observe(backoff);
        }
    }

    /// Counts an attempt in the series of its lane and policy.
    fn count_attempt(&mut self, task: &Task, attempt: &Attempt) {
        let place = self.place(&task.lane);
        self.busiest.count(&task.lane, place);
        let policy = &task.policy.id;
        let is_known = self.lane_at(place, &task.lane).attempts.contains_key(policy);
        let has_series = is_known || self.may_name(policy);
        let lane = self.lane_at(place, &task.lane);
        let table = match has_series {
            true => lane.attempts.entry(policy.clone()).or_default(),
            false => &mut lane.attempts_of_others,
        };
        table.count(attempt);
        if let Some(duration) = attempt.duration {
            lane.duration.observe(duration);
        }
    }

    /// Whether another pair of a lane and this policy gets series of its own.
    fn may_name(&mut self, policy: &PolicyId) -> bool {
        if policy.as_str() == OTHER || self.lane_policies >= LANE_POLICIES {
            return false;
        }
        if !self.known_policies.contains(policy) {
            if self.known_policies.len() >= POLICIES {
                return false;
            }
            self.known_policies.insert(policy.clone());
        }
        self.lane_policies += 1;
        true
    }

    fn settled(&mut self, task: &Task, settlement: &Settlement, status: Status) {
        if status == Status::Exhausted
            && let Next::End { reason: Some(reason), .. } = settlement.next
        {
            self.exhausted(&task.lane, reason);
        }
        if status.is_ended() {
            self.age(status, settlement.at.since(task.created_at));
        }
    }

    fn ended(&mut self, task: &Task, status: Status, by: EndedBy) {
        if let Some(end) = position(status) {
            self.process.ended.entry(task.lane.tenant.clone()).or_default()[end] += 1;
        }
        if status.is_dead_letter() {
            self.lane(&task.lane).dead_letters += 1;
        }
        // A settlement has told its reason and its time.
        let reason = match by {
            EndedBy::Settlement => return,
            EndedBy::Cancel => None,
            EndedBy::Deadline => Some(Reason::Deadline),
            EndedBy::Budget => Some(Reason::Budget),
        };
        if let Some(reason) = reason {
            self.exhausted(&task.lane, reason);
        }
        if let Some(ended_at) = task.ended_at {
            self.age(status, ended_at.since(task.created_at));
        }
    }

    fn exhausted(&mut self, lane: &Lane, reason: Reason) {
        let position = Reason::ALL.iter().position(|known| *known == reason);
        if let Some(count) = position.and_then(|position| self.lane(lane).exhausted.get_mut(position)) {
            *count += 1;
        }
    }

    fn age(&mut self, status: Status, age: Duration) {
        if let Some(histogram) = position(status).and_then(|end| self.process.age.get_mut(end)) {
            histogram.observe(age);
        }
    }

    pub(super) fn has_free_places(&self) -> bool {
        self.busiest.has_free_places()
    }

    /// Gives the lane a place if one is free, so that its series begin at zero and its gauges are shown.
    pub(super) fn adopt(&mut self, lane: &Lane) {
        if let Some(place) = self.place(lane) {
            self.at(place);
        }
    }

    /// The place of the lane's own series.
    fn place(&mut self, lane: &Lane) -> Option<usize> {
        match lane.dependency.as_str() {
            // It would have the same labels as the lanes that share a series.
            OTHER => None,
            _ => self.busiest.place(lane),
        }
    }

    /// The counts of a lane, or those that it shares with others.
    fn lane(&mut self, lane: &Lane) -> &mut LaneCounts {
        let place = self.place(lane);
        self.lane_at(place, lane)
    }

    /// The counts of a lane that has this place.
    fn lane_at(&mut self, place: Option<usize>, lane: &Lane) -> &mut LaneCounts {
        match place {
            Some(place) => self.at(place),
            None => {
                let tenant = match self.others.len() < TENANTS || self.others.contains_key(&lane.tenant) {
                    true => lane.tenant.clone(),
                    false => TenantId::default_tenant(),
                };
                self.others.entry(tenant).or_default()
            }
        }
    }

    fn at(&mut self, place: usize) -> &mut LaneCounts {
        if self.named.len() <= place {
            self.named.resize_with(place + 1, LaneCounts::default);
        }
        &mut self.named[place]
    }

    /// Reviews which lanes have series of their own. The series of a lane that loses its place end, and those of the
    /// next one begin at zero; the shared series never jump.
    pub(super) fn review(&mut self, now: Timestamp) {
        for place in self.busiest.review(now) {
            if let Some(counts) = self.named.get_mut(place) {
                self.lane_policies -= counts.attempts.len();
                *counts = LaneCounts::default();
            }
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let named = self.busiest.lanes().zip(&self.named);
        Snapshot {
            named: named.map(|(lane, counts)| (lane.clone(), counts.clone())).collect(),
            others: self.others.clone(),
            process: self.process.clone(),
        }
    }
}

fn position(status: Status) -> Option<usize> {
    ENDS.iter().position(|end| *end == status)
}

impl AttemptTable {
    fn count(&mut self, attempt: &Attempt) {
        let outcome = Outcome::ALL.iter().position(|known| *known == attempt.outcome).unwrap_or_default();
        let number = usize::try_from(attempt.number_in_run).unwrap_or(usize::MAX).clamp(1, NUMBERS + 1);
        self.0[outcome][number - 1] += 1;
    }

    /// The counts that are not zero: the outcome, the number as a label, and the count.
    pub(super) fn counts(&self) -> impl Iterator<Item = (Outcome, &'static str, u64)> {
        const LABELS: [&str; NUMBERS + 1] = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11+"];
        Outcome::ALL.iter().zip(&self.0).flat_map(|(outcome, numbers)| {
            let counted = LABELS.iter().zip(numbers).filter(|(_, count)| **count > 0);
            counted.map(|(number, count)| (*outcome, *number, *count))
        })
    }
}

#[cfg(test)]
mod tests;
