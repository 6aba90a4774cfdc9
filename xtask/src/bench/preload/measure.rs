//! The measurements on filled stores.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use redrive_store::Store;

use super::super::options::PreloadKind;
use super::super::pipeline::{self, Load};
use super::super::world::{Variant, World};
use super::cache;
use super::fill::{self, Content};
use super::life_cycles::Loaded;
use super::tasks::{Maker, now};
use super::{Ended, Pending};
use crate::binaries::scratch_dir;
use crate::clock::now_us;
use crate::stats::Spread;

/// The lanes that preloaded tasks are spread over.
const LANES: usize = 1_000;
/// The longest time until the first send.
const SEND_LIMIT: Duration = Duration::from_secs(120);
/// The wait for memory to settle after the start.
const SETTLE: Duration = Duration::from_secs(3);

/// Measures life cycles on a store with `tasks` ended tasks, and on an empty one, in turns.
pub fn measure_ended(world: &World, load: &Load, rounds: usize, tasks: u64) -> Result<Ended> {
    let content = Content { kind: PreloadKind::Ended, tasks, body: load.shape.body, lanes: LANES };
    let filled = cache::filled(content)?;
    let disk_bytes = cache::size(&filled)?;
    // A measurement must not change the store that the next run begins with.
    let full_dir = cache::copy(&filled, "bench/run/full")?;
    let empty_dir = scratch_dir("bench/run/empty")?;

    let (mut store_empty, mut store_full) = (Vec::new(), Vec::new());
    let empty = Loaded::open(&empty_dir, load.shape.body)?;
    let full = Loaded::open(&full_dir, load.shape.body)?;
    for store in [&empty, &full] {
        store.rate(load.callers, load.warm_up)?;
    }
    for round in 1..=rounds {
        store_empty.push(empty.rate(load.callers, load.duration)?);
        store_full.push(full.rate(load.callers, load.duration)?);
        eprintln!(
            "store round {round}/{rounds}: empty {:.0}/s, full {:.0}/s",
            store_empty[round - 1],
            store_full[round - 1]
        );
    }
    empty.close();
    full.close();

    // The store that began empty has a few tasks by now: the pipeline begins with another.
    let empty_dir = scratch_dir("bench/run/empty")?;
    let empty = world.start_on(Variant::Sqlite, &empty_dir, Some(empty_dir.clone()))?;
    let full = world.start_on(Variant::Sqlite, &full_dir, Some(full_dir.clone()))?;
    let (mut pipeline_empty, mut pipeline_full) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        pipeline_empty.push(pipeline::measure(world, Variant::Sqlite, &empty, load)?.tasks_per_second);
        pipeline_full.push(pipeline::measure(world, Variant::Sqlite, &full, load)?.tasks_per_second);
        eprintln!(
            "pipeline round {round}/{rounds}: empty {:.0}/s, full {:.0}/s",
            pipeline_empty[round - 1],
            pipeline_full[round - 1]
        );
    }
    Ok(Ended {
        tasks,
        disk_bytes,
        store_ratio: Spread::ratio(&store_full, &store_empty),
        store_empty: Spread::of(store_empty),
        store_full: Spread::of(store_full),
        pipeline_ratio: Spread::ratio(&pipeline_full, &pipeline_empty),
        pipeline_empty: Spread::of(pipeline_empty),
        pipeline_full: Spread::of(pipeline_full),
    })
}

/// Starts a service on a store with `tasks` pending tasks and one that is due, and waits for that one to be sent.
pub fn measure_pending(world: &World, load: &Load, tasks: u64) -> Result<Pending> {
    let content = Content { kind: PreloadKind::Pending, tasks, body: load.shape.body, lanes: LANES };
    let dir = cache::filled(content)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let store = fill::open(&dir).await?;
        let due = Maker::new(world.target.address(), 1, load.shape.body, now())?.pending(now(), now());
        fill::keep(&store, vec![due]).await?;
        store.close().await;
        anyhow::Ok(())
    })?;

    world.deliveries.reset();
    let (begin_us, begin) = (now_us(), Instant::now());
    let service = world.start_on(Variant::Sqlite, &dir, None)?;
    let listen_seconds = begin.elapsed().as_secs_f64();
    let arrived_us = loop {
        if let Some(at) = world.deliveries.arrived_us(0) {
            break at;
        }
        if begin.elapsed() > SEND_LIMIT {
            bail!("nothing was sent within {SEND_LIMIT:?}; the service said:\n{}", service.log_tail());
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    std::thread::sleep(SETTLE);
    let usage = service.usage()?;
    Ok(Pending {
        tasks,
        lanes: LANES,
        disk_bytes: cache::size(&dir)?,
        listen_seconds,
        first_send_seconds: arrived_us.saturating_sub(begin_us) as f64 / 1e6,
        rss_bytes: usage.rss,
        peak_rss_bytes: usage.peak_rss,
    })
}
