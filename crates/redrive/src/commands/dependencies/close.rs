//! `redrive dependencies close`.

use super::DependencyArgs;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  redrive dependencies close https://api.example.com

The dependency gets few calls at first, and more as they succeed. If it fails on, the circuit
breaker opens again. A breaker that opened by itself is closed on the node that you ask; one that
was opened by hand is closed on all nodes.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    dependency: DependencyArgs,
}

pub(crate) async fn run(Args { dependency }: Args) -> anyhow::Result<Exit> {
    dependency.post("/close", Vec::new()).await
}
