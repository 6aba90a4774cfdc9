//! The lane: the guards of one contender, and the requests that they hold back.
//!
//! All of a contender's requests go through one set of guards, as one tenant's work for one dependency does in the
//! service. A request that is held back loses no attempt, and the oldest due goes first. First attempts do not wait
//! behind retries that the budget holds back, because first attempts refill the budget.

use std::collections::VecDeque;
use std::time::Duration;

use redrive_core::guards::Health;
use redrive_core::guards::breaker::{Admission, Breaker, Call, Ticket};
use redrive_core::guards::budget::{Budget, Spent};
use redrive_core::latency::ESTIMATE_FOR;
use redrive_core::{Latency, Timestamp};

use crate::contender::Contender;

/// What the guards decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaneDecision {
    /// This client's attempt is sent.
    Send(u32, Option<Ticket>),
    /// There is no budget for this client's retry, and a caller waits for the answer: it fails.
    Suppress(u32),
    /// The breaker is open for this client's attempt, and a caller waits for the answer: it fails.
    TurnAway(u32),
    /// All requests wait: until an attempt ends, or until this time.
    Wait(Option<Timestamp>),
    /// No request waits.
    Idle,
}

/// The guards, and the requests that wait for them.
#[derive(Debug)]
pub(crate) struct Lane {
    budget: Option<Budget>,
    breaker: Option<Breaker>,
    concurrency: u32,
    gives_up: bool,
    /// First attempts that wait: when they were due, and the client.
    firsts: VecDeque<(u32, u32)>,
    retries: VecDeque<(u32, u32)>,
    latency: Latency,
    called_at: Timestamp,
}

impl Lane {
    pub(crate) fn new(contender: &Contender) -> Self {
        Lane {
            budget: contender.guards.budget.map(Budget::new),
            breaker: contender.guards.breaker.map(Breaker::new),
            concurrency: contender.guards.concurrency.unwrap_or(u32::MAX),
            gives_up: contender.gives_up_when_held(),
            firsts: VecDeque::new(),
            retries: VecDeque::new(),
            latency: Latency::default(),
            called_at: Timestamp::default(),
        }
    }

    /// Adds a client's attempt to the queue.
    pub(crate) fn enqueue(&mut self, client: u32, due: u32, is_retry: bool) {
        if is_retry { &mut self.retries } else { &mut self.firsts }.push_back((due, client));
    }

    /// The next decision while `in_flight` attempts are under way; clients that no longer wait are skipped.
    pub(crate) fn next(&mut self, now: Timestamp, in_flight: u32, waits: impl Fn(u32) -> bool) -> LaneDecision {
        drop_gone(&mut self.firsts, &waits);
        drop_gone(&mut self.retries, &waits);
        if self.firsts.is_empty() && self.retries.is_empty() {
            return LaneDecision::Idle;
        }
        if in_flight >= self.concurrency {
            return LaneDecision::Wait(None);
        }
        let spent = if self.retries.is_empty() { None } else { self.spent(now) };
        if spent.is_some() && self.gives_up {
            return self.retries.pop_front().map_or(LaneDecision::Idle, |(_, client)| LaneDecision::Suppress(client));
        }
        let is_retry = match (self.firsts.front(), self.retries.front()) {
            (Some((first, _)), Some((retry, _))) => spent.is_none() && retry < first,
            (Some(_), None) => false,
            (None, _) => true,
        };
        if let (true, Some(Spent { ask_again_at })) = (is_retry, spent) {
            return LaneDecision::Wait(Some(ask_again_at));
        }
        match self.breaker.as_mut().map(|breaker| breaker.admit(now)) {
            Some(Admission::Wait { .. }) if self.gives_up => {
                self.pop(is_retry).map_or(LaneDecision::Idle, LaneDecision::TurnAway)
            }
            Some(Admission::Wait { until }) => LaneDecision::Wait(Some(until)),
            Some(Admission::Pass(ticket) | Admission::Probe(ticket)) => self.go(is_retry, Some(ticket), now),
            None => self.go(is_retry, None, now),
        }
    }

    /// Whether the budget would suppress a retry for which a caller waits.
    pub(crate) fn would_suppress(&mut self, now: Timestamp) -> bool {
        self.gives_up && self.spent(now).is_some()
    }

    /// Records the outcome of an attempt.
    pub(crate) fn ended(
        &mut self,
        ticket: Ticket,
        health: Health,
        retry_after: Option<Duration>,
        now: Timestamp,
        unit: f64,
    ) {
        if let Some(breaker) = &mut self.breaker {
            breaker.record(ticket, Call { health, took: Duration::ZERO, retry_after }, now, unit);
        }
    }

    /// Returns the breaker's ticket of an attempt that says nothing about the dependency.
    pub(crate) fn not_sent(&mut self, ticket: Option<Ticket>) {
        if let (Some(breaker), Some(ticket)) = (&mut self.breaker, ticket) {
            breaker.give_back(ticket);
        }
    }

    /// Records the duration of a call.
    pub(crate) fn took(&mut self, took: Duration, now: Timestamp) {
        if now.since(self.called_at) > ESTIMATE_FOR {
            self.latency = Latency::default();
        }
        self.latency.record(took);
        self.called_at = now;
    }

    /// The expected duration of a call.
    pub(crate) fn estimate(&self, now: Timestamp) -> Duration {
        if now.since(self.called_at) > ESTIMATE_FOR { Duration::ZERO } else { self.latency.estimate() }
    }

