//! Lets callers wait for a task's end without asking the store again and again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use redrive_core::TaskId;
use tokio::sync::Notify;

/// Who waits for which task.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    by_task: Mutex<BTreeMap<TaskId, Entry>>,
}

#[derive(Debug)]
struct Entry {
    waiting: usize,
    ended: Arc<Notify>,
}

/// One caller's wait; dropping it gives it up.
#[derive(Debug)]
pub(crate) struct Waiter<'a> {
    waiters: &'a Waiters,
    task: TaskId,
    ended: Arc<Notify>,
}

impl Waiters {
    /// Begins to wait. Look at the task once *after* this: it may have ended before.
    pub(crate) fn wait_for(&self, task: TaskId) -> Waiter<'_> {
        let mut by_task = self.by_task.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = by_task.entry(task).or_insert_with(|| Entry { waiting: 0, ended: Arc::default() });
        entry.waiting += 1;
        Waiter { waiters: self, task, ended: entry.ended.clone() }
    }

    /// Tells everybody who waits for this task that it has ended; they look for themselves, so that it does no harm if it
    /// has not.
    pub(crate) fn ended(&self, task: TaskId) {
        let by_task = self.by_task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = by_task.get(&task) {
            entry.ended.notify_waiters();
        }
    }
}

impl Waiter<'_> {
    /// A future of the end. Only ends that are told after this call are seen: make it before the last look at the task.
    pub(crate) fn end(&self) -> tokio::sync::futures::OwnedNotified {
        self.ended.clone().notified_owned()
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut by_task = self.waiters.by_task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = by_task.get_mut(&self.task) {
            entry.waiting -= 1;
            if entry.waiting == 0 {
                by_task.remove(&self.task);
            }
        }
    }
}
