//! The ledger of a crash run: what is visible from outside about every task.
//!
//! It is in this process's memory, so no crash of the service can affect it. Times are microseconds since the epoch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::api::{Attempt, Counts, Task};
use crate::clock::now_us;
use crate::witness::{Arrival, RequestedTask};

/// The status of a task that the API does not return (any more).
pub const MISSING: &str = "MISSING";

/// Everything that happened, as input of the rules.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The requests of callers, by idempotency key.
    pub requested: BTreeMap<String, RequestedTask>,
    /// Every acknowledgement, also of submissions that were repeated.
    pub acknowledged: Vec<Acknowledged>,
    /// Every request that the target received, in order.
    pub arrivals: Vec<Arrival>,
    /// Everything that the API returned about a task during the run.
    pub sightings: Vec<Sighting>,
    /// The tasks that the service raised the alert for, over all restarts.
    pub alerts: BTreeSet<String>,
    /// The dependencies of dead letters that the sink was told of.
    pub told: BTreeSet<String>,
    /// When the service was killed.
    pub kills: Vec<u64>,
    /// The final state of each task from the API, by task id.
    pub kept: BTreeMap<String, Kept>,
    /// The ids that the API lists at the end, by status (the dead letters' only).
    pub listed: BTreeMap<String, BTreeSet<String>>,
    /// How many tasks the API counts at the end, by status.
    pub counts: Counts,
}

/// One acknowledgement.
#[derive(Debug, Clone)]
pub struct Acknowledged {
    /// The key that was submitted.
    pub key: String,
    /// The task that the API returned.
    pub task: String,
}

/// What the API returned about a task at some moment.
#[derive(Debug, Clone)]
pub struct Sighting {
    /// When the answer was received.
    pub at: u64,
    /// The task.
    pub task: String,
    /// Its status, or [`MISSING`].
    pub status: String,
    /// Its attempts so far.
    pub attempt_number: u32,
    /// Whether this was the answer to an accepted cancel.
    pub cancelled: bool,
}

/// The final state of a task.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The task.
    pub task: Task,
    /// Its attempt log.
    pub attempts: Vec<Attempt>,
}

impl History {
    /// The arrivals of each task, in the order of arrival.
    pub fn arrivals_by_task(&self) -> BTreeMap<&str, Vec<&Arrival>> {
        let mut by_task: BTreeMap<&str, Vec<&Arrival>> = BTreeMap::new();
        for arrival in &self.arrivals {
            by_task.entry(&arrival.task).or_default().push(arrival);
        }
        by_task
    }

    /// The dead letters, each with its dependency.
    pub fn dead_letters(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_dead = |kept: &&Kept| matches!(kept.task.status.as_str(), "FAILED" | "EXHAUSTED");
        self.kept.values().filter(is_dead).filter_map(|kept| {
            let requested = self.requested.get(&kept.task.idempotency_key)?;
            Some((kept.task.task_id.as_str(), requested.dependency.as_str()))
        })
    }

    /// The ids of all acknowledged tasks.
    pub fn acknowledged_tasks(&self) -> BTreeSet<&str> {
        self.acknowledged.iter().map(|acknowledged| acknowledged.task.as_str()).collect()
    }
}

/// A history that callers, target and killer write to concurrently.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<History>);

impl Ledger {
    /// The history, for a change. Hold the lock briefly.
    pub fn write(&self) -> MutexGuard<'_, History> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records what the API has just returned about a task.
    pub fn saw(&self, task: &Task, cancelled: bool) {
        let sighting = Sighting {
            at: now_us(),
            task: task.task_id.clone(),
            status: task.status.clone(),
            attempt_number: task.attempt_number,
            cancelled,
        };
        self.write().sightings.push(sighting);
    }

    /// Records that the API has no such task.
    pub fn missed(&self, task: &str) {
        let (task, status) = (task.to_owned(), MISSING.to_owned());
        self.write().sightings.push(Sighting { at: now_us(), task, status, attempt_number: 0, cancelled: false });
    }
}
