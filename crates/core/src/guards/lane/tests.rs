//! The guards of a lane against a model that remembers everything.

use super::*;
use crate::guards::Snapshot;
use crate::guards::breaker::OpenedBy;

const SECOND: u64 = 1_000;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn outcome(health: Health) -> Outcome {
    let signal = if health == Health::Well { Signal::Answered } else { Signal::Neutral };
    Outcome { health: Some(health), signal, took: Duration::from_millis(20), retry_after: None }
}

/// One attempt that begins and ends at `now`; whether it was let through.
fn attempt(guards: &mut LaneGuards, class: Class, health: Health, now: u64) -> bool {
    match guards.begin(class, None, at(now)) {
        Ok(permit) => {
            guards.end(permit, outcome(health), at(now), Duration::from_millis(now), 0.5);
            true
        }
        Err(_) => false,
    }
}

fn without_breaker() -> LaneGuards {
    LaneGuards::new(Settings { breaker: None, ..Settings::default() })
}

#[test]
fn a_backlog_drains_as_fast_as_the_dependency_proves_that_it_can_bear() {
    // drain, retries that are sent within one second when each succeeds at once, of 10,000 that wait
    for (drain, expected) in [(budget::Drain::Earned, 10_000), (budget::Drain::Strict, 10)] {
        let budget = Some(budget::Settings { drain, ..budget::Settings::default() });
        let mut guards = LaneGuards::new(Settings { budget, ..Settings::default() });
        let sent = (0..10_000).filter(|_| attempt(&mut guards, Class::Retry, Health::Well, 0)).count();
        assert_eq!(sent, expected, "{drain:?}");
    }
}

#[test]
fn a_dependency_that_dies_sees_the_floor_and_a_fifth() {
    let mut guards = without_breaker();
    // A healthy past with many refunds, which earn nothing once it fails.
    (0..1_000).for_each(|_| assert!(attempt(&mut guards, Class::Retry, Health::Well, 0)));
    (0..100).for_each(|_| assert!(attempt(&mut guards, Class::First, Health::Failing, SECOND)));
    let sent = (0..1_000).filter(|_| attempt(&mut guards, Class::Retry, Health::Failing, SECOND)).count();
    assert_eq!(sent, 10 + 20 - 4, "four were sent before it was known to be healthy, and were not refunded");
}

#[test]
fn a_retry_that_is_reserved_is_not_reserved_twice() {
    let mut guards = without_breaker();
    assert_eq!(guards.room(None, at(0)).retries, 10);
    guards.reserve(8);
    assert_eq!(guards.room(None, at(0)).retries, 2);
    guards.release(3);
    assert_eq!(guards.room(None, at(0)).retries, 5);
    for _ in 0..5 {
        assert!(guards.begin(Class::Retry, None, at(0)).is_ok());
    }
    let room = guards.room(None, at(0));
    assert_eq!((room.retries, room.held_retries), (5, None));
    guards.reserve(5);
    let room = guards.room(None, at(0));
    assert_eq!((room.retries, room.held_retries), (0, Some(Held::Budget(at(SECOND)))));
    assert_eq!(room.held, None, "first attempts are not held back by the budget");
}

#[test]
fn what_was_not_sent_costs_nothing() {
    let mut guards = without_breaker();
    let mut floor = SharedFloor::new(&budget::Settings::default());
    for _ in 0..100 {
        let permit = guards.begin(Class::Retry, Some(&mut floor), at(0)).unwrap();
        guards.withdraw(permit);
    }
    assert_eq!((guards.room(Some(&mut floor), at(0)).retries, floor.left(at(0))), (10, 10));
}

