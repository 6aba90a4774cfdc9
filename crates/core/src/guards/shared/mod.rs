//! The guards that the processes over one store share: one retry budget and one breaker for a lane, one floor for an
//! origin.
//!
//! Each value is a row that all processes read and replace (compare and set). A process *exchanges* now and then, a few
//! times per second for a lane with retries and never for each attempt: it reports what it sent since the last
//! exchange, takes *tokens* for the retries that it is about to send, and learns what the others did to the breaker.
//!
//! - **Reserve before use.** A token is charged when it is granted, so the bound of the budget holds over all
//!   processes at each grant. What a process holds and does not use it returns; what a dead process held lapses with its
//!   second.
//! - **Report after.** First attempts and refunds are reported late, and may be lost. That makes the budget smaller,
//!   never larger.
//! - **The slack.** A token is granted for one second and may be sent until the end of the next one: one bucket, plus the
//!   difference of the processes' clocks.
//!
//! `redrive_core::guards::node_share` is the side of one process. Not here: how rows are stored (`redrive-store`), when a
//! process exchanges (`redrive-engine`).

mod breaker;
mod floor;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use breaker::{BreakerChange, SharedBreaker, SharedBreakerState};
pub use floor::OriginFloor;

use crate::guards::RecentOutcomes;
use crate::guards::budget::{self, Budget, Counts, Report};
use crate::guards::lane::Settings;
use crate::time::Timestamp;

/// A row may be removed when it has not changed for this long.
const KEPT_FOR: Duration = Duration::from_secs(600);
/// A row that says since when no attempt has succeeded is kept for longer: attempts may be hours apart.
const KEPT_WHILE_FAILING: Duration = Duration::from_secs(25 * 3_600);
/// A row that was written up to this far in the future was written by a process whose clock is a little ahead. Its
/// seconds stay as they are. Beyond that, the clock was set back.
pub(super) const CLOCKS_DIFFER: Duration = Duration::from_secs(2);

/// What all processes share of one lane.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SharedLane {
    /// First attempts, unrefunded and refunded retries, by second.
    budget: Vec<(Timestamp, [u32; 3])>,
    /// The latest outcomes: bits, their number, and whether they show a healthy dependency.
    recent: (u64, u32, bool),
    /// The first attempt without success since the last success.
    #[serde(skip_serializing_if = "Option::is_none")]
    failing_since: Option<Timestamp>,
    /// The latest success that a process reported, which ends a time without success only.
    #[serde(skip_serializing_if = "Option::is_none")]
    succeeded_at: Option<Timestamp>,
    /// The breaker.
    pub breaker: SharedBreaker,
}

/// What one process reports and asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exchange {
    /// What it sent since the last exchange.
    pub reports: Vec<Report>,
    /// How many retries it wants to send now.
    pub want: u32,
    /// The outcomes since the last exchange.
    pub outcomes: RecentOutcomes,
    /// The latest success since the last exchange, if all processes had none for a while before it.
    pub succeeded_at: Option<Timestamp>,
    /// The first and the last attempt without success since then.
    pub failed: Option<(Timestamp, Timestamp)>,
    /// What happened to its breaker.
    pub breaker: Option<BreakerChange>,
    /// The last change of the shared breaker that it has seen.
    pub epoch: u64,
    /// An operator has it forget everything.
    pub is_reset: bool,
}

/// What a process gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Retries that it may send.
    pub granted: u32,
    /// The second that they are charged to.
    pub second: Timestamp,
    /// What is left of the budget for all processes.
    pub left: u64,
    /// What the window counts, the tokens included.
    pub counts: Counts,
    /// The latest outcomes of all processes.
    pub recent: RecentOutcomes,
    /// Since when no process has had a success.
    pub failing_since: Option<Timestamp>,
    /// The breaker.
    pub breaker: SharedBreaker,
}

impl SharedLane {
    /// The state in the place of one that cannot be read: the whole floor is charged now, because it is not known what
    /// was sent.
    pub fn unreadable(settings: &Settings, now: Timestamp) -> Self {
        let charged = settings.budget.map(|budget| (now, [0, budget.floor, 0]));
        SharedLane { budget: charged.into_iter().collect(), ..SharedLane::default() }
    }

