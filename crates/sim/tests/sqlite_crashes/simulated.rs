//! The simulator's own workload on the store on disk: a node that dies and is restarted, clients that retry, cancel and
//! replay, over a real file that loses power.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use redrive_core::{IdempotencyKey, Status, TaskId, TenantId};
use redrive_sim::blocking::Blocking;
use redrive_sim::disk::{Crash, Marks, consistency, recorded_directory};
use redrive_sim::plan::{self, Ask, Families, Plan};
use redrive_sim::world::{self, Told};
use redrive_store::Store;
use redrive_store_sqlite::SqliteStore;

use crate::reopened::{DATA, directory, options};

/// A short world with one node and an exclusive store.
pub(crate) fn world_of(seed: u64) -> Plan {
    plan::draw(
        seed,
        &Ask {
            nodes: Some(1),
            exclusive: Some(true),
            hours: Some(0.5),
            families: Some(Families::all()),
            ..Ask::default()
        },
    )
}

#[test]
#[ignore = "the child of another test"]
fn child() {
    let directory = recorded_directory().unwrap();
    let marks = Marks::open(&directory).unwrap();
    let store = Arc::new(Blocking(SqliteStore::open(options(&directory)).unwrap()));
    let witness = Box::new(move |told: &Told| marks.mark(written(told).as_bytes()).unwrap());
    let run = world::run_over(&world_of(seed()), store.clone(), Some(witness), false);
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(store.0.close());
    assert!(run.violation.is_none(), "{:?}", run.violation);
}

/// The environment variable for the seed of the child's world.
pub(crate) const SEED: &str = "SIMULATED_SEED";

fn seed() -> u64 {
    std::env::var(SEED).unwrap().parse().unwrap()
}

/// What a client was told, as a mark.
fn written(told: &Told) -> String {
    match told {
        Told::Kept(tenant, id, key) => format!("kept {tenant} {id} {key}"),
        Told::Ended(tenant, id, status) => format!("ended {tenant} {id} {}", status.as_str()),
        Told::Replaying(tenant, id) => format!("replaying {tenant} {id}"),
    }
}

/// What clients had been told of one task.
#[derive(Debug, Default)]
struct KnownTask {
    key: Option<IdempotencyKey>,
    ended: Option<Status>,
    is_replayed: bool,
}

fn known(crash: &Crash<'_>) -> anyhow::Result<BTreeMap<(TenantId, TaskId), KnownTask>> {
    let mut all: BTreeMap<_, KnownTask> = BTreeMap::new();
    for mark in &crash.marks {
        let mark = std::str::from_utf8(mark)?;
        let words: Vec<&str> = mark.split(' ').collect();
        let [what, tenant, id, rest @ ..] = words.as_slice() else { bail!("no mark of ours: {mark}") };
        let task = all.entry((TenantId::try_new(tenant)?, id.parse()?)).or_default();
        match (*what, rest) {
            ("kept", [key]) => task.key = Some(IdempotencyKey::try_new(key)?),
            ("ended", [status]) => task.ended = Status::from_name(status),
            ("replaying", []) => task.is_replayed = true,
            _ => bail!("no mark of ours: {mark}"),
        }
    }
    Ok(all)
}

/// Checks that what clients had been told is true of what the crash left.
pub(crate) fn survives(crash: &Crash<'_>) -> anyhow::Result<()> {
    let known = known(crash)?;
    let directory = directory();
    crash.image.write_to(directory.path())?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let store = SqliteStore::open(options(directory.path())).context("opening the store again")?;
        for ((tenant, id), told) in known {
            let detail = store.reads().task(tenant.clone(), id).await?.with_context(|| format!("{id} is gone"))?;
            if let Some(key) = told.key {
                let owner = store.reads().by_key(tenant, key.clone()).await?.map(|(task, _)| task.id);
                ensure!(owner == Some(id), "the key {key} of {id} leads to {owner:?}");
            }
            if let Some(ended) = told.ended.filter(|_| !told.is_replayed) {
                ensure!(detail.task.status == ended, "{id} had ended {ended:?} and is {:?}", detail.task.status);
            }
        }
        store.close().await;
        anyhow::Ok(())
    })?;
    consistency(&directory.path().join(DATA))
}
