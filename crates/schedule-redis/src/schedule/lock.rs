//! One builder at a time: not because two would do harm, but because one look at the whole store is enough.
//!
//! The lock is beside the first of the partitions that are to be filled, so that a node of a cluster that is away does not
//! keep the others from being filled. Builders who do not agree on what is to be filled may be at it at the same time.

use std::time::Duration;

use redis::Value;

use super::{Builder, CALL_TIMEOUT, Schedule};
use crate::failure::Failure;
use crate::keys::Partition;
use crate::script::{Call, EXTEND, UNLOCK};

/// How long a builder that says nothing keeps the others waiting.
const LOCKED_FOR: Duration = Duration::from_secs(15);

impl Schedule {
    /// Makes `builder` the one who fills the index, unless there is another. Answers whether it is.
    pub(crate) async fn lock(&self, beside: Partition, builder: &Builder) -> Result<bool, Failure> {
        let millis = LOCKED_FOR.as_millis() as u64;
        let call = Call::command("SET").arg(self.keys.rebuild(beside)).arg(&builder.0).arg("NX").arg("PX").arg(millis);
        Ok(self.link.call_one(call, CALL_TIMEOUT).await? == Value::Okay)
    }

    /// Keeps the others waiting for longer. Answers whether it is still `builder`'s turn.
    pub(crate) async fn keep_lock(&self, beside: Partition, builder: &Builder) -> Result<bool, Failure> {
        let millis = LOCKED_FOR.as_millis() as u64;
        let call = Call::script(&EXTEND, &[self.keys.rebuild(beside)]).arg(&builder.0).arg(millis);
        Ok(self.link.call_one(call, CALL_TIMEOUT).await? == Value::Int(1))
    }

    /// Lets the others have their turn.
    pub(crate) async fn unlock(&self, beside: Partition, builder: &Builder) -> Result<(), Failure> {
        let call = Call::script(&UNLOCK, &[self.keys.rebuild(beside)]).arg(&builder.0);
        self.link.call_one(call, CALL_TIMEOUT).await.map(|_| ())
    }
}
