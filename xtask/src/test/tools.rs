//! The programs that building and testing need, and how to get them.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use super::steps::Step;

/// A program that must be on the path.
struct Tool {
    program: &'static str,
    what_for: &'static str,
    /// The Debian packages that bring it.
    packages: &'static [&'static str],
}

const TOOLS: &[Tool] = &[
    Tool { program: "cc", what_for: "to compile the bundled SQLite", packages: &["gcc", "libc6-dev"] },
    Tool { program: "sqlite3", what_for: "to look into the store from outside", packages: &["sqlite3"] },
];

/// Installs what is missing if we may (root, with apt-get), or else says what to install.
pub(super) fn install_missing() -> Result<()> {
    let missing: Vec<&Tool> = TOOLS.iter().filter(|tool| !answers(tool.program, "--version")).collect();
    if !missing.is_empty() {
        let packages: Vec<&str> = missing.iter().flat_map(|tool| tool.packages).copied().collect();
        if !(is_root() && answers("apt-get", "--version")) {
            let tools: Vec<String> =
                missing.iter().map(|tool| format!("`{}` ({})", tool.program, tool.what_for)).collect();
            bail!("please install {}; on Debian: apt-get install {}", tools.join(" and "), packages.join(" "));
        }
        Step::program(&["apt-get", "update", "-q"]).run()?;
        let install = [&["apt-get", "install", "-q", "-y", "--no-install-recommends"], packages.as_slice()].concat();
        Step::program(&install).env("DEBIAN_FRONTEND", "noninteractive").run()?;
    }
    install_components()
}

/// Whether `cargo NAME` exists.
pub(super) fn has_cargo_command(name: &str) -> bool {
    succeeds(crate::binaries::cargo().args([name, "--version"]))
}

fn install_components() -> Result<()> {
    for (command, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if has_cargo_command(command) {
            continue;
        }
        if !answers("rustup", "--version") {
            bail!("please install `cargo {command}` (the component {component} of your Rust)");
        }
        Step::program(&["rustup", "component", "add", component]).run()?;
    }
    Ok(())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn answers(program: &str, argument: &str) -> bool {
    succeeds(Command::new(program).arg(argument))
}

fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}
