//! `redrive inbox`: the events that consumers have seen.

mod stats;

use clap::Subcommand;

use crate::commands::connection;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  redrive inbox stats";

#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Count the events that consumers have seen
    Stats(stats::Args),
}

pub(crate) fn run(command: Command) -> anyhow::Result<Exit> {
    connection::run(async {
        match command {
            Command::Stats(args) => stats::run(args).await,
        }
    })
}
