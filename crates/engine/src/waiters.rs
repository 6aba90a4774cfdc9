//! Lets callers wait for a task's end without polling the store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use redrive_core::TaskId;
use tokio::sync::Notify;

/// The callers that wait, by task.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    by_task: Mutex<BTreeMap<TaskId, Entry>>,
}

#[derive(Debug)]
struct Entry {
    waiting: usize,
    ended: Arc<Notify>,
}

/// One caller's wait; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Waiter<'a> {
    waiters: &'a Waiters,
    task: TaskId,
    ended: Arc<Notify>,
}

impl Waiters {
    /// Begins to wait. Read the task once *after* this: it may have ended before.
    pub(crate) fn wait_for(&self, task: TaskId) -> Waiter<'_> {
        let mut by_task = self.by_task.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = by_task.entry(task).or_insert_with(|| Entry { waiting: 0, ended: Arc::default() });
        entry.waiting += 1;
        Waiter { waiters: self, task, ended: entry.ended.clone() }
    }

    /// Wakes every caller that waits for this task because it has ended. Callers read the task themselves, so a wrong
    /// wake-up does no harm.
    pub(crate) fn ended(&self, task: TaskId) {
        let by_task = self.by_task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = by_task.get(&task) {
            entry.ended.notify_waiters();
        }
    }
}

impl Waiter<'_> {
    /// A future of the task's end. It misses ends that are signalled before this call: make it before the last read of
    /// the task.
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
