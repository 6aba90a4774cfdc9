//! Hunt: runs many seeds, as many at once as there are cores, and stops at the first that breaks an invariant.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::model::Violation;
use crate::plan::{self, Ask};
use crate::tally::Tally;
use crate::world;

/// How many seeds to run.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The first seed.
    pub first: u64,
    /// At most this many.
    pub seeds: Option<u64>,
    /// For at most this long.
    pub time: Option<Duration>,
    /// Whether to run each seed twice and compare the two hashes.
    pub twice: bool,
}

/// The result of a hunt.
#[derive(Debug, Default)]
pub struct Hunt {
    /// The lowest seed that broke an invariant, and the violation.
    pub broken: Option<(u64, Violation)>,
    /// A seed whose two runs differed.
    pub two_ways: Option<u64>,
    /// The counts of all runs.
    pub tally: Tally,
    /// How long the hunt took.
    pub took: Duration,
    /// The hashes of all runs, combined independently of their order.
    pub hash: u64,
}

/// Runs seeds within these bounds; `progress` is called about once a second.
#[expect(
    clippy::disallowed_methods,
    reason = "how long a hunt takes is a matter of real time; what happens in it is not"
)]
pub fn hunt(ask: &Ask, bounds: Bounds, progress: impl Fn(&Hunt) + Sync) -> Hunt {
    let started = Instant::now();
    let (next, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let hunt = Mutex::new((Hunt::default(), started));
    let work = || {
        while !is_over.load(Ordering::Relaxed) {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let is_late = bounds.time.is_some_and(|time| started.elapsed() >= time);
            if is_late || bounds.seeds.is_some_and(|seeds| nth >= seeds) {
                return;
            }
            let seed = bounds.first + nth;
            let plan = plan::draw(seed, ask);
            let run = world::run(&plan, false);
            let goes_two_ways = bounds.twice && world::run(&plan, false).hash != run.hash;
            let mut guard = hunt.lock().unwrap_or_else(PoisonError::into_inner);
            let (hunt, told) = &mut *guard;
            hunt.tally += &run.tally;
            hunt.hash = hunt.hash.wrapping_add(run.hash.rotate_left((seed % 63) as u32));
            hunt.took = started.elapsed();
            if goes_two_ways {
                is_over.store(true, Ordering::Relaxed);
                hunt.two_ways = Some(seed);
            }
            if let Some(violation) = run.violation {
                is_over.store(true, Ordering::Relaxed);
                if hunt.broken.as_ref().is_none_or(|(lowest, _)| seed < *lowest) {
                    hunt.broken = Some((seed, violation));
                }
            }
            if told.elapsed() >= Duration::from_secs(1) {
                *told = Instant::now();
                progress(hunt);
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let (mut hunt, _) = hunt.into_inner().unwrap_or_else(PoisonError::into_inner);
    hunt.took = started.elapsed();
    hunt
}

impl Hunt {
    /// Simulated hours per minute of real time.
    pub fn hours_per_minute(&self) -> f64 {
        self.tally.simulated.as_secs_f64() / 3_600.0 / (self.took.as_secs_f64() / 60.0).max(1e-9)
    }
}
