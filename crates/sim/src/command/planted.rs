//! Showing how soon each planted bug is found.

use std::io::Write;
use std::time::Instant;

use anyhow::Context;
use redrive_core::planted::Bug;
use redrive_sim::plan::Ask;
use redrive_sim::planted::find;

use super::Arguments;

/// The most seeds that a bug may take to be found, unless the command line says otherwise.
const MOST_SEEDS: u64 = 3_000;

#[expect(clippy::disallowed_methods, reason = "how long it takes to find a bug is a matter of real time")]
pub(super) fn run(arguments: &Arguments, ask: &Ask) -> anyhow::Result<bool> {
    let most = arguments.seeds.unwrap_or(MOST_SEEDS);
    println!("{:<30}{:>7}{:>9}{:>11}  broke", "planted bug", "seeds", "seconds", "sim hours");
    let mut missed = Vec::new();
    let all = Instant::now();
    for &bug in Bug::ALL {
        let started = Instant::now();
        let found = find(bug, ask, arguments.first, most);
        let seconds = started.elapsed().as_secs_f64();
        match found {
            Some(found) => {
                let hours = found.simulated.as_secs_f64() / 3_600.0;
                let expected = if bug.breaks().contains(&found.violation.invariant) { "" } else { " (unexpected)" };
                let (seeds, invariant) = (found.seeds, found.violation.invariant);
                println!("{:<30}{seeds:>7}{seconds:>9.2}{hours:>11.1}  {invariant}{expected}", bug.as_str());
            }
            None => {
                println!("{:<30}{most:>7}{seconds:>9.2}{:>11}  NOT FOUND", bug.as_str(), "");
                missed.push(bug.as_str());
            }
        }
        // A table that comes all at once is no progress.
        std::io::stdout().flush().context("printing")?;
    }
    let found = Bug::ALL.len() - missed.len();
    println!("{found} of {} planted bugs found in {:.1} s", Bug::ALL.len(), all.elapsed().as_secs_f64());
    Ok(missed.is_empty())
}
