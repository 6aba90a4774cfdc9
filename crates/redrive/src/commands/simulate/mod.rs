//! `redrive simulate`: what policies do to a dependency, before they meet it.
//!
//! The model is `redrive-scenario`; here are the words of the command line, and the ways to show what came out.

mod chart;
mod contender;
mod document;
mod figures;
mod occ;
mod outage;
mod parse;
mod progress;
mod report;
mod rerun;

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use redrive_core::duration::parse_duration;
use redrive_scenario::{Latencies, Outage};
use serde_json::Value;

use self::report::Target;
use crate::exit::{Exit, ExitError};
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  redrive simulate                                        # an outage, and four policies
  redrive simulate sync webhook --clients 1000000 --capacity 20000 --queue 20000
  redrive simulate default default+budget+breaker+concurrency=20 --over 2m --outage 20s..50s:hang
  redrive simulate naive:backoff=fixed,initialDelayMs=200,jitterType=NONE default,maxAttempts=9
  redrive simulate payments --file policies.toml --latency 80ms,1s --out report.html
  redrive simulate --scenario occ --clients 100 --runs 200

A CONTENDER is a policy and the guards that it has: [LABEL:]POLICY[,FIELD=VALUE]…[+GUARD]…
  POLICY  default, a preset (sync, event, webhook, webhook-patient, batch, grpc), a policy of
          --file, or nothing but fields, named as in the REST API
  GUARD   budget         retries at most 10 and 20 % of first attempts in 30 s; a retry that
                         succeeds while the dependency is healthy counts like a first attempt
          budget=strict  the same, but every retry counts
          breaker        no calls for 15 s, and longer each further time up to 1 m, after
                         10 failures in a row, half of 20, or 10 s of waiting for the budget
          concurrency    a limit on attempts at once that adapts to the dependency, 1 to 200
          concurrency=N  at most N attempts at once
A Redrive service has budget, breaker and concurrency.
All contenders get the same requests and random numbers. The same seed gives the same result.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The policies to compare, at most 8, each with its guards [default: four examples]
    #[arg(value_name = "CONTENDER")]
    contenders: Vec<String>,
    /// The scenario to simulate
    #[arg(long, value_enum, default_value_t = Scenario::Outage)]
    scenario: Scenario,
    /// How many clients make one request each: up to 10000000, 10000 if not given; with --scenario occ up to 1000
    #[arg(long, value_name = "N")]
    clients: Option<u32>,
    /// The time over which their requests arrive; 0s is all at once [default: 0s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    over: Option<Duration>,
    /// The calls per second that the dependency can serve [default: 500]
    #[arg(long, value_name = "N", value_parser = parse::capacity)]
    capacity: Option<u32>,
    /// The length of its queue; a call that finds it full is answered 503 [default: 500]
    #[arg(long, value_name = "N")]
    queue: Option<u32>,
    /// Its latency: constant, or a median and a 99th percentile [default: 50ms,400ms]
    #[arg(long, value_name = "MEDIAN[,P99]", value_parser = parse::latency)]
    latency: Option<Latencies>,
    /// When it is down, and how: refuse (connections refused), hang (no answer until the timeout) or fail
    /// (503); may be repeated; "none" if it is never down [default: 0s..5s:refuse]
    #[arg(long = "outage", value_name = "FROM..TO[:MANNER]", value_parser = parse::outage)]
    outages: Vec<Option<Outage>>,
    /// The Retry-After of its 503s
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    retry_after: Option<Duration>,
    /// Add a retry budget to every contender that has none
    #[arg(long)]
    budget: bool,
    /// Add a circuit breaker to every contender that has none
    #[arg(long)]
    breaker: bool,
    /// Limit every contender that has no limit of its own to this many attempts at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    concurrency: Option<u32>,
    /// With --scenario occ: the runs for each number of clients [default: 100]
    #[arg(long, value_name = "N")]
    runs: Option<u32>,
    /// When the charts end [default: when nearly all calls have been made]
    #[arg(long, value_name = "DURATION", value_parser = parse::until)]
    until: Option<Duration>,
    /// The seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// A file with policies that contenders may name: TOML, YAML or JSON, as for `redrive policies apply`
    #[arg(long, value_name = "POLICIES")]
    file: Option<PathBuf>,
    /// Print JSON instead of a table and charts
    #[arg(long)]
    json: bool,
    /// Write a page with plots as well, one HTML file that needs no network; "-" writes nothing but the page, to
    /// standard output
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
}

/// The scenario to simulate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scenario {
    /// Clients call a dependency that goes down and comes back
    Outage,
    /// Clients contend for one versioned row (optimistic concurrency)
    Occ,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let target = args.out.as_deref().map(Target::at).transpose()?;
    if args.json && target == Some(Target::Standard) {
        return Err(wrong("--json and --out - both want standard output: write the page to a file"));
    }
    match args.scenario {
        Scenario::Outage => outage::run(args, target.as_ref())?,
        Scenario::Occ => occ::run(args, target.as_ref())?,
    }
    Ok(Exit::Done)
}

/// Shows what came out in all ways that were asked for. The page comes first, and what became of it is said last: a
/// table whose reader stops early (`| head`) does not prevent the page, and a page that cannot be written does not prevent the table.
fn show(
    args: &Args,
    target: Option<&Target>,
    page: impl FnOnce() -> String,
    document: impl FnOnce() -> Value,
    print: impl FnOnce(Output) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    let written = target.map_or(Ok(()), |target| target.write(&page()));
    let output = Output::standard();
    match target {
        Some(Target::Standard) => {}
        _ if args.json => output.json(&serde_json::to_vec(&document())?)?,
        _ => print(output)?,
    }
    written?;
    if let Some(target) = target {
        target.tell();
    }
    Ok(())
}

/// What was asked for cannot be simulated.
fn wrong(message: impl std::fmt::Display) -> anyhow::Error {
    ExitError::of(Exit::Usage, message.to_string())
}
