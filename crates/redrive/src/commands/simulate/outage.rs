//! `--scenario outage`: policies, side by side, and a dependency that goes down.

use redrive_scenario::{Comparison, World, run as simulate};

use super::progress::Bar;
use super::report::Told;
use super::{Args, chart, contender, document, figures, report, wrong};
use crate::output::{Output, notice, printable};

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    if args.runs.is_some() {
        return Err(wrong("--runs has no meaning but with --scenario occ"));
    }
    let comparison = compare(args)?;
    let output = Output::standard();
    if let Some(path) = &args.out {
        report::write(path, Told::Outage(&comparison))?;
        notice(format!("the report is in {}", path.display()));
    }
    if args.json {
        output.json(&serde_json::to_vec(&document::outage(&comparison))?)?;
        return Ok(());
    }
    output.line(figures::headline(&comparison))?;
    output.line("")?;
    figures::print(output, &comparison)?;
    chart::attempts(output, &comparison)?;
    Ok(())
}

fn compare(args: &Args) -> anyhow::Result<Comparison> {
    let contenders = contender::all(args)?;
    let names: Vec<String> = contenders.iter().map(|contender| printable(&contender.name)).collect();
    let mut bar = Bar::new();
    let progress = |progress: redrive_scenario::Progress| {
        let part = progress.ended as f64 / progress.requests.max(1) as f64;
        let done = (progress.contender as f64 + part) / progress.contenders.max(1) as f64;
        bar.show(done, names.get(progress.contender).map_or("", String::as_str));
    };
    simulate(world(args), contenders, args.seed, progress).map_err(wrong)
}

fn world(args: &Args) -> World {
    let defaults = World::default();
    let outages =
        if args.outages.is_empty() { defaults.outages } else { args.outages.iter().flatten().copied().collect() };
    World {
        clients: args.clients.unwrap_or(defaults.clients),
        over: args.over,
        capacity: args.capacity,
        queue: args.queue,
        latency: args.latency,
        outages,
        retry_after: args.retry_after,
    }
}
