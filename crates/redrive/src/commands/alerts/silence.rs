//! `redrive alerts silence`.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::commands::{Connection, parse_moment};
use crate::config::parse_duration;
use crate::exit::Exit;
use crate::output::{moment, now_millis};

const EXAMPLES: &str = "\
Examples:
  redrive alerts silence --dependency https://api.example.com --for 2h --reason maintenance
  redrive alerts silence --rule retry-rate --until 2026-12-31T12:00:00Z
  redrive alerts silence --for 30m         # everything

Silenced alerts are still listed and logged. It applies to all nodes, and ends by itself.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only alerts of this rule
    #[arg(long, value_name = "NAME")]
    rule: Option<String>,
    /// Only alerts about this dependency
    #[arg(long, value_name = "NAME")]
    dependency: Option<String>,
    /// For how long, at most 30d
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration, required_unless_present = "until")]
    within: Option<Duration>,
    /// Until when, as RFC 3339
    #[arg(long, value_name = "TIME", value_parser = parse_moment, conflicts_with = "within")]
    until: Option<u64>,
    /// Why, for people: at most 300 characters
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Silence {
    silence_id: String,
    until: u64,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let Args { rule, dependency, within, until, reason, connection } = args;
    let within = within.map(|within| u64::try_from(within.as_millis()).unwrap_or(u64::MAX));
    let document =
        json!({ "rule": rule, "dependency": dependency, "forMs": within, "untilMs": until, "reason": reason });
    let answer = connection.client()?.post("/alerts/silences", serde_json::to_vec(&document)?).await?;
    let output = connection.output();
    if connection.json {
        output.json(&answer.body)?;
        return Ok(Exit::Done);
    }
    let Silence { silence_id, until } = answer.read()?;
    output.line(format!("silence {silence_id} ends {}", moment(until, now_millis())))?;
    Ok(Exit::Done)
}
