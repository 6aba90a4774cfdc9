//! Crowd: a world of many dependencies, most of them slow or dead, each with a backlog, and few slots for all.
//!
//! A few healthy dependencies have a little work all the time. Fairness is checked on them.

use std::time::Duration;

use redrive_core::Policy;
use redrive_core::guards;
use redrive_core::policy::{BackoffKind, JitterKind, Spec};
use redrive_engine::{LogOptions, Options, Presence, Steps, TraceOptions};

use super::document::{Document, Item};
use super::draw::{follow_ups, tenant};
use super::errand::Errand;
use super::family::Families;
use super::fault::Mood;
use super::shape::{Ask, Shape};
use crate::moment::Moment;
use crate::random::Random;

const SECOND: Duration = Duration::from_secs(1);
/// When the backlogs are submitted, after the healthy dependencies have had some work.
const BACKLOGS_FROM: Duration = Duration::from_secs(4);
/// The most errands for healthy dependencies.
const MOST_STEADY: usize = 120;

impl Shape {
    pub(super) fn draw_crowd(random: &mut Random, families: Families, ask: &Ask) -> Self {
        let nodes = ask.nodes.unwrap_or_else(|| *random.pick(&[1, 1, 1, 1, 2])).clamp(1, 5);
        let is_alone = random.chance(0.75);
        // Fast lanes that turn slow take their slots along: with fickle dependencies the bound is larger, and timeouts
        // are longer.
        let is_fickle = random.chance(0.2);
        let max_in_flight = *random.pick(&[4, 4, 8, 8, 16, 32, 64]);
        let healthy = random.within(1..=3) as usize;
        let bad = random.duration(Duration::from_secs(8), Duration::from_secs(300)).as_secs() as usize;
        let quick = std::iter::repeat_n(Mood::Quick, healthy);
        let neighbour = |random: &mut Random| match is_fickle && random.chance(0.5) {
            true => Mood::Fickle,
            false => *random.pick(&Mood::NEIGHBOURS),
        };
        let dependencies = quick.chain((0..bad).map(|_| neighbour(random))).collect();
        Shape {
            nodes,
            exclusive: nodes == 1 && ask.exclusive.unwrap_or(is_alone),
            families,
            trouble: match ask.hours {
                Some(hours) => Duration::from_secs_f64((hours * 3_600.0).clamp(1.0, 1e7)),
                None => random.duration(60 * SECOND, 240 * SECOND),
            },
            engine: Options {
                guards: guards::Settings::off(),
                lane_concurrency: (*random.pick(&[1, 2, 4, 16])).min(max_in_flight),
                max_in_flight,
                max_body_bytes: Options::MIN_BODY_BYTES,
                lease_margin: random.duration(if is_fickle { 12 * SECOND } else { SECOND }, 30 * SECOND),
                shutdown_grace: random.duration(SECOND / 10, 20 * SECOND),
                retention: 24 * 3_600 * SECOND,
                clean_every: 600 * SECOND,
                blob_grace: 24 * 3_600 * SECOND,
                rescue_every: random.duration(SECOND, 20 * SECOND),
                look_around_every: random.duration(2 * SECOND, 30 * SECOND),
                beat_every: 3_600 * SECOND,
                presence: Presence::default(),
                log: LogOptions::default(),
                traces: TraceOptions::default(),
                steps: steps(random),
            },
            clock_bound: Duration::ZERO,
            tenants: *random.pick(&[1, 1, 2, 3]),
            dependencies,
            longest_attempt: match is_fickle {
                true => random.duration(6 * SECOND, 20 * SECOND),
                false => random.duration(SECOND / 2, 16 * SECOND),
            },
            alerting: None,
            errands: 0,
            patience: 20 * SECOND,
        }
    }
}

/// Step sizes as they ship, or smaller; not so small that reading page by page would take longer than a lane may wait.
fn steps(random: &mut Random) -> Steps {
    let mut some = |least: u64| random.within(least..=4 * least) as usize;
    let smaller = Steps {
        turn: some(1),
        claim: some(8),
        lanes_per_claim: some(8),
        ahead: some(2),
        overdue: some(32),
        rebuild: some(32),
        ..Steps::default()
    };
    if random.chance(0.5) { Steps::default() } else { smaller }
}

