//! The programs that building and testing need, and their installation.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use super::steps::Step;

/// A program that must be installed.
struct Tool {
    program: &'static str,
    /// The argument that it prints its version for.
    version: &'static str,
    what_for: &'static str,
    /// The Debian packages that contain it.
    packages: &'static [&'static str],
}

const TOOLS: &[Tool] = &[
    Tool {
        program: "cc",
        version: "--version",
        what_for: "to compile the bundled SQLite",
        packages: &["gcc", "libc6-dev"],
    },
    Tool {
        program: "sqlite3",
        version: "--version",
        what_for: "to look into the store from outside",
        packages: &["sqlite3"],
    },
    Tool {
        program: "curl",
        version: "--version",
        what_for: "to run the commands of the documentation",
        packages: &["curl"],
    },
    Tool {
        program: "python3",
        version: "--version",
        what_for: "to run the reference of the request hash",
        packages: &["python3"],
    },
    Tool {
        program: "node",
        version: "--version",
        what_for: "to run the reference of the request hash",
        packages: &["nodejs"],
    },
    Tool {
        program: "esbuild",
        version: "--version",
        what_for: "to run the example in TypeScript",
        packages: &["esbuild"],
    },
    Tool {
        program: "promtool",
        version: "--version",
        what_for: "to check metrics and alert rules",
        packages: &["prometheus"],
    },
    Tool {
        program: "prometheus-alertmanager",
        version: "--version",
        what_for: "to be told of alerts",
        packages: &["prometheus-alertmanager"],
    },
    Tool {
        program: "objcopy",
        version: "--version",
        what_for: "to strip the packaged program",
        packages: &["binutils"],
    },
    Tool { program: "dpkg-shlibdeps", version: "--version", what_for: "to make a package", packages: &["dpkg-dev"] },
    Tool { program: "man", version: "--version", what_for: "to check the manual pages", packages: &["man-db"] },
    Tool {
        program: "jq",
        version: "--version",
        what_for: "to run the commands of the documentation",
        packages: &["jq"],
    },
    Tool {
        program: "openssl",
        // Version 3.0 refuses `--version`.
        version: "version",
        what_for: "to run the commands of the documentation",
        packages: &["openssl"],
    },
];

/// Installs Debian packages without starting their services: the tests start their own servers, on other ports. An
/// existing policy of the machine is left alone.
const INSTALL: &str = r#"
set -e
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 1' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod 755 "$policy"
fi
apt-get update -q
apt-get install -q -y --no-install-recommends "$@"
"#;

/// Whether missing programs are installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Install {
    IfPermitted,
    Never,
}

impl Install {
    pub(super) fn from_flag(no_install: bool) -> Self {
        if no_install { Install::Never } else { Install::IfPermitted }
    }
}

/// Installs missing programs if permitted (as root or by sudo without a password, with apt-get), and says beforehand which;
/// otherwise fails with what to install.
pub(super) fn install_missing(install: Install) -> Result<()> {
    let missing = Missing::now();
    if !missing.programs.is_empty() {
        let Some(prefix) = administrator().filter(|_| install == Install::IfPermitted) else {
            bail!("{}", missing.sentence())
        };
        println!("{}", missing.announcement());
        let script = [prefix, &["sh", "-c", INSTALL, "install"]].concat();
        let words: Vec<&str> = script.into_iter().chain(missing.packages.iter().copied()).collect();
        Step::program(&words).called(&format!("apt-get install {}", missing.package_list())).run()?;
        let still_missing = Missing::now();
        if !still_missing.programs.is_empty() {
            bail!("the packages were installed, and yet: {}", still_missing.sentence());
        }
    }
    install_components(install)
}

/// What is not installed.
#[derive(Default)]
struct Missing {
    /// Each with its purpose.
    programs: Vec<String>,
    packages: BTreeSet<&'static str>,
}

impl Missing {
    fn now() -> Self {
        let mut missing = Missing::default();
        for tool in TOOLS.iter().filter(|tool| !answers(tool.program, tool.version)) {
            missing.add(tool.program, tool.what_for, tool.packages);
        }
        for server in redrive_testbed::missing_programs() {
            missing.add(server.name, "which the tests run against", &[server.package]);
        }
        missing
    }

    fn add(&mut self, program: &str, what_for: &str, packages: &[&'static str]) {
        self.programs.push(format!("`{program}` ({what_for})"));
        self.packages.extend(packages);
    }

    fn sentence(&self) -> String {
        format!("please install {}; on Debian: apt-get install {}", self.programs.join(" and "), self.package_list())
    }

    fn announcement(&self) -> String {
        format!(
            "the tests need {}. These packages are installed now: {}. To leave that out: cargo xtask test --no-install",
            self.programs.join(" and "),
            self.package_list()
        )
    }

    fn package_list(&self) -> String {
        self.packages.iter().copied().collect::<Vec<_>>().join(" ")
    }
}

/// The prefix of a command that installs packages; `None` if that is not permitted.
fn administrator() -> Option<&'static [&'static str]> {
    if !answers("apt-get", "--version") {
        None
    } else if is_root() {
        Some(&[])
    } else {
        succeeds(Command::new("sudo").args(["-n", "true"])).then_some(&["sudo", "-n"])
    }
}

/// Whether `cargo NAME` exists.
pub(super) fn has_cargo_command(name: &str) -> bool {
    succeeds(crate::binaries::cargo().args([name, "--version"]))
}

fn install_components(install: Install) -> Result<()> {
    for (command, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if has_cargo_command(command) {
            continue;
        }
        if install == Install::Never || !answers("rustup", "--version") {
            bail!("please install `cargo {command}` (the component {component} of your Rust)");
        }
        println!("the tests need `cargo {command}`. The component {component} of Rust is installed now");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_installed_is_not_asked_for() {
        let path = std::env::var_os("PATH").unwrap();
        let is_installed = |program: &str| std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
        for tool in TOOLS {
            assert_eq!(answers(tool.program, tool.version), is_installed(tool.program), "{}", tool.program);
        }
        assert!(TOOLS.iter().any(|tool| tool.program == "openssl"), "docs/deploying.md makes a certificate with it");
    }

    #[test]
    fn what_is_missing_is_one_sentence_that_names_each_package_once() {
        let mut missing = Missing::default();
        missing.add("postgres", "which the tests run against", &["postgresql"]);
        missing.add("initdb", "which the tests run against", &["postgresql"]);
        missing.add("cc", "to compile", &["gcc", "libc6-dev"]);
        let expected = "please install `postgres` (which the tests run against) and `initdb` (which the tests run against) \
                        and `cc` (to compile); on Debian: apt-get install gcc libc6-dev postgresql";
        assert_eq!(missing.sentence(), expected);
    }

    #[test]
    fn what_will_be_installed_is_said_with_how_to_leave_it_out() {
        let mut missing = Missing::default();
        missing.add("cc", "to compile", &["gcc", "libc6-dev"]);
        let expected = "the tests need `cc` (to compile). These packages are installed now: gcc libc6-dev. To leave that out: \
                        cargo xtask test --no-install";
        assert_eq!(missing.announcement(), expected);
    }
}
