//! The hunt command: runs many seeds with progress, and prints the first failure in its smallest form.

use std::io::{IsTerminal, Write};

use redrive_sim::hunt::{self, Bounds, Hunt};
use redrive_sim::plan::{self, Ask, Plan};
use redrive_sim::shrink::shrink;
use redrive_sim::world;

use super::Arguments;
use super::replay::explain;
use super::say::say;

/// The most runs to shrink a failure.
const SHRINK_RUNS: usize = 600;

pub(super) fn run(ask: &Ask, arguments: &Arguments) -> anyhow::Result<bool> {
    let bounds =
        Bounds { first: arguments.first, seeds: arguments.seeds, time: arguments.time(), twice: arguments.twice };
    let is_terminal = std::io::stderr().is_terminal();
    let hunt = hunt::hunt(ask, bounds, |hunt| progress(hunt, is_terminal));
    if is_terminal {
        eprintln!();
    }
    if let Some(seed) = hunt.two_ways {
        say!("seed {seed} went two ways: its trace hash is not the same twice; compare two runs of");
        say!("  {} --whole", arguments.command(seed, None));
        return Ok(false);
    }
    let Some((seed, violation)) = &hunt.broken else {
        say!("every invariant held in every world");
        summary(&hunt);
        return Ok(true);
    };
    say!("seed {seed} broke {violation}");
    say!("making it smaller …");
    let plan = plan::draw(*seed, ask);
    let shrunk = shrink(&plan, violation.clone(), SHRINK_RUNS, |plan| world::run(plan, false).violation);
    explain(&Plan { luck: shrunk.luck, ..plan }, &shrunk.keep, false);
    say!("after {} runs, {} parts of the plan are left; replay them with", shrunk.runs, shrunk.keep.0.len());
    say!("  {}", arguments.command(*seed, Some(&shrunk)));
    say!("and the whole seed with");
    say!("  {}", arguments.command(*seed, None));
    summary(&hunt);
    Ok(false)
}

fn progress(hunt: &Hunt, is_terminal: bool) {
    let (tally, seconds) = (&hunt.tally, hunt.took.as_secs_f64());
    let line = format!(
        "{:>5.0} s: {} seeds ({:.0}/s), {:.0} simulated hours, {} crashes, {} sends",
        seconds,
        tally.worlds,
        tally.worlds as f64 / seconds.max(1e-9),
        tally.simulated.as_secs_f64() / 3_600.0,
        tally.crashes,
        tally.sends,
    );
    if is_terminal {
        eprint!("\r\x1b[K{line}");
        // A progress line that cannot be written is not worth an error.
        std::io::stderr().flush().ok();
    } else if (seconds as u64).is_multiple_of(10) {
        eprintln!("{line}");
    }
}

fn summary(hunt: &Hunt) {
    say!("{}", hunt.tally.to_string().trim_end());
    say!(
        "  {:.1} s of real time: {:.0} seeds/s, {:.0} simulated hours per minute, trace hash {:016x}",
        hunt.took.as_secs_f64(),
        hunt.tally.worlds as f64 / hunt.took.as_secs_f64().max(1e-9),
        hunt.hours_per_minute(),
        hunt.hash
    );
}
