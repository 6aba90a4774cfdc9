//! Life cycles per second: submit (claimed at once) and settle as a success, each its own call, by many callers.
//!
//! Measures an empty store and a store that holds `--preload` tasks in turns, within one run, because on a shared
//! machine only ratios are meaningful.
//!
//! ```text
//! cargo run --release -p redrive-store-sqlite --example life_cycles -- --tasks 200000 --preload 5000000
//! ```

#![allow(clippy::print_stdout, reason = "a program for people")]
#![allow(clippy::unwrap_used, reason = "a measurement that fails may as well end")]

mod machine;
mod work;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use redrive_store::{CleanFrom, Store};
use redrive_store_sqlite::{Options, SqliteStore};

use machine::Cpu;
use work::Work;

/// What to measure.
#[derive(Parser)]
struct Arguments {
    /// Life cycles per store, over all rounds.
    #[arg(long, default_value_t = 200_000)]
    tasks: u64,
    /// Tasks in the store that is not empty; none, and only the empty store is measured.
    #[arg(long, default_value_t = 0)]
    preload: u64,
    /// What these tasks are.
    #[arg(long, value_enum, default_value_t = Preload::Ended)]
    preload_as: Preload,
    /// Callers at once.
    #[arg(long, default_value_t = 256)]
    callers: u64,
    /// Bytes of a body.
    #[arg(long, default_value_t = 512)]
    body: usize,
    /// How a task begins.
    #[arg(long, value_enum, default_value_t = Begin::Claimed)]
    begin: Begin,
    /// Turns that the two stores take.
    #[arg(long, default_value_t = 20)]
    rounds: u64,
    /// Where the stores are made. Use a real disk, or the syncs mean nothing. A preloaded store is kept for the next
    /// run.
    #[arg(long, default_value = "target/life_cycles")]
    directory: PathBuf,
    /// How many tasks of the last store to clean away at the end.
    #[arg(long, default_value_t = 0)]
    clean: usize,
    /// Keys kept in memory.
    #[arg(long)]
    recent_keys: Option<usize>,
    /// The limit of the write-ahead log in MiB.
    #[arg(long)]
    wal_mib: Option<u64>,
    /// The writer's page cache in MiB.
    #[arg(long)]
    cache_mib: Option<usize>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Preload {
    Ended,
    Pending,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Begin {
    /// Submitted claimed: two commits for each task.
    Claimed,
    /// Submitted pending, claimed by a third call, a hundred at a time.
    Pending,
}

fn main() {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let empty = arguments.directory.join("empty");
        if empty.exists() {
            std::fs::remove_dir_all(&empty).unwrap();
        }
        let mut stores = vec![("empty", open(&arguments, &empty).await)];
        if arguments.preload > 0 {
            stores.push(("preloaded", preloaded(&arguments).await));
        }
        let mut rates = vec![Vec::new(); stores.len()];
        for round in 1..=arguments.rounds.max(1) {
            for ((name, work), rates) in stores.iter().zip(&mut rates) {
                rates.push(measure(&arguments, name, round, work).await);
            }
        }
        if let [empty, preloaded] = &rates[..] {
            // Rounds that follow each other are comparable; rounds that are minutes apart are not.
            let mut ratios: Vec<f64> =
                preloaded.iter().zip(empty).map(|(preloaded, empty)| preloaded / empty).collect();
            println!("preloaded / empty = {:.3} (median of {} pairs)", median(&mut ratios), ratios.len());
        }
        if let (Some((_, work)), true) = (stores.last(), arguments.clean > 0) {
            clean(work, arguments.clean).await;
        }
        println!("resident {} MiB", machine::resident_bytes() >> 20);
        for (_, work) in stores {
            work.store.close().await;
        }
    });
}

async fn open(arguments: &Arguments, directory: &Path) -> Arc<Work> {
    let mut options = Options::new(directory);
    options.recent_keys = arguments.recent_keys.unwrap_or(options.recent_keys);
    options.wal_limit_bytes = arguments.wal_mib.map_or(options.wal_limit_bytes, |mib| mib << 20);
    options.cache_bytes = arguments.cache_mib.map_or(options.cache_bytes, |mib| mib << 20);
    let begun = Instant::now();
    let store = SqliteStore::open(options).unwrap();
    let opened = begun.elapsed();
    let work = Work::new(store, arguments.body).await;
    // The work that a start does before its first send.
    let lanes = work.store.upkeep().pending_lanes(None, 100).await.unwrap();
    let request = work::first_attempts(lanes.into_iter().map(|due| due.lane), 1);
    let claims = work.store.tasks().claim(request).await.unwrap();
    println!(
        "{}: open {opened:.1?}, first claim ({}) after {:.1?}, resident {} MiB",
        directory.display(),
        claims.claimed.len(),
        begun.elapsed(),
        machine::resident_bytes() >> 20
    );
    work
}

async fn preloaded(arguments: &Arguments) -> Arc<Work> {
    let kind = if matches!(arguments.preload_as, Preload::Ended) { "ended" } else { "pending" };
    let directory = arguments.directory.join(format!("{}-{kind}", arguments.preload));
    if !directory.join("redrive.db").exists() {
        let begun = Instant::now();
        let work = open(arguments, &directory).await;
        work.preload(arguments.preload, matches!(arguments.preload_as, Preload::Ended)).await;
        work.store.close().await;
        println!("preloaded {} {kind} tasks in {:.1?}", arguments.preload, begun.elapsed());
    }
    open(arguments, &directory).await
}

async fn measure(arguments: &Arguments, name: &str, round: u64, work: &Arc<Work>) -> f64 {
    let tasks = arguments.tasks / arguments.rounds.max(1);
    let before = Cpu::now();
    let begun = Instant::now();
    match arguments.begin {
        Begin::Claimed => work.live_claimed(tasks, arguments.callers).await,
        Begin::Pending => work.live_pending(tasks, arguments.callers).await,
    }
    let seconds = begun.elapsed().as_secs_f64();
    let cpu = Cpu::now().since(&before);
    let rate = tasks as f64 / seconds;
    let each = |nanos: u64| nanos as f64 / 1_000.0 / tasks as f64;
    println!(
        "{name:>9} {round}: {rate:>7.0} lives/s; CPU per life: writer {:.2} µs, checkpointer {:.2} µs, all {:.2} µs",
        each(cpu.writer),
        each(cpu.checkpointer),
        each(cpu.all),
    );
    rate
}

async fn clean(work: &Work, tasks: usize) {
    const STEP: usize = 500;
    let (begun, before) = (Instant::now(), Cpu::now());
    let (mut from, mut removed) = (CleanFrom::Start, 0);
    while removed < tasks {
        let cleaned = work.store.upkeep().clean(work::now(), from, STEP).await.unwrap();
        removed += cleaned.removed;
        let Some(next) = cleaned.next else { break };
        from = next;
    }
    let micros = Cpu::now().since(&before).writer as f64 / 1_000.0 / removed.max(1) as f64;
    println!("cleaned {removed} tasks in {:.1?}; CPU per task: writer {micros:.2} µs", begun.elapsed());
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
