//! All kept connections, by tenant and origin, with their bounds. How many are in use is bounded by the engine's slots.
//!
//! A reaper runs while there is anything to reap and ends when there is not, so an idle process has no timer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use redrive_core::TenantId;
use redrive_engine::transport::SendError;
use tokio::time::Instant;

use crate::checked_out::CheckedOut;
use crate::connect::Connector;
use crate::options::Options;
use crate::origin::Origin;
use crate::origin_pool::{KeptCount, OriginPool, Unused};
use crate::target::Target;

/// However short the idle timeout is, unused connections are looked for no more often than this.
const SHORTEST_ROUND: Duration = Duration::from_millis(10);

/// The longest idle timeout: long enough for all purposes, and it can be added to any moment without overflow.
const LONGEST_IDLE: Duration = Duration::from_secs(365 * 24 * 3600);

/// All kept connections.
pub(crate) struct Pool {
    pub(crate) options: Options,
    pub(crate) connector: Connector,
    origin_pools: Mutex<OriginPools>,
    kept: Arc<AtomicUsize>,
    /// How many connections are too many. It is above `max_idle` only while connections in use leave nothing to close.
    crowded_at: AtomicUsize,
}

#[derive(Default)]
struct OriginPools {
    by_tenant: HashMap<TenantId, HashMap<Box<str>, Arc<OriginPool>>>,
    reaper_runs: bool,
}

impl Pool {
    /// An empty pool.
    pub(crate) fn new(options: Options, connector: Connector) -> Self {
        let crowded_at = AtomicUsize::new(options.max_idle);
        Pool { options, connector, origin_pools: Mutex::default(), kept: Arc::default(), crowded_at }
    }

    /// The connections of `tenant` to what `target` names. They are the same for all its lanes.
    pub(crate) fn origin_pool(
        self: &Arc<Self>,
        tenant: &TenantId,
        target: &Target<'_>,
    ) -> Result<Arc<OriginPool>, SendError> {
        let spelling = target.origin();
        let mut origin_pools = self.origin_pools();
        if let Some(origin_pool) =
            origin_pools.by_tenant.get(tenant).and_then(|by_origin| by_origin.get(spelling.as_ref()))
        {
            return Ok(origin_pool.clone());
        }
        let origin = Origin::parse(target)?;
        let may_share = self.connector.may_share(&origin);
        let origin_pool = Arc::new(OriginPool::new(origin, may_share));
        origin_pools.by_tenant.entry(tenant.clone()).or_default().insert(spelling.into(), origin_pool.clone());
        if !origin_pools.reaper_runs {
            origin_pools.reaper_runs = true;
            tokio::spawn(reap(Arc::downgrade(self), (self.options.idle_timeout / 2).max(SHORTEST_ROUND)));
        }
        Ok(origin_pool)
    }

    /// Counts a connection that is kept from now on.
    pub(crate) fn count(&self) -> KeptCount {
        KeptCount::new(&self.kept)
    }

    /// Takes a connection back after a complete exchange, or unused.
    pub(crate) async fn put_back(&self, origin_pool: &OriginPool, checked_out: CheckedOut) {
        let most = self.options.max_idle_per_origin;
        match checked_out {
            CheckedOut::Shared(stream) => {
                let connection = stream.connection().clone();
                drop(stream);
                origin_pool.used(&connection, self.kept_until(), most);
            }
            CheckedOut::Exclusive { mut connection, .. } => {
                if connection.is_free().await {
                    origin_pool.keep(connection, self.kept_until(), self.count(), most);
                }
            }
        }
        if self.kept.load(Ordering::Relaxed) > self.crowded_at.load(Ordering::Relaxed) {
            self.make_room();
        }
    }

    /// Until when a connection is kept that is not used from now on.
    pub(crate) fn kept_until(&self) -> Instant {
        Instant::now() + self.options.idle_timeout.min(LONGEST_IDLE)
    }

    /// Closes what is unused, and forgets the rest: it closes with the sends that use it.
    pub(crate) fn close(&self) {
        let by_tenant = std::mem::take(&mut self.origin_pools().by_tenant);
        let mut unused = Unused::default();
        for origin_pool in by_tenant.values().flat_map(HashMap::values) {
            origin_pool.take_unused(self.kept_until(), &mut unused);
        }
    }

