//! Leasing due work, and finding leases that ran out.

use std::ops::Bound;
use std::time::Duration;

use redrive_core::planted::{self, Bug};
use redrive_core::{Lane, TaskId, Timestamp};

use super::state::State;
use crate::{Claimed, Claims, LaneDue, LaneRoom, LeaseTerms};

impl State {
    pub(super) fn claim(&mut self, lanes: Vec<LaneRoom>, lease: LeaseTerms, now: Timestamp) -> Claims {
        let mut claims = Claims::default();
        for LaneRoom { lane, room } in lanes {
            for _ in 0..room {
                let Some(id) = self.earliest_due(&lane, now) else { break };
                let claimed = self.change(id, |entry| {
                    entry.claim(now, lease.until(now, entry.task.attempt_timeout));
                    entry.claimed()
                });
                claims.claimed.extend(claimed);
            }
            let next_due = self.next_due(&lane);
            claims.lanes.push(LaneDue { lane, next_due });
        }
        claims
    }

    pub(super) fn expired(&self, now: Timestamp, limit: usize) -> Vec<Claimed> {
        let early = if planted::is(Bug::TakeOverTooEarly) { Duration::from_secs(30) } else { Duration::ZERO };
        let now = now.after(early);
        let ran_out = self.indexes.leases.iter().take_while(|(until, _)| *until <= now).take(limit);
        ran_out.filter_map(|(_, id)| self.tasks.get(id)).map(|entry| entry.claimed()).collect()
    }

    pub(super) fn pending_lanes(&self, after: Option<&Lane>, limit: usize) -> Vec<LaneDue> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let lanes = self.indexes.due.range::<Lane, _>((from, Bound::Unbounded)).take(limit);
        lanes.map(|(lane, due)| LaneDue { lane: lane.clone(), next_due: due.first().map(|(at, _)| *at) }).collect()
    }

    fn earliest_due(&self, lane: &Lane, now: Timestamp) -> Option<TaskId> {
        let (at, id) = self.indexes.due.get(lane)?.first()?;
        let now = if planted::is(Bug::ClaimTooEarly) { now.after(Duration::from_secs(5)) } else { now };
        (*at <= now).then_some(*id)
    }

    fn next_due(&self, lane: &Lane) -> Option<Timestamp> {
        self.indexes.due.get(lane)?.first().map(|(at, _)| *at)
    }
}
