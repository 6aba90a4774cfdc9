//! The epoch: whether a partition is complete.
//!
//! A partition is complete when it holds every pending task that was ever added to it, or that the last builder found
//! in the store, and that has not been taken. Then its book has an `epoch`: the id of the server process in which it
//! became complete. To fill a partition, the builder writes into the book that it begins, adds all pending tasks of the
//! store, and turns its entry into the epoch if the entry is still present. Meanwhile other processes add new pending
//! tasks as always: a task is either in the store when the builder reads it, or is added by the process that makes it
//! pending later. If any data is lost on the way, the builder's entry is lost too: it is in the same key as the counts,
//! and a lane that holds less than was counted removes it.

use redis::Value;

use super::{CALL_TIMEOUT, Schedule};
use crate::keys::Partition;
use crate::redis_call_error::RedisCallError;
use crate::script::{BEGIN, Call, FINISH, IS_COMPLETE, Script};

/// The unique identity of a process that fills partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Builder(pub(crate) String);

impl Builder {
    /// A new identity.
    #[expect(clippy::new_without_default, reason = "each is another one: there is no default")]
    pub fn new() -> Self {
        Builder(format!("{:032x}", fastrand::u128(..)))
    }
}

impl Schedule {
    /// Whether each partition is complete.
    pub async fn is_complete(&self, partitions: &[Partition]) -> Vec<Result<bool, RedisCallError>> {
        self.ask_books(&IS_COMPLETE, partitions, None).await
    }

    /// Records that `builder` begins to fill these partitions.
    pub async fn begin(&self, partitions: &[Partition], builder: &Builder) -> Vec<Result<bool, RedisCallError>> {
        self.ask_books(&BEGIN, partitions, Some(builder)).await
    }

    /// Records that `builder` has filled these partitions. Returns which are complete now. A partition that lost data
    /// meanwhile, or that another builder has begun to fill, is not.
    pub async fn finish(&self, partitions: &[Partition], builder: &Builder) -> Vec<Result<bool, RedisCallError>> {
        self.ask_books(&FINISH, partitions, Some(builder)).await
    }

    /// Records that these partitions are not complete, because a process could not add a task.
    pub async fn forget(&self, partitions: &[Partition]) -> Vec<Result<(), RedisCallError>> {
        let call = |partition| Call::command("HDEL").arg(self.keys.book(partition)).arg(&["epoch", "building"]);
        let answers = self.link.call(partitions.iter().copied().map(call).collect(), CALL_TIMEOUT).await;
        answers.into_iter().map(|answer| answer.map(|_| ())).collect()
    }

    async fn ask_books(
        &self,
        script: &'static Script,
        partitions: &[Partition],
        builder: Option<&Builder>,
    ) -> Vec<Result<bool, RedisCallError>> {
        let call = |partition| {
            let call = Call::script(script, &[self.keys.book(partition)]);
            builder.into_iter().fold(call, |call, builder| call.arg(&builder.0))
        };
        let answers = self.link.call(partitions.iter().copied().map(call).collect(), CALL_TIMEOUT).await;
        let parse = |answer| match answer {
            Value::Int(number) => Ok(number == 1),
            _ => Err(RedisCallError::Unexpected("a book")),
        };
        answers.into_iter().map(|answer| answer.and_then(parse)).collect()
    }
}
