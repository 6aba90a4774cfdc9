//! Latency from due to on the wire, at a steady rate.
//!
//! The rate is half of the top rate of delayed tasks, not of tasks that are due at once: a delayed task is inserted,
//! found when it is due and claimed, which costs more than to be inserted as claimed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;

use super::bound::Bound;
use super::callers::{AcknowledgedTask, Callers, Pace};
use super::pipeline::Load;
use super::template::{Shape, Template};
use super::world::{Service, Variant, World};
use crate::stats::Latency;

/// Delayed tasks that are submitted and have not arrived while the top rate is measured. More than are within their
/// delay at any reachable rate, so that there is always due work.
const OUTSTANDING: usize = 60_000;
/// How long callers submit before the top rate is measured: longer than the longest delay.
const FILL: Duration = Duration::from_secs(5);

/// How late attempts are, compared with when they were due.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DueToWire {
    /// The store.
    pub store: String,
    /// Submissions per second while measuring.
    pub rate: f64,
    /// The most delayed tasks per second that were delivered; `None` if the rate was given.
    pub top_rate: Option<f64>,
    /// Delayed tasks that arrived before they were due: there must be none.
    pub early: usize,
    /// Tasks with a delay: from the due time that the API gave to the arrival at the target.
    pub delayed: Latency,
    /// Tasks due at once: from sending the submission to the arrival at the target, the durable write included.
    pub at_once: Latency,
    /// Submissions at that rate: from the request to its acknowledgement.
    pub submit: Latency,
}

/// Submits `rate` tasks per second, or half of the top rate of delayed tasks, to a fresh service, first with delays, then
/// without.
pub fn measure(world: &World, variant: Variant, load: &Load, rate: Option<f64>) -> Result<DueToWire> {
    let (rate, top_rate) = match rate {
        Some(rate) => (rate, None),
        None => {
            let top = top_rate(world, variant, load)?;
            (top / 2.0, Some(top))
        }
    };
    eprintln!("due → on the wire at {rate:.0} tasks/s");
    let service = world.start(variant)?;
    let (delayed, _) = measure_one(world, variant, &service, load, rate, true)?;
    let (at_once, submit) = measure_one(world, variant, &service, load, rate, false)?;
    Ok(DueToWire {
        store: variant.name(),
        rate,
        top_rate,
        early: count_early(&delayed),
        delayed: Latency::of(delayed),
        at_once: Latency::of(at_once),
        submit: Latency::of(submit),
    })
}

/// The deliveries per second of a fresh service while callers submit delayed tasks as fast as these are delivered.
fn top_rate(world: &World, variant: Variant, load: &Load) -> Result<f64> {
    let service = world.start(variant)?;
    world.deliveries.reset();
    let shape = Shape { delays: true, ..load.shape.clone() };
    let target = world.target.address();
    let mut callers =
        Callers::connect(&service.addresses(), load.callers, |caller| Template::task(target, &shape, caller))?;
    let pace = Pace::Bounded(Arc::new(Bound::new(OUTSTANDING, Arc::clone(&world.deliveries))));
    callers.run(&pace, load.warm_up.max(FILL))?;
    let (begin, before) = (Instant::now(), world.deliveries.count());
    callers.run(&pace, load.duration)?;
    Ok((world.deliveries.count() - before) as f64 / begin.elapsed().as_secs_f64())
}

fn count_early(waits: &[i64]) -> usize {
    waits.iter().filter(|wait| **wait < 0).count()
}

fn measure_one(
    world: &World,
    variant: Variant,
    service: &Service,
    load: &Load,
    rate: f64,
    delays: bool,
) -> Result<(Vec<i64>, Vec<i64>)> {
    let before = service.ask(async |api| api.counts().await)?.get("SUCCEEDED").copied().unwrap_or(0);
    world.deliveries.reset();
    let shape = Shape { delays, ..load.shape.clone() };
    let target = world.target.address();
    let template = |caller| Template::task(target, &shape, caller);
    let mut callers = Callers::connect(&service.addresses(), load.callers, template)?;
    callers.run(&Pace::PerSecond(rate), load.warm_up)?;
    let sent = callers.run(&Pace::PerSecond(rate), load.duration)?;
    // Delayed tasks are still due after the callers stop.
    std::thread::sleep(if delays { Duration::from_secs(2) } else { Duration::ZERO });
    service.wait_until_settled(variant, world, callers.acknowledged(), before)?;
    world.deliveries.verify(callers.acknowledged())?;

    let waits: Result<Vec<i64>> = sent.iter().map(|sent| wait(world, sent)).collect();
    Ok((waits?, sent.iter().map(|sent| i64::from(sent.took_us)).collect()))
}

/// The time from when a task could have been on the wire to its arrival, in microseconds; negative if it came too
/// early.
fn wait(world: &World, sent: &AcknowledgedTask) -> Result<i64> {
    let arrived = world.deliveries.arrived_us(sent.number).context("a verified task has no arrival")?;
    let due = sent.due_ms.map_or(sent.sent_us, |due| due * 1_000);
    Ok(arrived as i64 - due as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrival_is_early_only_before_its_due_time() {
        assert_eq!(count_early(&[-1, 0, 1, -3_000]), 2);
    }
}
