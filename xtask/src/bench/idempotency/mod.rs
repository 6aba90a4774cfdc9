//! `cargo xtask bench idempotency`: pairs of reserve and complete per second, each pair durable.
//!
//! Three programs take turns in every round: the service over an empty store, the service over a store with live records, and
//! (with PostgreSQL) a plain program that does `INSERT … ON CONFLICT` and `UPDATE` on the same server without any service.

mod options;
mod pairs;
mod plain;
mod preload;

pub use options::Options;

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;

use super::machine::Machine;
use super::options::Store;
use super::world::{Service, Variant, World};
use crate::stats::Spread;
use crate::table::Table;

/// The goals of docs/benchmarks.md.
const FULL_GOAL: f64 = 0.8;
const PLAIN_GOAL: f64 = 0.5;

/// The results of one run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Results {
    machine: Machine,
    store: String,
    /// Live records in the full store.
    preloaded: u64,
    /// Pairs per second, by round.
    empty: Vec<f64>,
    full: Vec<f64>,
    plain: Vec<f64>,
    /// Resident memory of the service over the full store, in bytes.
    full_resident_bytes: u64,
    full_to_empty: Option<Spread>,
    empty_to_plain: Option<Spread>,
}

/// Measures and reports.
pub fn run(redrive: PathBuf, options: &Options) -> Result<()> {
    crate::open_files::raise_limit()?;
    crate::process::guard(options.time_limit())?;
    let world = World::new(redrive, options.setup())?;
    let variant = options.store.variant();
    let empty = world.start(variant)?;
    let full = (options.preload > 0).then(|| start_full(&world, variant, options.preload)).transpose()?;
    let mut results = Results {
        machine: Machine::measure(&world.dir)?,
        store: variant.name(),
        preloaded: options.preload,
        empty: Vec::new(),
        full: Vec::new(),
        plain: Vec::new(),
        full_resident_bytes: 0,
        full_to_empty: None,
        empty_to_plain: None,
    };
    for round in 1..=options.rounds {
        results.empty.push(pairs::per_second(&empty, &options.load())?);
        if let Some(full) = &full {
            results.full.push(pairs::per_second(full, &options.load())?);
        }
        if options.store == Store::Postgres {
            results.plain.push(plain::per_second(&world.fresh_database()?, &options.load())?);
        }
        let newest = |rates: &[f64]| rates.last().map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
        eprintln!(
            "round {round}/{}: empty {}/s, full {}/s, plain {}/s",
            options.rounds,
            newest(&results.empty),
            newest(&results.full),
            newest(&results.plain)
        );
    }
    if let Some(full) = &full {
        results.full_resident_bytes = full.usage()?.rss;
        results.full_to_empty = Some(Spread::ratio(&results.full, &results.empty));
    }
    if !results.plain.is_empty() {
        results.empty_to_plain = Some(Spread::ratio(&results.empty, &results.plain));
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&results)?);
        return Ok(());
    }
    print(&results);
    Ok(())
}

fn start_full(world: &World, variant: Variant, records: u64) -> Result<Service> {
    let service = match variant {
        // Not the directory of the empty one, which has the variant's name.
        Variant::Sqlite => {
            let data = crate::binaries::scratch_dir("bench/run/sqlite-full")?;
            world.start_on(variant, &data, Some(data.clone()))?
        }
        _ => world.start(variant)?,
    };
    preload::fill(&service, records).context("filling the store")?;
    Ok(service)
}

fn print(results: &Results) {
    let mut table = Table::new(&["", "pairs/s", "min–max"]);
    for (name, rates) in [("empty", &results.empty), ("full", &results.full), ("plain program", &results.plain)] {
        if !rates.is_empty() {
            let spread = Spread::of(rates.iter().copied());
            let range = format!("{:.0}–{:.0}", spread.min, spread.max);
            table.row(vec![name.to_owned(), format!("{:.0}", spread.median), range]);
        }
    }
    println!("reserve + complete, durable, {} store", results.store);
    table.print();
    let judged = |goal: f64, ratio: &Spread| if ratio.median >= goal { "reached" } else { "not reached" };
    if let Some(ratio) = &results.full_to_empty {
        println!(
            "with {} live records / empty: {:.2} ({:.2}–{:.2}), goal {FULL_GOAL}: {}; {} MiB resident",
            results.preloaded,
            ratio.median,
            ratio.min,
            ratio.max,
            judged(FULL_GOAL, ratio),
            results.full_resident_bytes / (1024 * 1024)
        );
    }
    if let Some(ratio) = &results.empty_to_plain {
        println!(
            "through the HTTP API / plain program: {:.2} ({:.2}–{:.2}), goal {PLAIN_GOAL}: {}",
            ratio.median,
            ratio.min,
            ratio.max,
            judged(PLAIN_GOAL, ratio)
        );
    }
}
