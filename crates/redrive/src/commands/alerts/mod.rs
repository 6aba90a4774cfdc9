//! `redrive alerts`: shows what fires, silences it, and tests who is told.

mod end_silence;
mod list;
mod silence;
mod test;

use clap::Subcommand;

use crate::commands::connection;
use crate::exit::Exit;
use crate::output::Colour;

const EXAMPLES: &str = "\
Examples:
  redrive alerts list
  redrive alerts silence --dependency https://api.example.com --for 2h --reason maintenance
  redrive alerts test on-call

Rules, and the sinks that are told of alerts, are part of the configuration of `redrive serve`:
see [alerts] in `redrive config --example`.";

#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// List the alerts that fire, those that are over, and the silences
    List(list::Args),
    /// Keep alerts from the sinks for a time
    Silence(silence::Args),
    /// End a silence
    EndSilence(end_silence::Args),
    /// Send a test notification to a sink
    Test(test::Args),
}

pub(crate) fn run(command: Command) -> anyhow::Result<Exit> {
    connection::run(async {
        match command {
            Command::List(args) => list::run(args).await,
            Command::Silence(args) => silence::run(args).await,
            Command::EndSilence(args) => end_silence::run(args).await,
            Command::Test(args) => test::run(args).await,
        }
    })
}

/// The colour of a severity.
fn colour(severity: &str) -> Colour {
    match severity {
        "critical" => Colour::Bad,
        "warning" => Colour::Busy,
        _ => Colour::Faint,
    }
}