    fn spent(&mut self, now: Timestamp) -> Option<Spent> {
        self.budget.as_mut().and_then(|budget| budget.spent(false, now))
    }

    fn go(&mut self, is_retry: bool, ticket: Option<Ticket>, now: Timestamp) -> LaneDecision {
        match &mut self.budget {
            Some(budget) if is_retry => {
                if let Err(Spent { ask_again_at }) = budget.try_retry(false, now) {
                    return LaneDecision::Wait(Some(ask_again_at));
                }
            }
            Some(budget) => {
                budget.first(now);
            }
            None => {}
        }
        self.pop(is_retry).map_or(LaneDecision::Idle, |client| LaneDecision::Send(client, ticket))
    }

    fn pop(&mut self, is_retry: bool) -> Option<u32> {
        if is_retry { &mut self.retries } else { &mut self.firsts }.pop_front().map(|(_, client)| client)
    }
}

fn drop_gone(queue: &mut VecDeque<(u32, u32)>, waits: impl Fn(u32) -> bool) {
    while queue.front().is_some_and(|(_, client)| !waits(*client)) {
        queue.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::guards::{breaker, budget};
    use redrive_core::policy::{Context, Policy, Spec};

    use super::*;
    use crate::contender::Guards;

    const FIRST: bool = false;
    const RETRY: bool = true;

    fn lane(guards: Guards, context: Option<Context>) -> Lane {
        let policy = Policy::resolve(&Spec { context, ..Spec::default() }).unwrap();
        Lane::new(&Contender { guards, ..Contender::new("lane", policy) })
    }

    /// A budget of which nothing is left until the second after the next 30.
    fn spent(context: Option<Context>) -> Lane {
        let settings = budget::Settings { floor: 1, ..budget::Settings::default() };
        let mut lane = lane(Guards { budget: Some(settings), ..Guards::default() }, context);
        lane.enqueue(99, 0, RETRY);
        assert_eq!(lane.next(at(0), 0, |_| true), LaneDecision::Send(99, None));
        lane
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn the_oldest_due_goes_first_whichever_attempt_it_is() {
        let mut lane = lane(Guards { concurrency: Some(1), ..Guards::default() }, None);
        for (client, due, is_retry) in [(1, 10, RETRY), (2, 20, FIRST), (3, 30, RETRY), (4, 40, FIRST)] {
            lane.enqueue(client, due, is_retry);
        }
        assert_eq!(lane.next(at(50), 1, |_| true), LaneDecision::Wait(None), "one at a time");
        let order: Vec<_> = (0..4).map(|_| lane.next(at(50), 0, |_| true)).collect();
        assert_eq!(order, [1, 2, 3, 4].map(|client| LaneDecision::Send(client, None)));
        assert_eq!(lane.next(at(50), 0, |_| true), LaneDecision::Idle);
    }

    #[test]
    fn a_first_attempt_does_not_wait_behind_a_retry_that_the_budget_holds_back() {
        let mut lane = spent(None);
        lane.enqueue(1, 10, RETRY);
        lane.enqueue(2, 20, FIRST);
        assert_eq!(lane.next(at(500), 0, |_| true), LaneDecision::Send(2, None));
        assert_eq!(lane.next(at(500), 0, |_| true), LaneDecision::Wait(Some(at(1_000))));
        assert_eq!(lane.next(at(31_000), 0, |_| true), LaneDecision::Send(1, None), "when the window has moved on");
    }

    #[test]
    fn whoever_no_longer_waits_is_passed_over() {
        let mut lane = lane(Guards { concurrency: Some(1), ..Guards::default() }, None);
        (1..=3).for_each(|client| lane.enqueue(client, client, FIRST));
        assert_eq!(lane.next(at(9), 0, |client| client == 3), LaneDecision::Send(3, None));
        assert_eq!(lane.next(at(9), 0, |_| true), LaneDecision::Idle);
    }

    #[test]
    fn a_request_that_a_caller_waits_for_is_not_held_back_by_budget_or_breaker() {
        let mut lane = spent(Some(Context::Sync));
        lane.enqueue(1, 10, RETRY);
        assert!(lane.would_suppress(at(500)));
        assert_eq!(lane.next(at(500), 0, |_| true), LaneDecision::Suppress(1));

        let settings = breaker::Settings { failures_in_a_row: 1, ..breaker::Settings::default() };
        for (context, expected) in
            [(Some(Context::Sync), LaneDecision::TurnAway(2)), (None, LaneDecision::Wait(Some(at(15_000))))]
        {
            let mut lane = self::lane(Guards { breaker: Some(settings), ..Guards::default() }, context);
            lane.enqueue(1, 0, FIRST);
            let LaneDecision::Send(1, Some(ticket)) = lane.next(at(0), 0, |_| true) else { panic!("{lane:?}") };
            lane.ended(ticket, Health::Failing, None, at(0), 0.5);
            lane.enqueue(2, 1, FIRST);
            assert_eq!(lane.next(at(1), 0, |_| true), expected, "{context:?}");
        }
    }

    #[test]
    fn what_calls_take_is_forgotten_when_there_were_none_for_a_while() {
        let mut lane = lane(Guards::default(), None);
        lane.took(Duration::from_secs(8), at(1_000));
        assert_eq!(lane.estimate(at(31_000)), Duration::from_secs(8));
        assert_eq!(lane.estimate(at(31_001)), Duration::ZERO);
        lane.took(Duration::from_secs(1), at(40_000));
        assert_eq!(lane.estimate(at(40_000)), Duration::from_secs(1), "an old call does not weigh on a new one");
    }
}
