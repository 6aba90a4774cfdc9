//! One dead dependency with a large backlog of due work: its effect on the other lanes.
//!
//! The dead lane's slots are all taken by sends that hang, and everything behind them is due. Two services run side by
//! side, one with the backlog and one without, and take turns under the same load for other lanes.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::json;

use super::batches;
use super::deliveries::DEAD_PATH;
use super::pipeline::{self, Load};
use super::template::Shape;
use super::world::{Service, Variant, World};
use crate::stats::Spread;

/// How long a hanging send may hang: longer than the whole measurement, so that the lane stays full.
const HANG: Duration = Duration::from_secs(600);
/// How long the lane may take to fill its slots.
const HOLD_LIMIT: Duration = Duration::from_secs(30);
/// The lanes that the load is spread over.
const OTHER_LANES: usize = 8;

/// The other lanes' deliveries with and without a dead one beside them.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLane {
    /// Due tasks in the dead lane.
    pub tasks: u64,
    /// How many of its sends hang.
    pub hanging: u64,
    /// How long it took to fill the lane.
    pub fill_seconds: f64,
    /// Deliveries per second without it.
    pub without: Spread,
    /// Deliveries per second with it.
    pub with: Spread,
    /// The rate with it divided by the rate without it, per round.
    pub ratio: Spread,
}

/// Measures `rounds` rounds, with and without `tasks` due tasks in a dead lane.
pub fn measure(world: &World, variant: Variant, load: &Load, rounds: usize, tasks: u64) -> Result<DeadLane> {
    let load = Load { shape: Shape { lanes: OTHER_LANES, ..load.shape.clone() }, ..load.clone() };
    let start = |name: &str| match variant {
        Variant::Postgres(_) => world.start(variant),
        _ => {
            let dir = world.dir.join(name);
            world.start_on(variant, &dir, Some(dir.clone()))
        }
    };
    let (free, burdened) = (start("free-lanes")?, start("dead-lane")?);
    let begin = Instant::now();
    let hanging = fill(world, &burdened, tasks, load.shape.body)?;
    let fill_seconds = begin.elapsed().as_secs_f64();

    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        without.push(pipeline::measure(world, variant, &free, &load)?.tasks_per_second);
        with.push(pipeline::measure(world, variant, &burdened, &load)?.tasks_per_second);
    }
    let counts = burdened.ask(async |api| api.counts().await)?;
    // Every other task has been settled, so all tasks that have not ended are in the dead lane, claimed or not.
    let unfinished: u64 = ["PENDING", "IN_FLIGHT"].iter().filter_map(|status| counts.get(*status)).sum();
    if unfinished < tasks {
        bail!("the lane did not stay dead: of {tasks} tasks {unfinished} have not ended");
    }
    Ok(DeadLane {
        tasks,
        hanging,
        fill_seconds,
        ratio: Spread::ratio(&with, &without),
        without: Spread::of(without),
        with: Spread::of(with),
    })
}

/// Submits `tasks` tasks to a path that never answers. Returns how many sends hang once the lane is full.
fn fill(world: &World, service: &Service, tasks: u64, body: usize) -> Result<u64> {
    world.deliveries.reset();
    let task = json!({
        "targetUrl": format!("http://{}{DEAD_PATH}", world.target.address()),
        "method": "POST",
        "body": "x".repeat(body),
        "dependency": "dead",
        "policy": { "attemptTimeoutMs": HANG.as_millis() as u64 },
    })
    .to_string();
    batches::submit(service, tasks, |_| task.clone())?;
    wait_until_held(world)
}

/// Waits until no further send arrives at the dead path: the lane has no room left.
fn wait_until_held(world: &World) -> Result<u64> {
    let begin = Instant::now();
    let mut held = world.deliveries.held();
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let now = world.deliveries.held();
        if now > 0 && now == held {
            return Ok(held);
        }
        if begin.elapsed() > HOLD_LIMIT {
            bail!("the dead lane did not fill up: {now} sends hang after {HOLD_LIMIT:?}");
        }
        held = now;
    }
}
