//! `redrive dependencies open`.

use std::time::Duration;

use serde_json::json;

use super::DependencyArgs;
use crate::commands::parse_moment;
use crate::config::parse_duration;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  redrive dependencies open https://api.example.com --for 10m --reason maintenance
  redrive dependencies open https://api.example.com --until 2026-12-31T12:00:00Z
  redrive dependencies open https://api.example.com       # until it is closed

Nothing is sent until the time is over. Then a few calls test the dependency, and if they succeed
the circuit breaker closes. It applies to all nodes. The dependency may have no task yet.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// For how long, at most 30d
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration, conflicts_with = "until")]
    within: Option<Duration>,
    /// Until when, as RFC 3339
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    until: Option<u64>,
    /// Why, for people: at most 300 characters
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    dependency: DependencyArgs,
}

pub(crate) async fn run(Args { dependency, within, until, reason }: Args) -> anyhow::Result<Exit> {
    let within = within.map(|within| u64::try_from(within.as_millis()).unwrap_or(u64::MAX));
    let document = json!({ "reason": reason, "untilMs": until, "forMs": within });
    dependency.post("/open", serde_json::to_vec(&document)?).await
}
