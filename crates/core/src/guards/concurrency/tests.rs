//! The limit against simulated dependencies.
//!
//! A simulation is a closed loop: the lane always has work and keeps as many calls in flight as the limit allows. The
//! dependency serves them in order with a number of workers; what is random comes from a seeded generator.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;

const UNLIMITED: usize = usize::MAX;

/// The service time of a call, from a uniform draw in [0, 1).
type Service = fn(f64) -> Duration;

/// A lane and its dependency, in simulated time.
struct Simulation {
    lane: Concurrency,
    /// Workers of the dependency.
    workers: usize,
    service: Service,
    /// The dependency answers 503 within a millisecond when it has more calls than this.
    bears: usize,
    /// Calls that the lane has to make at any time.
    demand: usize,
    now: Duration,
    random: u64,
    /// When the workers are done with the calls that they have, soonest first.
    busy: BinaryHeap<Reverse<Duration>>,
    /// The calls in flight by their end, with their duration and signal.
    calls: BinaryHeap<Reverse<(Duration, u64, Duration, bool)>>,
    made: u64,
}

/// What was seen over a time.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// Answered calls per second.
    throughput: f64,
    /// The mean of the calls in flight.
    in_flight: f64,
    least: u32,
    most: u32,
    /// The part of the calls that was rejected.
    rejected: f64,
}

impl Simulation {
    fn new(settings: Settings, workers: usize, service: Service) -> Self {
        Simulation {
            lane: Concurrency::new(settings),
            workers,
            service,
            bears: usize::MAX,
            demand: usize::MAX,
            now: Duration::ZERO,
            random: 42,
            busy: BinaryHeap::new(),
            calls: BinaryHeap::new(),
            made: 0,
        }
    }

    fn unit(&mut self) -> f64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn call(&mut self) {
        let is_rejected = self.calls.len() >= self.bears;
        let end = if is_rejected {
            self.now + Duration::from_millis(1)
        } else {
            let is_free = self.busy.len() < self.workers;
            let begin = if is_free { self.now } else { self.busy.pop().unwrap().0.max(self.now) };
            let end = begin + (self.service)(self.unit());
            if self.workers != UNLIMITED {
                self.busy.push(Reverse(end));
            }
            end
        };
        self.made += 1;
        self.calls.push(Reverse((end, self.made, end - self.now, is_rejected)));
    }

