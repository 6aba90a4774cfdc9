//! Suppressor: ends retries that a caller waits for when they are due and the retry budget of their dependency is spent.
//!
//! A durable task has time and waits for the budget. A caller that waits for its answer gets the error of the attempt
//! before (rule R-7). Most such retries are suppressed when the attempt fails (`attempt`). A retry that was scheduled while
//! there was something left may find the budget spent when it is due: it is hidden from the claimer then, so this loop
//! ends it.
//!
//! It knows the retries that this process has scheduled, and only those. After a restart, and beyond [`MOST_RETRIES`], such a
//! retry waits like any other until its time is over, which for a synchronous call is 30 seconds at most.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive_core::{Lane, Task, TaskId, Timestamp};
use redrive_store::{SuppressOutcome, Suppression};
use tokio::sync::Notify;

use crate::engine_state::{EngineState, Phase};
use crate::events::EndedBy;

/// The most retries that are remembered.
const MOST_RETRIES: usize = 10_000;
/// A retry that is due and was not suppressed is looked at again after this time: the budget may be spent by then.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// The most tasks in one call of the store.
const BATCH: usize = 256;

/// The retries that callers wait for.
#[derive(Debug, Default)]
pub(crate) struct AwaitedRetries {
    waiting: Mutex<BTreeMap<(Timestamp, TaskId), AwaitedRetry>>,
    /// Notified when there is an earlier one.
    changed: Notify,
}

/// A retry that a caller waits for.
#[derive(Debug, Clone)]
struct AwaitedRetry {
    lane: Lane,
    /// How many attempts were made: a later one is claimed elsewhere.
    attempt_number: u32,
    deadline: Timestamp,
}

impl AwaitedRetries {
    /// Notes that this task waits for its next attempt, due at `due`.
    pub(crate) fn note(&self, task: &Task, due: Timestamp) {
        let retry =
            AwaitedRetry { lane: task.lane.clone(), attempt_number: task.attempt_number, deadline: task.deadline_at };
        let mut waiting = self.lock();
        if waiting.len() >= MOST_RETRIES {
            return;
        }
        waiting.insert((due, task.id), retry);
        let is_first = waiting.first_key_value().is_some_and(|((_, id), _)| *id == task.id);
        drop(waiting);
        if is_first {
            self.changed.notify_one();
        }
    }

    /// Forgets the retry of a task, which was claimed.
    pub(crate) fn forget(&self, task: &Task) {
        // The claim keeps the due time by which the retry was noted, unless it was looked at again since.
        if let (Some(due), mut waiting) = (task.next_attempt_at, self.lock()) {
            waiting.remove(&(due, task.id));
        }
    }

    /// When the first of them is due.
    fn next(&self) -> Option<Timestamp> {
        self.lock().first_key_value().map(|((due, _), _)| *due)
    }

    /// Takes those that are due, at most [`BATCH`].
    fn take_due(&self, now: Timestamp) -> Vec<(TaskId, AwaitedRetry)> {
        let mut waiting = self.lock();
        let mut due = Vec::new();
        while let Some(first) = waiting.first_entry()
            && first.key().0 <= now
            && due.len() < BATCH
        {
            let ((_, id), retry) = first.remove_entry();
            due.push((id, retry));
        }
        due
    }

    /// Looks at a retry again at `at`, unless it has ended by its deadline before.
    fn again(&self, id: TaskId, retry: AwaitedRetry, at: Timestamp) {
        if at < retry.deadline {
            self.lock().insert((at, id), retry);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Timestamp, TaskId), AwaitedRetry>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs until the engine drains.
pub(crate) async fn run(shared: Arc<EngineState>) {
    loop {
        tokio::select! {
            biased;
            () = shared.reached(Phase::Draining) => return,
            () = until_due(&shared) => {}
        }
        suppress_due(&shared).await;
    }
}

async fn until_due(shared: &EngineState) {
    loop {
        let changed = shared.awaited_retries.changed.notified();
        match shared.awaited_retries.next().map(|due| due.since(shared.clock.now())) {
            // While the time is uncertain, a retry may only seem to be due.
            Some(wait) if wait.is_zero() => return shared.clock.certain().await,
            Some(wait) => tokio::select! {
                biased;
                () = changed => {}
                () = shared.clock.sleep(wait) => {}
            },
            None => changed.await,
        }
    }
}

/// Ends those that are due and whose budget is spent; the others are looked at again.
async fn suppress_due(shared: &EngineState) {
    let now = shared.clock.now();
    let due = shared.awaited_retries.take_due(now);
    let lanes: BTreeSet<&Lane> = due.iter().map(|(_, retry)| &retry.lane).collect();
    let spent: BTreeSet<Lane> = lanes.into_iter().filter(|lane| shared.lanes.is_budget_spent(lane)).cloned().collect();
    let (spent, others): (Vec<_>, Vec<_>) = due.into_iter().partition(|(_, retry)| spent.contains(&retry.lane));
    let again = now.after(LOOK_AGAIN);
    others.into_iter().for_each(|(id, retry)| shared.awaited_retries.again(id, retry, again));
    if spent.is_empty() {
        return;
    }
    let suppressions = spent.iter().map(|(id, retry)| Suppression {
        tenant: retry.lane.tenant.clone(),
        id: *id,
        attempt_number: retry.attempt_number,
    });
    match shared.store.tasks().suppress(suppressions.collect(), now).await {
        Ok(answers) => {
            shared.store_worked("suppressing retries");
            for answer in answers {
                // Another task may have been claimed, cancelled or replayed meanwhile; one that cannot be read is set aside.
                if let Ok(SuppressOutcome::Done(task)) = answer {
                    shared.task_ended(&task, task.status, EndedBy::Budget, || Cow::Borrowed(&*task));
                }
            }
        }
        Err(error) => {
            // The call may have taken effect, and its answer been lost.
            shared.alerts.doubt();
            spent.iter().for_each(|(id, _)| shared.waiters.ended(*id));
            shared.store_failed("suppressing retries", &error);
            spent.into_iter().for_each(|(id, retry)| shared.awaited_retries.again(id, retry, again));
        }
    }
}
