//! README.md, followed to the letter with the binary that users run, by the clock.
//!
//! The commands and the comparison of their output are those of the test of README.md (`redrive/tests/docs`). Here they
//! are run with the release build, and timed.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::binaries::{self, Profile};

/// The test that follows README.md.
const TEST: &str = "the_commands_of_the_readme_work";

/// How long it may take, without the build.
const AT_MOST: Duration = Duration::from_secs(600);

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Use the dev build instead of the release build
    #[arg(long)]
    debug_binary: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let profile = if arguments.debug_binary { Profile::Dev } else { Profile::Release };
    let binary = binaries::build(profile, &["-p", "redrive"])?.join("redrive");
    let target_dir = binaries::target_dir()?;
    let test = |follows: bool| {
        let mut command = binaries::cargo();
        command.args(["test", "-q", "-p", "redrive", "--test", "docs", "--target-dir"]).arg(&target_dir);
        command.env("REDRIVE_TOUR_BINARY", &binary);
        if follows {
            command.args(["--", "--exact", TEST, "--nocapture"])
        } else {
            command.arg("--no-run")
        };
        command
    };
    // What the clock measures must not be a compiler.
    if !test(false).status().context("building the test")?.success() {
        bail!("the test of README.md could not be built");
    }
    let begun = Instant::now();
    let status = test(true).status().context("following README.md")?;
    let took = begun.elapsed();
    if !status.success() {
        bail!("README.md does not work as printed, with {}", binary.display());
    }
    println!("README.md was followed in {:.1} s, with {}", took.as_secs_f64(), binary.display());
    if took > AT_MOST {
        bail!("it may take {} s at most", AT_MOST.as_secs());
    }
    Ok(())
}
