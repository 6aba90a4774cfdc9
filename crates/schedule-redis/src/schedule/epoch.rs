//! Whether a partition is complete.
//!
//! A partition is complete when it holds every pending task that was ever told to it or found in the store by the builder
//! that filled it last, and that nobody has taken. Its book has an `epoch` then: the id of the server process in which
//! that became so. Filling goes like this: the builder notes in the book that it begins, adds all that the store has,
//! and turns its note into the epoch, if the note is still there. Meanwhile others add what becomes pending, as always:
//! a task is either in the store when the builder looks or is added by whoever makes it pending later. If anything is
//! lost on the way, the note is lost with it: it is in the key that counts, and a lane that holds less than was counted
//! removes it.

use redis::Value;

use super::{CALL_TIMEOUT, Schedule};
use crate::failure::Failure;
use crate::keys::Partition;
use crate::script::{BEGIN, Call, FINISH, IS_COMPLETE, Script};

/// Somebody who fills partitions; no two are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Builder(pub(crate) String);

impl Builder {
    /// A new one.
    #[expect(clippy::new_without_default, reason = "each is another one: there is no default")]
    pub fn new() -> Self {
        Builder(format!("{:032x}", fastrand::u128(..)))
    }
}

impl Schedule {
    /// Whether each partition is complete.
    pub async fn is_complete(&self, partitions: &[Partition]) -> Vec<Result<bool, Failure>> {
        self.ask_books(&IS_COMPLETE, partitions, None).await
    }

    /// Notes that `builder` begins to fill these partitions.
    pub async fn begin(&self, partitions: &[Partition], builder: &Builder) -> Vec<Result<bool, Failure>> {
        self.ask_books(&BEGIN, partitions, Some(builder)).await
    }

    /// Notes that `builder` has filled these partitions. Answers which are complete now; one that lost something
    /// meanwhile, or that another builder has begun to fill, is not.
    pub async fn finish(&self, partitions: &[Partition], builder: &Builder) -> Vec<Result<bool, Failure>> {
        self.ask_books(&FINISH, partitions, Some(builder)).await
    }

    /// Notes that these partitions are not complete: somebody could not add what should be there.
    pub async fn forget(&self, partitions: &[Partition]) -> Vec<Result<(), Failure>> {
        let call = |partition| Call::command("HDEL").arg(self.keys.book(partition)).arg(&["epoch", "building"]);
        let answers = self.link.call(partitions.iter().copied().map(call).collect(), CALL_TIMEOUT).await;
        answers.into_iter().map(|answer| answer.map(|_| ())).collect()
    }

    async fn ask_books(
        &self,
        script: &'static Script,
        partitions: &[Partition],
        builder: Option<&Builder>,
    ) -> Vec<Result<bool, Failure>> {
        let call = |partition| {
            let call = Call::script(script, &[self.keys.book(partition)]);
            builder.into_iter().fold(call, |call, builder| call.arg(&builder.0))
        };
        let answers = self.link.call(partitions.iter().copied().map(call).collect(), CALL_TIMEOUT).await;
        let parse = |answer| match answer {
            Value::Int(number) => Ok(number == 1),
            _ => Err(Failure::Unexpected("a book")),
        };
        answers.into_iter().map(|answer| answer.and_then(parse)).collect()
    }
}
