//! `redrive dependencies limits`.

use clap::builder::RangedU64ValueParser;
use serde_json::json;

use super::DependencyArgs;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  redrive dependencies limits https://api.example.com --concurrency 5
  redrive dependencies limits https://api.example.com --min 2 --max 50
  redrive dependencies limits https://api.example.com --remove

Limits are per node, and never above engine.lane_concurrency of the server. They replace those
that were set before. The dependency may have no task yet.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("limits").args(["concurrency", "min", "max", "remove"]).required(true).multiple(true))]
pub(crate) struct Args {
    /// A fixed limit
    #[arg(long, value_name = "N", value_parser = number(), conflicts_with_all = ["min", "max", "remove"])]
    concurrency: Option<u32>,
    /// The least that the adaptive limit goes down to
    #[arg(long, value_name = "N", value_parser = number(), conflicts_with = "remove")]
    min: Option<u32>,
    /// The most that the adaptive limit goes up to
    #[arg(long, value_name = "N", value_parser = number(), conflicts_with = "remove")]
    max: Option<u32>,
    /// Remove the limits: those of the server apply again
    #[arg(long)]
    remove: bool,
    /// Why, for people: at most 300 characters
    #[arg(long, value_name = "TEXT", conflicts_with = "remove")]
    reason: Option<String>,
    #[command(flatten)]
    dependency: DependencyArgs,
}

fn number() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=100_000)
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let Args { concurrency, min, max, remove: _, reason, dependency } = args;
    let document = json!({
        "concurrency": concurrency, "minConcurrency": min, "maxConcurrency": max, "reason": reason,
    });
    let answer =
        dependency.connection.client()?.put(&dependency.path("/limits"), serde_json::to_vec(&document)?).await?;
    dependency.print(&answer)
}
