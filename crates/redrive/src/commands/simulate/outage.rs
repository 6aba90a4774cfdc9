//! `--scenario outage`: policies, side by side, and a dependency that goes down.

use redrive_scenario::report::page;
use redrive_scenario::{Comparison, World, run as simulate};

use super::progress::Bar;
use super::report::Target;
use super::{Args, chart, contender, document, figures, rerun, show, wrong};
use crate::output::{Colour, Output, printable, today};

/// Hints for a first run.
const HINT: &str = "\
to try others: redrive simulate sync webhook default,maxAttempts=3+budget; see redrive simulate --help
to see more: --out report.html";

pub(super) fn run(args: &Args, target: Option<&Target>) -> anyhow::Result<()> {
    if args.runs.is_some() {
        return Err(wrong("--runs has no meaning but with --scenario occ"));
    }
    if args.outages.len() > 1 && args.outages.contains(&None) {
        return Err(wrong("--outage none says that it is never down, and another --outage that it is"));
    }
    let comparison = compare(args)?;
    let print = |output: Output| {
        output.prose(&figures::headline(&comparison))?;
        figures::labels(output, &contender::texts(args))?;
        figures::print(output, &comparison)?;
        figures::remarks(output, &comparison)?;
        chart::attempts(output, &comparison)?;
        if args.contenders.is_empty() {
            output.line(format!("\n{}", output.paint(&figures::wrapped(output, HINT), Colour::Faint)))
        } else {
            Ok(())
        }
    };
    let page = || page(&comparison, &rerun::command(args), today());
    show(args, target, page, || document::outage(&comparison), print)
}

fn compare(args: &Args) -> anyhow::Result<Comparison> {
    let contenders = contender::all(args)?;
    let names: Vec<String> = contenders.iter().map(|contender| printable(&contender.name)).collect();
    let mut bar = Bar::new();
    let progress = |progress: redrive_scenario::Progress| {
        bar.show(progress.part(), names.get(progress.contender).map_or("", String::as_str));
    };
    simulate(world(args), contenders, args.seed, args.until, progress).map_err(wrong)
}

fn world(args: &Args) -> World {
    let defaults = World::default();
    let outages =
        if args.outages.is_empty() { defaults.outages } else { args.outages.iter().flatten().copied().collect() };
    World {
        clients: args.clients.unwrap_or(defaults.clients),
        over: args.over.unwrap_or(defaults.over),
        capacity: args.capacity.unwrap_or(defaults.capacity),
        queue: args.queue.unwrap_or(defaults.queue),
        latency: args.latency.unwrap_or(defaults.latency),
        outages,
        retry_after: args.retry_after,
    }
}
