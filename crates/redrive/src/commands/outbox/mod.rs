//! `redrive outbox`: for a business database that is not Redrive's own. Its transactions write rows of an outbox table,
//! and a relay moves those into Redrive.
//!
//! Not here: `redrive.enqueue`, for the database that Redrive lives in (`redrive-store-postgres`, `redrive-outbox`).

mod name;
mod relay;
mod table;

use clap::Subcommand;

use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  redrive outbox table --table app.outbox | psql shop
  redrive outbox relay --from postgres://relay@localhost/shop --table app.outbox";

#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Print the SQL statements that create an outbox table
    Table(table::Args),
    /// Move rows of an outbox table into Redrive, in order, exactly once by key
    Relay(Box<relay::Args>),
}

pub(crate) fn run(command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Table(args) => table::run(&args),
        Command::Relay(args) => relay::run(*args),
    }
}
