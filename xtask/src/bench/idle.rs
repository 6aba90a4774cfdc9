//! Idle: what a service with nothing to do uses.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use serde_json::json;

use super::batches;
use super::shared;
use super::world::{Variant, World};

/// The wait after the start: for checkpoints, caches, connections.
const SETTLE: Duration = Duration::from_secs(3);
/// A database reports the statistics of its sessions only some seconds later.
const SETTLE_DATABASE: Duration = Duration::from_secs(20);
/// Far enough away not to become due during the measurement.
const FAR_AWAY: Duration = Duration::from_secs(3_600);

/// What an idle service uses.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Idle {
    /// The lanes in which a task waits.
    pub lanes: u64,
    /// The share of one core, of all nodes.
    pub core: f64,
    /// The share of one core that the database uses, if there is one.
    pub database_core: Option<f64>,
    /// How often per second one of its threads wakes up.
    pub wakeups_per_second: f64,
    /// Resident memory.
    pub rss_bytes: u64,
    /// Transactions per second on the database, if there is one.
    pub transactions_per_second: Option<f64>,
}

/// Measures an idle service for `duration`, with a waiting task in each of these lanes, so that there are timers.
pub fn measure(world: &World, variant: Variant, lanes: u64, duration: Duration) -> Result<Idle> {
    let service = world.start(variant)?;
    batches::submit(&service, lanes, |number| {
        json!({
            "targetUrl": format!("http://{}/", world.target.address()),
            "dependency": format!("lane-{number}"),
            "delayMs": FAR_AWAY.as_millis() as u64,
        })
        .to_string()
    })?;
    std::thread::sleep(if service.database.is_some() { SETTLE_DATABASE } else { SETTLE });
    let before = service.usage()?;
    let database_before = world.database_cpu(variant);
    let transactions = service.database.as_ref().map(shared::transactions).transpose()?;
    std::thread::sleep(duration);
    let after = service.usage()?;
    let database = world.database_cpu(variant).saturating_sub(database_before);
    let transactions = match (&service.database, transactions) {
        (Some(database), Some(before)) => Some(shared::transactions(database)?.saturating_sub(before)),
        _ => None,
    };
    let seconds = duration.as_secs_f64();
    Ok(Idle {
        lanes,
        database_core: service.database.is_some().then(|| database.as_secs_f64() / seconds),
        core: after.cpu.saturating_sub(before.cpu).as_secs_f64() / seconds,
        wakeups_per_second: after.sleeps.saturating_sub(before.sleeps) as f64 / seconds,
        rss_bytes: after.rss,
        transactions_per_second: transactions.map(|count| count as f64 / seconds),
    })
}
