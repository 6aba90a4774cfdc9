//! `redrive dependencies reset`.

use super::DependencyArgs;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  redrive dependencies reset https://api.example.com

The retry budget and the circuit breaker begin again on all nodes, the adaptive limit on the node
that you ask, as if the dependency had never been called. A pause and limits that you have set
stay.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    dependency: DependencyArgs,
}

pub(crate) async fn run(Args { dependency }: Args) -> anyhow::Result<Exit> {
    dependency.post("/reset", Vec::new()).await
}
