//! `redrive dependencies show`.

use std::time::Duration;

use redrive_core::counted;

use super::{DependencyArgs, colour};
use crate::client::{Control, Dependency};
use crate::exit::Exit;
use crate::output::{Cell, Output, Table, duration, moment, now_millis};

const EXAMPLES: &str = "\
Examples:
  redrive dependencies show https://api.example.com
  redrive dependencies show billing --json";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    dependency: DependencyArgs,
}

pub(crate) async fn run(Args { dependency }: Args) -> anyhow::Result<Exit> {
    let answer = dependency.connection.client()?.get(&dependency.path("")).await?;
    let output = dependency.connection.output();
    match dependency.connection.json {
        true => output.json(&answer.body)?,
        false => print(output, &answer.read()?)?,
    }
    Ok(Exit::Done)
}

fn print(output: Output, of: &Dependency) -> std::io::Result<()> {
    let now = now_millis();
    let mut table = Table::without_header();
    table.field("dependency", of.dependency.as_str());
    table.field("state", Cell::coloured(&of.state, colour(&of.state)));
    table.field("why", of.why.as_str());
    if let Some(until) = of.waiting_until {
        table.field("waits until", moment(until, now));
    }
    let until = of.breaker.open_until.map(|until| format!(" until {}", moment(until, now))).unwrap_or_default();
    table.field("breaker", format!("{}{until}", of.breaker.state));
    match &of.budget {
        None => table.field("retry budget", "off"),
        Some(budget) => table.field(
            "retry budget",
            format!(
                "{} left; in {}: {}, {} {}, {} refunded",
                budget.left,
                duration(Duration::from_millis(budget.window_ms)),
                counted(budget.first_attempts, "first attempt"),
                budget.retries,
                if budget.retries == 1 { "retry" } else { "retries" },
                budget.refunded
            ),
        ),
    }
    table.field("in flight", format!("{} of {}", of.concurrency.in_flight, of.concurrency.limit));
    let health = if of.healthy { "healthy" } else { "not known to be healthy" };
    table.field(
        "latest calls",
        format!("{} of {} failed, {health}", of.recent_outcomes.failures, of.recent_outcomes.count),
    );
    if let Some(since) = of.failing_since {
        table.field("no success since", moment(since, now));
    }
    table.field("all calls", format!("{}, {} failed", of.totals.attempts, of.totals.failures));
    if let Some(latency) = &of.latency_ms {
        table.field("latency", format!("p50 {}ms, p95 {}ms, p99 {}ms", latency.p50, latency.p95, latency.p99));
    }
    for (name, due) in [("first attempt due", of.first_attempt_due_at), ("retry due", of.retry_due_at)] {
        if let Some(due) = due {
            table.field(name, moment(due, now));
        }
    }
    if let Some(backlog) = &of.backlog {
        table.field("backlog", format!("{} due, {} due later", backlog.due_text(), backlog.waiting_text()));
    }
    controls(&mut table, of, now);
    output.table(&table)
}

fn controls(table: &mut Table, of: &Dependency, now: u64) {
    if let Some(pause) = &of.controls.pause {
        table.field("paused", noted(pause, now));
    }
    if let Some(open) = &of.controls.open {
        let until =
            open.until.map_or_else(|| "until it is closed".into(), |until| format!("until {}", moment(until, now)));
        table.field("held open", format!("{until}, {}", noted(open, now)));
    }
    if let Some(limits) = &of.controls.limits {
        let each =
            [("", limits.concurrency), ("at least ", limits.min_concurrency), ("at most ", limits.max_concurrency)];
        let each = each.iter().filter_map(|(word, limit)| limit.map(|limit| format!("{word}{limit}")));
        table.field("limits", format!("{}, {}", each.collect::<Vec<_>>().join(", "), noted(limits, now)));
    }
}

/// `by NAME since TIME: REASON`
fn noted(control: &Control, now: u64) -> String {
    let reason = control.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("by {} since {}{reason}", control.by, moment(control.at, now))
}
