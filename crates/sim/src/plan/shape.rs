//! Shape: the world of a plan. The number of nodes, the engine's settings, the duration.

use std::time::Duration;

use redrive_core::guards;
use redrive_engine::{Options, Steps};
use redrive_planted::Bug;

use super::alerting::Alerting;
use super::family::{Families, Family};
use super::fault::Mood;
use super::guarded;
use crate::random::Random;

/// Constraints on the plans that are drawn.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// Exactly this many nodes; otherwise one to five, drawn from the seed.
    pub nodes: Option<usize>,
    /// Whether the store is exclusive to the only node; otherwise drawn from the seed.
    pub exclusive: Option<bool>,
    /// Exactly these families of faults; otherwise drawn from the seed.
    pub families: Option<Families>,
    /// How long faults occur; otherwise drawn from the seed.
    pub hours: Option<f64>,
    /// The bug that is switched on, if any. It has effects only in the copy of the tree that contains the bugs.
    pub bug: Option<&'static Bug>,
}

/// The world of a plan.
#[derive(Debug, Clone)]
pub struct Shape {
    /// How many nodes.
    pub nodes: usize,
    /// Whether the store is exclusive to the only node.
    pub exclusive: bool,
    /// The families of faults that occur.
    pub families: Families,
    /// How long faults occur; after that, there are none.
    pub trouble: Duration,
    /// The engine's settings, the same on every node.
    pub engine: Options,
    /// The largest error of a machine's clock, either way.
    pub clock_bound: Duration,
    /// How many tenants.
    pub tenants: usize,
    /// The behaviour of each dependency, unless a fault changes it.
    pub dependencies: Vec<Mood>,
    /// The longest duration of an attempt.
    pub longest_attempt: Duration,
    /// Who is told of dead letters, if anyone is.
    pub alerting: Option<Alerting>,
    /// How many errands.
    pub errands: usize,
    /// How long clients wait for an answer.
    pub patience: Duration,
}

