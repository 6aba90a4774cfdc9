//! `redrive report`: the health of deliveries in the last hour.

use serde::Deserialize;

use crate::commands::{Connection, connection};
use crate::exit::Exit;
use crate::output::{Cell, Colour, Output, Table};

const EXAMPLES: &str = "\
Examples:
  redrive report                 # all dependencies together, and the ten worst
  redrive report --limit 100
  redrive report --json

The figures are about the tasks that this node has ended in the last hour. A rate of fewer than
20 tasks is not judged: silent. A task is late if it is retried 24 hours after it was accepted.
The exit code is 1 if something is red.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// How many dependencies to show, the worst first
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    health: String,
    figures: Vec<Figure>,
    dependencies: Vec<DependencyHealth>,
    dependency_count: usize,
}

#[derive(Debug, Deserialize)]
struct DependencyHealth {
    dependency: String,
    health: String,
    figures: Vec<Figure>,
}

#[derive(Debug, Deserialize)]
struct Figure {
    figure: String,
    value: Option<f64>,
    health: String,
    why: String,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Exit> {
    connection::run(report(args))
}

async fn report(args: Args) -> anyhow::Result<Exit> {
    let (mut client, output) = (args.connection.client()?, args.connection.output());
    let answer = client.get(&format!("/health-report?limit={}", args.limit)).await?;
    let report: Report = answer.read()?;
    let exit = if report.health == "red" { Exit::Failed } else { Exit::Done };
    if args.connection.json {
        output.json(&answer.body)?;
        return Ok(exit);
    }
    show(output, &report)?;
    Ok(exit)
}

fn show(output: Output, report: &Report) -> anyhow::Result<()> {
    output.text(&format!("{}\n", sentence(report)))?;
    let mut overall = Table::new(&["FIGURE", "HEALTH", "WHY"]).folding(1);
    for figure in &report.figures {
        overall.row([figure.figure.as_str().into(), health(&figure.health), figure.why.as_str().into()]);
    }
    output.table(&overall)?;
    if report.dependencies.is_empty() {
        return Ok(());
    }
    output.text("\n")?;
    let mut table =
        Table::new(&["DEPENDENCY", "HEALTH", "RETRIED", "DEAD LETTERS", "ATTEMPTS", "LATE", "BY 2ND ATTEMPT"])
            .leading();
    report.dependencies.iter().for_each(|one| table.row(row(one)));
    output.table(&table)?;
    let hidden = report.dependency_count - report.dependencies.len().min(report.dependency_count);
    if hidden > 0 {
        output.text(&format!("{hidden} more; --limit shows up to 500\n"))?;
    }
    Ok(())
}

fn sentence(report: &Report) -> String {
    let what = match report.health.as_str() {
        "red" => "something needs attention",
        "yellow" => "something is unusual",
        "green" => "everything is as usual",
        _ => "too few tasks ended in the last hour to say",
    };
    format!("{}: {what}", report.health)
}

fn health(health: &str) -> Cell {
    match health {
        "red" => Cell::coloured(health, Colour::Bad),
        "yellow" => Cell::coloured(health, Colour::Busy),
        "green" => Cell::coloured(health, Colour::Good),
        _ => Cell::coloured(health, Colour::Faint),
    }
}

fn row(one: &DependencyHealth) -> [Cell; 7] {
    let cell = |name: &str, show: fn(f64) -> String| {
        let figure = one.figures.iter().find(|figure| figure.figure == name);
        let shown = figure.and_then(|figure| figure.value).map_or_else(|| "-".to_owned(), show);
        match figure.map(|figure| figure.health.as_str()) {
            Some("red") => Cell::coloured(shown, Colour::Bad),
            Some("yellow") => Cell::coloured(shown, Colour::Busy),
            Some("silent") => Cell::coloured(shown, Colour::Faint),
            _ => Cell::from(shown),
        }
    };
    let percent: fn(f64) -> String = |share| format!("{:.1} %", share * 100.0);
    [
        one.dependency.as_str().into(),
        health(&one.health),
        cell("retryRate", percent),
        cell("deadLetterRate", percent),
        cell("attemptsToSuccess", |mean| format!("{mean:.2}")),
        cell("longInRetry", |tasks| format!("{tasks:.0}")),
        cell("secondAttemptSuccess", percent),
    ]
}
