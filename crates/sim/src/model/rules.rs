//! The numbers that the model measures with.

use std::time::Duration;

use crate::plan::{Family, Mood, Shape};

/// The numbers that the model measures with.
#[derive(Debug, Clone)]
pub struct Rules {
    /// How far two readings of different clocks may be apart, and a millisecond for rounding. Zero drift: the rounding.
    pub slack: Duration,
    /// How many attempts a process may have on the wire for one lane.
    pub lane_concurrency: usize,
    /// How many in all.
    pub max_in_flight: usize,
    /// The longest that an attempt takes.
    pub longest_attempt: Duration,
    /// The least that a lease is longer than its attempt.
    pub lease_margin: Duration,
    /// How long ended tasks and their keys are kept at least.
    pub retention: Duration,
    /// How soon due work is under way, or has ended, once everything is well.
    pub settles_within: Duration,
    /// How soon an alert is raised, once everything is well.
    pub alerts_within: Duration,
    /// Whether nothing in this world can leave an attempt's outcome unknown.
    pub is_undisturbed: bool,
    /// How long a lane may wait; unknown where a fault may explain a longer wait.
    pub fairness: Option<Fairness>,
}

/// How long a lane with due work may have nothing on the wire, whatever the others do (`engine/src/admission`).
#[derive(Debug, Clone)]
pub struct Fairness {
    /// The slots that the fast, or those of which nothing is known, have at least: a quarter of all.
    slots: usize,
    tenants: usize,
    longest_attempt: Duration,
    /// Whether one process makes all attempts: what a lane's attempts take, each process has to learn for itself.
    is_alone: bool,
    /// Quick dependencies may begin to hang.
    is_fickle: bool,
}

impl Fairness {
    /// What claims and commits may take.
    const OVERHEAD: Duration = Duration::from_secs(1);
    /// How long a slot rests after a failure.
    const REST: Duration = Duration::from_secs(1);
    /// The longest attempt of a quick lane.
    const QUICK_ATTEMPT: Duration = Duration::from_millis(50);

    /// The bound for a lane that is known to be quick, as one of `lanes` such lanes.
    pub fn quick_within(&self, lanes: usize) -> Option<Duration> {
        let attempt = match self.is_fickle {
            // Quick ones that hang may hold all slots until their attempts time out.
            true => self.longest_attempt + Self::REST,
            false => Self::QUICK_ATTEMPT,
        };
        let rounds = rounds(lanes, self.slots) + u32::from(self.is_fickle);
        self.is_alone.then(|| Self::OVERHEAD + attempt * rounds)
    }

    /// The bound for any lane of a tenant with `lanes` lanes: tenants take turns.
    pub fn any_within(&self, lanes: usize) -> Duration {
        let rounds = rounds(lanes * self.tenants, self.slots) + 2;
        Self::OVERHEAD + (self.longest_attempt + Self::REST + Self::OVERHEAD / 10) * rounds
    }
}

fn rounds(lanes: usize, slots: usize) -> u32 {
    u32::try_from(lanes.div_ceil(slots)).unwrap_or(u32::MAX)
}

impl Rules {
    /// The numbers for this world.
    pub fn of(shape: &Shape) -> Self {
        let engine = &shape.engine;
        let disturbing = [Family::Crash, Family::Stop, Family::Pause, Family::Store, Family::Clock];
        let is_undisturbed = !disturbing.iter().any(|family| shape.families.has(*family));
        let is_judged =
            is_undisturbed && !shape.families.has(Family::Dependency) && shape.families.has(Family::Neighbours);
        let is_fickle = shape.dependencies.contains(&Mood::Fickle);
        let fairness = Fairness {
            // What slow lanes leave to others, at least.
            slots: (engine.max_in_flight / if is_fickle { 16 } else { 4 }).max(1),
            is_fickle,
            tenants: shape.tenants,
            longest_attempt: shape.longest_attempt,
            is_alone: shape.nodes == 1,
        };
        // On a shared store that is as wrong as a process may be of the common time, and not its machine's clock.
        let clock_bound = match shape.exclusive {
            true => shape.clock_bound,
            false if shape.families.has(Family::Store) || shape.families.has(Family::Pause) => {
                (engine.lease_margin / 5).min(Duration::from_millis(500))
            }
            // Half of the longest way to the store and back.
            false => Duration::from_millis(6),
        };
        Rules {
            slack: 2 * clock_bound + Duration::from_millis(2),
            lane_concurrency: engine.lane_concurrency,
            max_in_flight: engine.max_in_flight,
            longest_attempt: shape.longest_attempt,
            lease_margin: engine.lease_margin,
            retention: engine.retention,
            // A lease that was taken at the last moment runs out, is found, and what it held waits for its turn; nodes
            // that were down come back meanwhile.
            settles_within: shape.longest_attempt.max(Duration::from_secs(60))
                + 2 * engine.lease_margin
                + 3 * engine.rescue_every
                + 3 * engine.look_around_every
                + 2 * clock_bound
                + Duration::from_secs(120),
            alerts_within: Duration::from_secs(600),
            is_undisturbed,
            fairness: is_judged.then_some(fairness),
        }
    }
}
