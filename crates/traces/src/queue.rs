//! The records that wait for the next export. What does not fit is dropped.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::record::Record;
use crate::settings::Batches;

/// A bounded queue whose reader is woken only when a whole batch is there.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Mutex<VecDeque<Record>>,
    /// The most records that wait.
    most: usize,
    /// The size of a batch.
    batch: usize,
    batch_there: Notify,
}

/// A record did not fit into the queue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Queue {
    pub(crate) fn new(batches: &Batches) -> Self {
        Queue {
            waiting: Mutex::default(),
            most: batches.most_waiting,
            batch: batches.most_at_once,
            batch_there: Notify::new(),
        }
    }

    pub(crate) fn push(&self, record: Record) -> Result<(), Full> {
        let mut waiting = self.lock();
        if waiting.len() >= self.most {
            return Err(Full);
        }
        waiting.push_back(record);
        let completes_batch = waiting.len() == self.batch;
        drop(waiting);
        if completes_batch {
            self.batch_there.notify_one();
        }
        Ok(())
    }

    /// Waits until a whole batch has come together.
    pub(crate) async fn batch(&self) {
        self.batch_there.notified().await;
    }

    /// The oldest records, at most a batch.
    pub(crate) fn take(&self) -> Vec<Record> {
        let mut waiting = self.lock();
        let taken = waiting.len().min(self.batch);
        waiting.drain(..taken).collect()
    }

    /// The oldest records, if they are a whole batch.
    pub(crate) fn take_whole(&self) -> Option<Vec<Record>> {
        let mut waiting = self.lock();
        (waiting.len() >= self.batch).then(|| waiting.drain(..self.batch).collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Each change is one call, so a panic elsewhere leaves a queue that is whole.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Record>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
