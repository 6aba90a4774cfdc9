//! The end of a crash run: waits until all work has ended, then reads everything from the API.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::task::JoinSet;

use super::history::{History, Kept, Ledger};
use crate::api::Api;

/// How long the work that is left may take once the faults have stopped (invariant 13).
pub const DRAIN_LIMIT: Duration = Duration::from_secs(60);
/// How long the notifications that are left may take.
const TELL_LIMIT: Duration = Duration::from_secs(60);
/// The number of connections to read with.
const ASKING: usize = 8;

/// Waits until no task is pending or in flight. Returns how long that took.
pub async fn drain(service: SocketAddr) -> Result<Duration> {
    let begin = Instant::now();
    let mut api = Api::connect(service).await?;
    loop {
        let counts = api.counts().await?;
        let left: u64 = ["PENDING", "IN_FLIGHT"].iter().filter_map(|status| counts.get(*status)).sum();
        if left == 0 {
            return Ok(begin.elapsed());
        }
        if begin.elapsed() > DRAIN_LIMIT {
            bail!("{DRAIN_LIMIT:?} after the faults stopped there was still work left: {counts:?} (invariant 13)");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Adds the final state from the API to the history.
pub async fn collect(service: SocketAddr, history: &mut History) -> Result<()> {
    let mut api = Api::connect(service).await?;
    history.counts = api.counts().await?;
    for status in ["FAILED", "EXHAUSTED"] {
        let ids = api.ids_with_status(status).await?;
        history.listed.insert(status.to_owned(), ids.into_iter().collect());
    }
    let ids: Vec<String> = history.acknowledged_tasks().into_iter().map(str::to_owned).collect();
    let mut asking = JoinSet::new();
    for part in ids.chunks(ids.len().div_ceil(ASKING).max(1)) {
        let part = part.to_vec();
        asking.spawn(async move { ask_for(service, part).await });
    }
    while let Some(part) = asking.join_next().await {
        history.kept.extend(part.context("asking for tasks")??);
    }
    Ok(())
}

/// Waits until the sink was told of all dead letters, as long as that may take. What it was told becomes a part of the history.
pub async fn told(ledger: &Ledger, history: &mut History) {
    let begin = Instant::now();
    loop {
        history.told.append(&mut ledger.write().told);
        let is_told = history.dead_letters().all(|(_, dependency)| history.told.contains(dependency));
        if is_told || begin.elapsed() > TELL_LIMIT {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn ask_for(service: SocketAddr, ids: Vec<String>) -> Result<BTreeMap<String, Kept>> {
    let mut api = Api::connect(service).await?;
    let mut kept = BTreeMap::new();
    for id in ids {
        if let Some(task) = api.task(&id).await? {
            let attempts = api.attempts(&id).await?;
            kept.insert(id, Kept { task, attempts });
        }
    }
    Ok(kept)
}
