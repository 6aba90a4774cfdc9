//! What is known from outside about every task: the ledger of a crash run.
//!
//! It lives in this process's memory, so no crash of the service can touch it. Times are microseconds since the epoch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::api::{Attempt, Counts, Task};
use crate::clock::now_us;
use crate::witness::{Arrival, Asked};

/// The status of a task that the API does not know (any more).
pub const MISSING: &str = "MISSING";

/// Everything that happened, for the rules to look at.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// What callers asked for, by idempotency key.
    pub asked: BTreeMap<String, Asked>,
    /// Every acknowledgement, also of submissions that were repeated.
    pub acknowledged: Vec<Acknowledged>,
    /// Every request that the target read, in its order.
    pub arrivals: Vec<Arrival>,
    /// Everything that the API said about a task during the run.
    pub sightings: Vec<Sighting>,
    /// The tasks that the service raised the alert for, in any of its lives.
    pub alerts: BTreeSet<String>,
    /// When the service was killed.
    pub kills: Vec<u64>,
    /// What the API says at the end, by task id.
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
    /// The task that the API says it is.
    pub task: String,
}

/// What the API said about a task at some moment.
#[derive(Debug, Clone)]
pub struct Sighting {
    /// When its answer was there.
    pub at: u64,
    /// The task.
    pub task: String,
    /// Its status, or [`MISSING`].
    pub status: String,
    /// Its attempts so far.
    pub attempt_number: u32,
    /// Whether this was the answer to a cancel that was accepted.
    pub cancelled: bool,
}

/// A task at the end.
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

    /// The ids of all acknowledged tasks.
    pub fn acknowledged_tasks(&self) -> BTreeSet<&str> {
        self.acknowledged.iter().map(|acknowledged| acknowledged.task.as_str()).collect()
    }
}

/// A history that callers, target and killer write to together.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<History>);

impl Ledger {
    /// The history, to add a line to. Hold it briefly.
    pub fn write(&self) -> MutexGuard<'_, History> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down what the API said about a task just now.
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

    /// Writes down that the API does not know a task.
    pub fn missed(&self, task: &str) {
        let (task, status) = (task.to_owned(), MISSING.to_owned());
        self.write().sightings.push(Sighting { at: now_us(), task, status, attempt_number: 0, cancelled: false });
    }
}
