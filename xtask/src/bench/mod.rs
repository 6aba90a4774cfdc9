//! `cargo xtask bench`: how fast and how large Redrive is, as ratios measured in one run on one machine.
//!
//! Everything runs on loopback. The callers and the target are in this process, each on a thread of its own and as
//! cheap as possible. What is measured runs in a process of its own, so that its CPU time and memory can be measured.
//! The variants take turns, because the machine's speed varies.

mod batches;
mod bound;
mod callers;
mod ceiling;
mod dead_lane;
mod deliveries;
mod feature_cost;
mod goals;
mod idempotency;
mod idle;
mod latency;
mod machine;
mod neighbours;
mod options;
mod pipeline;
mod preload;
mod report;
mod results;
mod scrape;
mod shared;
mod template;
mod world;

pub use ceiling::{Options as CeilingOptions, run as run_ceiling};
pub use options::Options;

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::binaries::{self, Profile};
use options::{Case, PreloadKind};
use results::{Measured, Ratios, Results};
use world::World;

/// Measures and reports. In a dev build, builds everything in release and runs that instead.
pub fn run(options: &Options) -> Result<()> {
    if cfg!(debug_assertions) {
        return run_in_release();
    }
    let redrive = binaries::target_dir()?.join("release/redrive");
    match &options.case {
        Some(Case::Neighbours(options)) => return neighbours::run(redrive, options),
        Some(Case::Idempotency(options)) => return idempotency::run(redrive, options),
        None => {}
    }
    crate::process::guard(options.time_limit())?;
    let mut world = World::new(redrive, options.setup())?;
    let results = measure(&mut world, options)?.judged();
    if options.json {
        println!("{}", serde_json::to_string_pretty(&results)?);
    } else {
        report::print(&results);
    }
    Ok(())
}

/// Replaces this process by its release build: a dev build of the callers would cost more than the service.
fn run_in_release() -> Result<()> {
    let release = ["-p", "redrive", "-p", "xtask", "--features", "xtask/preload"];
    let binaries = binaries::build(Profile::Release, &release)?;
    let error = Command::new(binaries.join("xtask")).args(std::env::args_os().skip(1)).exec();
    Err(error).context("starting the release build of xtask")
}

fn measure(world: &mut World, options: &Options) -> Result<Results> {
    let load = options.load();
    let has_postgres = options.store == options::Store::Postgres;
    let mut results = Results::new(machine::Machine::measure(&world.dir)?);
    results.has_redis = world.redis.is_some();
    if let Some(feature) = options.compared_feature() {
        world.other_binary.clone_from(&options.compare_binary);
        results.feature_cost = Some(feature_cost::measure(feature, world, options.variant(), &load, options.rounds)?);
    } else if !options.skip_pipeline {
        measure_pipelines(world, options, &mut results)?;
    }
    for (kind, tasks) in options.preloads() {
        eprintln!("preload: {tasks} tasks, {kind:?}");
        match kind {
            PreloadKind::Ended if has_postgres => {
                results.ended = Some(shared::measure_ended(world, &load, options.rounds, tasks)?);
            }
            PreloadKind::Ended => results.ended = Some(preload::measure_ended(world, &load, options.rounds, tasks)?),
            PreloadKind::Pending => results.pending = Some(preload::measure_pending(world, &load, tasks)?),
        }
    }
    if let Some(tasks) = options.dead_lane() {
        eprintln!("dead lane: {tasks} due tasks");
        results.dead_lane = Some(dead_lane::measure(world, options.variant(), &load, options.rounds, tasks)?);
    }
    if let Some(dependencies) = options.scrape {
        results.scrapes = Some(scrape::measure(world, options.variant(), dependencies)?);
    }
    if options.idle || options.all {
        eprintln!("idle: {} s", options.idle_seconds);
        let duration = Duration::from_secs_f64(options.idle_seconds);
        results.idle = Some(idle::measure(world, options.variant(), options.idle_lanes, duration)?);
    }
    Ok(results)
}

fn measure_pipelines(world: &World, options: &Options, results: &mut Results) -> Result<()> {
    if options.only_due_to_wire {
        return measure_due_to_wire(world, options, results);
    }
    let load = options.load();
    let mut rounds: Vec<_> = options.variants().into_iter().map(|variant| (variant, Vec::new())).collect();
    for round in 1..=options.rounds {
        for (variant, measured) in &mut rounds {
            let of = pipeline::measure_fresh(world, *variant, &load)?;
            eprintln!(
                "round {round}/{}: {:<11} {:>7.0} tasks/s, {:.1} CPU µs/task, {:.1} the database's",
                options.rounds,
                variant.name(),
                of.tasks_per_second,
                of.cpu_us_per_task,
                of.database_cpu_us_per_task
            );
            measured.push(of);
        }
    }
    results.variants = rounds.into_iter().map(|(variant, rounds)| Measured::of(variant, rounds)).collect();
    results.ratios = Ratios::of(&results.variants);
    measure_due_to_wire(world, options, results)
}

fn measure_due_to_wire(world: &World, options: &Options, results: &mut Results) -> Result<()> {
    results.due_to_wire = Some(latency::measure(world, options.variant(), &options.load(), options.rate)?);
    Ok(())
}