/// The requests of a crowd's clients.
pub(super) fn errands(random: &mut Random, shape: &Shape) -> Vec<Errand> {
    let end = shape.trouble.as_micros() as u64 * 9 / 10;
    let is_healthy = |mood: &Mood| *mood == Mood::Quick;
    let healthy: Vec<usize> = (0..shape.dependencies.len()).filter(|at| is_healthy(&shape.dependencies[*at])).collect();
    let bad = (0..shape.dependencies.len()).filter(|at| !is_healthy(&shape.dependencies[*at]));
    let mut errands = Vec::new();
    let mut add = |random: &mut Random, whose: usize, dependency: usize, at: Moment, size: u64, is_bad: bool| {
        let number = errands.len();
        let spec = spec(random, shape, is_bad);
        let items: Vec<Item> =
            (0..size).map(|place| item(&format!("e{number}.{place}"), whose, dependency, spec.clone())).collect();
        let follow_ups = if random.chance(0.2) { follow_ups(random, shape, &items) } else { Vec::new() };
        errands.push(Errand { number, at, items, patience: shape.patience, tries: 3, follow_ups });
    };
    for dependency in &healthy {
        let whose = random.below(shape.tenants);
        let mut at = Moment(random.within(1_000_000..=2_500_000));
        let count = MOST_STEADY / healthy.len();
        let usual = Duration::from_micros(end / count as u64);
        for _ in 0..count {
            let size = if random.chance(0.1) { random.within(10..=40) } else { random.within(1..=3) };
            add(random, whose, *dependency, at, size, false);
            at = at.after(usual.mul_f64(0.2 + 1.6 * random.unit())).min(Moment(end));
        }
    }
    for dependency in bad {
        // One tenant has most of the tasks.
        let whose = if random.chance(0.9) { 0 } else { random.below(shape.tenants) };
        let from = Moment::default().after(BACKLOGS_FROM);
        let at = from.after(random.duration(SECOND / 1_000, 20 * SECOND)).min(Moment(end));
        let is_fickle = shape.dependencies[dependency] == Mood::Fickle;
        let size = if is_fickle { random.within(10..=60) } else { random.within(1..=12) };
        add(random, whose, dependency, at, size, true);
    }
    errands
}

pub(super) fn item(name: &str, whose: usize, dependency: usize, overrides: Spec) -> Item {
    let policy = Policy::resolve(&super::policies::base("default").overridden_by(&overrides)).unwrap_or_default();
    let document = Document {
        tenant: tenant(whose),
        key: Some(format!("key-{name}")),
        target_url: format!("http://dependency-{dependency}.test/{name}"),
        method: "POST",
        body: format!("the body of {name}"),
        policy_id: None,
        overrides: Some(overrides),
        delay: None,
    };
    Item { name: name.to_owned(), document, policy }
}

fn spec(random: &mut Random, shape: &Shape, is_bad: bool) -> Spec {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(1).max(1);
    let longest = millis(shape.longest_attempt);
    let attempt_timeout_ms = if random.chance(0.5) { longest } else { random.within(longest / 2..=longest) };
    let budget = if is_bad { random.duration(2 * SECOND, 600 * SECOND) } else { 900 * SECOND };
    Spec {
        max_attempts: Some(*random.pick(&[1, 1, 2, 3])),
        backoff: Some(BackoffKind::Fixed),
        jitter_type: Some(*random.pick(&[JitterKind::Full, JitterKind::None])),
        initial_delay_ms: Some(millis(random.duration(SECOND / 20, 5 * SECOND))),
        total_budget_ms: Some(attempt_timeout_ms + millis(budget)),
        attempt_timeout_ms: Some(attempt_timeout_ms),
        connect_timeout_ms: Some(attempt_timeout_ms.min(1_000)),
        ..Spec::default()
    }
}
