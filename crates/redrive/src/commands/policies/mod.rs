//! `redrive policies`: looking at retry policies and changing them.

mod apply;
mod delete;
pub(crate) mod document;
mod list;
mod show;
mod timetable;

use clap::Subcommand;
use redrive_core::policy::Context;
use redrive_standard::nearest;

use crate::commands::connection;
use crate::exit::{Exit, exit_of, with_advice};

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

/// The error of a policy that does not exist, with the preset that was probably meant.
pub(crate) fn with_preset_hint(error: anyhow::Error, name: Option<&str>) -> anyhow::Error {
    let meant = name.and_then(|name| nearest(name, Context::ALL.iter().map(|context| context.as_str())));
    match meant {
        Some(meant) if exit_of(&error) == Exit::NotFound => with_advice(error, &format!("did you mean {meant}?")),
        _ => error,
    }
}
