//! Fills a store in large batches.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use redrive_core::{PolicyId, TenantId, Timestamp, policy};
use redrive_store::{Expected, NewTask, Store, Submitted};
use redrive_store_sqlite::{Options, SqliteStore};

use super::super::options::PreloadKind;
use super::tasks::{Maker, now, success};

/// Tasks in one commit: large enough that the cost of the commit itself is negligible.
const BATCH: u64 = 5_000;
/// The time between the submissions of two tasks.
const SPACING: Duration = Duration::from_millis(1);
/// When pending tasks become due: long after any measurement, and not all at once.
const FAR_AWAY: Duration = Duration::from_secs(20 * 24 * 3600);

/// The content of a store to fill.
#[derive(Debug, Clone, Copy)]
pub(super) struct Content {
    /// Ended or pending.
    pub(super) kind: PreloadKind,
    /// How many.
    pub(super) tasks: u64,
    /// The size of their bodies.
    pub(super) body: usize,
    /// The lanes that they are spread over.
    pub(super) lanes: usize,
}

/// Makes a store in `dir` and fills it.
pub(super) fn fill(dir: &Path, content: Content) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let store = open(dir).await?;
        let first = now().before(SPACING * u32::try_from(content.tasks).unwrap_or(u32::MAX));
        // This address is never called: ended tasks are done, and pending ones are due in weeks.
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
        let mut maker = Maker::new(nowhere, content.lanes, content.body, first)?;
        let (begin, mut created, mut done) = (Instant::now(), first, 0);
        while done < content.tasks {
            let count = BATCH.min(content.tasks - done);
            let batch = (0..count).map(|_| {
                created = created.after(SPACING);
                match content.kind {
                    PreloadKind::Ended => maker.claimed(created),
                    PreloadKind::Pending => maker.pending(created, created.after(FAR_AWAY)),
                }
            });
            keep(&store, batch.collect()).await?;
            done += count;
            if done % 500_000 == 0 {
                eprintln!("  {done} tasks after {:.0} s", begin.elapsed().as_secs_f64());
            }
        }
        store.close().await;
        Ok(())
    })
}

/// Opens the store in `dir` with the default policy that a service would have stored.
pub(super) async fn open(dir: &Path) -> Result<SqliteStore> {
    let options = Options::new(dir);
    let store = tokio::task::spawn_blocking(move || SqliteStore::open(options)).await?.context("opening a store")?;
    let (tenant, id) = (TenantId::default_tenant(), PolicyId::default_policy());
    store.policies().put(tenant, id, policy::Spec::default(), Expected::Absent, Timestamp::from_millis(1)).await?;
    Ok(store)
}

/// Submits tasks, and settles those that start claimed.
pub(super) async fn keep(store: &SqliteStore, tasks: Vec<NewTask>) -> Result<()> {
    let ids: Vec<_> = tasks.iter().map(|task| task.task.id).collect();
    let mut ends = Vec::new();
    for (id, submitted) in ids.into_iter().zip(store.tasks().submit(tasks).await?) {
        match submitted {
            Submitted::Created(_, Some(lease)) => ends.push(success(id, lease)),
            Submitted::Created(_, None) => {}
            other => bail!("a task was not kept: {other:?}"),
        }
    }
    if !ends.is_empty() {
        store.tasks().settle(ends).await?;
    }
    Ok(())
}
