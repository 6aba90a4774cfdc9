//! The planted command: shows how soon each planted bug is found.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use redrive_planted::Bug;
use redrive_sim::plan::Ask;
use redrive_sim::planted::{Found, find, is_found_again};

use super::Arguments;
use super::say::say;

/// The most seeds until a bug must be found, unless the command line sets another limit.
const MOST_SEEDS: u64 = 5_000;

/// Hunts every bug. Returns whether all were found; bugs that were real once must also be found at their recorded
/// seeds.
#[expect(clippy::disallowed_methods, reason = "how long it takes to find a bug is a matter of real time")]
pub(super) fn run(arguments: &Arguments, ask: &Ask) -> anyhow::Result<bool> {
    let most = arguments.seeds.unwrap_or(MOST_SEEDS);
    say!("{:<30}{:>7}{:>9}{:>11}  broke", "planted bug", "seeds", "seconds", "sim hours");
    let all = Instant::now();
    let bugs = redrive_planted::all();
    let (next, missed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some(bug) = bugs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let started = Instant::now();
            let found = find(bug, ask, arguments.first, most);
            let is_found = found.as_ref().is_some_and(|found| bug.breaks.contains(&found.violation.invariant));
            say!("{}", line(bug, found, most, started.elapsed()));
            let is_missed = !is_found || !finds_again(bug);
            missed.fetch_add(usize::from(is_missed), Ordering::Relaxed);
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let missed = missed.into_inner();
    say!("{} of {} planted bugs found in {:.1} s", bugs.len() - missed, bugs.len(), all.elapsed().as_secs_f64());
    Ok(missed == 0)
}

/// Whether a bug that was real once is found at its recorded seed.
///
/// A seed stays valid only as long as plans are drawn in the same way, and the engine does the same things in the same
/// order. When that changes, this reports it.
fn finds_again(bug: &'static Bug) -> bool {
    let Some(found) = &bug.found else { return true };
    let (name, seed, invariant) = (&bug.name, found.seed, found.breaks);
    let is_found = is_found_again(bug, found);
    if !is_found {
        say!(
            "{name}: seed {seed} does NOT break invariant {invariant} any more; `cargo xtask sim --bug {name}` finds another"
        );
    }
    is_found
}

fn line(bug: &Bug, found: Option<Found>, most: u64, took: Duration) -> String {
    let (name, seconds) = (&bug.name, took.as_secs_f64());
    let Some(Found { seeds, violation, simulated, .. }) = found else {
        return format!("{name:<30}{most:>7}{seconds:>9.2}{:>11}  NOT FOUND", "");
    };
    let hours = simulated.as_secs_f64() / 3_600.0;
    let expected = if bug.breaks.contains(&violation.invariant) { "" } else { " (NOT what it breaks)" };
    format!("{name:<30}{seeds:>7}{seconds:>9.2}{hours:>11.1}  {}{expected}", violation.invariant)
}
