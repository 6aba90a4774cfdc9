//! What is kept of a lane's guards across a restart.
//!
//! A snapshot is taken before a claim and stored with the claim's commit. So it may be behind when the process dies, but
//! only on the safe side: every retry that was sent was reserved by a claim before. Reserved retries count as sent when
//! the guards are restored. First attempts and refunds that were lost make the budget smaller, never larger.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::guards::GoneWatch;
use crate::guards::breaker::{self, Breaker, OpenedBy};
use crate::guards::lane::{LaneGuards, Settings};
use crate::guards::recent::RecentOutcomes;
use crate::time::Timestamp;

/// What is kept of a lane's guards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Snapshot {
    /// First attempts, unrefunded and refunded retries, by the second in which they were sent.
    budget: Vec<(Timestamp, [u32; 3])>,
    /// Retries that were claimed and may have been sent.
    reserved: u32,
    /// The latest outcomes: bits, their number, and whether they show a healthy dependency.
    recent: (u64, u32, bool),
    /// Until when the breaker is open, in milliseconds for how long, and why.
    open: Option<(Timestamp, u64, String)>,
    /// How often the breaker has opened since it was last closed.
    opened: u32,
    /// Hard failures since the last call that went well.
    in_a_row: u32,
    /// Calls, failures and slow calls, by second.
    calls: Vec<(Timestamp, [u32; 3])>,
    /// The first and the last attempt without success since the last success.
    #[serde(skip_serializing_if = "Option::is_none")]
    failing: Option<(Timestamp, Timestamp)>,
    /// The origin that its retries went to, whose floor they share.
    pub origin: Option<String>,
}

impl Snapshot {
    /// The same, of a lane whose retries went to this origin.
    pub fn with_origin(self, origin: Option<String>) -> Self {
        Snapshot { origin, ..self }
    }
}

impl LaneGuards {
    /// What is to be kept of these guards; `None` if new ones would do as well.
    pub fn snapshot(&mut self, now: Timestamp) -> Option<Snapshot> {
        let charged = self.budget.as_mut().map_or(0, |budget| budget.counts(now).charged);
        let is_untroubled = self.breaker.as_ref().is_none_or(Breaker::is_untroubled);
        if charged == 0 && self.reserved == 0 && is_untroubled && !self.gone.is_kept(now) {
            return None;
        }
        let kept = self.breaker.as_ref().map(Breaker::kept).unwrap_or_default();
        let millis = |pause: Duration| u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        Some(Snapshot {
            budget: self.budget.as_ref().map(|budget| budget.buckets().collect()).unwrap_or_default(),
            reserved: self.reserved,
            recent: self.recent.parts(),
            open: kept.open.map(|(until, pause, why)| (until, millis(pause), why.as_str().to_owned())),
            opened: kept.opened,
            in_a_row: kept.in_a_row,
            calls: kept.calls,
            failing: self.gone.failing(),
            origin: None,
        })
    }

    /// The guards as they were, at the start of another process.
    pub fn restore(settings: Settings, snapshot: Snapshot, now: Timestamp) -> Self {
        let Snapshot { budget, reserved, recent, open, opened, in_a_row, calls, failing, origin: _ } = snapshot;
        let mut guards = LaneGuards::new(settings);
        guards.gone = GoneWatch::restore(failing);
        guards.recent = RecentOutcomes::from_parts(recent);
        if let Some(counts) = &mut guards.budget {
            counts.restore(budget, now);
            counts.charge_many(reserved, now);
        }
        let open = open.map(|(until, pause, why)| {
            (until, Duration::from_millis(pause), OpenedBy::from_name(&why).unwrap_or(OpenedBy::Operator))
        });
        let kept = breaker::Kept { open, opened, in_a_row, calls };
        guards.breaker = settings.breaker.map(|settings| Breaker::restore(settings, kept, now));
        guards
    }
}
