//! Several processes with one lane, against a model that remembers every send.

use super::*;
use crate::guards::breaker::{OpenedBy, State as BreakerState};
use crate::guards::concurrency::Signal;
use crate::guards::lane::{Held, LaneGuards, Outcome};
use crate::guards::node_share::LaneWork;
use crate::guards::{Gone, GoneSign, Health, Permit, Presence};
use crate::task::Class;

const SECOND: u64 = 1_000;
const BUSY: LaneWork = LaneWork { is_due: true, is_retry_due: true };

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_000_000 + millis)
}

fn outcome(health: Health) -> Outcome {
    let signal = if health == Health::Well { Signal::Answered } else { Signal::Neutral };
    Outcome { health: Some(health), signal, took: Duration::from_millis(20), retry_after: None }
}

/// Processes that share one lane.
struct Nodes {
    settings: Settings,
    nodes: Vec<LaneGuards>,
    lane: SharedLane,
    origin: OriginFloor,
    now: u64,
}

impl Nodes {
    fn new(count: usize, settings: Settings) -> Self {
        let nodes = (0..count).map(|_| LaneGuards::new(settings).shared()).collect();
        Nodes { settings, nodes, lane: SharedLane::default(), origin: OriginFloor::default(), now: 0 }
    }

    /// Lets a node exchange if it is to do so by now.
    fn exchange_if_due(&mut self, node: usize, work: LaneWork) {
        if self.nodes[node].exchange_at(work, at(self.now)).is_some_and(|due| due <= at(self.now)) {
            self.exchange(node, work);
        }
    }

    fn exchange(&mut self, node: usize, work: LaneWork) {
        let exchange = self.nodes[node].exchange(work, at(self.now)).unwrap();
        let floor = Some((&mut self.origin, "lane"));
        let answer = self.lane.exchange(&self.settings, floor, &node.to_string(), &exchange, at(self.now));
        self.nodes[node].answered(&answer, &node.to_string(), at(self.now));
    }

    fn begin(&mut self, node: usize, class: Class) -> Result<Permit, Held> {
        self.nodes[node].begin(class, None, at(self.now))
    }

    fn end(&mut self, node: usize, permit: Permit, health: Health) {
        let elapsed = Duration::from_millis(self.now);
        self.nodes[node].end(permit, outcome(health), at(self.now), elapsed, 0.5);
    }

    /// One attempt that begins and ends now; whether it was let through.
    fn attempt(&mut self, node: usize, class: Class, health: Health) -> bool {
        let permit = self.begin(node, class);
        permit.map(|permit| self.end(node, permit, health)).is_ok()
    }
}

fn without_breaker() -> Settings {
    Settings { breaker: None, ..Settings::default() }
}

#[test]
fn without_a_token_no_retry_is_sent_and_first_attempts_go_on() {
    let mut nodes = Nodes::new(1, without_breaker());
    assert_eq!(nodes.begin(0, Class::Retry), Err(Held::Budget(at(SECOND))));
    assert!(nodes.attempt(0, Class::First, Health::Failing));
    nodes.nodes[0].exchange(BUSY, at(0)).unwrap();
    nodes.nodes[0].exchange_failed();
    assert!(nodes.begin(0, Class::Retry).is_err(), "an exchange that failed brings none");
    assert_eq!(nodes.nodes[0].exchange_at(BUSY, at(0)), Some(at(500)));
}

#[test]
fn three_processes_have_one_floor() {
    let mut nodes = Nodes::new(3, without_breaker());
    let mut sent = 0;
    for step in 0..300 {
        nodes.now = step * 100;
        for node in 0..3 {
            nodes.exchange_if_due(node, BUSY);
            while nodes.attempt(node, Class::Retry, Health::Failing) {
                sent += 1;
            }
        }
    }
    assert_eq!(sent, 10, "of 30 seconds");
}

#[test]
fn first_attempts_of_one_process_earn_retries_for_another() {
    let mut nodes = Nodes::new(2, without_breaker());
    (0..100).for_each(|_| assert!(nodes.attempt(0, Class::First, Health::Failing)));
    nodes.exchange(0, LaneWork { is_due: false, is_retry_due: false });
    let mut sent = 0;
    for step in 0..100 {
        nodes.now = 100 * step;
        nodes.exchange_if_due(1, BUSY);
        while nodes.attempt(1, Class::Retry, Health::Failing) {
            sent += 1;
        }
    }
    assert_eq!(sent, 10 + 20);
}

