//! `cargo xtask sim`: builds the simulator as fast as it gets, and runs it with the same arguments.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::binaries;

/// What builds the simulator, with its bugs to plant or without.
fn build(with_bugs: bool) -> Result<Command> {
    let target_dir = binaries::target_dir()?;
    let mut command = binaries::cargo();
    command.args(["build", "--quiet", "--profile", "sim", "-p", "redrive-sim", "--target-dir"]).arg(&target_dir);
    if with_bugs {
        command.args(["--features", "planted"]);
    }
    let status = command.status().context("starting cargo build")?;
    if !status.success() {
        bail!("building the simulator failed");
    }
    Ok(Command::new(target_dir.join("sim").join("redrive-sim")))
}

/// Runs the simulator with these arguments.
pub fn run(arguments: &[OsString]) -> Result<()> {
    let wants_bugs = |argument: &OsString| {
        argument.to_str().is_some_and(|text| text == "--planted" || text == "--bug" || text.starts_with("--bug="))
    };
    simulate(build(arguments.iter().any(wants_bugs))?, arguments)
}

/// Runs the simulator with these arguments, in the build that has the bugs to plant: one build serves all of the tests.
pub fn run_with_bugs(arguments: &[&str]) -> Result<()> {
    let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
    simulate(build(true)?, &arguments)
}

fn simulate(mut simulator: Command, arguments: &[OsString]) -> Result<()> {
    let status = simulator.args(arguments).status().context("starting the simulator")?;
    match status.code() {
        Some(0) => Ok(()),
        Some(1) => bail!("the simulator broke an invariant, or missed a planted bug; see above"),
        _ => bail!("the simulator ended with {status}"),
    }
}