/// Step sizes so small that everything has a second page.
pub(super) fn small_steps(random: &mut Random) -> Steps {
    let mut few = || random.within(1..=3) as usize;
    Steps {
        turn: few(),
        claim: few(),
        lanes_per_claim: few(),
        ahead: few(),
        overdue: few(),
        rescue: few(),
        rebuild: few(),
        clean: few(),
        announce: few(),
        unconfirmed: few(),
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// The share of worlds that are crowds. They take more time than others.
const CROWDS: f64 = 0.12;

/// The share of worlds in which guards have to hold lanes back.
const GUARDED: f64 = 0.15;

impl Shape {
    /// Draws the families of a world. Not every family occurs in every world: one can hide the effects of another.
    fn draw_families(random: &mut Random) -> Families {
        if random.chance(CROWDS) {
            // Fairness is checked where nothing else can explain a wait.
            let families = if random.chance(0.8) {
                Families::of([Family::Client, Family::Schedule].into_iter().filter(|_| random.chance(0.3)))
            } else {
                Families::of(Families::all().iter().filter(|_| random.chance(0.3)))
            };
            return families.and(Family::Neighbours);
        }
        let everything = random.chance(0.15);
        Families::of(Families::all().iter().filter(|_| everything || random.chance(0.6)))
    }

    /// Draws the families of a world in which guards have to hold lanes back; `None` for any other world.
    fn draw_guarded_families(random: &mut Random) -> Option<Families> {
        let is_guarded = random.chance(GUARDED);
        let unsettling = [Family::Crash, Family::Stop, Family::Store, Family::Schedule];
        let families = Families::of(unsettling.into_iter().filter(|_| random.chance(0.35)));
        let families = if random.chance(0.7) { families.and(Family::Dependency) } else { families };
        is_guarded.then(|| families.and(Family::Guards))
    }

    /// Draws a world. Guards and records have streams of their own: the seeds of earlier worlds mean what they meant.
    pub(super) fn draw(random: &mut Random, of_guards: &mut Random, of_records: &mut Random, ask: &Ask) -> Self {
        let guarded = Self::draw_guarded_families(of_guards).filter(|_| ask.families.is_none());
        let recorded = Families::draw_recorded(of_records).filter(|_| ask.families.is_none());
        let drawn = || recorded.or(guarded).unwrap_or_else(|| Self::draw_families(random));
        let families = ask.families.clone().unwrap_or_else(drawn);
        let has_records = families.has(Family::Records);
        if families.has(Family::Neighbours) {
            return Self::draw_crowd(random, families, ask);
        }
        if families.has(Family::Guards) {
            return Self::draw_guarded(random, families, ask).with_guarding_nodes(of_guards, ask);
        }
        let nodes = ask.nodes.unwrap_or_else(|| *random.pick(&[1, 1, 1, 1, 2, 2, 2, 3, 4, 5])).clamp(1, 5);
        let is_alone = random.chance(0.75);
        let exclusive = nodes == 1 && ask.exclusive.unwrap_or(is_alone);
        let length = random.unit();
        let trouble = match ask.hours {
            Some(hours) => Duration::from_secs_f64((hours * 3_600.0).clamp(1.0, 1e7)),
            // Long enough for the retention to end.
            None if length < 0.04 => random.duration(30 * HOUR, 72 * HOUR),
            // Few tasks and many faults: no later event hides what was left behind.
            None if length < 0.55 => random.duration(MINUTE / 3, 4 * MINUTE),
            None if length < 0.7 => random.duration(4 * MINUTE, 20 * MINUTE),
            None => random.duration(20 * MINUTE, 8 * HOUR),
        };
        let seconds =
            |random: &mut Random, low, high| random.duration(Duration::from_secs(low), Duration::from_secs(high));
        let lane_concurrency = *random.pick(&[1, 2, 4, 16, 128]);
        let engine = Options {
            guards: if of_guards.chance(0.5) { guarded::draw(of_guards) } else { guards::Settings::off() },
            lane_concurrency,
            max_in_flight: lane_concurrency * *random.pick(&[1, 2, 16]),
            max_body_bytes: Options::MIN_BODY_BYTES,
            lease_margin: seconds(random, 1, 30),
            shutdown_grace: random.duration(Duration::from_millis(100), Duration::from_secs(20)),
            retention: 24 * HOUR,
            clean_every: random.duration(5 * MINUTE, HOUR),
            // No body in this world is large enough to be stored apart.
            blob_grace: 24 * HOUR,
            rescue_every: seconds(random, 1, 20),
            look_around_every: seconds(random, 2, 30),
            // The store's clock is read at the same interval.
            beat_every: MINUTE / 2,
            presence: redrive_engine::Presence::default(),
            log: redrive_engine::LogOptions::default(),
            traces: redrive_engine::TraceOptions::default(),
            steps: if random.chance(0.5) { Steps::default() } else { small_steps(random) },
        };
        let clock_bound = match families.has(Family::Clock) {
            // The clock of a single machine may be set to any time.
            true if exclusive && random.chance(0.3) => random.duration(Duration::from_secs(1), HOUR / 2),
            // Nodes that share a store work on its time, whatever their own clocks show.
            true => HOUR.mul_f64(random.unit()),
            false => Duration::ZERO,
        };
        let usual = if families.has(Family::Dependency) { Mood::Mixed } else { Mood::Well };
        let busy = trouble.as_secs_f64().powf(0.9) / 30.0;
        let shape = Shape {
            nodes,
            exclusive,
            trouble,
            clock_bound,
            tenants: *random.pick(&[1, 2, 3]),
            dependencies: vec![usual; *random.pick(&[1, 2, 3, 5])],
            longest_attempt: MINUTE,
            alerting: None,
            errands: ((busy * (0.3 + 1.4 * random.unit())) as usize).clamp(1, 400),
            patience: random.duration(Duration::from_millis(200), Duration::from_secs(20)),
            families,
            engine,
        };
        if has_records { shape.with_records(of_records, ask) } else { shape }
    }
}
