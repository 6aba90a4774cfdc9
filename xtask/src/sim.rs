//! `cargo xtask sim`: builds the simulator optimised, and runs it with the same arguments.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::binaries;

/// Runs the simulator with these arguments.
pub fn run(arguments: &[OsString]) -> Result<()> {
    let wants_bugs = |argument: &OsString| {
        argument.to_str().is_some_and(|text| text == "--planted" || text == "--bug" || text.starts_with("--bug="))
    };
    let simulator = if arguments.iter().any(wants_bugs) { build_with_bugs()? } else { build()? };
    simulate(Command::new(simulator), arguments)
}

/// Runs the simulator with these arguments.
pub fn run_with(arguments: &[&str]) -> Result<()> {
    let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
    run(&arguments)
}

/// Builds the simulator of this tree.
fn build() -> Result<PathBuf> {
    build_in(binaries::workspace_root())
}

/// Builds the simulator in a copy of the tree that has every planted bug, each behind its switch.
fn build_with_bugs() -> Result<PathBuf> {
    let planted = binaries::target_dir()?.join("planted");
    let copy = planted.join("tree");
    redrive_planted::write_copy(binaries::workspace_root(), &copy)?;
    let built = build_in(&copy)?;
    // Cargo puts the simulator of the tree at the same path.
    let kept = planted.join("redrive-sim");
    fs::copy(&built, &kept).with_context(|| format!("copying the simulator to {}", kept.display()))?;
    Ok(kept)
}

fn build_in(tree: &Path) -> Result<PathBuf> {
    let target_dir = binaries::target_dir()?;
    let mut command = binaries::cargo();
    command.args(["build", "--quiet", "--profile", "sim", "-p", "redrive-sim", "--target-dir"]).arg(&target_dir);
    let status = command.current_dir(tree).status().context("starting cargo build")?;
    if !status.success() {
        bail!("building the simulator failed");
    }
    Ok(target_dir.join("sim").join("redrive-sim"))
}

fn simulate(mut simulator: Command, arguments: &[OsString]) -> Result<()> {
    let status = simulator.args(arguments).status().context("starting the simulator")?;
    match status.code() {
        Some(0) => Ok(()),
        Some(1) => bail!("the simulator broke an invariant, or missed a planted bug; see above"),
        _ => bail!("the simulator ended with {status}"),
    }
}
