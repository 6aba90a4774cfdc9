//! Building the binaries that are measured or killed, and where they are.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// How a binary is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Quick to build; what the tests use anyway.
    Dev,
    /// What users run.
    Release,
}

/// The root of the repository.
pub fn workspace_root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// Cargo's target directory: this program lies in it, wherever it was moved to by configuration.
pub fn target_dir() -> Result<PathBuf> {
    let program = std::env::current_exe().context("finding this program's own file")?;
    let dir = program.ancestors().nth(2).context("this program does not lie in a target directory")?;
    Ok(dir.to_owned())
}

/// The cargo that runs us.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace_root());
    command
}

/// Runs `cargo build` with these arguments and says where the binaries are.
pub fn build(profile: Profile, arguments: &[&str]) -> Result<PathBuf> {
    let target_dir = target_dir()?;
    let mut command = cargo();
    // Said outright, so that what is built lies where we look for it, however this program was started.
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

/// A command that runs the binary `redrive` as its own defaults have it, whatever is in this program's environment.
pub fn redrive(binary: &Path) -> Command {
    without_settings(Command::new(binary))
}

/// The same command without the environment variables that the service reads.
pub fn without_settings(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("REDRIVE_")) {
        command.env_remove(name);
    }
    command
}

/// An empty directory `target/NAME`, on a real disk as the sources are.
pub fn scratch_dir(name: &str) -> Result<PathBuf> {
    let dir = target_dir()?.join(name);
    if dir.exists() {
        std::fs::remove_dir_all(&dir).with_context(|| format!("emptying {}", dir.display()))?;
    }
    std::fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    Ok(dir)
}