#[test]
fn tokens_that_are_not_used_are_returned_and_those_of_a_dead_process_lapse() {
    let mut nodes = Nodes::new(2, without_breaker());
    nodes.exchange(0, BUSY);
    let charged = |nodes: &mut Nodes| nodes.nodes[1].budget_state(at(nodes.now)).unwrap().counts.charged;
    nodes.exchange(1, BUSY);
    assert_eq!(charged(&mut nodes), 8, "four for each");
    // The first returns its tokens two seconds later; the second is dead from here on, and its tokens stay charged.
    nodes.now = 2 * SECOND;
    let idle = LaneWork { is_due: false, is_retry_due: false };
    assert_eq!(nodes.nodes[0].room(None, at(nodes.now)).retries, 0);
    nodes.exchange_if_due(0, idle);
    let mut third = LaneGuards::new(nodes.settings).shared();
    let left = |nodes: &mut Nodes, third: &mut LaneGuards| {
        let exchange = third.exchange(idle, at(nodes.now)).unwrap();
        nodes.lane.exchange(&nodes.settings, None, "third", &exchange, at(nodes.now)).left
    };
    assert_eq!(left(&mut nodes, &mut third), 6);
    third.exchange_failed();
    nodes.now = 31 * SECOND;
    assert_eq!(left(&mut nodes, &mut third), 10);
}

#[test]
fn a_token_may_be_claimed_in_its_second_and_sent_until_the_end_of_the_next() {
    // when, retries that may be claimed, whether a claimed one is sent
    for (millis, claimable, is_sent) in
        [(0, 4, true), (999, 4, true), (1_000, 0, true), (1_999, 0, true), (2_000, 0, false)]
    {
        let mut nodes = Nodes::new(1, without_breaker());
        nodes.exchange(0, BUSY);
        nodes.now = millis;
        assert_eq!(nodes.nodes[0].room(None, at(millis)).retries, claimable, "at {millis}");
        assert_eq!(nodes.begin(0, Class::Retry).is_ok(), is_sent, "at {millis}");
    }
}

#[test]
fn a_budget_is_spent_only_while_an_answer_says_so() {
    let mut nodes = Nodes::new(1, without_breaker());
    let is_spent = |nodes: &mut Nodes, now: u64| nodes.nodes[0].is_budget_spent(None, at(now));
    // Ten of the floor in one second: fewer than were asked for, and nothing is left.
    let mut sent = 0;
    for step in 0..10 {
        nodes.now = 100 * step;
        nodes.exchange_if_due(0, BUSY);
        while nodes.attempt(0, Class::Retry, Health::Failing) {
            sent += 1;
        }
    }
    assert_eq!((sent, is_spent(&mut nodes, 900)), (10, true));
    // Nothing asks for tokens meanwhile: a task whose caller waits must not be refused for ever.
    assert!(!is_spent(&mut nodes, 60 * SECOND));
    nodes.now = 60 * SECOND;
    nodes.exchange(0, LaneWork { is_due: false, is_retry_due: false });
    assert!(!is_spent(&mut nodes, 60 * SECOND), "a look without a wish for tokens does not spend it");
}

#[test]
fn tokens_that_are_not_used_are_returned_also_by_a_process_that_has_nothing_more_to_do() {
    let idle = LaneWork { is_due: false, is_retry_due: false };
    let mut nodes = Nodes::new(2, without_breaker());
    nodes.exchange(0, BUSY);
    assert_eq!(nodes.nodes[0].exchange_at(idle, at(0)), Some(at(2 * SECOND)), "when they have expired");
    nodes.now = 2 * SECOND;
    nodes.exchange_if_due(0, idle);
    assert_eq!(nodes.nodes[0].exchange_at(idle, at(nodes.now)), None);
    nodes.exchange(1, idle);
    assert_eq!(nodes.nodes[1].budget_state(at(nodes.now)).unwrap().left, 10);
    nodes.nodes[1].set_paused(true);
    assert_eq!(nodes.nodes[1].exchange_at(BUSY, at(60 * SECOND)), None, "a paused lane asks for none");
}

#[test]
fn tokens_of_a_time_that_a_clock_was_set_back_from_are_not_used() {
    let mut nodes = Nodes::new(1, without_breaker());
    nodes.now = 60 * SECOND;
    nodes.exchange(0, BUSY);
    nodes.now = 0;
    assert_eq!(nodes.nodes[0].room(None, at(0)).retries, 0);
    assert!(nodes.begin(0, Class::Retry).is_err());
}

