//! `redrive dependencies pause`.

use serde_json::json;

use super::DependencyArgs;
use crate::exit::Exit;
use crate::output::notice;

const EXAMPLES: &str = "\
Examples:
  redrive dependencies pause https://api.example.com
  redrive dependencies pause billing --reason 'maintenance until noon'

Attempts in flight end as usual. Waiting tasks lose no attempts, but their time budget goes on.
The pause is stored and applies to all nodes. The dependency may have no task yet.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Why, for people: at most 300 characters
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    dependency: DependencyArgs,
}

pub(crate) async fn run(Args { dependency, reason }: Args) -> anyhow::Result<Exit> {
    let exit = dependency.post("/pause", serde_json::to_vec(&json!({ "reason": reason }))?).await?;
    if !dependency.is_known().await? {
        let name = &dependency.name;
        notice(format!("note: the node knows no task of {name}; check the spelling (`redrive dependencies list`)"));
    }
    Ok(exit)
}
