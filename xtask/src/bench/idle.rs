//! A service with nothing to do should do nothing.

use std::time::Duration;

use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::json;

use super::shared;
use super::world::{Variant, World};

/// Lets the start settle down first: checkpoints, caches, connections.
const SETTLE: Duration = Duration::from_secs(3);
/// Far enough away not to come due while we look.
const FAR_AWAY: Duration = Duration::from_secs(3_600);

/// What an idle service uses.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Idle {
    /// The part of one core.
    pub core: f64,
    /// How often per second one of its threads wakes up.
    pub wakeups_per_second: f64,
    /// Memory resident.
    pub rss_bytes: u64,
    /// Transactions per second on the database, if there is one.
    pub transactions_per_second: Option<f64>,
}

/// Watches an idle service (with a task that waits, so that there is a timer to keep) for `duration`.
pub fn measure(world: &World, variant: Variant, duration: Duration) -> Result<Idle> {
    let service = world.start(variant)?;
    let task = json!({
        "targetUrl": format!("http://{}/", world.target.address()),
        "delayMs": FAR_AWAY.as_millis() as u64,
    });
    let answer = service.ask(async |api| api.call("POST", "/retry-tasks", &task.to_string()).await)?;
    if answer.status != 201 {
        bail!("a waiting task was refused: {}", answer.describe());
    }
    std::thread::sleep(SETTLE);
    let before = service.usage()?;
    let transactions = service.database.as_ref().map(shared::transactions).transpose()?;
    std::thread::sleep(duration);
    let after = service.usage()?;
    let transactions = match (&service.database, transactions) {
        (Some(database), Some(before)) => Some(shared::transactions(database)?.saturating_sub(before)),
        _ => None,
    };
    let seconds = duration.as_secs_f64();
    Ok(Idle {
        core: after.cpu.saturating_sub(before.cpu).as_secs_f64() / seconds,
        wakeups_per_second: after.sleeps.saturating_sub(before.sleeps) as f64 / seconds,
        rss_bytes: after.rss,
        transactions_per_second: transactions.map(|count| count as f64 / seconds),
    })
}
