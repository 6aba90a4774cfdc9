//! `redrive idempotency stats`.

use serde::Deserialize;

use crate::client::{OperationStats, Pages, bounded_text};
use crate::commands::Connection;
use crate::commands::listing::print_json;
use crate::exit::Exit;
use crate::output::{Cell, Table};

const EXAMPLES: &str = "\
Examples:
  redrive idempotency stats
  redrive idempotency stats --json

10000+ is 10000 or more. The second table counts what this node has answered since it started.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    connection: Connection,
}

/// What a node has answered.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Totals {
    reservations: u64,
    replays: u64,
    in_progress: u64,
    mismatches: u64,
    takeovers: u64,
    completions: u64,
    fenced: u64,
    released: u64,
    submissions: SubmissionTotals,
}

/// What a node has answered to submissions whose key was used before.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SubmissionTotals {
    replays: u64,
    mismatches: u64,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let (mut client, output) = (args.connection.client()?, args.connection.output());
    let mut pages = Pages::new("/idempotency-records/stats".into(), Vec::new(), "operations", usize::MAX);
    if args.connection.json {
        print_json(output, &mut client, &mut pages, "operations").await?;
        return Ok(Exit::Done);
    }
    let mut table =
        Table::new(&["OPERATION", "IN PROGRESS", "SUCCEEDED", "FAILED RETRYABLE", "FAILED FINAL"]).leading();
    let mut totals = Totals::default();
    while let Some(page) = pages.next(&mut client).await? {
        let bound = page.number("countedUpTo")?;
        page.read::<OperationStats>()?.iter().for_each(|stats| table.row(row(stats, bound)));
        if let Some(of_node) = page.rest.get("totals") {
            totals = serde_json::from_str(of_node.get())?;
        }
    }
    match table.is_empty() {
        true => output.line("no records")?,
        false => output.table(&table)?,
    }
    output.text("\n")?;
    output.table(&totals_table(&totals))?;
    Ok(Exit::Done)
}

fn row(stats: &OperationStats, bound: u64) -> [Cell; 5] {
    let number = |number| Cell::from(bounded_text(number, bound));
    [
        stats.operation.as_str().into(),
        number(stats.in_progress),
        number(stats.succeeded),
        number(stats.failed_retryable),
        number(stats.failed_final),
    ]
}

fn totals_table(totals: &Totals) -> Table {
    let mut table = Table::without_header();
    for (name, number) in [
        ("reservations", totals.reservations),
        ("replays", totals.replays),
        ("refused, in progress", totals.in_progress),
        ("refused, other request", totals.mismatches),
        ("takeovers", totals.takeovers),
        ("completions", totals.completions),
        ("fenced", totals.fenced),
        ("released", totals.released),
        ("submissions replayed", totals.submissions.replays),
        ("submissions refused, other request", totals.submissions.mismatches),
    ] {
        table.field(name, number.to_string());
    }
    table
}
