//! The end of a chaos run: waits until all work has ended, then reads everything from the nodes and from the database.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

use super::history::{End, History, Kept};
use crate::api::Api;
use crate::clock::now_us;

/// How long the work that is left may take once the faults have stopped (invariant 13).
pub const SETTLE_LIMIT: Duration = Duration::from_secs(180);
/// The pause between two counts of what is left.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// The timeout of a single answer: all faults are over.
const ANSWER_LIMIT: Duration = Duration::from_secs(45);
/// The number of connections to read with.
const ASKING: usize = 8;

/// Waits until no task is pending or in flight, or the time for that is over. Returns how long that took.
pub async fn settle(node: SocketAddr) -> Result<Duration> {
    let begin = Instant::now();
    loop {
        let left = tokio::time::timeout(ANSWER_LIMIT, left(node)).await.context("asking how much work is left")?;
        // A node may not have noticed yet that its database is back.
        if matches!(left, Ok(0)) || begin.elapsed() > SETTLE_LIMIT {
            return Ok(begin.elapsed());
        }
        tokio::time::sleep(LOOK_AGAIN_AFTER).await;
    }
}

async fn left(node: SocketAddr) -> Result<u64> {
    let counts = Api::connect(node).await?.counts().await?;
    Ok(["PENDING", "IN_FLIGHT"].iter().filter_map(|status| counts.get(*status)).sum())
}

/// Reads the final state from the nodes and the database.
pub async fn collect(nodes: &[SocketAddr], database: &str, history: &History) -> Result<End> {
    let mut end = End { at: now_us(), ..End::default() };
    for (at, node) in nodes.iter().enumerate() {
        let counts = Api::connect(*node).await?.counts().await?;
        end.counts.insert(format!("node {} at {node}", at + 1), counts);
    }
    let any = *nodes.first().context("no node listens")?;
    for status in ["FAILED", "EXHAUSTED"] {
        let ids = Api::connect(any).await?.ids_with_status(status).await?;
        end.listed.insert(status.to_owned(), ids.into_iter().collect());
    }
    let ids: Vec<String> = history.acknowledged_tasks().into_iter().map(str::to_owned).collect();
    let mut asking = JoinSet::new();
    for (part, node) in ids.chunks(ids.len().div_ceil(ASKING).max(1)).zip(nodes.iter().cycle()) {
        let (part, node) = (part.to_vec(), *node);
        asking.spawn(async move { ask_for(node, part).await });
    }
    while let Some(part) = asking.join_next().await {
        end.kept.extend(part.context("asking for tasks")??);
    }
    look_into(database, &mut end).await.context("looking into the database")?;
    Ok(end)
}

async fn ask_for(node: SocketAddr, ids: Vec<String>) -> Result<BTreeMap<String, Kept>> {
    let mut api = Api::connect(node).await?;
    let mut kept = BTreeMap::new();
    for id in ids {
        if let Some(task) = api.task(&id).await? {
            let attempts = api.attempts(&id).await?;
            kept.insert(id, Kept { task, attempts });
        }
    }
    Ok(kept)
}

/// Reads what the API does not return: the tokens of the leases, and the tenants.
async fn look_into(database: &str, end: &mut End) -> Result<()> {
    let (client, connection) = tokio_postgres::connect(database, NoTls).await?;
    let connection = tokio::spawn(connection);
    let lines = client
        .query(
            "SELECT id::text, number, token FROM redrive.log WHERE outcome IS NOT NULL ORDER BY id, number, token",
            &[],
        )
        .await?;
    for line in lines {
        let (id, number, token): (String, i64, i64) = (line.try_get(0)?, line.try_get(1)?, line.try_get(2)?);
        end.tokens.entry(id).or_default().push((u32::try_from(number)?, u64::try_from(token)?));
    }
    let tenants = client
        .query(
            "SELECT tenant FROM redrive.tasks UNION SELECT tenant FROM redrive.live UNION SELECT tenant FROM redrive.log
             UNION SELECT tenant FROM redrive.dead_letters UNION SELECT tenant FROM redrive.policies",
            &[],
        )
        .await?;
    for tenant in tenants {
        end.tenants.insert(tenant.try_get(0)?);
    }
    drop(client);
    connection.await.context("the connection to the database")??;
    Ok(())
}
