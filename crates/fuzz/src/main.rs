//! `redrive-fuzz`: the driver as a program. `cargo xtask fuzz` builds it and runs it.

#![forbid(unsafe_code)]
// This is a command for people: its results go to standard output.
#![allow(clippy::print_stdout)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use redrive_fuzz::{Hunt, TARGETS, Target, find, hunt, run};

/// Feed malformed bytes to everything that takes bytes from outside
///
/// Examples:
///   cargo xtask fuzz
///   cargo xtask fuzz --target cursor --seconds 300
///   cargo xtask fuzz --target cursor --input target/fuzz/cursor-7-1234
#[derive(Debug, Parser)]
#[command(name = "cargo xtask fuzz", verbatim_doc_comment)]
struct Arguments {
    /// How long to run each target
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Only this target; may be repeated
    #[arg(long)]
    target: Vec<String>,
    /// The seed of the inputs, to repeat a run; drawn at random and printed if left out
    #[arg(long)]
    seed: Option<u64>,
    /// The number of the first input of the seed
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// The most inputs per target
    #[arg(long, default_value_t = u64::MAX)]
    executions: u64,
    /// Run the one target with this file only
    #[arg(long)]
    input: Option<PathBuf>,
    /// Where an input that breaks a property is saved
    #[arg(long, default_value = "target/fuzz")]
    save: PathBuf,
    /// List the targets and exit
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    match fuzz(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs the command. Returns whether every property held.
fn fuzz(arguments: &Arguments) -> Result<bool> {
    if arguments.list {
        TARGETS.iter().for_each(|target| println!("{:<12} {}", target.name, target.what));
        return Ok(true);
    }
    let targets = chosen(&arguments.target)?;
    if let Some(file) = &arguments.input {
        let [target] = targets[..] else { bail!("say with --target which target the input is for") };
        let input = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
        let ran = run(target, &input);
        match &ran {
            Ok(()) => println!("{}: every property held", target.name),
            Err(broken) => println!("{}: {}\n  at {}", target.name, broken.message, broken.place),
        }
        return Ok(ran.is_ok());
    }
    let seed = arguments.seed.unwrap_or_else(|| fastrand::u64(..u64::from(u32::MAX)));
    println!("seed {seed}, {} s per target", arguments.seconds);
    println!("{:<12} {:>12} {:>10} {:>12}", "target", "inputs", "per s", "slowest ms");
    let mut all_held = true;
    for target in targets {
        let outcome = hunt(
            target,
            &Hunt {
                seed,
                first: arguments.first,
                executions: arguments.executions,
                within: Duration::from_secs(arguments.seconds),
                directory: arguments.save.clone(),
            },
        )?;
        let per_second = outcome.executions as f64 / outcome.took.as_secs_f64().max(0.001);
        let slowest = outcome.slowest.as_millis();
        println!("{:<12} {:>12} {per_second:>10.0} {slowest:>12}", target.name, outcome.executions);
        if let Some(broken) = outcome.broken {
            all_held = false;
            println!("BROKEN: {broken}");
        }
    }
    Ok(all_held)
}

fn chosen(names: &[String]) -> Result<Vec<&'static Target>> {
    if names.is_empty() {
        return Ok(TARGETS.iter().collect());
    }
    let known = || TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
    names.iter().map(|name| find(name).with_context(|| format!("no target {name:?}; there are {}", known()))).collect()
}
