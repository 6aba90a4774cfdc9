//! `cargo xtask siege`: attacks the real binary, one step after the other, while a well-behaved client works.
//!
//! Every step has a service of its own on an empty data directory. All of them check the service's memory, the latency
//! of small submissions and of `/livez`, and that every acknowledged task is delivered. All of it is on loopback, and
//! every load has a bound in number and time.
//!
//! Not here: killing the process (`crash`), several nodes (`chaos`), speed (`bench`).

mod arrivals;
mod attackers;
mod client;
mod field;
mod http2;
mod outcome;
mod report;
mod run;
mod service;
mod steps;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::binaries::{self, Profile};
use field::Field;
use steps::{STEPS, Step};

/// The most time that all steps together may take.
const LIMIT: Duration = Duration::from_secs(600);

/// The options of `cargo xtask siege`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Run this step only; may be given several times
    #[arg(long = "step", value_name = "NAME", value_parser = STEPS.iter().map(|step| step.name).collect::<Vec<_>>())]
    steps: Vec<String>,
    /// List the steps and exit
    #[arg(long)]
    list: bool,
    /// Attack the dev build instead of the release build
    #[arg(long)]
    debug_binary: bool,
    /// Attack this program instead of building one
    #[arg(long, value_name = "FILE", conflicts_with = "debug_binary")]
    binary: Option<PathBuf>,
    /// A further argument for `redrive serve`; may be given several times
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    serve_argument: Vec<String>,
}

/// The program to attack.
#[derive(Debug)]
pub enum Binary<'a> {
    /// The result of `cargo build` with these arguments.
    Built(Profile, &'a [&'a str]),
    /// The program at this path.
    At(&'a Path),
}

/// A siege.
#[derive(Debug)]
pub struct Options<'a> {
    /// The steps, by name; all if there are none.
    pub steps: &'a [&'a str],
    /// The program.
    pub binary: Binary<'a>,
    /// Further arguments for `redrive serve`.
    pub serve_arguments: &'a [String],
}

/// Runs with the arguments of the command line.
pub fn run_as_command(arguments: &Arguments) -> Result<()> {
    if arguments.list {
        report::list(STEPS);
        return Ok(());
    }
    let steps: Vec<&str> = arguments.steps.iter().map(String::as_str).collect();
    let profile = if arguments.debug_binary { Profile::Dev } else { Profile::Release };
    let binary = arguments.binary.as_deref().map_or(Binary::Built(profile, &["-p", "redrive"]), Binary::At);
    run(&Options { steps: &steps, binary, serve_arguments: &arguments.serve_argument })
}

/// Runs the steps and reports; an error if a check failed.
pub fn run(options: &Options<'_>) -> Result<()> {
    crate::process::guard(LIMIT)?;
    crate::open_files::raise_limit()?;
    let redrive = match options.binary {
        Binary::Built(profile, arguments) => binaries::build(profile, arguments)?.join("redrive"),
        Binary::At(path) => path.to_owned(),
    };
    let dir = binaries::scratch_dir(&format!("siege/{}", std::process::id()))?;
    let begin = Instant::now();
    let chosen = |step: &&Step| options.steps.is_empty() || options.steps.contains(&step.name);
    let mut outcomes = Vec::new();
    for step in STEPS.iter().filter(chosen) {
        let begin = Instant::now();
        println!("{}: {}", step.name, step.what);
        let field = Field::new(&redrive, dir.join(step.name), options.serve_arguments)?;
        let outcome = (step.run)(&field).with_context(|| format!("the step {} could not be carried out", step.name))?;
        report::progress(&outcome, begin.elapsed());
        outcomes.push((step.name, outcome));
    }
    report::summary(&outcomes, begin.elapsed());
    let broken = outcomes.iter().filter(|(_, outcome)| !outcome.broken().is_empty()).count();
    if broken > 0 {
        bail!("{broken} of {} steps broke something; data and logs in {}", outcomes.len(), dir.display());
    }
    std::fs::remove_dir_all(&dir).with_context(|| format!("removing {}", dir.display()))
}
