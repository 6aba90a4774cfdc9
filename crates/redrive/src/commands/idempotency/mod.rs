//! `redrive idempotency`: lists, shows, counts and deletes idempotency records.

mod delete;
mod list;
mod show;
mod stats;

use clap::Subcommand;
use redrive_core::counted;

use crate::client::{Record, escape};
use crate::commands::{Connection, connection};
use crate::exit::Exit;
use crate::output::{Cell, Colour, Output, Table, moment, now_millis};

const EXAMPLES: &str = "\
Examples:
  redrive idempotency list --operation create-payment --state IN_PROGRESS
  redrive idempotency show create-payment order-1234
  redrive idempotency stats

A record lets one of several callers execute an operation, and gives the others its result.";

#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// List idempotency records
    List(list::Args),
    /// Show an idempotency record
    Show(show::Args),
    /// Delete an idempotency record, so that its operation can be executed again
    Delete(delete::Args),
    /// Count idempotency records, and what the node has answered
    Stats(stats::Args),
}

pub(crate) fn run(command: Command) -> anyhow::Result<Exit> {
    connection::run(async {
        match command {
            Command::List(args) => list::run(args).await,
            Command::Show(args) => show::run(args).await,
            Command::Delete(args) => delete::run(args).await,
            Command::Stats(args) => stats::run(args).await,
        }
    })
}

/// The arguments of a command for one record.
#[derive(Debug, clap::Args)]
struct RecordArgs {
    /// The operation
    #[arg(value_name = "OPERATION")]
    operation: String,
    /// The idempotency key
    #[arg(value_name = "KEY")]
    key: String,
    #[command(flatten)]
    connection: Connection,
}

impl RecordArgs {
    fn path(&self) -> String {
        format!("/idempotency-records/{}/{}", escape(&self.operation), escape(&self.key))
    }
}

/// The colour of a record's state.
fn colour(state: &str) -> Colour {
    match state {
        "SUCCEEDED" => Colour::Good,
        "FAILED_FINAL" => Colour::Bad,
        "RELEASED" => Colour::Faint,
        _ => Colour::Busy,
    }
}

/// Prints a record, and the version of it that `delete` takes.
fn print(output: Output, record: &Record, etag: &str) -> std::io::Result<()> {
    let now = now_millis();
    let mut table = Table::without_header();
    table.field("operation", record.operation.as_str());
    table.field("key", record.key.as_str());
    table.field("state", Cell::coloured(record.state_text(now), colour(&record.state)));
    table.field("execution", format!("{}, epoch {}", record.execution_id, record.epoch));
    table.field("request hash", record.request_hash.as_str());
    table.field("started", moment(record.started_at, now));
    table.field("changed", moment(record.updated_at, now));
    if record.state == "IN_PROGRESS" {
        table.field("lease", moment(record.lease_until, now));
    }
    match record.expires_at {
        Some(expires) => table.field("expires", moment(expires, now)),
        None => table.field("expires", "with its task"),
    }
    if let (Some(kind), Some(id)) = (&record.resource_type, &record.resource_id) {
        table.field("resource", format!("{kind} {id}"));
    }
    if let Some(response) = &record.response {
        let stored = response.body_ref.as_ref().map(|stored| format!(", /blobs/{stored}")).unwrap_or_default();
        table.field("response", format!("{}, {}{stored}", response.status, counted(response.body_bytes, "byte")));
    }
    table.field("etag", etag);
    output.table(&table)
}
