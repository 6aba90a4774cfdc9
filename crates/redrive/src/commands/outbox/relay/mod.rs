//! `redrive outbox relay`: moves rows of an outbox table into Redrive, in order, exactly once by key.
//!
//! | file | its job |
//! | --- | --- |
//! | `relay_loop` | the loop: read, submit, delete |
//! | `source` | the database that the rows come from |
//! | `row`, `key` | what a row is as a submission, and its key |
//! | `server` | the server that they go to |
//! | `pause`, `size`, `stop` | how long to wait, how much at once, when to end |
//!
//! A row is deleted after Redrive has acknowledged it, never before. After a crash in between, the row is submitted
//! again with the same key, and Redrive answers with the existing task.

mod key;
mod pause;
mod relay_loop;
mod row;
mod server;
mod size;
mod source;
mod stop;

use std::time::Duration;

use redrive_store_postgres::connect;

use super::name::TableName;
use crate::commands::connection::{self, Server};
use crate::config::{Address, LogFormat, parse_duration};
use crate::exit::{Exit, ExitError};
use crate::output::Output;
use crate::serve::logging;
use relay_loop::Relay;
use stop::Stop;

/// What the source's server calls the session.
const APPLICATION: &str = "redrive outbox relay";
/// How long connecting to the source may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a statement there waits for what another transaction holds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

const EXAMPLES: &str = "\
Examples:
  redrive outbox relay --from postgres://relay@localhost/shop --table app.outbox
  redrive outbox relay --from postgres://relay@db/shop --table app.outbox --once   # for cron

Put an address with a password into the variable REDRIVE_OUTBOX_FROM: other users of the machine
can see command lines.
Rows are submitted in the order of their ids and deleted once Redrive has stored them. A row that
Redrive refuses stays, with the reason in its column `refused`; set that to NULL to try it again.
With --once, the exit code is 1 if rows were refused.
A second relay of the same table waits until the first has ended. The relay needs one database
session: connect directly, not through a transaction pooler. `redrive outbox table` prints the
statements that create the table.

Signals:
  SIGINT and SIGTERM stop it after the current batch. A second signal stops it at once.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The database that the table is in
    #[arg(long, value_name = "URL", env = "REDRIVE_OUTBOX_FROM", hide_env_values = true, value_parser = parse_address)]
    from: Address,
    /// The outbox table
    #[arg(long, value_name = "SCHEMA.NAME")]
    table: TableName,
    #[command(flatten)]
    server: Server,
    /// A name for the database: a part of the idempotency keys of rows without one [default: the database's identity]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    source: Option<String>,
    /// The maximum number of rows in one request
    #[arg(long, value_name = "N", default_value = "100", value_parser = parse_batch)]
    batch: usize,
    /// How often to poll for rows that no notification announced
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = parse_poll)]
    poll: Duration,
    /// Move the rows that are there, then exit; with code 1 if rows were refused
    #[arg(long)]
    once: bool,
    /// What is logged: error, warn, info, debug, trace
    #[arg(long, value_name = "LEVEL", env = "REDRIVE_LOG_LEVEL", default_value = "info")]
    log_level: String,
    /// How it is logged: text for people, json for programs
    #[arg(long, value_name = "text|json", env = "REDRIVE_LOG_FORMAT", default_value = "text", value_parser = parse_format)]
    log_format: LogFormat,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Exit> {
    logging::start(&args.log_level, args.log_format)?;
    let wrong = |why| ExitError::of(Exit::BadConfiguration, format!("cannot use --from {}: {why}", args.from));
    args.from.check_postgres().map_err(wrong)?;
    let settings = [("lock_timeout", LOCK_TIMEOUT.as_millis().to_string())];
    let extra_ca = args.server.trusted_files();
    let terms =
        connect::Terms { name: APPLICATION, settings: &settings, extra_ca: &extra_ca, timeout: CONNECT_TIMEOUT };
    let from = connect::Address::read(args.from.secret(), &terms);
    let from = from.map_err(|error| ExitError::of(Exit::BadConfiguration, format!("cannot use --from: {error}")))?;
    let (once, from_shown) = (args.once, args.from.to_string());
    connection::run(async {
        let output = Output::standard();
        let stop = Stop::install()?;
        if !once {
            output.line(format!(
                "relaying {} of {from_shown} to {}",
                args.table,
                args.server.chosen()?.server.address
            ))?;
        }
        let mut relay = Relay::new(from, args, stop)?;
        let ended = relay.run().await;
        if ended.is_ok() || relay.has_moved() {
            output.line(relay.summary())?;
        }
        let is_cut_short = once && relay.was_stopped();
        ended?;
        match relay.refused() {
            _ if is_cut_short => Ok(Exit::Interrupted),
            Some(refused) if once => Err(ExitError::of(Exit::Failed, refused)),
            _ => Ok(Exit::Done),
        }
    })
}

/// Never an error: one would show what was given, and there may be a password in it.
fn parse_address(text: &str) -> Result<Address, std::convert::Infallible> {
    Ok(Address::new(text))
}

fn parse_batch(text: &str) -> Result<usize, String> {
    /// What a server takes in one request.
    const MOST: usize = 1_000;
    text.parse()
        .ok()
        .filter(|rows| (1..=MOST).contains(rows))
        .ok_or_else(|| format!("must be a number from 1 to {MOST}"))
}

fn parse_poll(text: &str) -> Result<Duration, String> {
    /// More often would do little else than ask.
    const SHORTEST: Duration = Duration::from_millis(10);
    let poll = parse_duration(text)?;
    if poll < SHORTEST { Err("must be at least 10ms".into()) } else { Ok(poll) }
}

fn parse_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "" | "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("must be text or json".to_owned()),
    }
}
