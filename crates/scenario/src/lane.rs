//! The lane: the guards of one contender, and the requests that they hold back.
//!
//! All of a contender's requests go through one set of guards, as one tenant's work for one dependency does in the
//! service. A request that is held back loses no attempt, and the oldest due goes first. First attempts do not wait
//! behind retries that the budget holds back, because first attempts refill the budget.

use std::collections::VecDeque;
use std::time::Duration;

use redrive_core::guards::breaker::State;
use redrive_core::guards::{Held, LaneGuards, Outcome, Permit, Room, SharedFloor};
use redrive_core::latency::ESTIMATE_FOR;
use redrive_core::task::Class;
use redrive_core::{Latency, Timestamp};

use crate::contender::Contender;

/// What the guards decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaneDecision {
    /// This client's attempt is sent.
    Send(u32, Permit),
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
    guards: LaneGuards,
    /// The lane is the only one of its origin; the service has this floor all the same.
    floor: Option<SharedFloor>,
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
            guards: LaneGuards::new(contender.guards.settings()),
            floor: contender.guards.budget.as_ref().map(SharedFloor::new),
            gives_up: contender.gives_up_when_held(),
            firsts: VecDeque::new(),
            retries: VecDeque::new(),
            latency: Latency::default(),
            called_at: Timestamp::default(),
        }
    }

    /// Adds a client's attempt to the queue.
    pub(crate) fn enqueue(&mut self, client: u32, due: u32, class: Class) {
        self.queue(class).push_back((due, client));
    }

    /// The next decision while `in_flight` attempts are under way; clients that no longer wait are skipped. If retries
    /// have waited for the budget for too long, the breaker opens, and its pause is drawn with `unit`.
    pub(crate) fn next(
        &mut self,
        now: Timestamp,
        in_flight: u32,
        unit: f64,
        waits: impl Fn(u32) -> bool,
    ) -> LaneDecision {
        drop_gone(&mut self.firsts, &waits);
        drop_gone(&mut self.retries, &waits);
        let decision = self.decide(now, in_flight);
        if !matches!(decision, LaneDecision::Wait(_) | LaneDecision::Idle) {
            return decision;
        }
        // Everything that may be sent has been: first attempts let a retry through now and then, and others still wait.
        let is_spent = !self.retries.is_empty() && self.spent(now).is_some();
        match self.guards.retries_wait(is_spent, now, unit) {
            Some(_opened) => self.decide(now, in_flight),
            None => decision,
        }
    }

    /// Whether the budget would suppress a retry for which a caller waits.
    pub(crate) fn would_suppress(&mut self, now: Timestamp) -> bool {
        self.gives_up && self.spent(now).is_some()
    }

    /// Records the outcome of an attempt; a pause of the breaker is drawn with `unit`.
    pub(crate) fn ended(&mut self, permit: Permit, outcome: Outcome, now: Timestamp, unit: f64) {
        // A scenario's clock never jumps: it is both the time and the time since the beginning.
        let elapsed = Duration::from_millis(now.as_millis());
        self.guards.end(permit, outcome, now, elapsed, unit);
    }

    /// Returns the permit of an attempt of which nothing was sent.
    pub(crate) fn not_sent(&mut self, permit: Permit) {
        self.guards.withdraw(permit);
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

    /// Whether the guards know of no attempt in flight and of nothing else that they would have to remember.
    #[cfg(test)]
    pub(crate) fn is_forgettable(&mut self, now: Timestamp) -> bool {
        self.guards.is_forgettable(now)
    }

    fn decide(&mut self, now: Timestamp, in_flight: u32) -> LaneDecision {
        let room = self.room(now);
        let spent = if self.retries.is_empty() { None } else { spent(&room) };
        if spent.is_some() && self.gives_up {
            return self.pop(Class::Retry).map_or(LaneDecision::Idle, LaneDecision::Suppress);
        }
        let Some(class) = self.class_of_next(spent.is_some()) else { return LaneDecision::Idle };
        if let Some(held) = room.held {
            return self.held(class, held);
        }
        if in_flight >= room.most_in_flight {
            return self.full(class, spent, now);
        }
        if let (Class::Retry, Some(until)) = (class, spent) {
            return LaneDecision::Wait(Some(until));
        }
        match self.guards.begin(class, self.floor.as_mut(), now) {
            Ok(permit) => self.pop(class).map_or(LaneDecision::Idle, |client| LaneDecision::Send(client, permit)),
            Err(held) => self.held(class, held),
        }
    }

    fn room(&mut self, now: Timestamp) -> Room {
        self.guards.room(self.floor.as_mut(), now)
    }

    fn spent(&mut self, now: Timestamp) -> Option<Timestamp> {
        spent(&self.room(now))
    }

    /// Which queue is served next: the oldest due first, but a first attempt before a retry that there is no budget for.
    fn class_of_next(&self, is_spent: bool) -> Option<Class> {
        match (self.firsts.front(), self.retries.front()) {
            (Some((first, _)), Some((retry, _))) if !is_spent && retry < first => Some(Class::Retry),
            (Some(_), _) => Some(Class::First),
            (None, Some(_)) => Some(Class::Retry),
            (None, None) => None,
        }
    }

    /// As many attempts are in flight as may be; `spent` is until when due retries wait for the budget.
    fn full(&mut self, class: Class, spent: Option<Timestamp>, now: Timestamp) -> LaneDecision {
        if self.gives_up && self.guards.breaker_state(now) != State::Closed {
            // The breaker's probes are under way.
            return self.turn_away(class);
        }
        // The guards are asked again then even if no attempt ends: a budget that stays spent opens the breaker.
        LaneDecision::Wait(spent)
    }

    fn held(&mut self, class: Class, held: Held) -> LaneDecision {
        match held {
            Held::Breaker(_) if self.gives_up => self.turn_away(class),
            Held::Breaker(until) | Held::Budget(until) => LaneDecision::Wait(Some(until)),
            // A scenario has no operator.
            Held::Pause => LaneDecision::Wait(None),
        }
    }

    fn turn_away(&mut self, class: Class) -> LaneDecision {
        self.pop(class).map_or(LaneDecision::Idle, LaneDecision::TurnAway)
    }

    fn pop(&mut self, class: Class) -> Option<u32> {
        self.queue(class).pop_front().map(|(_, client)| client)
    }

    fn queue(&mut self, class: Class) -> &mut VecDeque<(u32, u32)> {
        match class {
            Class::First => &mut self.firsts,
            Class::Retry => &mut self.retries,
        }
    }
}

