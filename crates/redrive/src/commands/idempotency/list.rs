//! `redrive idempotency list`.

use std::time::Duration;

use clap::builder::PossibleValuesParser;
use redrive_core::idempotency::State;

use super::colour;
use crate::client::{Page, Pages, Record};
use crate::commands::Connection;
use crate::commands::listing::print_json;
use crate::config::parse_duration;
use crate::exit::Exit;
use crate::output::{Cell, Output, Table, moment_cell, now_millis};

const EXAMPLES: &str = "\
Examples:
  redrive idempotency list
  redrive idempotency list --state IN_PROGRESS --older-than 10m
  redrive idempotency list --operation create-payment --all --json

STATE is one of:
  IN_PROGRESS       an execution owns it; with (lease over), the next caller takes over
  SUCCEEDED         the operation took place; duplicates get its result
  FAILED_RETRYABLE  the execution failed; the next caller executes again
  FAILED_FINAL      the operation failed for good; duplicates get the failure";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only records of this operation
    #[arg(long, value_name = "NAME")]
    operation: Option<String>,
    /// Only records in this state
    #[arg(long, value_name = "STATE", ignore_case = true, value_parser = states())]
    state: Option<String>,
    /// Only records that have not changed for this time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    older_than: Option<Duration>,
    /// The maximum number of records
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = limit, conflicts_with = "all")]
    limit: usize,
    /// List all records
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Records that were given up are not listed.
fn states() -> PossibleValuesParser {
    PossibleValuesParser::new(State::ALL.into_iter().filter(|state| *state != State::Released).map(State::name))
}

fn limit(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|limit| *limit > 0).ok_or_else(|| "must be a whole number of at least 1".into())
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let (mut client, output) = (args.connection.client()?, args.connection.output());
    let limit = if args.all { usize::MAX } else { args.limit };
    let mut pages = Pages::new("/idempotency-records".into(), query(&args), "records", limit);
    if args.connection.json {
        print_json(output, &mut client, &mut pages, "records").await?;
        return Ok(Exit::Done);
    }
    let mut header = true;
    while let Some(page) = pages.next(&mut client).await? {
        header &= !print(output, &page, header)?;
    }
    if header {
        output.line("no records found")?;
    }
    if pages.has_more() {
        output.line("(there are more; use --limit N or --all)")?;
    }
    Ok(Exit::Done)
}

fn query(args: &Args) -> Vec<(&'static str, String)> {
    let operation = args.operation.iter().map(|name| ("operation", name.clone()));
    let state = args.state.iter().map(|state| ("state", state.to_uppercase()));
    let age = args.older_than.iter().map(|age| ("olderThanMs", age.as_millis().to_string()));
    operation.chain(state).chain(age).collect()
}

/// Prints a page and says whether it had anything to print.
fn print(output: Output, page: &Page, header: bool) -> anyhow::Result<bool> {
    let columns = ["OPERATION", "KEY", "STATE", "EPOCH", "CHANGED", "LEASE OR EXPIRY"];
    let table = if header { Table::new(&columns) } else { Table::without_header() };
    let mut table = table.leading();
    let now = now_millis();
    for record in page.read::<Record>()? {
        table.row(row(&record, now));
    }
    if !table.is_empty() {
        output.table(&table)?;
    }
    Ok(!table.is_empty())
}

fn row(record: &Record, now: u64) -> [Cell; 6] {
    let last = if record.state == "IN_PROGRESS" { Some(record.lease_until) } else { record.expires_at };
    [
        record.operation.as_str().into(),
        record.key.as_str().into(),
        Cell::coloured(record.state_text(now), colour(&record.state)),
        record.epoch.to_string().into(),
        moment_cell(record.updated_at, now),
        last.map_or_else(|| "-".into(), |last| moment_cell(last, now)),
    ]
}
