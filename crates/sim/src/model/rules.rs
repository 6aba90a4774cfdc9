//! The numbers that the model measures with.

use std::time::Duration;

use crate::plan::{Family, Shape};

/// The numbers that the model measures with.
#[derive(Debug, Clone)]
pub struct Rules {
    /// How far two readings of different clocks may be apart, and a millisecond for rounding. Zero drift: the rounding.
    pub slack: Duration,
    /// How many attempts a process may have on the wire for one lane.
    pub lane_concurrency: usize,
    /// How many in all.
    pub max_in_flight: usize,
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
}

impl Rules {
    /// The numbers for this world.
    pub fn of(shape: &Shape) -> Self {
        let engine = &shape.engine;
        let longest_attempt = Duration::from_secs(60);
        let disturbing = [Family::Crash, Family::Stop, Family::Pause, Family::Store, Family::Clock];
        Rules {
            slack: 2 * shape.clock_bound + Duration::from_millis(2),
            lane_concurrency: engine.lane_concurrency,
            max_in_flight: engine.max_in_flight,
            lease_margin: engine.lease_margin,
            retention: engine.retention,
            // A lease that was taken at the last moment runs out, is found, and what it held waits for its turn; nodes
            // that were down come back meanwhile.
            settles_within: longest_attempt
                + 2 * engine.lease_margin
                + 3 * engine.rescue_every
                + 3 * engine.look_around_every
                + 2 * shape.clock_bound
                + Duration::from_secs(120),
            alerts_within: Duration::from_secs(600),
            is_undisturbed: !disturbing.iter().any(|family| shape.families.has(*family)),
        }
    }
}
