//! A store that is opened on what a crash left.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use redrive_core::{TenantId, Timestamp};
use redrive_sim::disk::{Image, consistency};
use redrive_store::conformance::samples::{allow, submit, task};
use redrive_store::conformance::{Snapshot, snapshot};
use redrive_store::{Store, Submitted};
use redrive_store_sqlite::{Options, SqliteStore};
use tempfile::TempDir;

/// The directory of the store, below the directory that is recorded.
pub(crate) const DATA: &str = "data";

/// So small that a short run includes everything: checkpoints, logs that start over, transactions that outgrow the page
/// cache, keys that are moved to their index in more than one slice.
pub(crate) fn options(directory: &Path) -> Options {
    Options {
        readers: 1,
        cache_bytes: 64 * 1024,
        recent_keys: 70,
        wal_limit_bytes: 128 * 1024,
        checkpoint_after: Duration::from_millis(1),
        ..Options::new(directory.join(DATA))
    }
}

/// A directory for files whose syncs do not matter: in memory, if the machine has one.
pub(crate) fn directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// Opens an image as the program would, reads all that it holds, and checks that it is consistent and that it takes new
/// work.
pub(crate) fn reopen(image: &Image, tenants: impl IntoIterator<Item = TenantId>) -> anyhow::Result<Snapshot> {
    let directory = directory();
    image.write_to(directory.path())?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let held = runtime.block_on(async {
        let store = SqliteStore::open(options(directory.path())).context("opening the store again")?;
        let held = snapshot(&store, tenants).await;
        keys_lead_to_their_tasks(&store, &held).await?;
        work_goes_on(&store).await?;
        store.close().await;
        anyhow::Ok(held)
    })?;
    consistency(&directory.path().join(DATA))?;
    Ok(without_leases_ends(held))
}

/// Opening a store ends all leases, so their ends are no part of what is compared.
pub(crate) fn without_leases_ends(mut held: Snapshot) -> Snapshot {
    held.in_flight.iter_mut().for_each(|claimed| claimed.lease.until = Timestamp::from_millis(0));
    held
}

async fn keys_lead_to_their_tasks(store: &SqliteStore, held: &Snapshot) -> anyhow::Result<()> {
    for (tenant, of_tenant) in &held.tenants {
        let lookups = of_tenant.tasks.iter().map(|(detail, _)| {
            let key = detail.task.idempotency_key.clone();
            async move { (detail, store.reads().by_key(tenant.clone(), key).await) }
        });
        for (detail, found) in futures_util::future::join_all(lookups).await {
            let found = found?.map(|(task, _)| task.id);
            let key = &detail.task.idempotency_key;
            ensure!(found == Some(detail.task.id), "key {key:?} of {tenant} leads to {found:?}");
        }
    }
    Ok(())
}

/// Submits a new task, and checks that it is recognised the second time.
async fn work_goes_on(store: &SqliteStore) -> anyhow::Result<()> {
    const NEVER_USED: u64 = 1 << 40;
    let new = || task(NEVER_USED).of("initech");
    store.health().check().await.context("checking the store")?;
    allow(store, new().0.task.lane.tenant).await;
    let kept = submit(store, [new()]).await;
    ensure!(matches!(kept[..], [Submitted::Created(_, None)]), "a new task was answered with {kept:?}");
    let again = submit(store, [new()]).await;
    ensure!(matches!(again[..], [Submitted::Replayed(_)]), "the same task again was answered with {again:?}");
    Ok(())
}