#[test]
fn lanes_of_one_origin_share_its_floor_over_all_processes() {
    let settings = without_breaker();
    let mut origin = OriginFloor::default();
    let mut granted = Vec::new();
    for name in ["a", "b", "c"] {
        let exchange = Exchange { want: 6, ..Exchange::default() };
        let floor = Some((&mut origin, name));
        granted.push(SharedLane::default().exchange(&settings, floor, "n", &exchange, at(0)).granted);
    }
    assert_eq!(granted, [6, 4, 0]);
    let mut outcomes = RecentOutcomes::default();
    (0..5).for_each(|_| outcomes.record(true));
    let healthy = Exchange { want: 6, outcomes, ..Exchange::default() };
    let mut lane = SharedLane::default();
    assert_eq!(lane.exchange(&settings, Some((&mut origin, "d")), "n", &healthy, at(0)).granted, 6);
    let later = Exchange { want: 6, ..Exchange::default() };
    let floor = Some((&mut origin, "e"));
    assert_eq!(SharedLane::default().exchange(&settings, floor, "n", &later, at(31_001)).granted, 6, "a window later");
}

#[test]
fn one_process_opens_the_breaker_for_all_and_one_sends_the_probes() {
    let mut nodes = Nodes::new(2, Settings { budget: None, ..Settings::default() });
    (0..10).for_each(|_| assert!(nodes.attempt(0, Class::First, Health::Failing)));
    assert!(nodes.begin(0, Class::First).is_err());
    assert_eq!(nodes.nodes[0].exchange_at(BUSY, at(0)), Some(at(0)), "it is published at once");
    nodes.exchange(0, BUSY);
    nodes.nodes[1].look_soon();
    nodes.exchange(1, BUSY);
    let State { until } = open_until(&nodes, 1);
    assert_eq!(until, open_until(&nodes, 0).until);
    nodes.now = until.since(at(0)).as_millis() as u64;
    assert!(
        (0..2).all(|node| nodes.nodes[node].begin(Class::First, None, until).is_err()),
        "neither has the right yet"
    );
    nodes.exchange_if_due(1, BUSY);
    nodes.exchange_if_due(0, BUSY);
    let sent =
        |nodes: &mut Nodes, node| std::iter::from_fn(|| nodes.begin(node, Class::First).ok()).collect::<Vec<_>>();
    assert_eq!(sent(&mut nodes, 0), [], "the other one probes");
    let probes = sent(&mut nodes, 1);
    assert_eq!(probes.len(), 3);
    probes.into_iter().for_each(|probe| nodes.end(1, probe, Health::Well));
    nodes.exchange_if_due(1, BUSY);
    nodes.nodes[0].look_soon();
    nodes.exchange(0, BUSY);
    assert!((0..2).all(|node| nodes.attempt(node, Class::First, Health::Well)), "closed for both");
}

/// Two processes whose shared breaker has opened, at the time at which the probes begin.
fn after_opening(settings: Settings) -> Nodes {
    let mut nodes = Nodes::new(2, settings);
    (0..10).for_each(|_| assert!(nodes.attempt(0, Class::First, Health::Failing)));
    [0, 1].into_iter().for_each(|node| nodes.exchange(node, BUSY));
    nodes.now = open_until(&nodes, 1).until.since(at(0)).as_millis() as u64;
    nodes
}

#[test]
fn probes_of_several_processes_close_the_breaker_together() {
    let mut nodes = after_opening(Settings { budget: None, ..Settings::default() });
    let idle = LaneWork { is_due: false, is_retry_due: false };
    // One task at a time, each on the other process, and the right to probe lapses in between.
    for (number, node) in [0, 1, 0].into_iter().enumerate() {
        nodes.exchange_if_due(node, BUSY);
        assert!(nodes.attempt(node, Class::First, Health::Well), "probe {number}");
        nodes.exchange_if_due(node, idle);
        nodes.now += 20 * SECOND;
    }
    [0, 1].into_iter().for_each(|node| nodes.exchange(node, BUSY));
    assert!((0..2).all(|node| nodes.nodes[node].breaker_state(at(nodes.now)) == BreakerState::Closed));
}

