//! `redrive migrate`: brings a PostgreSQL schema up to date, for those who do that by hand.

use anyhow::Context;

use crate::commands::config::usable;
use crate::config::{self, Environment, Flags, StoreKind};
use crate::exit::{Exit, ExitError};
use crate::output::Output;
use crate::serve::{cannot, postgres_options};

const EXAMPLES: &str = "\
Examples:
  redrive migrate --store postgres://redrive@localhost/redrive
  REDRIVE_STORE=postgres://redrive@localhost/redrive redrive migrate

`redrive serve` does the same when it starts, unless it runs with --postgres-migrate false.
Several can run at once: the first one migrates, the others wait. All other settings of
`redrive serve` are accepted, too, and have no effect.";

/// The settings that the help shows. All others are accepted, so that the flags of `redrive serve` can be given as they are.
const SHOWN: [&str; 5] = ["help", "config", "store", "postgres-pooler", "extra-ca"];

/// This command with a help that shows only the settings that it needs.
pub(crate) fn with_short_help(command: clap::Command) -> clap::Command {
    command.mut_args(|argument| {
        let is_shown = SHOWN.contains(&argument.get_id().as_str());
        argument.hide(!is_shown)
    })
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let loaded = config::load(&args.flags, &Environment::of_this_process());
    usable(&loaded)?;
    let StoreKind::Postgres(address) = &loaded.config.store else {
        let wrong = "there is nothing to migrate: only a store of postgres://… is migrated by hand, and this configuration has \
                     none; name it with --store";
        return Err(ExitError::of(Exit::BadConfiguration, wrong.to_owned()));
    };
    let options = postgres_options(&loaded.config, address)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let state = runtime
        .block_on(redrive_store_postgres::migrate(&options))
        .map_err(|error| cannot("migrate", address, &error))?;
    let said = match state.version {
        version if version >= state.program => format!("the schema is already at version {version}\n"),
        0 => format!("created the schema, version {}\n", state.program),
        before => format!("updated the schema from version {before} to {}\n", state.program),
    };
    Output::standard().text(&said)?;
    Ok(Exit::Done)
}
