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

#[cfg(test)]
mod tests {
    use redrive_testbed::Redis;

    use super::*;
    use crate::Options;

    #[tokio::test]
    async fn one_builder_has_the_lock_until_it_gives_it_back_or_says_nothing_for_long() {
        let redis = Redis::start();
        let schedule = Schedule::new(redis.url().parse().unwrap(), Options::default()).unwrap();
        schedule.connect().await.unwrap();
        let (one, other, beside) = (Builder::new(), Builder::new(), Partition::OF_HOLDS);
        assert!(schedule.lock(beside, &one).await.unwrap());
        assert!(!schedule.lock(beside, &other).await.unwrap());
        assert!(!schedule.keep_lock(beside, &other).await.unwrap());
        schedule.unlock(beside, &other).await.unwrap();
        assert!(schedule.keep_lock(beside, &one).await.unwrap());
        schedule.unlock(beside, &one).await.unwrap();
        assert!(schedule.lock(beside, &other).await.unwrap());
        let millis: u128 = redis.call(&["PTTL", &schedule.keys.rebuild(beside)]).parse().unwrap();
        assert!(millis <= LOCKED_FOR.as_millis());
        redis.call(&["DEL", &schedule.keys.rebuild(beside)]);
        assert!(!schedule.keep_lock(beside, &other).await.unwrap(), "it ran out");
    }
}
