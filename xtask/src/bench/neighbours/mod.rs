//! `cargo xtask bench neighbours`: the effect of bad dependencies on healthy ones.
//!
//! Healthy lanes are measured alone and beside bad dependencies, in turns, so that a ratio compares measurements that
//! are close in time. All targets are in this process and on loopback; the service runs in a process of its own.

mod arm;
mod burst;
mod comparison;
mod dependencies;
mod goals;
mod kind;
mod options;
mod report;

pub use options::Options;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Serialize;

use super::goals::Goal;
use super::machine::Machine;
use super::world::World;
use crate::open_files;
use burst::Burst;
use comparison::Comparison;
use kind::Kind;

/// The results of one run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Neighbours {
    /// The machine before the first round.
    machine: Machine,
    /// The store.
    store: String,
    /// Healthy lanes.
    lanes: usize,
    /// Tasks for all bad dependencies together.
    backlog: u64,
    /// Rounds of each case.
    rounds: u8,
    /// Every case that was measured.
    comparisons: Vec<Comparison>,
    /// Cases that cannot be measured with this build of the service, with their number of dependencies.
    skipped: Vec<(Kind, usize)>,
    /// Many tasks due at one moment.
    burst: Option<Burst>,
    /// The goals.
    goals: Vec<Goal>,
}

/// Measures and reports.
pub fn run(redrive: PathBuf, options: &Options) -> Result<()> {
    open_files::raise_limit()?;
    crate::process::guard(options.time_limit())?;
    let has_dns_server = has_dns_server(&redrive)?;
    let mut world = World::new(redrive, options.setup())?;
    let mut results = Neighbours {
        machine: Machine::measure(&world.dir)?,
        store: options.store.variant().name(),
        lanes: options.lanes,
        backlog: options.backlog,
        rounds: options.rounds,
        comparisons: Vec::new(),
        skipped: Vec::new(),
        burst: None,
        goals: Vec::new(),
    };
    for (kind, count) in options.cases() {
        if kind == Kind::Dns && !has_dns_server {
            results.skipped.push((kind, count));
            continue;
        }
        eprintln!("beside {count} {}", kind.name());
        results.comparisons.push(comparison::measure(&mut world, options, kind, count)?);
    }
    if options.has_burst() {
        eprintln!("tasks due at one moment");
        results.burst = Some(burst::measure(&world, options)?);
    }
    results.goals = goals::all(&results);
    if options.json {
        println!("{}", serde_json::to_string_pretty(&results)?);
    } else {
        report::print(&results);
    }
    Ok(())
}

/// Whether this build has the option `--dns-server`.
fn has_dns_server(redrive: &Path) -> Result<bool> {
    let help = Command::new(redrive).args(["serve", "--help"]).output().context("asking redrive for its options")?;
    Ok(String::from_utf8_lossy(&help.stdout).contains("--dns-server"))
}
