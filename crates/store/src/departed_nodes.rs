//! Notices that another process has stopped or no longer claims, so that the tasks that only it knew of are found.
//!
//! A process that submits a pending task claims it itself, so the other processes do not need to know of it. When that
//! process stops, the others must read the store. Its last writes may be committed after they have read it, so they
//! read again and again while a process is leaving.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive_core::Timestamp;

use crate::{Heartbeat, NodeId};

/// By how much a heartbeat may be late, in addition to half of the time between two of them.
const LATE: Duration = Duration::from_secs(1);
/// A process that has been silent or gone for this long writes nothing any more.
const GONE_AFTER: Duration = Duration::from_secs(60);

/// The processes that were present at the last look.
#[derive(Debug, Default)]
pub struct DepartedNodes {
    /// When each process started.
    known: BTreeMap<NodeId, Timestamp>,
    /// Until when writes that a process sent before it stopped may still be committed.
    unsettled_until: Timestamp,
}

impl DepartedNodes {
    /// Compares the other processes, each with its last heartbeat and the time of it, with those of the last look.
    /// Returns whether one of them stopped or restarted within the last minute, or is running and claims nothing.
    pub fn look<'a>(
        &mut self,
        others: impl IntoIterator<Item = (&'a NodeId, &'a Heartbeat, Timestamp)>,
        now: Timestamp,
    ) -> bool {
        let mut is_leaving = false;
        let mut there = BTreeMap::new();
        for (id, beat, seen_at) in others {
            let silent_for = now.since(seen_at);
            if silent_for > GONE_AFTER.max(2 * beat.every) {
                continue;
            }
            // The previous version's heartbeat has no `claims`, only whether it drains.
            is_leaving |= !beat.claims || beat.is_draining || silent_for > beat.every + beat.every / 2 + LATE;
            there.insert(id.clone(), beat.started_at);
        }
        let has_gone = self.known.iter().any(|(id, started_at)| there.get(id) != Some(started_at));
        self.known = there;
        if has_gone {
            self.unsettled_until = now.after(GONE_AFTER);
        }
        is_leaving || now < self.unsettled_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + seconds * 1_000)
    }

    fn beat(started: u64) -> Heartbeat {
        Heartbeat {
            started_at: at(started),
            version: String::new(),
            address: String::new(),
            in_flight: 0,
            is_draining: false,
            claims: true,
            clock_ahead_ms: 0,
            every: Duration::from_secs(5),
        }
    }

    fn look(departed_nodes: &mut DepartedNodes, others: &[(&str, Heartbeat, u64)], now: u64) -> bool {
        let ids: Vec<NodeId> = others.iter().map(|(name, ..)| NodeId::try_new(name).unwrap()).collect();
        let others = ids.iter().zip(others).map(|(id, (_, beat, seen))| (id, beat, at(*seen)));
        departed_nodes.look(others, at(now))
    }

    #[test]
    fn who_is_there_and_claims_leaves_nothing_behind() {
        let mut departed_nodes = DepartedNodes::default();
        assert!(!look(&mut departed_nodes, &[], 0));
        assert!(!look(&mut departed_nodes, &[("a", beat(0), 0)], 1), "one that has come");
        assert!(!look(&mut departed_nodes, &[("a", beat(0), 5), ("b", beat(5), 5)], 13), "a bit late");
    }

    #[test]
    fn who_has_left_or_was_started_anew_is_noticed_until_it_can_write_nothing_more() {
        let mut departed_nodes = DepartedNodes::default();
        let both = [("a", beat(0), 0), ("b", beat(0), 0)];
        assert!(!look(&mut departed_nodes, &both, 1));
        assert!(look(&mut departed_nodes, &both[..1], 2), "one has left");
        assert!(look(&mut departed_nodes, &[("a", beat(0), 60)], 61));
        assert!(!look(&mut departed_nodes, &[("a", beat(0), 60)], 62));
        assert!(look(&mut departed_nodes, &[("a", beat(63), 63)], 64), "one was started anew");
        assert!(look(&mut departed_nodes, &[("a", beat(63), 120)], 123));
        assert!(!look(&mut departed_nodes, &[("a", beat(63), 120)], 124));
    }

    #[test]
    fn who_drains_is_noticed_though_it_says_nothing_of_claims() {
        let mut departed_nodes = DepartedNodes::default();
        assert!(look(&mut departed_nodes, &[("a", Heartbeat { is_draining: true, ..beat(0) }, 0)], 1));
    }

    #[test]
    fn who_falls_silent_is_noticed_until_it_can_write_nothing_more() {
        let mut departed_nodes = DepartedNodes::default();
        let silent = [("a", beat(0), 0)];
        let noticed = [5, 8, 9, 30, 60, 61, 120, 121].map(|now| look(&mut departed_nodes, &silent, now));
        assert_eq!(noticed, [false, false, true, true, true, true, true, false]);
    }

    #[test]
    fn who_claims_nothing_is_noticed_as_long_as_that_lasts() {
        let mut departed_nodes = DepartedNodes::default();
        let uncertain = || Heartbeat { claims: false, ..beat(0) };
        assert!(look(&mut departed_nodes, &[("a", uncertain(), 0)], 1));
        assert!(look(&mut departed_nodes, &[("a", uncertain(), 5)], 6));
        assert!(!look(&mut departed_nodes, &[("a", beat(0), 10)], 11));
    }
}