#[test]
fn probes_that_succeed_do_not_spend_the_floor() {
    let mut nodes = after_opening(Settings::default());
    let idle = LaneWork { is_due: false, is_retry_due: false };
    nodes.exchange_if_due(0, BUSY);
    (0..3).for_each(|_| assert!(nodes.attempt(0, Class::Retry, Health::Well)));
    [0, 1].into_iter().for_each(|node| nodes.exchange(node, idle));
    let counts = nodes.nodes[1].budget_state(at(nodes.now)).unwrap().counts;
    assert_eq!((counts.charged, counts.refunded), (0, 3));
}

#[test]
fn a_process_that_has_the_right_to_probe_keeps_it_while_its_probes_are_under_way() {
    let mut nodes = after_opening(Settings { budget: None, ..Settings::default() });
    let idle = LaneWork { is_due: false, is_retry_due: false };
    nodes.exchange_if_due(0, BUSY);
    let probes: Vec<Permit> = std::iter::from_fn(|| nodes.begin(0, Class::First).ok()).collect();
    assert_eq!(probes.len(), 3);
    let (mut exchanges, mut right_of_other) = (0, 0);
    for _ in 0..300 {
        nodes.now += 100;
        if nodes.nodes[0].exchange_at(idle, at(nodes.now)).is_some_and(|due| due <= at(nodes.now)) {
            nodes.exchange(0, idle);
            exchanges += 1;
        }
        nodes.exchange_if_due(1, BUSY);
        right_of_other += u32::from(nodes.begin(1, Class::First).is_ok());
    }
    assert_eq!(right_of_other, 0);
    assert!(exchanges < 20, "{exchanges} exchanges in 30 s");
    probes.into_iter().for_each(|probe| nodes.end(0, probe, Health::Well));
    [0, 1].into_iter().for_each(|node| nodes.exchange(node, idle));
    assert!((0..2).all(|node| nodes.nodes[node].breaker_state(at(nodes.now)) == BreakerState::Closed));
}

#[test]
fn a_process_whose_change_of_the_breaker_is_refused_follows_the_others() {
    let mut nodes = after_opening(Settings { budget: None, ..Settings::default() });
    nodes.exchange_if_due(0, BUSY);
    let probes: Vec<Permit> = std::iter::from_fn(|| nodes.begin(0, Class::First).ok()).collect();
    // The first process is suspended; the second takes over, and its probe fails.
    nodes.now += 60 * SECOND;
    nodes.exchange(1, BUSY);
    assert!(nodes.attempt(1, Class::First, Health::Failing));
    nodes.exchange(1, BUSY);
    probes.into_iter().for_each(|probe| nodes.end(0, probe, Health::Well));
    [0, 0].into_iter().for_each(|node| nodes.exchange(node, BUSY));
    assert_eq!(open_until(&nodes, 0).until, open_until(&nodes, 1).until);
    assert!(nodes.begin(0, Class::First).is_err());
}

#[test]
fn a_longer_retry_after_extends_the_breaker_of_all_processes() {
    let mut nodes = Nodes::new(2, Settings { budget: None, ..Settings::default() });
    let late = nodes.begin(0, Class::First).unwrap();
    (0..10).for_each(|_| assert!(nodes.attempt(0, Class::First, Health::Failing)));
    [0, 1].into_iter().for_each(|node| nodes.exchange(node, BUSY));
    let asked = Outcome { retry_after: Some(Duration::from_secs(600)), ..outcome(Health::Failing) };
    nodes.nodes[0].end(late, asked, at(0), Duration::ZERO, 0.5);
    nodes.exchange_if_due(0, BUSY);
    nodes.exchange(1, BUSY);
    assert_eq!([0, 1].map(|node| open_until(&nodes, node).until), [at(600 * SECOND); 2]);
}

struct State {
    until: Timestamp,
}