    /// Exchanges with `node`. `floor` is the one that the lane shares with the others of its origin.
    pub fn exchange(
        &mut self,
        settings: &Settings,
        floor: Option<(&mut OriginFloor, &str)>,
        node: &str,
        exchange: &Exchange,
        now: Timestamp,
    ) -> Answer {
        if exchange.is_reset {
            self.budget.clear();
        }
        self.merge_failing(exchange);
        let mut recent = RecentOutcomes::from_parts(self.recent);
        recent.record_all(&exchange.outcomes);
        let was_closed = self.breaker.is_closed();
        self.breaker.apply(exchange, node, now);
        if exchange.is_reset || (self.breaker.is_closed() && !was_closed) {
            recent = RecentOutcomes::default();
        }
        self.recent = recent.parts();
        let now = self.no_earlier_than_written(now);
        let mut answer = Answer {
            granted: exchange.want,
            second: now,
            left: u64::MAX,
            counts: Counts::default(),
            recent,
            failing_since: self.failing_since,
            breaker: self.breaker.clone(),
        };
        if let Some(budget) = &settings.budget {
            (answer.granted, answer.left, answer.counts) =
                self.grant(budget, floor, exchange, recent.is_healthy(), now);
        }
        answer
    }

    /// When a row with this state may be removed.
    pub fn expires_at(&self, now: Timestamp) -> Timestamp {
        let kept_for = if self.failing_since.is_some() { KEPT_WHILE_FAILING } else { KEPT_FOR };
        self.breaker.ends_at().unwrap_or(now).max(now).after(kept_for)
    }

    fn grant(
        &mut self,
        settings: &budget::Settings,
        floor: Option<(&mut OriginFloor, &str)>,
        exchange: &Exchange,
        is_healthy: bool,
        now: Timestamp,
    ) -> (u32, u64, Counts) {
        let mut budget = Budget::new(*settings);
        budget.restore(self.budget.iter().copied(), now);
        exchange.reports.iter().for_each(|report| budget.add_report(report));
        let mut left = budget.left(is_healthy, now);
        if let (Some((floor, lane)), false) = (&floor, is_healthy) {
            let of_floor = u64::from(floor.left_for(lane, settings, now));
            left = left.min(budget.left_with_floor(of_floor, is_healthy, now));
        }
        let granted = u32::try_from(left).unwrap_or(u32::MAX).min(exchange.want);
        budget.charge_many(granted, now);
        if let Some((floor, lane)) = floor {
            let needed = if is_healthy { 0 } else { budget.beyond_earned(is_healthy, now) };
            floor.set(lane, u32::try_from(needed).unwrap_or(u32::MAX), settings, now);
        }
        self.budget = budget.buckets().collect();
        (granted, left - u64::from(granted), budget.counts(now))
    }

    /// No attempt has succeeded since the first failure that a process reports, or since a later success of another one.
    fn merge_failing(&mut self, exchange: &Exchange) {
        if exchange.is_reset {
            (self.failing_since, self.succeeded_at) = (None, None);
        }
        self.succeeded_at = self.succeeded_at.max(exchange.succeeded_at);
        let success = self.succeeded_at.unwrap_or_default();
        // A process that reports late may have failed before another one succeeded.
        let failed = exchange.failed.filter(|(_, last)| *last > success).map(|(first, _)| first.max(success));
        let before = self.failing_since.filter(|_| exchange.succeeded_at.is_none());
        self.failing_since = before.into_iter().chain(failed).min();
    }

    /// The second that a process with a clock a little ahead has already written, if there is one.
    fn no_earlier_than_written(&self, now: Timestamp) -> Timestamp {
        let latest = self.budget.iter().map(|(at, _)| *at).max().unwrap_or(now);
        if latest.since(now) <= CLOCKS_DIFFER { now.max(latest) } else { now }
    }
}

#[cfg(test)]
mod tests;
