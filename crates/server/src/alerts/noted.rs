//! What events said since the loop looked last.

use std::collections::{BTreeMap, BTreeSet};

use redrive_core::{Attempt, ErrorType, Lane, TenantId};
use redrive_engine::events::{EndedBy, Event, Report};

/// The most lanes that are noted by themselves. What happens in others is noted together.
const MOST_LANES: usize = 2_000;

/// What events said. Taken by the loop; only the number of dead letters goes on.
#[derive(Debug, Default)]
pub(super) struct Noted {
    dead_letters: u64,
    news: News,
}

/// What happened since the loop looked last.
#[derive(Debug, Default)]
pub(super) struct News {
    pub(super) dead_letters: ByLane,
    pub(super) certificate_errors: ByLane,
    /// Notifications that could not be delivered, by sink.
    pub(super) undelivered: ByLane,
    /// Lanes whose dependency answered that it is gone.
    pub(super) gone: BTreeSet<Lane>,
}

/// Numbers by lane.
#[derive(Debug, Default)]
pub(super) struct ByLane {
    pub(super) lanes: BTreeMap<Lane, u32>,
    /// Of lanes that are too many.
    pub(super) others: u32,
}

impl Noted {
    /// Whether this event is noted. Asked before the lock is taken: it is called for every event of every task.
    pub(super) fn notes(event: &Event<'_>) -> bool {
        match event {
            Event::AttemptEnded(_, attempt) => is_certificate_error(attempt),
            Event::DeadLetter(_) | Event::DependencyGone(..) => true,
            _ => false,
        }
    }

    /// Whether there may be something to alert of after this event. Every figure that goes bad begins with a failed attempt, and
    /// changes when a task ends that had one.
    pub(super) fn calls_for_a_look(event: &Event<'_>) -> bool {
        match event {
            Event::AttemptEnded(_, attempt) => attempt.error.is_some(),
            Event::Settled(claimed, _, status) => status.is_ended() && claimed.task.attempt_in_run() > 1,
            Event::Ended(_, _, by) => matches!(by, EndedBy::Deadline | EndedBy::Budget),
            Event::DeadLetter(_) | Event::DependencyGone(..) | Event::PausedOnGone(_) | Event::Breaker(..) => true,
            Event::Report(report) => matches!(report, Report::StoreOutageBegan(..) | Report::CommonTime(_)),
            _ => false,
        }
    }

    pub(super) fn note(&mut self, event: &Event<'_>, system: &TenantId) {
        let news = &mut self.news;
        match *event {
            // Of what happens to notifications no sink is told: that would be one more notification.
            Event::DeadLetter(task) if task.lane.tenant == *system => news.undelivered.count(&task.lane),
            Event::AttemptEnded(task, _) | Event::DependencyGone(task, _) if task.lane.tenant == *system => {}
            Event::DeadLetter(task) => {
                self.dead_letters += 1;
                news.dead_letters.count(&task.lane);
            }
            Event::AttemptEnded(task, attempt) if is_certificate_error(attempt) => {
                news.certificate_errors.count(&task.lane);
            }
            Event::DependencyGone(task, _) if news.gone.len() < MOST_LANES => {
                news.gone.insert(task.lane.clone());
            }
            _ => {}
        }
    }

    /// How many dead letters events have told of.
    pub(super) fn dead_letters(&self) -> u64 {
        self.dead_letters
    }

    /// What happened since this was called last, and the number of dead letters so far.
    pub(super) fn take(&mut self) -> (News, u64) {
        (std::mem::take(&mut self.news), self.dead_letters)
    }
}

fn is_certificate_error(attempt: &Attempt) -> bool {
    attempt.error.as_ref().is_some_and(|error| error.kind == ErrorType::TlsCertificate)
}

impl ByLane {
    fn count(&mut self, lane: &Lane) {
        self.add(lane, 1);
    }

    fn add(&mut self, lane: &Lane, more: u32) {
        if let Some(count) = self.lanes.get_mut(lane) {
            *count = count.saturating_add(more);
        } else if self.lanes.len() < MOST_LANES {
            self.lanes.insert(lane.clone(), more);
        } else {
            self.others = self.others.saturating_add(more);
        }
    }

    /// Adds the numbers of another.
    pub(super) fn merge(&mut self, other: &ByLane) {
        other.lanes.iter().for_each(|(lane, count)| self.add(lane, *count));
        self.others = self.others.saturating_add(other.others);
    }

    /// Whether all numbers are zero.
    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty() && self.others == 0
    }
}