fn open_until(nodes: &Nodes, node: usize) -> State {
    match nodes.nodes[node].breaker_state(at(nodes.now)) {
        BreakerState::Open { until, .. } => State { until },
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_right_to_probe_of_a_process_that_died_passes_on() {
    let mut breaker = SharedBreaker::default();
    let apply = |breaker: &mut SharedBreaker, change, node, now| {
        let exchange = Exchange { breaker: Some(change), epoch: breaker.epoch, ..Exchange::default() };
        breaker.apply(&exchange, node, at(now));
    };
    let opened = BreakerChange::Opened {
        until: at(15_000),
        pause: Duration::from_secs(15),
        opened: 1,
        why: OpenedBy::FailuresInARow,
    };
    apply(&mut breaker, opened, "a", 0);
    let prober = |breaker: &SharedBreaker| match &breaker.state {
        SharedBreakerState::Probing { by, .. } => by.clone(),
        _ => String::new(),
    };
    // node, when it asks, who probes then
    for (node, now, expected) in [
        ("a", 14_999, ""),
        ("a", 15_000, "a"),
        ("b", 29_999, "a"),
        ("a", 29_999, "a"),
        ("b", 44_998, "a"),
        ("b", 44_999, "b"),
    ] {
        apply(&mut breaker, BreakerChange::Probe { succeeded: 0 }, node, now);
        assert_eq!(prober(&breaker), expected, "{node} asks at {now}");
    }
    let stale = Exchange { breaker: Some(BreakerChange::Closed), epoch: 2, ..Exchange::default() };
    breaker.apply(&stale, "a", at(45_000));
    assert_eq!(prober(&breaker), "b", "a process that was stopped for long closes nothing");
}

#[test]
fn failures_of_an_exchange_that_failed_are_reported_by_the_next_one() {
    let mut nodes = Nodes::new(1, without_breaker());
    (0..5).for_each(|_| assert!(nodes.attempt(0, Class::First, Health::Well)));
    nodes.exchange(0, BUSY);
    assert!(nodes.nodes[0].is_healthy());
    (0..2).for_each(|_| assert!(nodes.attempt(0, Class::First, Health::Failing)));
    nodes.nodes[0].exchange(BUSY, at(0)).unwrap();
    assert!(nodes.attempt(0, Class::First, Health::Well));
    nodes.nodes[0].exchange_failed();
    nodes.exchange(0, BUSY);
    assert_eq!((nodes.nodes[0].recent().count(), nodes.nodes[0].recent().failures()), (8, 2));
    assert!(!nodes.nodes[0].is_healthy(), "three quarters succeeded");
}

#[test]
fn a_success_of_one_process_ends_the_time_without_success_of_all() {
    let mut nodes = Nodes::new(2, without_breaker());
    let watch = |nodes: &mut Nodes, node: usize, presence, now: u64| {
        nodes.now = now;
        nodes.nodes[node].watch_presence(presence, at(now))
    };
    let since = |nodes: &Nodes| [0, 1].map(|node| nodes.nodes[node].failing_since());
    let exchange_both = |nodes: &mut Nodes| [0, 1, 0].map(|node| nodes.exchange(node, BUSY));
    watch(&mut nodes, 1, Presence::NoSuccess, 7 * SECOND);
    watch(&mut nodes, 0, Presence::NoSuccess, 9 * SECOND);
    exchange_both(&mut nodes);
    assert_eq!(since(&nodes), [Some(at(7 * SECOND)); 2], "the earlier one counts");
    // The second succeeds, and exchanges because the others have had no success.
    watch(&mut nodes, 1, Presence::Success, 20 * SECOND);
    let idle = LaneWork { is_due: false, is_retry_due: false };
    assert!(nodes.nodes[1].exchange_at(idle, at(20 * SECOND)).is_some_and(|due| due <= at(20 * SECOND)));
    nodes.exchange(1, idle);
    assert_eq!(since(&nodes)[1], None);
    // The first has failed all the time: that counts since the success of the other.
    watch(&mut nodes, 0, Presence::NoSuccess, 19 * SECOND);
    watch(&mut nodes, 0, Presence::NoSuccess, 21 * SECOND);
    exchange_both(&mut nodes);
    assert_eq!(since(&nodes), [Some(at(20 * SECOND)); 2]);
    watch(&mut nodes, 0, Presence::Success, 22 * SECOND);
    exchange_both(&mut nodes);
    assert_eq!(since(&nodes), [None; 2]);
    let day = 24 * 3_600 * SECOND;
    assert_eq!(watch(&mut nodes, 0, Presence::NoSuccess, 7 * SECOND + day), None);
}

#[test]
fn a_process_that_starts_knows_since_when_the_others_have_had_no_success() {
    let mut nodes = Nodes::new(1, without_breaker());
    nodes.nodes[0].watch_presence(Presence::NoSuccess, at(0));
    nodes.exchange(0, BUSY);
    nodes.nodes[0] = LaneGuards::new(nodes.settings).shared();
    nodes.now = 24 * 3_600 * SECOND;
    nodes.exchange(0, BUSY);
    let gone = nodes.nodes[0].watch_presence(Presence::NoSuccess, at(nodes.now));
    assert_eq!(gone, Some(GoneSign { gone: Gone::NoSuccessSince(at(0)), is_event: true }));
}

#[test]
fn a_state_is_the_same_when_it_is_written_and_read() {
    let mut nodes = Nodes::new(1, Settings::default());
    let sent = (0..12).filter(|_| nodes.attempt(0, Class::First, Health::Failing)).count();
    assert_eq!(sent, 10, "the breaker opened");
    nodes.exchange(0, BUSY);
    let text = serde_json::to_string(&nodes.lane).unwrap();
    assert_eq!(serde_json::from_str::<SharedLane>(&text).unwrap(), nodes.lane);
    assert_eq!(serde_json::from_str::<SharedLane>("{}").unwrap(), SharedLane::default());
    assert_eq!(serde_json::from_str::<OriginFloor>("{}").unwrap(), OriginFloor::default());
}

/// A small generator, so that a failing life can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A send that the model remembers: when, which class, and when it was refunded.
struct Sent {
    at: u64,
    is_retry: bool,
    is_refunded: bool,
}

/// Random lives of up to four processes that send, fail, exchange, lose exchanges, die and start again, with clocks that
/// differ by up to 50 ms. At every retry the unrefunded retries of the window are within the allowance of what was sent in
/// the window, with one bucket of slack.
#[test]
fn the_bound_of_the_budget_holds_over_all_processes_whatever_dies() {
    for seed in 1..=300_u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let count = 1 + random.below(4) as usize;
        let mut nodes = Nodes::new(count, without_breaker());
        let skew: Vec<u64> = (0..count).map(|_| random.below(50)).collect();
        let mut sent: Vec<Sent> = Vec::new();
        let mut flying: Vec<(usize, usize, Permit)> = Vec::new();
        let mut clock = 0;
        let failures = random.below(101);
        for _ in 0..3_000 {
            clock += random.below(60);
            let node = random.below(count as u64) as usize;
            nodes.now = clock + skew[node];
            match random.below(100) {
                0 => {
                    nodes.nodes[node] = LaneGuards::new(nodes.settings).shared();
                    flying.retain(|(owner, ..)| *owner != node);
                }
                1..4 => {
                    // The exchange is lost, before or after it took place.
                    let Some(exchange) = nodes.nodes[node].exchange(BUSY, at(nodes.now)) else { continue };
                    if random.below(2) == 0 {
                        nodes.lane.exchange(&nodes.settings, None, "n", &exchange, at(nodes.now));
                    }
                    nodes.nodes[node].exchange_failed();
                }
                4..40 => nodes.exchange_if_due(node, BUSY),
                40..55 => {
                    let permit = nodes.begin(node, Class::First).unwrap();
                    sent.push(Sent { at: clock, is_retry: false, is_refunded: false });
                    flying.push((node, sent.len() - 1, permit));
                }
                55..80 => {
                    let Ok(permit) = nodes.begin(node, Class::Retry) else { continue };
                    sent.push(Sent { at: clock, is_retry: true, is_refunded: false });
                    flying.push((node, sent.len() - 1, permit));
                    check(&sent, clock, seed);
                }
                _ if flying.is_empty() => {}
                _ => {
                    let (owner, number, permit) = flying.swap_remove(random.below(flying.len() as u64) as usize);
                    nodes.now = clock + skew[owner];
                    let health = if random.below(100) < failures { Health::Failing } else { Health::Well };
                    nodes.end(owner, permit, health);
                    sent[number].is_refunded |= health == Health::Well && nodes.nodes[owner].is_healthy();
                }
            }
        }
    }
}

/// Judges the last 30 s with the stated slack: a retry is sent up to a bucket after the one that it is charged to, so the
/// last 29 s of retries are within the allowance of 32 s (a bucket, and the one that is half in the window); and the
/// clocks differ by up to 50 ms.
fn check(sent: &[Sent], now: u64, seed: u64) {
    let within = |millis: u64| sent.iter().filter(move |sent| sent.at + millis > now);
    let retries = within(29 * SECOND - 50).filter(|sent| sent.is_retry && !sent.is_refunded).count();
    let earning = within(32 * SECOND + 50).filter(|sent| !sent.is_retry || sent.is_refunded).count();
    assert!(retries * 100 <= 1_000 + 20 * earning, "seed {seed}: {retries} retries for {earning} at {now}");
}
