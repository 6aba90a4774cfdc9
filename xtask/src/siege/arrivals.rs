//! The target of well-behaved tasks: answers 200 to everything and counts arrivals.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::http::{Reply, Request, Respond};

/// How often each task has arrived, by its id.
#[derive(Debug, Default)]
pub struct Arrivals(Mutex<BTreeMap<String, u32>>);

impl Arrivals {
    /// How often this task has arrived.
    pub fn of(&self, task: &str) -> u32 {
        self.held().get(task).copied().unwrap_or(0)
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<String, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Respond for Arrivals {
    fn respond(&self, request: &Request<'_>) -> Reply {
        let task = request.header("redrive-task-id").unwrap_or_default().to_owned();
        *self.held().entry(task).or_default() += 1;
        Reply::Now(Bytes::from_static(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"))
    }
}
