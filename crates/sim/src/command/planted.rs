//! Showing how soon each planted bug is found.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use redrive_core::planted::Bug;
use redrive_sim::plan::Ask;
use redrive_sim::planted::{Found, find};

use super::Arguments;
use super::say::say;

/// The most seeds that a bug may take to be found, unless the command line says otherwise.
const MOST_SEEDS: u64 = 5_000;

#[expect(clippy::disallowed_methods, reason = "how long it takes to find a bug is a matter of real time")]
pub(super) fn run(arguments: &Arguments, ask: &Ask) -> anyhow::Result<bool> {
    let most = arguments.seeds.unwrap_or(MOST_SEEDS);
    say!("{:<30}{:>7}{:>9}{:>11}  broke", "planted bug", "seeds", "seconds", "sim hours");
    let all = Instant::now();
    let (next, missed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some(bug) = Bug::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
            let started = Instant::now();
            let found = find(*bug, ask, arguments.first, most);
            let is_found = found.as_ref().is_some_and(|found| bug.breaks().contains(&found.violation.invariant));
            missed.fetch_add(usize::from(!is_found), Ordering::Relaxed);
            say!("{}", line(*bug, found, most, started.elapsed()));
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let (bugs, missed) = (Bug::ALL.len(), missed.into_inner());
    say!("{} of {bugs} planted bugs found in {:.1} s", bugs - missed, all.elapsed().as_secs_f64());
    Ok(missed == 0)
}

fn line(bug: Bug, found: Option<Found>, most: u64, took: Duration) -> String {
    let (name, seconds) = (bug.as_str(), took.as_secs_f64());
    let Some(Found { seeds, violation, simulated, .. }) = found else {
        return format!("{name:<30}{most:>7}{seconds:>9.2}{:>11}  NOT FOUND", "");
    };
    let hours = simulated.as_secs_f64() / 3_600.0;
    let expected = if bug.breaks().contains(&violation.invariant) { "" } else { " (NOT what it breaks)" };
    format!("{name:<30}{seeds:>7}{seconds:>9.2}{hours:>11.1}  {}{expected}", violation.invariant)
}
