//! `--scenario occ`: clients that contend for one versioned row.

use redrive_scenario::occ::{self, Measure, Point, Settings, Strategy};
use redrive_scenario::report::occ_page;

use super::figures::number;
use super::progress::Bar;
use super::report::Target;
use super::{Args, chart, document, rerun, show, wrong};
use crate::output::{Cell, Colour, Output, Table};

/// The default numbers of clients.
const CLIENTS: [u32; 12] = [1, 10, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200];
/// The default number of runs.
const RUNS: u32 = 100;

pub(super) fn run(args: &Args, target: Option<&Target>) -> anyhow::Result<()> {
    check(args)?;
    let clients = args.clients.map_or_else(|| CLIENTS.to_vec(), |clients| vec![clients]);
    let settings = Settings { clients, runs: args.runs.unwrap_or(RUNS), seed: args.seed };
    let mut bar = Bar::new();
    let points = occ::run(&settings, |done, of| bar.show(done as f64 / of as f64, "contending")).map_err(wrong)?;
    drop(bar);
    show(
        args,
        target,
        || occ_page(&settings, &points, &rerun::command(args)),
        || document::occ(&settings, &points),
        |output| print(output, &settings, &points),
    )
}

/// Options that have no effect here are refused.
fn check(args: &Args) -> anyhow::Result<()> {
    if !args.contenders.is_empty() {
        return Err(wrong("--scenario occ has its own contenders: none, exponential, equal, full and decorrelated"));
    }
    let given = [
        ("--over", args.over.is_some()),
        ("--capacity", args.capacity.is_some()),
        ("--queue", args.queue.is_some()),
        ("--latency", args.latency.is_some()),
        ("--until", args.until.is_some()),
        ("--outage", !args.outages.is_empty()),
        ("--retry-after", args.retry_after.is_some()),
        ("--budget", args.budget),
        ("--breaker", args.breaker),
        ("--concurrency", args.concurrency.is_some()),
        ("--file", args.file.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(wrong(format!("{flag} has no meaning with --scenario occ"))),
        None => Ok(()),
    }
}

fn print(output: Output, settings: &Settings, points: &[Point]) -> std::io::Result<()> {
    let Settings { runs, seed, .. } = settings;
    output.prose(&format!(
        "clients that read and then write one row; means of {runs} runs ± one deviation; seed {seed}"
    ))?;
    for (title, measure) in [("calls until all are done", CALLS), ("milliseconds until all are done", MILLIS)] {
        output.line(format!("\n{}", output.paint(title, Colour::Strong)))?;
        output.table(&table(settings, points, measure))?;
    }
    let most = settings.clients.iter().max().copied().unwrap_or(0);
    for (what, measure) in [("calls", CALLS), ("milliseconds", MILLIS)] {
        let last = points.iter().filter(|point| point.clients == most);
        let values: Vec<_> = last.map(|point| (point.strategy.as_str(), measure(point).mean)).collect();
        chart::bars(output, &format!("{what}, {most} clients"), &values)?;
    }
    Ok(())
}

type Of = fn(&Point) -> Measure;
const CALLS: Of = |point| point.calls;
const MILLIS: Of = |point| point.millis;

fn table(settings: &Settings, points: &[Point], measure: Of) -> Table {
    let mut table = Table::without_header();
    let names = ["clients"].into_iter().chain(Strategy::ALL.map(Strategy::as_str));
    table.row(names.map(|name| Cell::coloured(name, Colour::Faint)));
    for clients in &settings.clients {
        let cells = points.iter().filter(|point| point.clients == *clients).map(|point| {
            let Measure { mean, deviation, .. } = measure(point);
            Cell::from(format!("{} ± {}", number(mean.round() as u64), number(deviation.round() as u64)))
        });
        table.row([Cell::from(clients.to_string())].into_iter().chain(cells));
    }
    table
}
