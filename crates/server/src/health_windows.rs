//! Counts the tasks that ended in the last hour, for the health report and for alerts.
//!
//! Everything is in memory and of this process: it counts what this process has ended since it started. The number of
//! lanes is bounded; what ends in others counts for their tenant only.
//!
//! Not here: what the numbers mean (`redrive_core::health`), what is waiting (the store knows).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive_core::health::{Tally, Window};
use redrive_core::{Dependency, Lane, TenantId, Timestamp};
use redrive_engine::events::{EndedBy, Event, Sink};

/// The most lanes that are counted by themselves. A window takes 1.7 KiB.
const MOST_LANES: usize = 2_000;

/// The most tenants that are counted.
const MOST_TENANTS: usize = 1_000;

/// The time between two searches for windows in which nothing ended: this is on the path of every task.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// The tasks that ended in the last hour. The same value is a sink of the engine and part of the server's `App`.
#[derive(Default)]
pub struct HealthWindows(Mutex<Windows>);

#[derive(Default)]
struct Windows {
    tenants: Bounded<TenantId>,
    lanes: Bounded<Lane>,
}

/// A bounded number of windows.
struct Bounded<K> {
    windows: BTreeMap<K, Window>,
    /// When those in which nothing ended made room last.
    swept_at: Option<Timestamp>,
}

impl<K> Default for Bounded<K> {
    fn default() -> Self {
        Bounded { windows: BTreeMap::new(), swept_at: None }
    }
}

/// What a tenant's tasks that ended in some time add up to.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TenantTally {
    pub(crate) overall: Tally,
    /// By dependency; those of which nothing ended are left out.
    pub(crate) dependencies: Vec<(Dependency, Tally)>,
}

impl HealthWindows {
    /// The last hour of a tenant.
    pub(crate) fn hour(&self, tenant: &TenantId, now: Timestamp) -> TenantTally {
        self.last(Window::LONGEST, tenant, now)
    }

    /// What a tenant's tasks that ended in the last `span`, an hour at most, add up to.
    pub(crate) fn last(&self, span: Duration, tenant: &TenantId, now: Timestamp) -> TenantTally {
        let windows = self.lock();
        let sum = |window: &Window| window.sum(span, now);
        let lanes = windows.lanes.windows.iter().filter(|(lane, _)| lane.tenant == *tenant);
        TenantTally {
            overall: windows.tenants.windows.get(tenant).map(sum).unwrap_or_default(),
            dependencies: lanes
                .map(|(lane, window)| (lane.dependency.clone(), sum(window)))
                .filter(|(_, tally)| tally.ended > 0)
                .collect(),
        }
    }

    /// A panic elsewhere leaves counts that are still usable: each event changes them in one call.
    fn lock(&self) -> MutexGuard<'_, Windows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for HealthWindows {
    fn on(&self, event: &Event<'_>) {
        // A settlement says its time, and the event of the end does not.
        let (task, status, at) = match *event {
            Event::Settled(claimed, settlement, status) => (&claimed.task, status, settlement.at),
            Event::Ended(task, status, EndedBy::Deadline | EndedBy::Budget) => match task.ended_at {
                Some(at) => (task, status, at),
                None => return,
            },
            _ => return,
        };
        if let Some(tally) = Tally::of(status, task.attempt_in_run()) {
            self.lock().add(&task.lane, &tally, at);
        }
    }
}

impl Windows {
    fn add(&mut self, lane: &Lane, tally: &Tally, at: Timestamp) {
        self.tenants.add(&lane.tenant, MOST_TENANTS, tally, at);
        self.lanes.add(lane, MOST_LANES, tally, at);
    }
}

impl<K: Ord + Clone> Bounded<K> {
    /// Adds to the window of `key`, which is made if there is room. Windows in which nothing has ended for an hour make room.
    fn add(&mut self, key: &K, most: usize, tally: &Tally, at: Timestamp) {
        if let Some(window) = self.windows.get_mut(key) {
            return window.add(tally, at);
        }
        if self.windows.len() >= most && !self.has_swept(at) {
            self.swept_at = Some(at);
            self.windows.retain(|_, window| !window.is_idle(at));
        }
        if self.windows.len() < most {
            self.windows.entry(key.clone()).or_default().add(tally, at);
        }
    }

    fn has_swept(&self, now: Timestamp) -> bool {
        self.swept_at.is_some_and(|swept_at| now.since(swept_at) < SWEEP_EVERY && swept_at <= now)
    }
}

impl fmt::Debug for HealthWindows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HealthWindows").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(tenant: &str, number: usize) -> Lane {
        let dependency = Dependency::try_new(format!("d{number:05}")).unwrap();
        Lane { tenant: TenantId::try_new(tenant).unwrap(), dependency }
    }

    fn at(minutes: u64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + minutes * 60_000)
    }

    const DEAD: Tally =
        Tally { ended: 1, retried: 0, dead_letters: 1, attempts_of_delivered: 0, delivered_by_second: 0 };

    #[test]
    fn a_lane_without_room_counts_for_its_tenant_and_gets_room_once_others_are_idle() {
        let windows = HealthWindows::default();
        for number in 0..=MOST_LANES {
            windows.lock().add(&lane("acme", number), &DEAD, at(0));
        }
        let tenant = TenantId::try_new("acme").unwrap();
        let hour = windows.hour(&tenant, at(0));
        assert_eq!((hour.overall.ended as usize, hour.dependencies.len()), (MOST_LANES + 1, MOST_LANES));
        windows.lock().add(&lane("acme", MOST_LANES), &DEAD, at(60));
        let hour = windows.hour(&tenant, at(60));
        assert_eq!((hour.overall.ended, hour.dependencies.len()), (1, 1), "the others were an hour ago");
        assert_eq!(windows.lock().lanes.windows.len(), 1);
    }

    #[test]
    fn no_tenant_sees_what_another_has_ended() {
        let windows = HealthWindows::default();
        windows.lock().add(&lane("acme", 1), &DEAD, at(0));
        windows.lock().add(&lane("other", 2), &DEAD, at(0));
        let hour = windows.hour(&TenantId::try_new("acme").unwrap(), at(0));
        assert_eq!(hour.overall, DEAD);
        assert_eq!(hour.dependencies, [(Dependency::try_new("d00001").unwrap(), DEAD)]);
        assert_eq!(windows.hour(&TenantId::try_new("none").unwrap(), at(0)), TenantTally::default());
    }
}