#[test]
fn first_attempts_earn_back_what_was_taken_of_the_shared_floor() {
    let mut floor = SharedFloor::new(&budget::Settings::default());
    let mut guards = without_breaker();
    for _ in 0..10 {
        let _permit = guards.begin(Class::Retry, Some(&mut floor), at(0)).unwrap();
    }
    assert_eq!((guards.room(Some(&mut floor), at(0)).retries, floor.left(at(0))), (0, 0));
    (0..50).for_each(|_| assert!(attempt(&mut guards, Class::First, Health::Failing, 0)));
    assert_eq!((guards.room(Some(&mut floor), at(0)).retries, floor.left(at(0))), (10, 10));
    assert_eq!(floor.left(at(40_000)), 10);
}

#[test]
fn lanes_of_one_origin_share_a_floor_while_they_fail() {
    let mut floor = SharedFloor::new(&budget::Settings::default());
    let mut sent = 0;
    for _ in 0..50 {
        let mut guards = without_breaker();
        while let Ok(permit) = guards.begin(Class::Retry, Some(&mut floor), at(0)) {
            let _ended = guards.end(permit, outcome(Health::Failing), at(0), Duration::ZERO, 0.5);
            sent += 1;
        }
        assert_eq!(guards.room(Some(&mut floor), at(0)).retries, 0);
    }
    assert_eq!(sent, 10, "fifty names have one floor");

    // A lane with first attempts has what they earn.
    let mut busy = without_breaker();
    (0..100).for_each(|_| assert!(attempt(&mut busy, Class::First, Health::Failing, 0)));
    assert_eq!(busy.room(Some(&mut floor), at(0)).retries, 20);
    // A healthy lane has a floor of its own.
    let mut healthy = without_breaker();
    (0..5).for_each(|_| assert!(attempt(&mut healthy, Class::First, Health::Well, 0)));
    assert_eq!(healthy.room(Some(&mut floor), at(0)).retries, 11);
}

#[test]
fn a_budget_that_is_spent_for_ten_seconds_opens_the_breaker_unless_the_lane_is_healthy() {
    let mut guards = LaneGuards::new(Settings::default());
    assert_eq!(guards.retries_wait(true, at(0), 0.5), None);
    assert_eq!(guards.retries_wait(true, at(9_999), 0.5), None);
    let opened = Change::Opened { until: at(25_000), why: OpenedBy::SpentBudget };
    assert_eq!(guards.retries_wait(true, at(10_000), 0.5), Some(opened));
    assert_eq!(guards.room(None, at(10_000)).held, Some(Held::Breaker(at(25_000))));

    let mut interrupted = LaneGuards::new(Settings::default());
    for (now, is_waiting) in [(0, true), (9_000, false), (10_000, true), (19_000, true)] {
        assert_eq!(interrupted.retries_wait(is_waiting, at(now), 0.5), None, "at {now}");
    }
    let mut healthy = LaneGuards::new(Settings::default());
    (0..5).for_each(|_| assert!(attempt(&mut healthy, Class::First, Health::Well, 0)));
    for now in [0, 10_000, 60_000] {
        assert_eq!(healthy.retries_wait(true, at(now), 0.5), None, "at {now}");
    }
}

#[test]
fn probes_are_charged_and_never_held_and_the_lane_begins_again_with_few() {
    let mut guards = LaneGuards::new(Settings::default());
    (0..10).for_each(|_| assert!(attempt(&mut guards, Class::Retry, Health::Failing, 0)));
    assert_eq!(guards.begin(Class::First, None, at(14_999)), Err(Held::Breaker(at(15_000))));
    let room = guards.room(None, at(15_000));
    assert_eq!((room.most_in_flight, room.retries, room.held_retries), (3, u32::MAX, None));
    let probes = [(); 3].map(|()| guards.begin(Class::Retry, None, at(15_000)).unwrap());
    assert!(guards.begin(Class::Retry, None, at(15_000)).is_err(), "three probes are on their way");
    assert_eq!(guards.budget_state(at(15_000)).unwrap().counts.charged, 13);
    let changes =
        probes.map(|probe| guards.end(probe, outcome(Health::Well), at(15_000), Duration::from_secs(15), 0.5));
    assert_eq!(changes, [None, None, Some(Change::Closed)]);
    assert_eq!(guards.budget_state(at(15_000)).unwrap().counts.charged, 10, "those that succeed are refunded");
    assert_eq!(guards.room(None, at(15_000)).most_in_flight, 3);
    assert!(!guards.is_healthy() && guards.recent().count() == 0);
}

