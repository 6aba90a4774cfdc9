//! One builder at a time: not because two would do harm, but because one look at the whole store is enough.

use std::time::Duration;

use redis::Value;

use super::{Builder, CALL_TIMEOUT, Schedule};
use crate::failure::Failure;
use crate::script::{Call, EXTEND, UNLOCK};

/// How long a builder that says nothing keeps the others waiting.
const LOCKED_FOR: Duration = Duration::from_secs(15);

impl Schedule {
    /// Makes `builder` the one who fills the index, unless there is another. Answers whether it is.
    pub(crate) async fn lock(&self, builder: &Builder) -> Result<bool, Failure> {
        let millis = LOCKED_FOR.as_millis() as u64;
        let call = Call::command("SET").arg(self.keys.rebuild()).arg(&builder.0).arg("NX").arg("PX").arg(millis);
        Ok(self.link.call_one(call, CALL_TIMEOUT).await? == Value::Okay)
    }

    /// Keeps the others waiting for longer. Answers whether it is still `builder`'s turn.
    pub(crate) async fn keep_lock(&self, builder: &Builder) -> Result<bool, Failure> {
        let millis = LOCKED_FOR.as_millis() as u64;
        let call = Call::script(&EXTEND, &[self.keys.rebuild()]).arg(&builder.0).arg(millis);
        Ok(self.link.call_one(call, CALL_TIMEOUT).await? == Value::Int(1))
    }

    /// Lets the others have their turn.
    pub(crate) async fn unlock(&self, builder: &Builder) -> Result<(), Failure> {
        let call = Call::script(&UNLOCK, &[self.keys.rebuild()]).arg(&builder.0);
        self.link.call_one(call, CALL_TIMEOUT).await.map(|_| ())
    }
}
