//! `redrive dependencies close`.

use super::DependencyArgs;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  redrive dependencies close https://api.example.com

It is closed on all nodes. The dependency gets few calls at first, and more as they succeed. If it
keeps failing, the circuit breaker opens again.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    dependency: DependencyArgs,
}

pub(crate) async fn run(Args { dependency }: Args) -> anyhow::Result<Exit> {
    dependency.post("/close", Vec::new()).await
}
