//! The exchanges of guards that several processes share, under the lanes' lock: which lanes exchange when, and what an
//! answer changes. `guard_exchange` makes them.

use std::time::Duration;

use redrive_core::guards::LaneWork;
use redrive_core::guards::shared::{Answer, Exchange};
use redrive_core::{Class, Lane};

use super::guards::Origin;
use super::state::{Now, State};
use crate::schedule::LaneId;

/// Tokens are asked for this long before a retry is due, so that it does not wait for them.
const AHEAD: Duration = Duration::from_millis(50);

/// One lane's part in an exchange.
#[derive(Debug, Clone)]
pub(crate) struct LaneExchange {
    /// The lane.
    pub(crate) lane: Lane,
    /// Where its retries go.
    pub(crate) origin: Option<Origin>,
    /// What it reports and asks for.
    pub(crate) exchange: Exchange,
}

impl State {
    /// Plans when the lane exchanges next, and when it is looked at again to plan anew.
    pub(super) fn plan_exchange(&mut self, lane: LaneId, now: Now) {
        let work = self.work(lane, now);
        let retry_due = self.schedule.due(lane, Class::Retry);
        let Some(guards) = &mut self.lanes[lane].guarded.guards else { return };
        let at = guards.exchange_at(work, now.wall).map(|at| now.elapsed + at.since(now.wall));
        let planned = std::mem::replace(&mut self.lanes[lane].guarded.exchanges_at, at);
        if planned != at {
            if let Some(before) = planned {
                self.guards.exchanges.remove(&(before, lane));
            }
            self.guards.exchanges.extend(at.map(|at| (at, lane)));
        }
        // Retries without tokens are hidden from the schedule, which does not wake the lane when one becomes due.
        if let Some(due) = retry_due.map(|due| due.before(AHEAD)).filter(|due| *due > now.wall) {
            self.wake_at(lane, now.elapsed + due.since(now.wall));
        }
    }

    /// The lanes that are to exchange by now, at most `most`.
    pub(super) fn take_exchanges(&mut self, most: usize, now: Now) -> Vec<LaneExchange> {
        let mut taken = Vec::new();
        while let Some((at, lane)) = self.guards.exchanges.first().copied()
            && at <= now.elapsed
            && taken.len() < most
        {
            self.guards.exchanges.pop_first();
            self.lanes[lane].guarded.exchanges_at = None;
            let work = self.work(lane, now);
            let guarded = &mut self.lanes[lane].guarded;
            let exchange = guarded.guards.as_mut().and_then(|guards| guards.exchange(work, now.wall));
            if let (Some(exchange), Some(name)) = (exchange, self.names.lane(lane)) {
                taken.push(LaneExchange { lane: name.clone(), origin: guarded.origin.clone(), exchange });
            }
        }
        taken
    }

    /// Applies the answer to an exchange; `None` if it failed.
    pub(super) fn end_exchange(&mut self, of: &LaneExchange, answer: Option<&Answer>, node: &str, now: Now) {
        let Some(lane) = self.names.find(&of.lane) else { return };
        let guarded = &mut self.lanes[lane].guarded;
        let Some(guards) = &mut guarded.guards else { return };
        match answer {
            Some(answer) => {
                if answer.granted > 0 && guarded.tokens_for != of.origin {
                    guards.return_tokens();
                    guarded.tokens_for.clone_from(&of.origin);
                }
                if let Some(change) = guards.answered(answer, node, now.wall) {
                    self.breaker_changed(lane, change);
                }
            }
            None => guards.exchange_failed(),
        }
        self.place(lane, now);
    }

    /// Returns the tokens of all lanes, with an exchange at once.
    pub(super) fn return_tokens(&mut self, now: Now) {
        self.guards.is_ending = true;
        for lane in 0..self.lanes.len() {
            let Some(guards) = &mut self.lanes[lane].guarded.guards else { continue };
            if guards.holds_tokens(now.wall) {
                guards.return_tokens();
                guards.look_soon();
                self.plan_exchange(lane, now);
            }
        }
    }

    /// Has a lane exchange soon, because another process changed its guards.
    pub(super) fn look_soon(&mut self, lane: &Lane, now: Now) {
        let id = self.id(lane);
        let fresh = || self.guards.fresh(Some(lane), now.wall);
        self.lanes[id].guarded.guards.get_or_insert_with(fresh).look_soon();
        self.place(id, now);
    }

    fn work(&self, lane: LaneId, now: Now) -> LaneWork {
        let by = now.wall.after(AHEAD);
        let is_due = |class| self.schedule.due(lane, class).is_some_and(|due| due <= by);
        if self.guards.is_ending {
            return LaneWork { is_due: false, is_retry_due: false };
        }
        let is_retry_due = is_due(Class::Retry);
        LaneWork { is_due: is_retry_due || is_due(Class::First), is_retry_due }
    }
}
