//! The attempts that this process is working on right now.
//!
//! Shutdown waits for this to become empty, and a cancel finds here an attempt that is claimed but not yet sent.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive_core::TaskId;
use tokio::sync::Notify;

/// The most early cancels that are remembered; each stands for a claim that is committed and not entered yet.
const MAX_EARLY: usize = 10_000;

/// The attempts of this process.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    attempts: Mutex<Attempts>,
    emptied: Notify,
}

#[derive(Debug, Default)]
struct Attempts {
    cancelled_by_task: HashMap<TaskId, Arc<AtomicBool>>,
    /// Tasks that were cancelled between the commit of their claim and its entry here.
    cancelled_early: BTreeSet<TaskId>,
}

/// One attempt's place; dropping it says that the attempt is over, however it ended.
#[derive(Debug)]
pub(crate) struct Place {
    in_flight: Arc<InFlight>,
    task: TaskId,
    cancelled: Arc<AtomicBool>,
}

impl InFlight {
    /// Enters an attempt.
    pub(crate) fn enter(self: &Arc<Self>, task: TaskId) -> Place {
        let mut attempts = self.lock();
        let cancelled = Arc::new(AtomicBool::new(attempts.cancelled_early.remove(&task)));
        attempts.cancelled_by_task.insert(task, cancelled.clone());
        Place { in_flight: self.clone(), task, cancelled }
    }

    /// Notes that a cancel of this task in flight has been committed: if it is not on the wire yet, it stays off it.
    pub(crate) fn cancel(&self, task: TaskId) {
        let mut attempts = self.lock();
        if let Some(cancelled) = attempts.cancelled_by_task.get(&task) {
            cancelled.store(true, Ordering::Release);
            return;
        }
        attempts.cancelled_early.insert(task);
        if attempts.cancelled_early.len() > MAX_EARLY {
            attempts.cancelled_early.pop_first();
        }
    }

    /// Whether this task is being worked on.
    pub(crate) fn has(&self, task: TaskId) -> bool {
        self.lock().cancelled_by_task.contains_key(&task)
    }

    /// How many attempts there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().cancelled_by_task.len()
    }

    /// Ends once there is no attempt.
    pub(crate) async fn empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.count() == 0 {
                return;
            }
            emptied.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Whether the caller has taken the task back since it was claimed.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let places = &mut self.in_flight.lock().cancelled_by_task;
        // A takeover may have entered the same task again: that place is not ours to clear.
        if places.get(&self.task).is_some_and(|current| Arc::ptr_eq(current, &self.cancelled)) {
            places.remove(&self.task);
        }
        if places.is_empty() {
            self.in_flight.emptied.notify_waiters();
        }
    }
}
