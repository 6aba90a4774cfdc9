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

use crate::connect::Connector;
use crate::line::Line;
use crate::options::Options;
use crate::origin::Origin;
use crate::peer::{Counted, Peer, Unused};
use crate::target::Target;

/// However short the idle timeout is, unused connections are looked for no more often than this.
const SHORTEST_ROUND: Duration = Duration::from_millis(10);

/// However long the idle timeout is, this is as good as for ever, and can be added to any moment.
const LONGEST_IDLE: Duration = Duration::from_secs(365 * 24 * 3600);

/// All kept connections.
pub(crate) struct Pool {
    pub(crate) options: Options,
    pub(crate) connector: Connector,
    peers: Mutex<Peers>,
    kept: Arc<AtomicUsize>,
    /// How many connections are too many. It is above `max_idle` only while connections in use leave nothing to close.
    crowded_at: AtomicUsize,
}

#[derive(Default)]
struct Peers {
    by_tenant: HashMap<TenantId, HashMap<Box<str>, Arc<Peer>>>,
    reaper_runs: bool,
}

impl Pool {
    /// An empty pool.
    pub(crate) fn new(options: Options, connector: Connector) -> Self {
        let crowded_at = AtomicUsize::new(options.max_idle);
        Pool { options, connector, peers: Mutex::default(), kept: Arc::default(), crowded_at }
    }

    /// The connections of `tenant` to what `target` names. They are the same for all its lanes.
    pub(crate) fn peer(self: &Arc<Self>, tenant: &TenantId, target: &Target<'_>) -> Result<Arc<Peer>, SendError> {
        let spelling = target.origin();
        let mut peers = self.peers();
        if let Some(peer) = peers.by_tenant.get(tenant).and_then(|by_origin| by_origin.get(spelling.as_ref())) {
            return Ok(peer.clone());
        }
        let origin = Origin::parse(target)?;
        let may_share = self.connector.may_share(&origin);
        let peer = Arc::new(Peer::new(origin, may_share));
        peers.by_tenant.entry(tenant.clone()).or_default().insert(spelling.into(), peer.clone());
        if !peers.reaper_runs {
            peers.reaper_runs = true;
            tokio::spawn(reap(Arc::downgrade(self), (self.options.idle_timeout / 2).max(SHORTEST_ROUND)));
        }
        Ok(peer)
    }

    /// Counts a connection that is kept from now on.
    pub(crate) fn count(&self) -> Counted {
        Counted::new(&self.kept)
    }

    /// Takes a connection back after a complete exchange, or unused.
    pub(crate) async fn put_back(&self, peer: &Peer, line: Line) {
        let most = self.options.max_idle_per_origin;
        match line {
            Line::Shared(stream) => {
                let connection = stream.connection().clone();
                drop(stream);
                peer.used(&connection, self.kept_until(), most);
            }
            Line::Own { mut connection, .. } => {
                if connection.is_free().await {
                    peer.keep(connection, self.kept_until(), self.count(), most);
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
        let by_tenant = std::mem::take(&mut self.peers().by_tenant);
        let mut unused = Unused::default();
        for peer in by_tenant.values().flat_map(HashMap::values) {
            peer.take_unused(self.kept_until(), &mut unused);
        }
    }

    /// Closes the quarter of the unused connections that was used least recently.
    fn make_room(&self) {
        let mut unused_until = Vec::new();
        let mut peers = self.peers();
        for peer in peers.by_tenant.values().flat_map(HashMap::values) {
            peer.unused_until(&mut unused_until);
        }
        let quarter = unused_until.len().div_ceil(4);
        if quarter > 0 {
            let (_, &mut until, _) = unused_until.select_nth_unstable(quarter - 1);
            let unused = peers.take_unused(until);
            drop(peers);
            drop(unused);
        }
        let left = self.kept.load(Ordering::Relaxed);
        let crowded_at = self.options.max_idle.max(left + self.options.max_idle / 4);
        self.crowded_at.store(crowded_at, Ordering::Relaxed);
    }

    /// Closes what was not used for too long. Says whether there is anything left to look after.
    fn reap(&self) -> bool {
        let mut peers = self.peers();
        let unused = peers.take_unused(Instant::now());
        let runs_on = !peers.by_tenant.is_empty();
        peers.reaper_runs = runs_on;
        drop(peers);
        drop(unused);
        self.crowded_at.store(self.options.max_idle, Ordering::Relaxed);
        runs_on
    }

    fn peers(&self) -> MutexGuard<'_, Peers> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peers {
    /// Takes out what is unused and kept no longer than `until` then, and forgets peers of which nothing is left. The
    /// result is to be dropped after the lock: closing sockets takes longer than it should be held.
    fn take_unused(&mut self, until: Instant) -> Unused {
        let mut unused = Unused::default();
        self.by_tenant.retain(|_, by_origin| {
            // A peer that a send holds is counted twice, and sends get hold of one only under the lock.
            by_origin.retain(|_, peer| !peer.take_unused(until, &mut unused) || Arc::strong_count(peer) > 1);
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
        let peer = |number| pool.peer(&tenant(number), &Target::parse("http://a.test/").unwrap()).unwrap();
        for _ in 0..2 {
            let in_use = peer(0);
            for number in 0..100 {
                peer(number);
            }
            assert_eq!(pool.peers().by_tenant.len(), 100);
            tokio::time::sleep(round * 2).await;
            assert_eq!(pool.peers().by_tenant.len(), 1);
            assert!(pool.peers().reaper_runs);
            drop(in_use);
            tokio::time::sleep(round * 2).await;
            assert!(pool.peers().by_tenant.is_empty());
            assert!(!pool.peers().reaper_runs);
        }
    }

    #[tokio::test]
    async fn the_same_spelling_of_an_origin_is_the_same_peer_and_a_password_makes_no_difference() {
        let pool = pool();
        let peer = |number, url| pool.peer(&tenant(number), &Target::parse(url).unwrap()).unwrap();
        let first = peer(0, "http://a.test/x");
        assert!(Arc::ptr_eq(&first, &peer(0, "http://a.test?y")));
        assert!(Arc::ptr_eq(&first, &peer(0, "http://user:secret@a.test/z")));
        assert!(!Arc::ptr_eq(&first, &peer(0, "https://a.test/x")));
        assert!(!Arc::ptr_eq(&first, &peer(1, "http://a.test/x")));
    }
}
