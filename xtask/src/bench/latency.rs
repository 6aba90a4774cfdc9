//! From due to on the wire, at a steady rate.

use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use super::callers::{Callers, Pace, Sent};
use super::pipeline::Load;
use super::stats::Latency;
use super::template::{Shape, Template};
use super::world::{Service, Variant, World};

/// How late attempts are, compared with when they were due.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DueToWire {
    /// The store.
    pub store: String,
    /// Submissions per second while measuring.
    pub rate: f64,
    /// Tasks with a delay: from the due time that the API gave to the arrival at the target.
    pub delayed: Latency,
    /// Tasks due at once: from sending the submission to the arrival at the target, the durable write included.
    pub at_once: Latency,
    /// Submissions at that rate: from the request to its acknowledgement.
    pub submit: Latency,
}

/// Submits `rate` tasks per second to a fresh service, first with delays, then without.
pub fn measure(world: &World, variant: Variant, load: &Load, rate: f64) -> Result<DueToWire> {
    let service = world.start(variant)?;
    let (delayed, _) = measure_one(world, variant, &service, load, rate, true)?;
    let (at_once, submit) = measure_one(world, variant, &service, load, rate, false)?;
    Ok(DueToWire { store: variant.name(), rate, delayed, at_once, submit })
}

fn measure_one(
    world: &World,
    variant: Variant,
    service: &Service,
    load: &Load,
    rate: f64,
    delays: bool,
) -> Result<(Latency, Latency)> {
    let before = service.ask(async |api| api.counts().await)?.get("SUCCEEDED").copied().unwrap_or(0);
    world.deliveries.reset();
    let shape = Shape { delays, ..load.shape.clone() };
    let target = world.target.address();
    let template = |caller| Template::task(target, &shape, caller);
    let mut callers = Callers::connect(&service.addresses(), load.callers, template)?;
    callers.run(Pace::PerSecond(rate), load.warm_up)?;
    let sent = callers.run(Pace::PerSecond(rate), load.duration)?;
    // Delayed tasks are still to come when the callers stop.
    std::thread::sleep(if delays { Duration::from_secs(2) } else { Duration::ZERO });
    service.wait_until_settled(variant, world, callers.acknowledged(), before)?;
    world.deliveries.verify(callers.acknowledged())?;

    let waits: Result<Vec<i64>> = sent.iter().map(|sent| wait(world, sent)).collect();
    Ok((Latency::of(waits?), Latency::of(sent.iter().map(|sent| i64::from(sent.took_us)).collect())))
}

/// From the moment a task could have been on the wire to its arrival, in microseconds; negative if it came too early.
fn wait(world: &World, sent: &Sent) -> Result<i64> {
    let arrived = world.deliveries.arrived_us(sent.number).context("a verified task has no arrival")?;
    let due = sent.due_ms.map_or(sent.sent_us, |due| due * 1_000);
    Ok(arrived as i64 - due as i64)
}
