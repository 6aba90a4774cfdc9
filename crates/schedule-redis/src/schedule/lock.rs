//! The builders' lock: one builder at a time. Two would do no harm, but one scan of the whole store is enough.
//!
//! The lock is stored with the first of the partitions to fill, so that an unreachable node of a cluster does not keep
//! the others from being filled. Builders that fill different partitions may run at the same time.

use std::time::Duration;

use redis::Value;

use super::{Builder, CALL_TIMEOUT, Schedule};
use crate::keys::Partition;
use crate::redis_call_error::RedisCallError;
use crate::script::{Call, EXTEND, UNLOCK};

/// How long the lock of a builder lasts that does not renew it.
const LOCKED_FOR: Duration = Duration::from_secs(15);

impl Schedule {
    /// Takes the lock for `builder`, unless another builder has it. Returns whether `builder` has it.
    pub(crate) async fn lock(&self, beside: Partition, builder: &Builder) -> Result<bool, RedisCallError> {
        let millis = LOCKED_FOR.as_millis() as u64;
        let call = Call::command("SET").arg(self.keys.rebuild(beside)).arg(&builder.0).arg("NX").arg("PX").arg(millis);
        Ok(self.link.call_one(call, CALL_TIMEOUT).await? == Value::Okay)
    }

    /// Renews the lock. Returns whether `builder` still has it.
    pub(crate) async fn keep_lock(&self, beside: Partition, builder: &Builder) -> Result<bool, RedisCallError> {
        let millis = LOCKED_FOR.as_millis() as u64;
        let call = Call::script(&EXTEND, &[self.keys.rebuild(beside)]).arg(&builder.0).arg(millis);
        Ok(self.link.call_one(call, CALL_TIMEOUT).await? == Value::Int(1))
    }

    /// Releases the lock.
    pub(crate) async fn unlock(&self, beside: Partition, builder: &Builder) -> Result<(), RedisCallError> {
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
        let (one, other) = (Builder::new(), Builder::new());
        let beside = Partition::all().next().unwrap();
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