/// Until when the budget allows no retry, if so.
fn spent(room: &Room) -> Option<Timestamp> {
    match room.held_retries {
        Some(Held::Budget(until)) => Some(until),
        _ => None,
    }
}

fn drop_gone(queue: &mut VecDeque<(u32, u32)>, waits: impl Fn(u32) -> bool) {
    while queue.front().is_some_and(|(_, client)| !waits(*client)) {
        queue.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::guards::concurrency::Signal;
    use redrive_core::guards::{Health, breaker, budget};
    use redrive_core::policy::{Context, Policy, Spec};

    use super::*;
    use crate::contender::{Guards, fixed_concurrency};

    fn lane(guards: Guards, context: Option<Context>) -> Lane {
        let policy = Policy::resolve(&Spec { context, ..Spec::default() }).unwrap();
        Lane::new(&Contender { guards, ..Contender::new("lane", policy) })
    }

    fn one_at_a_time() -> Lane {
        lane(Guards { concurrency: Some(fixed_concurrency(1)), ..Guards::default() }, None)
    }

    /// A budget of which nothing is left until the second after the next 30.
    fn spent(guards: Guards, context: Option<Context>) -> Lane {
        let settings = budget::Settings { floor: 1, ..budget::Settings::default() };
        let mut lane = lane(Guards { budget: Some(settings), ..guards }, context);
        lane.enqueue(99, 0, Class::Retry);
        assert_eq!(sent(&mut lane, 0).0, 99);
        lane
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn next(lane: &mut Lane, now: u64) -> LaneDecision {
        lane.next(at(now), 0, 0.5, |_| true)
    }

    /// The client whose attempt is sent now, with its permit.
    fn sent(lane: &mut Lane, now: u64) -> (u32, Permit) {
        match next(lane, now) {
            LaneDecision::Send(client, permit) => (client, permit),
            other => panic!("{other:?}"),
        }
    }

    fn outcome(health: Health) -> Outcome {
        Outcome { health: Some(health), signal: Signal::Neutral, took: Duration::ZERO, retry_after: None }
    }

    #[test]
    fn the_oldest_due_goes_first_whichever_attempt_it_is() {
        let mut lane = one_at_a_time();
        let waiting = [(1, 10, Class::Retry), (2, 20, Class::First), (3, 30, Class::Retry), (4, 40, Class::First)];
        for (client, due, class) in waiting {
            lane.enqueue(client, due, class);
        }
        assert_eq!(lane.next(at(50), 1, 0.5, |_| true), LaneDecision::Wait(None), "one at a time");
        let order: Vec<_> = (0..4).map(|_| sent(&mut lane, 50).0).collect();
        assert_eq!(order, [1, 2, 3, 4]);
        assert_eq!(next(&mut lane, 50), LaneDecision::Idle);
    }

    #[test]
    fn a_first_attempt_does_not_wait_behind_a_retry_that_the_budget_holds_back() {
        let mut lane = spent(Guards::default(), None);
        lane.enqueue(1, 10, Class::Retry);
        lane.enqueue(2, 20, Class::First);
        assert_eq!(sent(&mut lane, 500).0, 2);
        assert_eq!(next(&mut lane, 500), LaneDecision::Wait(Some(at(1_000))));
        assert_eq!(sent(&mut lane, 31_000).0, 1, "when the window has moved on");
    }

    #[test]
    fn whoever_no_longer_waits_is_passed_over() {
        let mut lane = one_at_a_time();
        (1..=3).for_each(|client| lane.enqueue(client, client, Class::First));
        let decision = lane.next(at(9), 0, 0.5, |client| client == 3);
        assert!(matches!(decision, LaneDecision::Send(3, _)), "{decision:?}");
        assert_eq!(next(&mut lane, 9), LaneDecision::Idle);
    }

    #[test]
    fn a_request_that_a_caller_waits_for_is_not_held_back_by_budget_or_breaker() {
        let mut lane = spent(Guards::default(), Some(Context::Sync));
        lane.enqueue(1, 10, Class::Retry);
        assert!(lane.would_suppress(at(500)));
        assert_eq!(next(&mut lane, 500), LaneDecision::Suppress(1));

        let settings = breaker::Settings { failures_in_a_row: 1, ..breaker::Settings::default() };
        for (context, expected) in
            [(Some(Context::Sync), LaneDecision::TurnAway(2)), (None, LaneDecision::Wait(Some(at(15_000))))]
        {
            let mut lane = self::lane(Guards { breaker: Some(settings), ..Guards::default() }, context);
            lane.enqueue(1, 0, Class::First);
            let (_, permit) = sent(&mut lane, 0);
            lane.ended(permit, outcome(Health::Failing), at(0), 0.5);
            lane.enqueue(2, 1, Class::First);
            assert_eq!(next(&mut lane, 1), expected, "{context:?}");
        }
    }

    #[test]
    fn while_probes_are_under_way_a_caller_gets_its_error_and_others_wait() {
        let settings = breaker::Settings { failures_in_a_row: 1, ..breaker::Settings::default() };
        for (context, expected) in [(Some(Context::Sync), LaneDecision::TurnAway(5)), (None, LaneDecision::Wait(None))]
        {
            let mut lane = lane(Guards { breaker: Some(settings), ..Guards::default() }, context);
            lane.enqueue(1, 0, Class::First);
            let (_, permit) = sent(&mut lane, 0);
            lane.ended(permit, outcome(Health::Failing), at(0), 0.5);
            (2..=5).for_each(|client| lane.enqueue(client, 15_000, Class::First));
            (2..=4).for_each(|client| assert_eq!(sent(&mut lane, 15_000).0, client));
            assert_eq!(lane.next(at(15_000), 3, 0.5, |_| true), expected, "{context:?}");
        }
    }

    #[test]
    fn retries_that_wait_for_the_budget_for_ten_seconds_open_the_breaker() {
        let breaker = Guards { breaker: Some(breaker::Settings::default()), ..Guards::default() };
        // In flight or not: attempts that do not end must not keep the breaker closed.
        for in_flight in [0, u32::MAX] {
            let mut lane = spent(breaker, None);
            lane.enqueue(1, 1_000, Class::Retry);
            for (now, until) in [(1_500, 2_000), (6_000, 7_000), (11_499, 12_000), (11_500, 26_500), (12_000, 26_500)] {
                let decision = lane.next(at(now), in_flight, 0.5, |_| true);
                assert_eq!(decision, LaneDecision::Wait(Some(at(until))), "at {now}, {in_flight} in flight");
            }
            assert_eq!(sent(&mut lane, 26_500).0, 1, "a probe needs no budget");
        }
        // If no retry waits meanwhile, the ten seconds begin again.
        let mut lane = spent(breaker, None);
        lane.enqueue(1, 1_000, Class::Retry);
        assert_eq!(next(&mut lane, 1_000), LaneDecision::Wait(Some(at(2_000))));
        assert_eq!(lane.next(at(5_000), 0, 0.5, |_| false), LaneDecision::Idle);
        lane.enqueue(2, 8_000, Class::Retry);
        assert_eq!(next(&mut lane, 8_000), LaneDecision::Wait(Some(at(9_000))));
        assert_eq!(next(&mut lane, 17_999), LaneDecision::Wait(Some(at(18_000))));
        assert_eq!(next(&mut lane, 18_000), LaneDecision::Wait(Some(at(33_000))));
    }

    #[test]
    fn an_attempt_that_was_not_sent_costs_no_budget() {
        let mut lane = spent(Guards::default(), None);
        for client in 0..20 {
            lane.enqueue(client, 31_000, Class::Retry);
            let (_, permit) = sent(&mut lane, 31_000);
            lane.not_sent(permit);
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