    /// Closes the quarter of the unused connections that was used least recently.
    fn make_room(&self) {
        let mut unused_until = Vec::new();
        let mut origin_pools = self.origin_pools();
        for origin_pool in origin_pools.by_tenant.values().flat_map(HashMap::values) {
            origin_pool.unused_until(&mut unused_until);
        }
        let quarter = unused_until.len().div_ceil(4);
        if quarter > 0 {
            let (_, &mut until, _) = unused_until.select_nth_unstable(quarter - 1);
            let unused = origin_pools.take_unused(until);
            drop(origin_pools);
            drop(unused);
        }
        let left = self.kept.load(Ordering::Relaxed);
        let crowded_at = self.options.max_idle.max(left + self.options.max_idle / 4);
        self.crowded_at.store(crowded_at, Ordering::Relaxed);
    }

    /// Closes what was not used for too long. Says whether there is anything left to look after.
    fn reap(&self) -> bool {
        let mut origin_pools = self.origin_pools();
        let unused = origin_pools.take_unused(Instant::now());
        let runs_on = !origin_pools.by_tenant.is_empty();
        origin_pools.reaper_runs = runs_on;
        drop(origin_pools);
        drop(unused);
        self.crowded_at.store(self.options.max_idle, Ordering::Relaxed);
        runs_on
    }

    fn origin_pools(&self) -> MutexGuard<'_, OriginPools> {
        self.origin_pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OriginPools {
    /// Takes out what is unused and kept no longer than `until` then, and forgets peers of which nothing is left. The
    /// result is to be dropped after the lock: closing sockets takes longer than it should be held.
    fn take_unused(&mut self, until: Instant) -> Unused {
        let mut unused = Unused::default();
        self.by_tenant.retain(|_, by_origin| {
            // A peer that a send holds is counted twice, and sends get hold of one only under the lock.
            by_origin.retain(|_, origin_pool| {
                !origin_pool.take_unused(until, &mut unused) || Arc::strong_count(origin_pool) > 1
            });
            !by_origin.is_empty()
        });
        unused
    }
}

/// Looks after `pool` for as long as there is something to look after.
async fn reap(pool: Weak<Pool>, round: Duration) {
    loop {
        tokio::time::sleep(round).await;
        if !pool.upgrade().is_some_and(|pool| pool.reap()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_dial::Roots;

    fn pool() -> Arc<Pool> {
        let options = Options { roots: Roots::ExtraOnly, ..Options::default() };
        let connector = Connector::new(&options).unwrap();
        Arc::new(Pool::new(options, connector))
    }

    fn tenant(number: usize) -> TenantId {
        TenantId::try_new(format!("tenant-{number}")).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn peers_that_are_not_used_are_forgotten_and_the_reaper_ends() {
        let pool = pool();
        let round = pool.options.idle_timeout / 2;
        let origin_pool =
            |number| pool.origin_pool(&tenant(number), &Target::parse("http://a.test/").unwrap()).unwrap();
        for _ in 0..2 {
            let in_use = origin_pool(0);
            for number in 0..100 {
                origin_pool(number);
            }
            assert_eq!(pool.origin_pools().by_tenant.len(), 100);
            tokio::time::sleep(round * 2).await;
            assert_eq!(pool.origin_pools().by_tenant.len(), 1);
            assert!(pool.origin_pools().reaper_runs);
            drop(in_use);
            tokio::time::sleep(round * 2).await;
            assert!(pool.origin_pools().by_tenant.is_empty());
            assert!(!pool.origin_pools().reaper_runs);
        }
    }

    #[tokio::test]
    async fn the_same_spelling_of_an_origin_is_the_same_peer_and_a_password_makes_no_difference() {
        let pool = pool();
        let origin_pool = |number, url| pool.origin_pool(&tenant(number), &Target::parse(url).unwrap()).unwrap();
        let first = origin_pool(0, "http://a.test/x");
        assert!(Arc::ptr_eq(&first, &origin_pool(0, "http://a.test?y")));
        assert!(Arc::ptr_eq(&first, &origin_pool(0, "http://user:secret@a.test/z")));
        assert!(!Arc::ptr_eq(&first, &origin_pool(0, "https://a.test/x")));
        assert!(!Arc::ptr_eq(&first, &origin_pool(1, "http://a.test/x")));
    }
}