#[test]
fn a_paused_lane_sends_nothing_until_it_is_resumed() {
    let mut guards = LaneGuards::new(Settings::default());
    guards.set_paused(true);
    assert_eq!(guards.room(None, at(0)).held, Some(Held::Pause));
    assert_eq!(guards.begin(Class::First, None, at(0)), Err(Held::Pause));
    guards.set_paused(false);
    assert!(guards.begin(Class::First, None, at(0)).is_ok());
}

#[test]
fn guards_that_hold_nothing_back_are_neither_kept_nor_remembered() {
    let mut guards = LaneGuards::new(Settings::default());
    (0..100).for_each(|_| assert!(attempt(&mut guards, Class::First, Health::Well, 0)));
    assert_eq!((guards.snapshot(at(0)), guards.is_forgettable(at(0))), (None, true));
    assert!(attempt(&mut guards, Class::Retry, Health::Failing, 0));
    assert!(guards.snapshot(at(0)).is_some() && !guards.is_forgettable(at(0)));
    (0..50).for_each(|_| assert!(attempt(&mut guards, Class::First, Health::Well, 0)));
    assert!(guards.is_forgettable(at(31_000)));
    let mut open = LaneGuards::new(Settings::default());
    open.open_breaker(Some(at(60_000)), at(0));
    assert!(!open.is_forgettable(at(660_000)) && open.is_forgettable(at(660_001)));
}

#[test]
fn a_snapshot_reads_the_same_after_a_round_trip_and_tolerates_fields_that_are_missing() {
    let mut guards = LaneGuards::new(Settings::default());
    for now in 0..12 {
        attempt(&mut guards, Class::Retry, Health::Failing, now * SECOND);
    }
    guards.reserve(2);
    let snapshot = guards.snapshot(at(12_000)).unwrap();
    let text = serde_json::to_string(&snapshot).unwrap();
    assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), snapshot);
    assert_eq!(serde_json::from_str::<Snapshot>("{}").unwrap(), Snapshot::default());
    let mut restored = LaneGuards::restore(Settings::default(), snapshot, at(12_000));
    assert_eq!(restored.breaker_state(at(12_000)), guards.breaker_state(at(12_000)));
    assert_eq!(
        restored.budget_state(at(12_000)).unwrap().counts.charged,
        12,
        "ten that were sent, two that may have been"
    );
}

/// What happened, by the time at which it was on the wire.
#[derive(Default)]
struct Model {
    firsts: Vec<u64>,
    /// When each retry was sent, and whether it was refunded.
    retries: Vec<(u64, bool)>,
    probes: Vec<usize>,
}

impl Model {
    /// Invariant 8: the unrefunded retries of the 30 s up to a grant are within the allowance.
    fn check(&self, is_healthy: bool, now: u64) {
        let is_in_window = |time: u64| time + 30_000 > now && time <= now;
        let charged = self.retries.iter().enumerate();
        let charged =
            charged.filter(|(n, (time, refunded))| is_in_window(*time) && !refunded && !self.probes.contains(n));
        let charged = charged.count();
        let firsts = self.firsts.iter().filter(|time| is_in_window(**time)).count();
        let refunded = self.retries.iter().filter(|(time, refunded)| is_in_window(*time) && *refunded).count();
        let earned = 20 * (firsts + if is_healthy { refunded } else { 0 });
        assert!(100 * charged <= 1_000 + earned, "at {now}: {charged} retries, {firsts} firsts, {refunded} refunded");
    }
}

struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A life of random attempts, outcomes, steps of time and crashes. A crash restores the guards from the snapshot that was
/// taken before the last claim; attempts on the wire are lost.
fn live(seed: u64, settings: Settings) -> (usize, usize) {
    let mut draw = Draw(seed);
    let mut guards = LaneGuards::new(settings);
    let (mut kept, mut model, mut now) = (None, Model::default(), 1_000_000);
    let mut on_wire: Vec<(Permit, Option<usize>)> = Vec::new();
    let mut claimed = 0_u32;
    // The share of failures changes from time to time, so that lanes become healthy and stop being so.
    let mut failing = 0;
    for step in 0..3_000 {
        now += [0, 1, 7, 40, 400, 1_000, 5_000][draw.below(7) as usize] / (1 + draw.below(3));
        if step % 200 == 0 {
            failing = [0, 5, 15, 50, 100][draw.below(5) as usize];
        }
        match draw.below(10) {
            0..=2 => {
                if let Ok(permit) = guards.begin(Class::First, None, at(now)) {
                    model.firsts.push(now);
                    on_wire.push((permit, None));
                }
            }
            3..=4 => {
                let more = u32::try_from(draw.below(4)).unwrap().min(guards.room(None, at(now)).retries);
                guards.reserve(more);
                claimed += more;
                kept = guards.snapshot(at(now));
            }
            5..=6 if claimed > 0 => {
                claimed -= 1;
                let was_closed = guards.breaker_state(at(now)) == State::Closed;
                if let Ok(permit) = guards.begin(Class::Retry, None, at(now)) {
                    on_wire.push((permit, Some(model.retries.len())));
                    if !was_closed {
                        model.probes.push(model.retries.len());
                    }
                    model.retries.push((now, false));
                    if was_closed {
                        model.check(guards.is_healthy(), now);
                    }
                }
            }
            7..=8 if !on_wire.is_empty() => {
                let (permit, retry) = on_wire.swap_remove(draw.below(on_wire.len() as u64) as usize);
                let health = if draw.below(100) < failing { Health::Failing } else { Health::Well };
                let unit = draw.below(1_000) as f64 / 1_000.0;
                let before = guards.budget_state(at(now)).unwrap().counts.refunded;
                let _change = guards.end(permit, outcome(health), at(now), Duration::from_millis(now), unit);
                if let Some(retry) = retry {
                    model.retries[retry].1 = guards.budget_state(at(now)).unwrap().counts.refunded > before;
                }
            }
            9 if draw.below(50) == 0 => {
                guards = match kept.take() {
                    Some(kept) => LaneGuards::restore(settings, kept, at(now)),
                    None => LaneGuards::new(settings),
                };
                on_wire.clear();
                claimed = 0;
            }
            _ => {}
        }
        let probes = settings.breaker.map_or(0, |breaker| breaker.probes as usize);
        if let State::Open { .. } = guards.breaker_state(at(now)) {
            assert!(guards.begin(Class::First, None, at(now)).is_err());
        }
        assert!(
            guards.breaker.as_ref().and_then(|breaker| breaker.most_in_flight(at(now))).unwrap_or(0) as usize <= probes
        );
    }
    (model.retries.len(), model.retries.iter().filter(|(_, refunded)| *refunded).count())
}

#[test]
fn no_grant_breaks_the_promise_over_the_window_that_ends_with_it() {
    let (mut retries, mut refunded) = (0, 0);
    for seed in 0..300 {
        let breaker = (seed % 2 == 0).then(breaker::Settings::default);
        let (more, more_refunded) = live(seed, Settings { breaker, ..Settings::default() });
        retries += more;
        refunded += more_refunded;
    }
    assert!(retries > 20_000 && refunded > 5_000 && retries > refunded + 5_000, "{retries} {refunded}");
}

