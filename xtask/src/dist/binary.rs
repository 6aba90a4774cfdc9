//! Builds the program, and keeps its debug information in a file of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::tool;
use crate::binaries::{self, Profile};

/// Separates the flags in `CARGO_ENCODED_RUSTFLAGS`.
const FLAG_SEPARATOR: &str = "\u{1f}";

/// Builds the program and returns its path.
pub(super) fn build(profile: Profile) -> Result<PathBuf> {
    if profile == Profile::Dev {
        return Ok(binaries::build(profile, &["--package", "redrive"])?.join("redrive"));
    }
    // A directory of its own: other flags would make cargo build everything in `target/release` again, each time.
    let target = binaries::target_dir()?.join("dist-build");
    let mut cargo = binaries::cargo();
    cargo.args(["build", "--locked", "--release", "--package", "redrive", "--bin", "redrive", "--target-dir"]);
    cargo.arg(&target).env("CARGO_ENCODED_RUSTFLAGS", flags()?.join(FLAG_SEPARATOR));
    if !cargo.status().context("starting cargo build")?.success() {
        bail!("building the program failed");
    }
    Ok(target.join("release/redrive"))
}

/// Names the sources by paths that are the same on every machine, and gives the program a build id, by which debuggers
/// find its debug information.
fn flags() -> Result<Vec<String>> {
    let cargo_home = match std::env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => Path::new(&std::env::var_os("HOME").context("neither CARGO_HOME nor HOME is set")?).join(".cargo"),
    };
    Ok(vec![
        format!("--remap-path-prefix={}=/usr/src/cargo", cargo_home.display()),
        format!("--remap-path-prefix={}=/usr/src/redrive", binaries::workspace_root().display()),
        "-Clink-arg=-Wl,--build-id=sha1".to_owned(),
    ])
}

/// Writes `redrive`, stripped, and `redrive.debug`, the rest of it, to the directory `out`. Returns the path of the first.
pub(super) fn split(built: &Path, out: &Path) -> Result<PathBuf> {
    let (program, debug) = (out.join("redrive"), out.join("redrive.debug"));
    tool::output(Command::new("objcopy").arg("--only-keep-debug").arg(built).arg(&debug))?;
    let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
    link.push(&debug);
    tool::output(Command::new("objcopy").arg("--strip-unneeded").arg(link).arg(built).arg(&program))?;
    Ok(program)
}
