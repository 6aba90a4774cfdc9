//! Builds the binaries that are measured or killed, and finds them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// How a binary is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// The dev build: quick to build, and used by the tests anyway.
    Dev,
    /// The release build, which users run.
    Release,
}

impl Profile {
    /// The profile that `--debug-binary` chooses.
    pub fn of(is_debug_binary: bool) -> Self {
        if is_debug_binary { Profile::Dev } else { Profile::Release }
    }
}

/// The root of the repository.
pub fn workspace_root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// Cargo's target directory: this program is in it, also if the configuration moved it.
pub fn target_dir() -> Result<PathBuf> {
    let program = std::env::current_exe().context("finding this program's own file")?;
    let dir = program.ancestors().nth(2).context("this program does not lie in a target directory")?;
    Ok(dir.to_owned())
}

/// The cargo that runs this program, as a user would call it.
///
/// Without what the outer cargo says about this package: `ring` is built again, with everything that depends on it, whenever
/// one of these variables has changed.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let is_of_package =
        |name: &OsStr| name.to_str().is_some_and(|name| PACKAGE.iter().any(|start| name.starts_with(start)));
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_package(name)) {
        command.env_remove(name);
    }
    command.current_dir(workspace_root());
    command
}

/// How the names of variables about a package begin.
const PACKAGE: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// Runs `cargo build` with these arguments and returns the directory of the binaries.
pub fn build(profile: Profile, arguments: &[&str]) -> Result<PathBuf> {
    let target_dir = target_dir()?;
    let mut command = cargo();
    // Passed explicitly, so that the binaries are in the expected directory, however this program was started.
    command.arg("build").args(arguments).arg("--target-dir").arg(&target_dir);
    if profile == Profile::Release {
        command.arg("--release");
    }
    let status = command.status().context("starting cargo build")?;
    if !status.success() {
        bail!("building the binaries failed: cargo build {}", arguments.join(" "));
    }
    Ok(target_dir.join(match profile {
        Profile::Dev => "debug",
        Profile::Release => "release",
    }))
}

/// A command for the binary `redrive` with its own defaults, independent of this program's environment.
pub fn redrive(binary: &Path) -> Command {
    without_settings(Command::new(binary))
}

/// Removes the environment variables that the service reads from the command.
pub fn without_settings(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("REDRIVE_")) {
        command.env_remove(name);
    }
    command
}

/// An empty directory `target/NAME`, on the disk of the sources.
pub fn scratch_dir(name: &str) -> Result<PathBuf> {
    let dir = target_dir()?.join(name);
    if dir.exists() {
        std::fs::remove_dir_all(&dir).with_context(|| format!("emptying {}", dir.display()))?;
    }
    std::fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    Ok(dir)
}
