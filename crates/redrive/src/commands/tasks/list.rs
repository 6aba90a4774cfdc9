//! `redrive tasks list`.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use redrive_core::Status;
use serde_json::value::RawValue;

use crate::client::{Page, Pages, Task};
use crate::commands::listing::print_json;
use crate::commands::{Connection, pairs};
use crate::config::parse_duration;
use crate::exit::Exit;
use crate::output::{Cell, Output, Table, moment_cell, now_millis, status_colour};

const EXAMPLES: &str = "\
Examples:
  redrive tasks list
  redrive tasks list --status FAILED --status EXHAUSTED --since 24h
  redrive tasks list --dependency billing --label team=pay --limit 10
  redrive tasks list --policy webhooks --all --json

WHY is the reason of the status and what went wrong last. The reasons:
  FAILED     not-retryable, body-lost, policy-lost
  EXHAUSTED  attempts, dns-attempts, deadline, retry-after, budget, outcome-unknown";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only tasks with this status; may be repeated
    #[arg(long, value_name = "STATUS", value_delimiter = ',', ignore_case = true, value_parser = statuses())]
    status: Vec<String>,
    /// Only tasks that call this dependency
    #[arg(long, value_name = "NAME")]
    dependency: Option<String>,
    /// Only tasks with this policy
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Only tasks with this label; may be repeated, then all must match
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = pairs::label)]
    labels: Vec<(String, String)>,
    /// Only tasks that were accepted within this time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    since: Option<Duration>,
    /// The maximum number of tasks
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = limit, conflicts_with = "all")]
    limit: usize,
    /// List all tasks
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    connection: Connection,
}

fn statuses() -> PossibleValuesParser {
    PossibleValuesParser::new(Status::ALL.map(Status::as_str))
}

fn limit(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|limit| *limit > 0).ok_or_else(|| "must be a whole number of at least 1".into())
}

pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let (mut client, output) = (args.connection.client()?, args.connection.output());
    let limit = if args.all { usize::MAX } else { args.limit };
    let mut pages = Pages::new("/retry-tasks".into(), query(&args), "tasks", limit);
    if args.connection.json {
        print_json(output, &mut client, &mut pages, "tasks").await?;
        return Ok(Exit::Done);
    }
    let mut counts = None;
    let mut header = true;
    while let Some(page) = pages.next(&mut client).await? {
        // A page at a time, with the columns that it needs: however long the list is, it is shown as it comes.
        header &= !print(output, &page, header)?;
        counts = page.rest.get("counts").cloned();
    }
    if header {
        output.line("no tasks found")?;
    }
    if pages.has_more() {
        output.line("(there are more; use --limit N or --all)")?;
    }
    summary(output, counts)?;
    Ok(Exit::Done)
}

fn query(args: &Args) -> Vec<(&'static str, String)> {
    let since = args.since.map(|since| {
        let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        ("createdAfter", now_millis().saturating_sub(millis).to_string())
    });
    let statuses = args.status.iter().map(|status| ("status", status.to_uppercase()));
    let labels = args.labels.iter().map(|(name, value)| ("label", format!("{name}:{value}")));
    let dependency = args.dependency.iter().map(|name| ("dependency", name.clone()));
    let policy = args.policy.iter().map(|name| ("policyId", name.clone()));
    statuses.chain(dependency).chain(policy).chain(labels).chain(since).collect()
}

/// Prints a page and says whether it had anything to print.
fn print(output: Output, page: &Page, header: bool) -> anyhow::Result<bool> {
    let columns = ["TASK", "STATUS", "ATTEMPTS", "ACCEPTED", "NEXT OR END", "REQUEST", "WHY"];
    let table = if header { Table::new(&columns) } else { Table::without_header() };
    let mut table = table.folding(2).leading();
    let now = now_millis();
    for task in page.read::<Task>()? {
        table.row(row(&task, now));
    }
    if !table.is_empty() {
        output.table(&table)?;
    }
    Ok(!table.is_empty())
}

fn row(task: &Task, now: u64) -> [Cell; 7] {
    let last = match (task.status.as_str(), task.next_attempt_at, task.ended_at) {
        ("PENDING", Some(due), _) if due <= now => "due".into(),
        ("PENDING", Some(due), _) => moment_cell(due, now),
        (_, _, Some(ended)) => moment_cell(ended, now),
        _ => "in progress".into(),
    };
    [
        task.task_id.as_str().into(),
        Cell::coloured(&task.status, status_colour(&task.status)),
        format!("{}/{}", task.attempts_in_run(), task.max_attempts).into(),
        moment_cell(task.created_at, now),
        last,
        task.request_text().into(),
        task.why_text().into(),
    ]
}

/// How many tasks there are in each status that has any.
fn summary(output: Output, counts: Option<Box<RawValue>>) -> anyhow::Result<()> {
    let Some(counts) = counts else { return Ok(()) };
    let counts: BTreeMap<String, u64> = serde_json::from_str(counts.get())?;
    let named = Status::ALL.map(Status::as_str).into_iter().filter_map(|status| {
        let count = counts.get(status).copied().filter(|count| *count > 0)?;
        Some(format!("{count} {}", output.paint(status, status_colour(status))))
    });
    let named: Vec<_> = named.collect();
    if !named.is_empty() {
        output.line(format!("in all: {}", named.join(", ")))?;
    }
    Ok(())
}
