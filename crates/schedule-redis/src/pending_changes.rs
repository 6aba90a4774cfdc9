//! Changes that this process has not yet written to the index.
//!
//! A submit or a settle is answered when the store has committed. The resulting pending tasks are queued here and
//! written to the index by the [`writer`](crate::writer), many at a time. Only a claim waits for that, because it must
//! find the tasks that this process made due before it.
//!
//! The queue of a process that dies is lost. The tasks are in the store, and the next scan of it finds them.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redrive_store::PendingTask;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use crate::partitions::Partitions;
use crate::schedule::{CALL_TIMEOUT, Gone};

/// The most queued changes.
const LIMIT: usize = 100_000;

/// A change that must be written to the index.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// A task is pending.
    PendingTask {
        task: PendingTask,
        /// Whether it is due already, so that it should be announced to other processes.
        is_due: bool,
    },
    /// A task is not pending any more.
    Gone(Gone),
}

/// Changes in the order in which they happened.
pub(crate) struct PendingChanges {
    queue: Mutex<Queue>,
    noted: Notify,
    /// How many of all changes have been written or kept so far.
    written: watch::Sender<u64>,
}

#[derive(Default)]
struct Queue {
    changes: Vec<Change>,
    /// How many changes there were so far.
    count: u64,
}

impl PendingChanges {
    pub(crate) fn new() -> Self {
        PendingChanges { queue: Mutex::default(), noted: Notify::new(), written: watch::Sender::new(0) }
    }

    /// Queues changes. Those that do not fit are dropped, and their partition is marked as having missed tasks.
    pub(crate) fn note(&self, changes: impl IntoIterator<Item = Change>, partitions: &Partitions) {
        let mut queue = self.queue();
        for change in changes {
            if queue.changes.len() < LIMIT {
                queue.changes.push(change);
                queue.count += 1;
            } else if let Change::PendingTask { task, .. } = change {
                partitions.missed(&task.lane);
            }
        }
        drop(queue);
        self.noted.notify_one();
    }

    /// Waits for the next changes.
    pub(crate) async fn next(&self) -> Vec<Change> {
        loop {
            let changes = mem::take(&mut self.queue().changes);
            if !changes.is_empty() {
                return changes;
            }
            self.noted.notified().await;
        }
    }

    /// Records that this many changes have been written.
    pub(crate) fn wrote(&self, count: usize) {
        self.written.send_modify(|written| *written += count as u64);
    }

    /// Waits until all changes that were queued before are written. Returns whether that was so in time.
    pub(crate) async fn flushed(&self) -> bool {
        let count = self.queue().count;
        let mut written = self.written.subscribe();
        if *written.borrow() >= count {
            return true;
        }
        let waiting = written.wait_for(|written| *written >= count);
        matches!(timeout(CALL_TIMEOUT, waiting).await, Ok(Ok(_)))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
