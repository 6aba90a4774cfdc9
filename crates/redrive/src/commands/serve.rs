//! `redrive serve`: the service.

use crate::commands::config::usable;
use crate::config::{self, Environment, Flags};
use crate::exit::Exit;
use crate::serve::{self, logging};

const EXAMPLES: &str = "\
Examples:
  redrive serve                                       # on 127.0.0.1:8620, with ./redrive-data
  redrive serve --listen 127.0.0.1:0 --store memory   # on any free port, without a disk
  redrive serve --config redrive.toml                 # see `redrive config --example`
  REDRIVE_LOG_FORMAT=json redrive serve
  OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 redrive serve   # with traces

Signals:
  SIGINT and SIGTERM stop it: no new attempt starts, attempts in progress may finish within the
  shutdown grace, other tasks go back to the store. A second signal stops it at once.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let loaded = config::load(&args.flags, &Environment::of_this_process());
    if loaded.problems.is_empty() {
        // Before the first warning: with JSON, warnings are events as well.
        logging::start(&loaded.config.log_level, loaded.config.log_format)?;
        logging::log_panics();
    }
    usable(&loaded)?;
    serve::run(loaded.config)
}
