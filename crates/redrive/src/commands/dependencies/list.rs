//! `redrive dependencies list`.

use super::colour;
use crate::client::{Backlog, Dependency, Pages};
use crate::commands::Connection;
use crate::commands::listing::print_json;
use crate::exit::Exit;
use crate::output::{Cell, Table, moment_cell, now_millis};

const EXAMPLES: &str = "\
Examples:
  redrive dependencies list
  redrive dependencies list --json

STATE is one of:
  ok       nothing is held back
  paused   an operator paused it; nothing is sent
  open     the circuit breaker is open; nothing is sent
  probing  the circuit breaker lets a few calls through to test the dependency
  budget   the retry budget is spent; retries wait, first attempts are sent
  busy     due tasks wait until an attempt in flight ends
DUE and WAITING are its pending tasks: those that are due, and those that are due later, for
example after their backoff. 1000+ is 1000 or more. FAILED counts the latest outcomes, RETRIES
LEFT is what the retry budget allows now.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let (mut client, output) = (args.connection.client()?, args.connection.output());
    let mut pages = Pages::new("/dependencies".into(), Vec::new(), "dependencies", usize::MAX);
    if args.connection.json {
        print_json(output, &mut client, &mut pages, "dependencies").await?;
        return Ok(Exit::Done);
    }
    let header =
        ["DEPENDENCY", "STATE", "UNTIL", "DUE", "WAITING", "IN FLIGHT", "LIMIT", "FAILED", "RETRIES LEFT", "P95"];
    let mut table = Table::new(&header).leading();
    let now = now_millis();
    while let Some(page) = pages.next(&mut client).await? {
        page.read()?.iter().for_each(|dependency| table.row(row(dependency, now)));
    }
    match table.is_empty() {
        true => output.line("no dependencies: this node has called none yet")?,
        false => output.table(&table)?,
    }
    Ok(Exit::Done)
}

fn row(of: &Dependency, now: u64) -> [Cell; 10] {
    [
        of.dependency.as_str().into(),
        Cell::coloured(&of.state, colour(&of.state)),
        of.waiting_until.map_or_else(|| "-".into(), |until| moment_cell(until, now)),
        of.backlog.as_ref().map_or_else(|| "-".into(), Backlog::due_text).into(),
        of.backlog.as_ref().map_or_else(|| "-".into(), Backlog::waiting_text).into(),
        of.concurrency.in_flight.to_string().into(),
        of.concurrency.limit.to_string().into(),
        format!("{} of {}", of.recent_outcomes.failures, of.recent_outcomes.count).into(),
        of.budget.as_ref().map_or_else(|| "-".into(), |budget| budget.left.to_string()).into(),
        of.latency_ms.as_ref().map_or_else(|| "-".into(), |latency| format!("{}ms", latency.p95)).into(),
    ]
}
