//! The shared counts of the guards of all processes: in Redis while it answers, in the store otherwise.
//!
//! Tallies are counted in one place at a time. When Redis fails or comes back, the counts of the other place within the
//! window are not included: for one window, a sum may be too low by them. A call whose answer did not come may have
//! counted in Redis and counts in the store as well. Both errors last one window at most.
//!
//! Holds are rare and matter more. Each is written to both places, so that a lane stays held back whichever place is
//! read, and after a flush the repair loop copies those of the store back. Between the flush and that copy, a hold may
//! be missed. A hold that is evicted alone is missed until it expires.
//!
//! The scripts and keys are here too ([`Schedule::tally`], [`Schedule::hold`], [`Schedule::held`]). Not here: what a
//! guard does with a sum, which is part of the engine.

mod hold;
mod tally;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use redrive_core::{Lane, Timestamp};
use redrive_store::{Error, Guards, Hold, Store, Tally, Totals};

use crate::keys::Partition;
use crate::partitions::{Partitions, Standing};
use crate::redis_call_error::RedisCallError;
use crate::schedule::Schedule;

/// The guards' counters in Redis, with those of the store as the fallback.
pub(crate) struct RedisGuards {
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) partitions: Arc<Partitions>,
    pub(crate) store: Arc<dyn Store>,
}

impl RedisGuards {
    fn of_store(&self) -> Result<&dyn Guards, Error> {
        let shared = self.store.shared().ok_or_else(|| Error::Unavailable("the store is not shared".into()))?;
        Ok(shared.guards())
    }

    /// The answer of Redis about holds; `None` while Redis does not answer.
    async fn in_redis<T>(&self, asking: impl Future<Output = Result<T, RedisCallError>>) -> Option<T> {
        if self.partitions.standing(Partition::OF_HOLDS) == Standing::Failed {
            return None;
        }
        match asking.await {
            Ok(answer) => Some(answer),
            Err(failure) => {
                self.partitions.partition_failed(Partition::OF_HOLDS, &failure);
                None
            }
        }
    }
}

#[async_trait]
impl Guards for RedisGuards {
    async fn tally(&self, tallies: Vec<Tally>, since: Timestamp) -> Result<Vec<Totals>, Error> {
        let (reachable, mut rest): (Vec<Tally>, Vec<Tally>) =
            tallies.iter().cloned().partition(|tally| self.partitions.is_reachable(&tally.lane));
        let mut sums: BTreeMap<Lane, Totals> = BTreeMap::new();
        for (lane, answer) in self.schedule.tally(&reachable, since).await {
            match answer {
                Ok(totals) => drop(sums.insert(lane, totals)),
                Err(failure) => {
                    self.partitions.failed(&lane, &failure);
                    rest.extend(reachable.iter().filter(|tally| tally.lane == lane).cloned());
                }
            }
        }
        if !rest.is_empty() {
            let lanes: Vec<Lane> = rest.iter().map(|tally| tally.lane.clone()).collect();
            let totals = self.of_store()?.tally(rest, since).await?;
            // The last answer for a lane includes all of its tallies.
            sums.extend(lanes.into_iter().zip(totals));
        }
        Ok(tallies.iter().map(|tally| sums.get(&tally.lane).copied().unwrap_or_default()).collect())
    }

    async fn hold(&self, holds: Vec<Hold>) -> Result<Vec<Timestamp>, Error> {
        let in_redis = self.in_redis(self.schedule.hold(&holds)).await;
        let in_store = self.of_store()?.hold(holds).await;
        match (in_redis, in_store) {
            (Some(first), Ok(second)) => Ok(first.into_iter().zip(second).map(|(one, other)| one.max(other)).collect()),
            (None, in_store) => in_store,
            (Some(standing), Err(error)) => {
                tracing::warn!(%error, "a hold is known to redis alone");
                Ok(standing)
            }
        }
    }

    async fn held(&self, now: Timestamp, limit: usize) -> Result<Vec<Hold>, Error> {
        match self.in_redis(self.schedule.held(now, limit)).await {
            Some(holds) => Ok(holds),
            None => self.of_store()?.held(now, limit).await,
        }
    }
}
