//! Removing tasks from the index that are not pending any more.

use redis::Value;
use redrive_core::{Class, Lane, TaskId};
use redrive_store::Token;

use super::{CALL_TIMEOUT, Schedule, TASKS_PER_CALL, by_queue};
use crate::keys::{Partition, in_book};
use crate::member;
use crate::redis_call_error::RedisCallError;
use crate::script::{Call, REMOVE};

/// A task that is not pending any more, with its last state while it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    /// The task's lane.
    pub lane: Lane,
    /// The task's class in that lane.
    pub class: Class,
    /// The task's id.
    pub id: TaskId,
    /// The token that the task had while it was pending.
    pub token: Token,
}

impl Schedule {
    /// Removes tasks. Returns how many of them were present.
    pub async fn remove(&self, tasks: Vec<Gone>) -> Result<usize, RedisCallError> {
        let sorted =
            by_queue(tasks.into_iter().map(|gone| ((gone.lane, gone.class), member::encode(gone.id, gone.token))));
        let mut calls = Vec::new();
        for ((lane, class), members) in sorted {
            let keys = [self.keys.book(Partition::of(&lane)), self.keys.due(&lane, class)];
            let call = |members: &[Vec<u8>]| Call::script(&REMOVE, &keys).arg(in_book(&lane, class)).arg(members);
            calls.extend(members.chunks(TASKS_PER_CALL).map(call));
        }
        let mut removed = 0;
        for answer in self.link.call(calls, CALL_TIMEOUT).await {
            let Value::Int(count) = answer? else { return Err(RedisCallError::Unexpected("a removal")) };
            removed += usize::try_from(count).unwrap_or_default();
        }
        Ok(removed)
    }
}
