//! What this process knows and the index does not know yet.
//!
//! A submit or a settle is answered when the store has committed; what it made pending is noted here and written to the
//! index by the [`writer`](crate::writer), many at a time. Nobody waits for that but a claim, which must find what this
//! very process made due before it asked.
//!
//! A process that dies takes its notes with it. The tasks are in the store, and are found by the next look at it.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redrive_store::PendingTask;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use crate::partitions::Partitions;
use crate::schedule::{CALL_TIMEOUT, Gone};

/// The most changes that wait to be written.
const LIMIT: usize = 100_000;

/// Something that the index has to be told.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// A task is pending.
    PendingTask {
        task: PendingTask,
        /// Whether it is due already, so that other processes should hear of it.
        is_due: bool,
    },
    /// A task is not pending any more.
    Gone(Gone),
}

/// Changes in the order in which they happened.
pub(crate) struct PendingChanges {
    queue: Mutex<Queue>,
    noted: Notify,
    /// How many changes have been written or kept, of all that there ever were.
    written: watch::Sender<u64>,
}

#[derive(Default)]
struct Queue {
    changes: Vec<Change>,
    /// How many changes there ever were.
    count: u64,
}

impl PendingChanges {
    pub(crate) fn new() -> Self {
        PendingChanges { queue: Mutex::default(), noted: Notify::new(), written: watch::Sender::new(0) }
    }

    /// Notes changes. What does not fit is dropped, and its partition has missed something.
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

    /// The next changes, as soon as there are some.
    pub(crate) async fn next(&self) -> Vec<Change> {
        loop {
            let changes = mem::take(&mut self.queue().changes);
            if !changes.is_empty() {
                return changes;
            }
            self.noted.notified().await;
        }
    }

    /// Says that these many changes have been written.
    pub(crate) fn wrote(&self, count: usize) {
        self.written.send_modify(|written| *written += count as u64);
    }

    /// Waits until everything that was noted before is written. Answers whether that was so in time.
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
