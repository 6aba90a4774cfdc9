//! Guarded: a world in which guards have to hold lanes back. Few dependencies, which fail for a while again and again,
//! many tasks with many retries soon after one another, and one process, which may crash, or a few that share their guards.

use std::time::Duration;

use redrive_core::guards::{self, breaker, budget};
use redrive_core::policy::{BackoffKind, JitterKind, Spec};
use redrive_engine::{LogOptions, Options, Presence, Steps, TraceOptions};

use super::crowd::item;
use super::draw::follow_ups;
use super::errand::Errand;
use super::family::Families;
use super::fault::Mood;
use super::shape::{Ask, Shape, small_steps};
use crate::moment::Moment;
use crate::random::Random;

const SECOND: Duration = Duration::from_secs(1);

/// How dependencies behave between faults.
const USUAL: [Mood; 6] = [Mood::Quick, Mood::Quick, Mood::Well, Mood::Mixed, Mood::Errs, Mood::Throttles];

impl Shape {
    pub(super) fn draw_guarded(random: &mut Random, families: Families, ask: &Ask) -> Self {
        let lane_concurrency = *random.pick(&[1, 4, 16, 128]);
        let few = random.within(1..=3) as usize;
        Shape {
            nodes: 1,
            exclusive: ask.exclusive.unwrap_or(true),
            families,
            trouble: match ask.hours {
                Some(hours) => Duration::from_secs_f64((hours * 3_600.0).clamp(1.0, 1e7)),
                None => random.duration(60 * SECOND, 300 * SECOND),
            },
            engine: Options {
                guards: draw(random),
                lane_concurrency,
                max_in_flight: lane_concurrency * 4,
                max_body_bytes: Options::MIN_BODY_BYTES,
                lease_margin: random.duration(SECOND, 10 * SECOND),
                shutdown_grace: random.duration(SECOND / 10, 5 * SECOND),
                retention: 24 * 3_600 * SECOND,
                clean_every: 600 * SECOND,
                blob_grace: 24 * 3_600 * SECOND,
                rescue_every: random.duration(SECOND, 10 * SECOND),
                look_around_every: random.duration(2 * SECOND, 20 * SECOND),
                beat_every: 3_600 * SECOND,
                presence: Presence::default(),
                log: LogOptions::default(),
                traces: TraceOptions::default(),
                steps: if random.chance(0.7) { Steps::default() } else { small_steps(random) },
            },
            clock_bound: Duration::ZERO,
            tenants: *random.pick(&[1, 1, 2]),
            dependencies: (0..few).map(|_| *random.pick(&USUAL)).collect(),
            longest_attempt: 5 * SECOND,
            alerting: None,
            errands: random.within(30..=120) as usize,
            patience: 20 * SECOND,
        }
    }
}

impl Shape {
    /// In some worlds several nodes share the store and its guards.
    pub(super) fn with_guarding_nodes(mut self, random: &mut Random, ask: &Ask) -> Self {
        let nodes = ask.nodes.unwrap_or_else(|| *random.pick(&[1, 1, 1, 2, 3])).clamp(1, 5);
        if nodes > 1 && ask.exclusive != Some(true) {
            (self.nodes, self.exclusive) = (nodes, false);
            self.engine.beat_every = 30 * SECOND;
        }
        self
    }
}

/// A budget, or a breaker that opens on failures in a row: so small that a short world reaches their limits.
pub(super) fn draw(random: &mut Random) -> guards::Settings {
    let off = guards::Settings::off();
    if random.chance(0.5) {
        let budget = budget::Settings {
            window: *random.pick(&[10 * SECOND, 30 * SECOND]),
            floor: *random.pick(&[2, 2, 5, 10]),
            percent: *random.pick(&[0, 20, 20, 50]),
            ..Default::default()
        };
        return guards::Settings { budget: Some(budget), ..off };
    }
    let breaker = breaker::Settings {
        failures_in_a_row: *random.pick(&[2, 3, 5]),
        // Only failures in a row open it, so that the model knows when it must be open.
        failure_percent: 101,
        slow_percent: 101,
        open: random.duration(2 * SECOND, 20 * SECOND),
        longest_open: 40 * SECOND,
        longest_retry_after: 60 * SECOND,
        probes: *random.pick(&[1, 2, 3]),
        ..Default::default()
    };
    guards::Settings { breaker: Some(breaker), ..off }
}

/// The requests of the clients of a guarded world.
pub(super) fn errands(random: &mut Random, shape: &Shape) -> Vec<Errand> {
    let end = shape.trouble.as_micros() as u64 * 9 / 10;
    let errand = |number| {
        let whose = random.below(shape.tenants);
        let dependency = random.below(shape.dependencies.len());
        let spec = spec(random);
        let size = *random.pick(&[1, 1, 2, 5, 12]);
        let items: Vec<_> =
            (0..size).map(|place| item(&format!("e{number}.{place}"), whose, dependency, spec.clone())).collect();
        let follow_ups = if random.chance(0.1) { follow_ups(random, shape, &items) } else { Vec::new() };
        let at = Moment(random.within(0..=end));
        Errand { number, at, items, patience: shape.patience, tries: 3, follow_ups }
    };
    (0..shape.errands).map(errand).collect()
}

fn spec(random: &mut Random) -> Spec {
    let mut millis = |low: u64, high: u64| {
        let drawn = random.duration(Duration::from_millis(low), Duration::from_millis(high));
        u64::try_from(drawn.as_millis()).unwrap_or(high).max(1)
    };
    let attempt_timeout_ms = millis(200, 5_000);
    let (initial_delay_ms, total_budget_ms) = (millis(20, 3_000), attempt_timeout_ms + millis(30_000, 900_000));
    Spec {
        max_attempts: Some(*random.pick(&[2, 3, 6, 10, 20])),
        backoff: Some(BackoffKind::Fixed),
        jitter_type: Some(*random.pick(&[JitterKind::Full, JitterKind::None])),
        initial_delay_ms: Some(initial_delay_ms),
        total_budget_ms: Some(total_budget_ms),
        attempt_timeout_ms: Some(attempt_timeout_ms),
        connect_timeout_ms: Some(attempt_timeout_ms.min(1_000)),
        ..Spec::default()
    }
}
