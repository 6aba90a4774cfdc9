//! The side of one process in guards that several processes share: exchanges, tokens, and a breaker that follows the
//! others'. The rules are in [`shared`](crate::guards::shared), what this process holds in `node_share`.

use std::time::Duration;

use super::{Held, LaneGuards};
use crate::guards::breaker::{Breaker, Change, State};
use crate::guards::node_share::{LaneWork, NodeShare, Wire, reason};
use crate::guards::shared::{Answer, BreakerChange, Exchange, SharedBreakerState};
use crate::task::Class;
use crate::time::Timestamp;

impl LaneGuards {
    /// The same guards, shared with the other processes over the store.
    pub fn shared(self) -> Self {
        let share = NodeShare::new(self.settings.budget.as_ref());
        LaneGuards { share: Some(Box::new(share)), ..self }
    }

    /// Whether several processes share these guards.
    pub fn is_shared(&self) -> bool {
        self.share.is_some()
    }

    /// When this process is to exchange with the others that share these guards; `None` if there is nothing to exchange.
    pub fn exchange_at(&mut self, work: LaneWork, now: Timestamp) -> Option<Timestamp> {
        let (state, work) = (self.breaker_state(now), self.work(work));
        self.share.as_mut()?.exchange_at(work, self.in_flight, state, now)
    }

    /// Begins an exchange: what is to be reported and asked for. [`LaneGuards::answered`] or
    /// [`LaneGuards::exchange_failed`] ends it.
    pub fn exchange(&mut self, work: LaneWork, now: Timestamp) -> Option<Exchange> {
        let (state, work) = (self.breaker_state(now), self.work(work));
        let successful_probes = self.breaker.as_ref().map_or(0, Breaker::successful_probes);
        let wire = Wire { in_flight: self.in_flight, successful_probes };
        Some(self.share.as_mut()?.exchange(work, wire, state, now))
    }

    /// Takes the answer to an exchange. The breaker follows the one of all processes; `node` is this one.
    pub fn answered(&mut self, answer: &Answer, node: &str, now: Timestamp) -> Option<Change> {
        let share = self.share.as_mut()?;
        let mut failing_since = self.gone.failing_since();
        let follows = share.answered(answer, &mut failing_since, now);
        self.gone.set_failing_since(failing_since);
        // What ended here during the exchange is the latest.
        self.recent = answer.recent;
        self.recent.record_all(&share.outcomes);
        if !follows {
            return None;
        }
        share.epoch = answer.breaker.epoch;
        share.probe_until = match &answer.breaker.state {
            SharedBreakerState::Probing { by, until, .. } if by == node => *until,
            _ => Timestamp::default(),
        };
        self.follow(&answer.breaker.state, node, now)
    }

    /// The exchange failed: it is not known whether it took place.
    pub fn exchange_failed(&mut self) {
        if let Some(share) = &mut self.share {
            share.failed();
        }
    }

    /// Has the next exchange be soon: another process changed something.
    pub fn look_soon(&mut self) {
        if let Some(share) = &mut self.share {
            share.must_look = true;
        }
    }

    /// How many retries are left over all processes that share the budget; `None` if that is not known, or if this is the
    /// only process.
    pub fn left_for_all(&mut self, now: Timestamp) -> Option<u64> {
        let share = self.share.as_mut()?;
        let held = u64::from(share.claimable(0, now));
        share.known(now).map(|known| known.left + held)
    }

    /// Whether this process holds tokens of a shared budget.
    pub fn holds_tokens(&mut self, now: Timestamp) -> bool {
        self.share.as_mut().is_some_and(|share| share.holds_tokens(now))
    }

    /// Returns the tokens of a shared budget that this process holds, with the next exchange.
    pub fn return_tokens(&mut self) {
        if let Some(share) = &mut self.share {
            share.drop_tokens();
        }
    }

    /// Counts an attempt for the budget that several processes share.
    pub(super) fn charge_shared(
        &mut self,
        class: Class,
        is_probe: bool,
        now: Timestamp,
    ) -> Result<Option<(Class, Timestamp)>, Held> {
        let (Some(share), Some(budget)) = (&mut self.share, &mut self.budget) else { return Ok(None) };
        let second = match class {
            Class::First => share.first(now),
            Class::Retry if is_probe => share.probe(now),
            Class::Retry => share.take(now).ok_or_else(|| Held::Budget(budget.next_edge(now)))?,
        };
        Ok(Some((class, second)))
    }

    /// Whether this process sends the probes.
    pub(super) fn may_probe(&self, now: Timestamp) -> bool {
        self.share.as_ref().is_none_or(|share| share.may_probe(now))
    }

    /// Has the other processes learn of a change of the breaker.
    pub(super) fn publish(&mut self, change: Change, is_by_hand: bool) {
        let (Some(share), Some(breaker)) = (&mut self.share, &self.breaker) else { return };
        let (pause, opened) = breaker.pause_and_opened();
        share.probe_until = Timestamp::default();
        share.publish(match change {
            Change::Opened { until, why } => BreakerChange::Opened { until, pause, opened, why },
            Change::Closed if is_by_hand => BreakerChange::ClosedByHand,
            Change::Closed => BreakerChange::Closed,
        });
    }

    /// Brings the breaker to the state of the shared one, if it differs.
    fn follow(&mut self, shared: &SharedBreakerState, node: &str, now: Timestamp) -> Option<Change> {
        let breaker = self.breaker.as_mut()?;
        let change = match shared {
            SharedBreakerState::Closed if breaker.state(now) == State::Closed => return None,
            SharedBreakerState::Closed => breaker.close_by_hand()?,
            SharedBreakerState::Open { until, pause_ms, opened, why } => {
                breaker.follow_open(*until, Duration::from_millis(*pause_ms), *opened, reason(why))?
            }
            SharedBreakerState::Probing { by, succeeded, opened, why, .. } if by == node => {
                breaker.follow_probing(*succeeded, *opened, reason(why), now)?
            }
            SharedBreakerState::Probing { until, opened, why, .. } => {
                breaker.follow_open(*until, until.since(now), *opened, reason(why))?
            }
        };
        self.changed(change);
        Some(change)
    }

    /// What is to be done, as far as it needs tokens or probes: a paused lane sends nothing.
    fn work(&self, work: LaneWork) -> LaneWork {
        if self.is_paused { LaneWork { is_due: false, is_retry_due: false } } else { work }
    }
}
