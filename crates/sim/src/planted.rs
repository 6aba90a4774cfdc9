//! Planted bugs: switches on one known bug after the other; each must be found, and soon.

use std::time::Duration;

use redrive_planted::{Bug, Found as FoundOnce};

use crate::model::Violation;
use crate::plan::{self, Ask};
use crate::world;

/// The result of a hunt that found a planted bug.
#[derive(Debug)]
pub struct Found {
    /// How many seeds it took.
    pub seeds: u64,
    /// The invariant that it broke.
    pub violation: Violation,
    /// The simulated time of all those seeds.
    pub simulated: Duration,
}

/// Runs seeds from `first` on with this bug planted, until one finds it; `None` if `most` seeds do not.
pub fn find(bug: &'static Bug, ask: &Ask, first: u64, most: u64) -> Option<Found> {
    let ask = Ask { bug: Some(bug), ..ask.clone() };
    let mut simulated = Duration::ZERO;
    for seed in first..first + most {
        let run = world::run(&plan::draw(seed, &ask), false);
        simulated += run.tally.simulated;
        if let Some(violation) = run.violation {
            return Some(Found { seeds: seed - first + 1, violation, simulated });
        }
    }
    None
}

/// Whether the recorded seed of a bug that was real once still finds it.
pub fn is_found_again(bug: &'static Bug, found: &FoundOnce) -> bool {
    let ask = Ask { bug: Some(bug), ..Ask::default() };
    let violation = world::run(&plan::draw(found.seed, &ask), false).violation;
    violation.is_some_and(|violation| violation.invariant == found.breaks)
}
