//! `redrive dependencies resume`.

use super::DependencyArgs;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  redrive dependencies resume https://api.example.com";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    dependency: DependencyArgs,
}

pub(crate) async fn run(Args { dependency }: Args) -> anyhow::Result<Exit> {
    dependency.post("/resume", Vec::new()).await
}
