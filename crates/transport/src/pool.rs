//! All kept connections, by lane and origin, with their bounds.
//!
//! A reaper runs while there is anything to reap and ends when there is not, so an idle process has no timer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use redrive_core::Lane;
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
    by_lane: HashMap<Lane, HashMap<Box<str>, Arc<Peer>>>,
    reaper_runs: bool,
}

impl Pool {
    /// An empty pool.
    pub(crate) fn new(options: Options, connector: Connector) -> Self {
        let crowded_at = AtomicUsize::new(options.max_idle);
        Pool { options, connector, peers: Mutex::default(), kept: Arc::default(), crowded_at }
    }

    /// The connections of `lane` to what `target` names.
    pub(crate) fn peer(self: &Arc<Self>, lane: &Lane, target: &Target<'_>) -> Result<Arc<Peer>, SendError> {
        let spelling = target.origin();
        let mut peers = self.peers();
        if let Some(peer) = peers.by_lane.get(lane).and_then(|by_origin| by_origin.get(spelling.as_ref())) {
            return Ok(peer.clone());
        }
        let origin = Origin::parse(target)?;
        let may_share = self.connector.may_share(&origin);
        let peer = Arc::new(Peer::new(origin, self.options.max_connections_per_lane, may_share));
        peers.by_lane.entry(lane.clone()).or_default().insert(spelling.into(), peer.clone());
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

    /// Takes a connection back after a complete exchange.
    pub(crate) async fn put_back(&self, peer: &Peer, line: Line) {
        match line {
            Line::Shared(connection) => peer.used(&connection, self.kept_until()),
            Line::Own { mut connection, place, .. } => {
                if connection.is_free().await {
                    peer.keep(connection, self.kept_until(), self.count(), self.options.max_idle_per_lane);
                }
                // Only now: whoever waits for the place shall find the connection.
                drop(place);
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
        let by_lane = std::mem::take(&mut self.peers().by_lane);
        let mut unused = Unused::default();
        for peer in by_lane.values().flat_map(HashMap::values) {
            peer.take_unused(self.kept_until(), &mut unused);
        }
    }

    /// Closes the quarter of the unused connections that was used least recently.
    fn make_room(&self) {
        let mut unused_until = Vec::new();
        let mut peers = self.peers();
        for peer in peers.by_lane.values().flat_map(HashMap::values) {
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
        let runs_on = !peers.by_lane.is_empty();
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
        self.by_lane.retain(|_, by_origin| {
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
    use redrive_core::{Dependency, TenantId};

    use super::*;
    use crate::options::Roots;

    #[tokio::test(start_paused = true)]
    async fn lanes_that_are_not_used_are_forgotten_and_the_reaper_ends() {
        let options = Options { roots: Roots::ExtraOnly, ..Options::default() };
        let round = options.idle_timeout / 2;
        let connector = Connector::new(&options).unwrap();
        let pool = Arc::new(Pool::new(options, connector));
        let lane = |number: usize| Lane {
            tenant: TenantId::default_tenant(),
            dependency: Dependency::try_new(format!("lane-{number}")).unwrap(),
        };
        for _ in 0..2 {
            let in_use = pool.peer(&lane(0), &Target::parse("http://a.test/").unwrap()).unwrap();
            for number in 0..100 {
                pool.peer(&lane(number), &Target::parse("http://a.test/").unwrap()).unwrap();
            }
            assert_eq!(pool.peers().by_lane.len(), 100);
            tokio::time::sleep(round * 2).await;
            assert_eq!(pool.peers().by_lane.len(), 1);
            assert!(pool.peers().reaper_runs);
            drop(in_use);
            tokio::time::sleep(round * 2).await;
            assert!(pool.peers().by_lane.is_empty());
            assert!(!pool.peers().reaper_runs);
        }
    }

    #[tokio::test]
    async fn the_same_spelling_of_an_origin_is_the_same_peer_and_a_password_makes_no_difference() {
        let options = Options { roots: Roots::ExtraOnly, ..Options::default() };
        let pool = Arc::new(Pool::new(options.clone(), Connector::new(&options).unwrap()));
        let lane = Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new("d").unwrap() };
        let peer = |url| pool.peer(&lane, &Target::parse(url).unwrap()).unwrap();
        let first = peer("http://a.test/x");
        assert!(Arc::ptr_eq(&first, &peer("http://a.test?y")));
        assert!(Arc::ptr_eq(&first, &peer("http://user:secret@a.test/z")));
        assert!(!Arc::ptr_eq(&first, &peer("https://a.test/x")));
    }
}