#[test]
fn a_reset_forgets_what_was_counted_and_closes_the_breaker() {
    let mut guards = LaneGuards::new(Settings::default());
    let before = guards.begin(Class::Retry, None, at(0)).unwrap();
    (0..10).for_each(|_| assert!(attempt(&mut guards, Class::First, Health::Failing, 0)));
    assert_eq!((guards.reset(), guards.reset()), (Some(Change::Closed), None));
    assert_eq!((guards.breaker_state(at(0)), guards.room(None, at(0)).retries), (State::Closed, 10));
    let ended = guards.end(before, outcome(Health::Failing), at(0), Duration::ZERO, 0.5);
    assert_eq!(ended, None);
    (0..9).for_each(|_| assert!(attempt(&mut guards, Class::First, Health::Failing, 0)));
    assert_eq!(guards.breaker_state(at(0)), State::Closed, "what began before does not count");
}

/// 100 new requests per second for ten minutes, each retried up to three times a second later, to a dependency that fails
/// this percentage of its calls. Returns calls per request, the percentage of time in which the lane was healthy, and how
/// many retries waited for the budget at the end.
fn ten_minutes(percent: u64, drain: budget::Drain) -> (f64, u64, usize) {
    let budget = Some(budget::Settings { drain, ..budget::Settings::default() });
    let mut guards = LaneGuards::new(Settings { budget, breaker: None, ..Settings::default() });
    let mut draw = Draw(11);
    let (mut calls, mut healthy) = (0, 0);
    // Retries by the time at which they are due, each with its number.
    let mut waiting: std::collections::VecDeque<(u64, u32)> = std::collections::VecDeque::new();
    for step in 0..60_000 {
        let now = step * 10;
        healthy += u64::from(guards.is_healthy());
        let mut call = |guards: &mut LaneGuards, class, retry: u32, waiting: &mut std::collections::VecDeque<_>| {
            let health = if draw.below(100) < percent { Health::Failing } else { Health::Well };
            let is_sent = attempt(guards, class, health, now);
            calls += u64::from(is_sent);
            if is_sent && health == Health::Failing && retry < 3 {
                waiting.push_back((now + SECOND, retry + 1));
            }
            is_sent
        };
        call(&mut guards, Class::First, 0, &mut waiting);
        while let Some((due, retry)) = waiting.front().copied()
            && due <= now
            && call(&mut guards, Class::Retry, retry, &mut waiting)
        {
            waiting.pop_front();
        }
    }
    (calls as f64 / 60_000.0, healthy / 600, waiting.iter().filter(|(due, _)| *due <= 600_000 - 10).count())
}

/// The table of decision 0019.
#[test]
fn a_failing_dependency_sees_a_fifth_more_whatever_part_of_its_calls_fails() {
    use budget::Drain::{Earned, Strict};
    // percent of calls that fail, drain, calls per request (without a budget), percent of time healthy, retries that wait
    let cases = [
        (5, Earned, 1.053, 99..=100, 0..=0),
        (5, Strict, 1.053, 99..=100, 0..=0),
        (10, Earned, 1.111, 90..=100, 0..=0),
        (10, Strict, 1.111, 90..=100, 0..=0),
        (15, Earned, 1.176, 10..=90, 0..=200),
        (15, Strict, 1.176, 10..=90, 0..=200),
        (50, Earned, 1.194, 0..=1, 15_000..=25_000),
        (50, Strict, 1.194, 0..=1, 15_000..=25_000),
    ];
    for (percent, drain, calls, healthy, waiting) in cases {
        let (found, found_healthy, found_waiting) = ten_minutes(percent, drain);
        println!(
            "{percent} % {drain:?}: {found:.3} calls per request, healthy {found_healthy} %, {found_waiting} wait"
        );
        assert!((found - calls).abs() < 0.01, "{percent} %, {drain:?}: {found} calls per request");
        assert!(healthy.contains(&found_healthy), "{percent} %, {drain:?}: healthy {found_healthy} % of the time");
        assert!(waiting.contains(&found_waiting), "{percent} %, {drain:?}: {found_waiting} retries wait");
    }
}
