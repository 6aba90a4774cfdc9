//! Leasing due tasks, and finding expired leases.

use std::ops::Bound;

use redrive_core::{Class, Lane, TaskId, Timestamp};

use super::state::State;
use crate::{ClaimRequest, ClaimedTask, Claims, LaneDue, LaneRoom};

impl State {
    pub(super) fn claim(&mut self, request: &ClaimRequest) -> Claims {
        let mut claims = Claims::default();
        for room in &request.rooms {
            let most = request.most.saturating_sub(claims.claimed.len());
            let before = claims.claimed.len();
            while claims.claimed.len() - before < most {
                let Some(id) = self.next_in(room, claims.claimed.len() - before, request.due_by) else { break };
                let claimed = self.change(id, |entry| {
                    let (due, timeout) = (entry.task.next_attempt_at, entry.task.attempt_timeout);
                    entry.claim(request.now, request.lease.until(request.now, due, timeout));
                    entry.claimed()
                });
                claims.claimed.extend(claimed);
            }
            let LaneRoom { lane, class, .. } = room.clone();
            let next_due = self.first_of(&lane, class).map(|(due, _)| due);
            claims.lanes.push(LaneDue { lane, class, next_due });
        }
        claims
    }

    pub(super) fn expired_leases(&self, now: Timestamp, limit: usize) -> Vec<ClaimedTask> {
        let ran_out = self.indexes.leases.iter().take_while(|(until, _)| *until <= now).take(limit);
        ran_out.filter_map(|(_, id)| self.tasks.get(id)).map(|entry| entry.claimed()).collect()
    }

    pub(super) fn pending_lanes(&self, after: Option<(Lane, Class)>, limit: usize) -> Vec<LaneDue> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let lanes = self.indexes.due.range((from, Bound::Unbounded)).take(limit);
        let due = |((lane, class), due): (&(Lane, Class), &std::collections::BTreeSet<(Timestamp, TaskId)>)| LaneDue {
            lane: lane.clone(),
            class: *class,
            next_due: due.first().map(|(at, _)| *at),
        };
        lanes.map(due).collect()
    }

    /// The next task for a room in which `taken` places are used, if a task is due and fits.
    fn next_in(&self, room: &LaneRoom, taken: usize, due_by: Timestamp) -> Option<TaskId> {
        if taken >= room.slots + room.ahead {
            return None;
        }
        let (at, id) = self.first_of(&room.lane, room.class)?;
        let is_last = self.tasks.get(&id).is_some_and(|entry| entry.task.is_next_attempt_last());
        let fits = taken < room.slots || !is_last;
        (at <= due_by && fits).then_some(id)
    }

    fn first_of(&self, lane: &Lane, class: Class) -> Option<(Timestamp, TaskId)> {
        self.indexes.due.get(&(lane.clone(), class))?.first().copied()
    }
}
