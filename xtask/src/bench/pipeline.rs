//! The pipeline: submit → deliver → settle, as fast as the callers can.
//!
//! A task counts once it was delivered *and* settled. So the measured window is closed: it begins when nothing is in
//! flight, and ends when every task that was submitted in it has been delivered and settled, the drain included.
//! Callers that are faster than delivery gain nothing.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use super::callers::{Callers, Pace};
use super::template::{Shape, Template};
use super::world::{Service, Variant, World};
use crate::procfs::machine_cpu;
use crate::stats::Latency;

/// The load of the pipeline.
#[derive(Debug, Clone)]
pub struct Load {
    /// Callers at once.
    pub callers: usize,
    /// How long they submit in a round.
    pub duration: Duration,
    /// How long they submit before that, without measuring.
    pub warm_up: Duration,
    /// The tasks that they submit.
    pub shape: Shape,
}

/// One measured window.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Round {
    /// Tasks delivered and settled.
    pub tasks: u64,
    /// Tasks per second of the whole window, drain included.
    pub tasks_per_second: f64,
    /// Tasks acknowledged per second while the callers submitted.
    pub accepted_per_second: f64,
    /// Tasks that were acknowledged and not yet delivered when the callers stopped.
    pub backlog: u64,
    /// CPU time of the service per task.
    pub cpu_us_per_task: f64,
    /// CPU time of the database's server per task; zero where there is none.
    pub database_cpu_us_per_task: f64,
    /// CPU time of the whole machine per task: callers, service, target and kernel.
    pub machine_cpu_us_per_task: f64,
    /// The time from the request to its acknowledgement.
    pub submit: Latency,
    /// The service's peak of resident memory.
    pub peak_rss_bytes: u64,
}

/// Starts a fresh `variant`, loads it and measures one window.
pub fn measure_fresh(world: &World, variant: Variant, load: &Load) -> Result<Round> {
    let service = world.start(variant)?;
    measure(world, variant, &service, load)
}

/// Loads a running service and measures one window.
pub fn measure(world: &World, variant: Variant, service: &Service, load: &Load) -> Result<Round> {
    let before = match variant {
        Variant::Ceiling => 0,
        _ => service.ask(async |api| api.counts().await)?.get("SUCCEEDED").copied().unwrap_or(0),
    };
    world.deliveries.reset();
    let target = world.target.address();
    let mut callers = Callers::connect(&service.addresses(), load.callers, |caller| match variant {
        Variant::Ceiling => Template::plain(&load.shape),
        _ => Template::task(target, &load.shape, caller),
    })?;
    callers.run(&Pace::ClosedLoop, load.warm_up)?;
    service.wait_until_settled(variant, world, callers.acknowledged(), before)?;
    let warmed_up = callers.acknowledged();

    let (cpu, machine, begin) = (service.usage()?.cpu, machine_cpu()?, Instant::now());
    let server = world.database_cpu(variant);
    let sent = callers.run(&Pace::ClosedLoop, load.duration)?;
    let submitting = begin.elapsed();
    let backlog = callers.acknowledged() - world.deliveries.count();
    service.wait_until_settled(variant, world, callers.acknowledged(), before)?;
    let window = begin.elapsed();
    let usage = service.usage()?;
    let server = world.database_cpu(variant).saturating_sub(server);
    let machine = machine_cpu()?.saturating_sub(machine);
    world.deliveries.verify(callers.acknowledged())?;

    let tasks = callers.acknowledged() - warmed_up;
    let per_task = |time: Duration| time.as_secs_f64() * 1e6 / tasks as f64;
    Ok(Round {
        tasks,
        tasks_per_second: tasks as f64 / window.as_secs_f64(),
        accepted_per_second: tasks as f64 / submitting.as_secs_f64(),
        backlog,
        cpu_us_per_task: per_task(usage.cpu.saturating_sub(cpu)),
        database_cpu_us_per_task: per_task(server),
        machine_cpu_us_per_task: per_task(machine),
        submit: Latency::of(sent.iter().map(|sent| i64::from(sent.took_us)).collect()),
        peak_rss_bytes: usage.peak_rss,
    })
}
