//! `redrive policies`: looking at retry policies and changing them.

mod apply;
mod delete;
pub(crate) mod document;
mod list;
mod show;
mod timetable;

use clap::Subcommand;

use crate::commands::connection;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  redrive policies list
  redrive policies apply webhooks.toml
  redrive policies show webhooks";

#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Create policies or new versions of them from files
    Apply(apply::Args),
    /// List policies
    List(list::Args),
    /// Show a policy: its fields, its timetable and its versions
    Show(show::Args),
    /// Delete a policy that no unfinished task uses
    Delete(delete::Args),
}

pub(crate) fn run(command: Command) -> anyhow::Result<Exit> {
    connection::run(async {
        match command {
            Command::Apply(args) => apply::run(args).await,
            Command::List(args) => list::run(args).await,
            Command::Show(args) => show::run(args).await,
            Command::Delete(args) => delete::run(args).await,
        }
    })
}