    /// Makes calls until `count` of them have ended.
    fn run(&mut self, count: u32) -> Seen {
        let (begin, mut weighted, mut rejected) = (self.now, 0.0, 0);
        let (mut least, mut most) = (u32::MAX, 0);
        for _ in 0..count {
            while self.calls.len() < self.demand.min(self.lane.limit() as usize) {
                self.call();
            }
            let in_flight = self.calls.len() as u32;
            let Reverse((end, _, took, is_rejected)) = self.calls.pop().unwrap();
            weighted += f64::from(in_flight) * (end - self.now).as_secs_f64();
            self.now = end;
            let signal = if is_rejected { Signal::Overloaded } else { Signal::Answered };
            self.lane.record(signal, took, in_flight, self.now);
            rejected += u32::from(is_rejected);
            least = least.min(self.lane.limit());
            most = most.max(self.lane.limit());
        }
        let seconds = (self.now - begin).as_secs_f64();
        Seen {
            throughput: f64::from(count - rejected) / seconds,
            in_flight: weighted / seconds,
            least,
            most,
            rejected: f64::from(rejected) / f64::from(count),
        }
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn adaptive(start: u32, least: u32, most: u32) -> Concurrency {
    Concurrency::new(Settings { start, least, most, ..Settings::default() })
}

fn fixed(most: u32) -> Concurrency {
    Concurrency::new(Settings { is_adaptive: false, most, ..Settings::default() })
}

/// Records calls of 20 ms that end at `elapsed_ms`.
fn record(lane: &mut Concurrency, signal: Signal, calls: u32, elapsed_ms: u64) {
    (0..calls).for_each(|_| lane.record(signal, millis(20), lane.limit(), millis(elapsed_ms)));
}

#[test]
fn a_burst_of_overloads_reduces_the_limit_once_per_round_trip() {
    let mut lane = Concurrency::default();
    assert_eq!(lane.limit(), 20);
    // 20, 18, 16.2, 14.58: the calls that end at 119 ms began before the limit was reduced at 100 ms.
    for (elapsed_ms, limit) in [(100, 18), (101, 18), (119, 18), (120, 18), (121, 16), (141, 16), (142, 14)] {
        record(&mut lane, Signal::Overloaded, 50, elapsed_ms);
        assert_eq!(lane.limit(), limit, "at {elapsed_ms} ms");
    }
}

#[test]
fn overloads_never_reduce_the_limit_below_the_least() {
    // start, least, limit
    for (start, least, limit) in [(20, 1, 1), (20, 0, 1), (20, 5, 5), (3, 3, 3)] {
        let mut lane = adaptive(start, least, 200);
        (1..100).for_each(|round| record(&mut lane, Signal::Overloaded, 1, 100 * round));
        assert_eq!(lane.limit(), limit, "from {start}, at least {least}");
    }
}

#[test]
fn a_neutral_outcome_shows_nothing() {
    let mut lane = Concurrency::default();
    let before = lane.clone();
    record(&mut lane, Signal::Neutral, 1_000, 100);
    assert_eq!(lane, before);
}

#[test]
fn the_limit_keeps_the_workers_busy_with_a_short_queue_and_does_not_drift() {
    // workers, round trips of 20 ms from the start of 20 until it has converged, calls in flight
    for (workers, round_trips, in_flight) in [(4, 55, 7.0), (16, 8, 25.0), (64, 20, 96.0), (150, 19, 200.0)] {
        let mut simulation = Simulation::new(Settings::default(), workers, |_| millis(20));
        while simulation.now < round_trips * millis(20) {
            simulation.run(1);
        }
        let capacity = workers as f64 / 0.020;
        for thousands in [25, 50, 75, 100] {
            let seen = simulation.run(25_000);
            assert!(seen.throughput >= 0.99 * capacity, "{workers} workers, {thousands},000 calls: {seen:?}");
            assert!(seen.in_flight <= in_flight, "{workers} workers, {thousands},000 calls: {seen:?}");
            assert!(
                f64::from(seen.most) <= 1.75 * workers as f64,
                "{workers} workers, {thousands},000 calls: {seen:?}"
            );
        }
    }
}

#[test]
fn the_limit_follows_a_dependency_that_becomes_slower_or_faster() {
    let (fast, slow): (Service, Service) = (|_| millis(20), |_| millis(200));
    for workers in [4, 16, 64, 100] {
        for (before, after, seconds) in [(fast, slow, 0.200), (slow, fast, 0.020)] {
            let mut simulation = Simulation::new(Settings::default(), workers, before);
            simulation.run(5_000);
            simulation.service = after;
            // At most 24 rounds: the gap before the check, the check, and the gap before it is repeated.
            simulation.run(24 * 2 * 40.max(2 * workers as u32));
            let capacity = workers as f64 / seconds;
            for part in 1..=4 {
                let seen = simulation.run(10_000);
                assert!(seen.throughput >= 0.98 * capacity, "{workers} × {seconds} s, part {part}: {seen:?}");
                assert!(seen.in_flight <= 1.75 * workers as f64, "{workers} × {seconds} s, part {part}: {seen:?}");
            }
        }
    }
}

/// Twenty milliseconds ± 50 %.
fn uniform(unit: f64) -> Duration {
    millis(20).mul_f64(0.5 + unit)
}

/// As [`uniform`], and every hundredth call takes ten times as long.
fn with_tail(unit: f64) -> Duration {
    if unit < 0.01 { millis(200) } else { uniform(unit) }
}

/// From 20 to 200 ms.
fn tenfold(unit: f64) -> Duration {
    millis(20).mul_f64(10_f64.powf(unit))
}

/// From 0.1 to 1 ms.
fn fast(unit: f64) -> Duration {
    Duration::from_micros(100).mul_f64(10_f64.powf(unit))
}

#[test]
fn a_dependency_without_a_queue_gets_all_calls_however_much_its_latency_varies() {
    let services: [(&str, Service); 5] =
        [("constant", |_| millis(20)), ("uniform", uniform), ("tail", with_tail), ("tenfold", tenfold), ("fast", fast)];
    for (name, service) in services {
        for seed in 1..=3 {
            let mut simulation = Simulation::new(Settings::default(), UNLIMITED, service);
            simulation.random = seed;
            simulation.run(3_000);
            let seen = simulation.run(30_000);
            assert_eq!(seen.most, 200, "{name}, seed {seed}");
            assert!(seen.in_flight >= 195.0, "{name}, seed {seed}: {seen:?}");
        }
    }
}

#[test]
fn noise_does_not_hide_a_queue() {
    // The mean of 10^u for u uniform in [0, 1) is 9 / ln 10.
    let tenfold_seconds = 0.020 * 9.0 / std::f64::consts::LN_10;
    let services: [(&str, Service, f64); 3] =
        [("uniform", uniform, 0.020), ("tail", with_tail, 0.0219), ("tenfold", tenfold, tenfold_seconds)];
    for (name, service, seconds) in services {
        for workers in [4, 16, 64] {
            let mut simulation = Simulation::new(Settings::default(), workers, service);
            simulation.run(3_000);
            let (seen, capacity) = (simulation.run(50_000), workers as f64 / seconds);
            assert!(seen.throughput >= 0.95 * capacity, "{name}, {workers} workers: {seen:?}");
            assert!(seen.in_flight <= 2.0 * workers as f64, "{name}, {workers} workers: {seen:?}");
        }
    }
}

#[test]
fn calls_within_the_slack_are_not_limited_for_the_queue_that_they_cause() {
    // 4 workers at 0.39 ms: 10 ms of queue are 102 calls.
    let mut simulation = Simulation::new(Settings::default(), 4, fast);
    simulation.run(3_000);
    let seen = simulation.run(50_000);
    assert!((100.0..130.0).contains(&seen.in_flight), "{seen:?}");
    assert!(seen.throughput >= 0.98 * 4.0 / (0.000_1 * 9.0 / std::f64::consts::LN_10), "{seen:?}");
}

#[test]
fn a_lane_that_does_not_use_its_limit_keeps_it() {
    // demand, limit
    for (demand, limit) in [(1, 200), (10, 200), (149, 200), (usize::MAX, 200)] {
        let mut simulation = Simulation::new(Settings::default(), UNLIMITED, uniform);
        simulation.run(3_000);
        simulation.demand = demand;
        simulation.run(20_000);
        let in_check = simulation.lane.check.map_or(0.0, |check| check.limit);
        assert_eq!(simulation.lane.limit().max(in_check as u32), limit, "{demand} calls after growing");
    }
    for (demand, limit) in [(1, 20), (10, 20), (14, 20)] {
        let mut simulation = Simulation::new(Settings::default(), UNLIMITED, uniform);
        simulation.demand = demand;
        let seen = simulation.run(20_000);
        assert_eq!((seen.least, seen.most), (limit, limit), "{demand} calls from the start");
    }
}

#[test]
fn a_dependency_that_rejects_instead_of_queueing_is_approached_carefully() {
    // calls that it bears, part rejected at most
    for (bears, rejected) in [(4, 0.02), (16, 0.02), (64, 0.02), (150, 0.03)] {
        let mut simulation = Simulation::new(Settings::default(), UNLIMITED, |_| millis(20));
        simulation.bears = bears;
        simulation.run(3_000);
        let seen = simulation.run(50_000);
        assert!(seen.throughput >= 0.93 * bears as f64 / 0.020, "{bears}: {seen:?}");
        assert!(seen.rejected <= rejected, "{bears}: {seen:?}");
    }
}

#[test]
fn the_limit_recovers_from_the_least() {
    let mut simulation = Simulation::new(Settings::default(), 64, |_| millis(20));
    (1..100).for_each(|round| record(&mut simulation.lane, Signal::Overloaded, 1, 100 * round));
    assert_eq!(simulation.lane.limit(), 1);
    simulation.now = Duration::from_secs(10);
    // At 1, 1.25, 1.5 and 1.75: one call to settle, and 8, 10, 12 and 14 to measure.
    assert_eq!((simulation.run(47).most, simulation.run(1).most), (1, 2));
    simulation.run(2_500);
    let seen = simulation.run(20_000);
    assert!(seen.throughput >= 0.99 * 64.0 / 0.020, "{seen:?}");
}

#[test]
fn a_ramp_doubles_with_each_round_trip_until_it_reaches_the_limit() {
    let from_one: &[u32] = &[1, 2, 4, 8, 16, 32, 50];
    for (mut lane, limits) in
        [(fixed(50), from_one), (adaptive(50, 1, 200), from_one), (adaptive(50, 5, 200), &[5, 10, 20])]
    {
        lane.ramp(1);
        for (round, limit) in (1..).zip(limits) {
            assert_eq!(lane.limit(), *limit, "round {round} of {limits:?}");
            record(&mut lane, Signal::Answered, *limit, 20 * round);
        }
    }
}

#[test]
fn a_ramp_above_the_limit_or_below_the_least_stays_within_them() {
    // from, limit
    for (from, limit) in [(0, 5), (4, 5), (5, 5), (6, 6), (20, 20), (u32::MAX, 20)] {
        let mut lane = adaptive(20, 5, 200);
        lane.ramp(from);
        assert_eq!(lane.limit(), limit, "from {from}");
    }
}

#[test]
fn an_overload_during_a_ramp_reduces_it_and_stops_its_growth_for_a_round_trip() {
    // the limit that holds, and what it is afterwards
    for (mut lane, end) in [(fixed(50), 50), (adaptive(50, 1, 200), 45)] {
        lane.ramp(20);
        record(&mut lane, Signal::Overloaded, 5, 100);
        assert_eq!(lane.limit(), 18);
        record(&mut lane, Signal::Answered, 5, 120);
        assert_eq!(lane.limit(), 18, "they began before the overload");
        record(&mut lane, Signal::Answered, 5, 121);
        assert_eq!(lane.limit(), 23);
        record(&mut lane, Signal::Answered, 100, 122);
        assert_eq!(lane.limit(), end);
    }
}

#[test]
fn a_fixed_limit_stays() {
    let mut simulation = Simulation::new(Settings { is_adaptive: false, ..Settings::default() }, 4, uniform);
    simulation.bears = 150;
    let seen = simulation.run(10_000);
    assert_eq!((seen.least, seen.most), (200, 200));
}

#[test]
fn other_settings_keep_what_was_learnt_within_their_bounds() {
    // least, most, limit
    for (least, most, limit) in [(1, 200, 100), (1, 50, 50), (150, 200, 150), (60, 40, 60)] {
        let mut lane = adaptive(100, 1, 200);
        lane.configure(Settings { start: 7, least, most, ..Settings::default() });
        assert_eq!(lane.limit(), limit, "{least} to {most}");
    }
    let mut lane = fixed(30);
    lane.configure(Settings::default());
    assert_eq!(lane.limit(), 20, "begins at the start that it was made with");
    lane.configure(Settings { is_adaptive: false, most: 30, ..Settings::default() });
    assert_eq!(lane.limit(), 30);
    let mut checking = Concurrency::default();
    record(&mut checking, Signal::Answered, 20 + ROUND_CALLS, 20);
    assert_eq!(checking.limit(), 10);
    checking.configure(Settings::default());
    assert_eq!(checking.limit(), 20, "the check is given up");
}

#[test]
fn no_setting_and_no_sample_overflows() {
    let numbers = [0.0, -1.0, 0.9, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let durations = [Duration::ZERO, Duration::from_nanos(1), millis(20), Duration::MAX];
    for (start, least, most) in [(0, 0, 0), (20, 200, 1), (u32::MAX, 0, u32::MAX), (0, u32::MAX, 0), (500, 10, 20)] {
        for (number, slack) in numbers.into_iter().flat_map(|number| durations.map(|slack| (number, slack))) {
            let settings =
                Settings { is_adaptive: true, start, least, most, tolerance: number, slack, on_overload: number };
            let mut lane = Concurrency::new(settings);
            for step in 0..400 {
                let [took, elapsed] = [durations[step / 7 % 4], durations[step / 100]];
                let in_flight = [0, 1, lane.limit(), u32::MAX][step / 40 % 4];
                lane.record(
                    [Signal::Answered, Signal::Overloaded][usize::from(step % 99 == 0)],
                    took,
                    in_flight,
                    elapsed,
                );
                if step == 300 {
                    lane.ramp([0, u32::MAX][step % 2]);
                }
                let bounds = least.max(1)..=most.max(least).max(1);
                assert!(bounds.contains(&lane.limit()), "{settings:?}, step {step}: {}", lane.limit());
            }
        }
    }
}

#[test]
fn a_limit_is_small() {
    assert!(size_of::<Concurrency>() <= 200, "{}", size_of::<Concurrency>());
}

#[test]
fn timeouts_and_503s_are_an_overload_only_if_there_are_many() {
    // one in so many calls is unavailable, whether the limit goes down
    for (one_in, is_reduced) in [(20, false), (10, false), (4, true), (1, true)] {
        let mut concurrency = Concurrency::new(Settings { start: 100, ..Settings::default() });
        for call in 0..2_000_u32 {
            let signal = if call.is_multiple_of(one_in) { Signal::Unavailable } else { Signal::Answered };
            concurrency.record(signal, Duration::from_millis(20), 10, Duration::from_millis(u64::from(call) * 30));
        }
        assert_eq!(concurrency.limit() < 100, is_reduced, "one in {one_in}: {}", concurrency.limit());
    }
}
