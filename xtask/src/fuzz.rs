//! `cargo xtask fuzz`: fuzzes everything that takes bytes from outside, with the driver of `redrive-fuzz` or with
//! libFuzzer.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::binaries::{self, Profile};

/// Runs the driver with these arguments, or libFuzzer if they select it.
pub fn run(arguments: &[OsString]) -> Result<()> {
    match engine(arguments) {
        Some((engine, rest)) if engine == "libfuzzer" => libfuzzer(&rest),
        Some((engine, _)) if engine != "stable" => bail!("no engine {engine:?}; there are stable and libfuzzer"),
        Some((_, rest)) => stable(&rest),
        None => stable(arguments),
    }
}

/// The value of `--engine`, and the arguments without it.
fn engine(arguments: &[OsString]) -> Option<(String, Vec<OsString>)> {
    let at = arguments.iter().position(|argument| argument == "--engine")?;
    let engine = arguments.get(at + 1)?.to_string_lossy().into_owned();
    Some((engine, [&arguments[..at], &arguments[at + 2..]].concat()))
}

/// Runs a dev build: overflows and debug assertions count.
fn stable(arguments: &[OsString]) -> Result<()> {
    let directory = binaries::build(Profile::Dev, &["--quiet", "-p", "redrive-fuzz"])?;
    let mut driver = Command::new(directory.join("redrive-fuzz"));
    driver.arg("--save").arg(binaries::target_dir()?.join("fuzz")).args(arguments);
    let status = driver.status().context("starting the fuzzer")?;
    match status.code() {
        Some(0) => Ok(()),
        Some(1) => bail!("a property was broken; see above"),
        _ => bail!("the fuzzer ended with {status}"),
    }
}

/// Runs libFuzzer over the same targets, with coverage. Needs a nightly compiler and cargo-fuzz.
fn libfuzzer(arguments: &[OsString]) -> Result<()> {
    let succeeds = |command: &mut Command| {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
    };
    if !succeeds(Command::new("cargo").args(["+nightly", "fuzz", "--version"])) {
        println!("skipped: libFuzzer needs a nightly compiler and cargo-fuzz (`cargo install cargo-fuzz`)");
        return Ok(());
    }
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).map(|value| value.to_string_lossy().into_owned())
    };
    let seconds = value("--seconds").unwrap_or_else(|| "60".into());
    let target = value("--target").context("say with --target which target libFuzzer is to feed")?;
    let mut command = Command::new("cargo");
    command.current_dir(binaries::workspace_root()).args(["+nightly", "fuzz", "run", "any"]);
    // The name is passed in the environment: one program holds every target.
    command.env("REDRIVE_FUZZ_TARGET", target).arg("--").arg(format!("-max_total_time={seconds}"));
    let status = command.status().context("starting cargo fuzz")?;
    if !status.success() {
        bail!("libFuzzer ended with {status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_is_ours_and_the_rest_is_the_drivers() {
        let words = |words: &[&str]| words.iter().map(Into::into).collect::<Vec<OsString>>();
        let (engine_name, rest) = engine(&words(&["--seed", "7", "--engine", "libfuzzer", "--list"])).unwrap();
        assert_eq!((engine_name.as_str(), rest), ("libfuzzer", words(&["--seed", "7", "--list"])));
        assert_eq!(engine(&words(&["--seed", "7"])), None);
        assert_eq!(engine(&words(&["--engine"])), None);
    }
}
