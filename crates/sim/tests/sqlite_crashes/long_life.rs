//! A long life: after a crash the store is as after the last call that was acknowledged, or as after the one in
//! progress.

use anyhow::{bail, ensure};
use redrive_sim::disk::{Crash, Marks, recorded_directory};
use redrive_store::conformance::{Snapshot, snapshot};
use redrive_store::{MemoryStore, Store};
use redrive_store_sqlite::SqliteStore;

use crate::life::{Life, tenants};
use crate::reopened::{options, reopen, without_leases_ends};

/// Which life it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Which {
    pub(crate) seed: u64,
    pub(crate) calls: usize,
}

pub(crate) const ORDINARY: Which = Which { seed: 7, calls: 130 };

const SEED: &str = "LIFE_SEED";
const CALLS: &str = "LIFE_CALLS";

impl Which {
    /// The environment variables for the child.
    pub(crate) fn environment(self) -> [(&'static str, String); 2] {
        [(SEED, self.seed.to_string()), (CALLS, self.calls.to_string())]
    }

    fn from_environment() -> Self {
        let number = |name| std::env::var(name).unwrap().parse::<u64>().unwrap();
        Which { seed: number(SEED), calls: number(CALLS) as usize }
    }
}

/// The child: runs the life, and marks each call that was answered.
#[tokio::test]
#[ignore = "the child of another test"]
async fn child() {
    let directory = recorded_directory().expect("this is run by another test");
    let marks = Marks::open(&directory).unwrap();
    let Which { seed, calls } = Which::from_environment();
    let mut life = Life::new(seed);
    for part in [1..=calls / 2, calls / 2 + 1..=calls] {
        let store = SqliteStore::open(options(&directory)).unwrap();
        for call in part {
            life.call(&store).await;
            marks.mark(call.to_string().as_bytes()).unwrap();
        }
        store.close().await;
    }
}

/// The child that only opens a store and closes it.
#[tokio::test]
#[ignore = "the child of another test"]
async fn child_that_opens() {
    let directory = recorded_directory().expect("this is run by another test");
    let store = SqliteStore::open(options(&directory)).unwrap();
    store.close().await;
}

/// The expected state after each number of calls, from zero on.
pub(crate) fn expected(which: Which) -> Vec<Snapshot> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (store, mut life) = (MemoryStore::new(), Life::new(which.seed));
        let mut expected = vec![without_leases_ends(snapshot(&store, tenants()).await)];
        for _ in 0..which.calls {
            life.call(&store).await;
            expected.push(without_leases_ends(snapshot(&store, tenants()).await));
        }
        store.close().await;
        expected
    })
}

/// What a crash left of the call in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnderWay {
    Nothing,
    AllOfIt,
}

/// Whether the store opens with what was acknowledged.
pub(crate) fn survives(crash: &Crash<'_>, expected: &[Snapshot]) -> anyhow::Result<UnderWay> {
    let acknowledged = crash.marks.len();
    let last = crash.marks.last().map_or("0".as_bytes(), |last| last);
    ensure!(last == acknowledged.to_string().as_bytes(), "a mark is missing");
    let found = reopen(&crash.image, tenants())?;
    let Err(difference) = compare(&found, &expected[acknowledged]) else { return Ok(UnderWay::Nothing) };
    if expected.get(acknowledged + 1).is_some_and(|next| compare(&found, next).is_ok()) {
        return Ok(UnderWay::AllOfIt);
    }
    match expected.iter().rposition(|other| *other == found) {
        Some(other) => bail!("after call {acknowledged} was acknowledged, the store is as after call {other}"),
        None => bail!("after call {acknowledged} was acknowledged, the store is as after no call: {difference}"),
    }
}

/// Fails with the first difference, in short.
pub(crate) fn compare(found: &Snapshot, expected: &Snapshot) -> anyhow::Result<()> {
    for (tenant, expected) in &expected.tenants {
        let found = &found.tenants[tenant];
        for (found, expected) in found.tasks.iter().zip(&expected.tasks) {
            ensure!(found == expected, "a task is {found:?} and should be {expected:?}");
        }
        ensure!(found.tasks.len() == expected.tasks.len(), "{} tasks of {tenant}", found.tasks.len());
        ensure!(found.counts == expected.counts, "counts {:?}, not {:?}", found.counts, expected.counts);
        ensure!(found.policies == expected.policies, "policies {:?}, not {:?}", found.policies, expected.policies);
    }
    ensure!(found.lanes == expected.lanes, "lanes {:?}, not {:?}", found.lanes, expected.lanes);
    ensure!(found.in_flight == expected.in_flight, "other leases");
    ensure!(found.newest == expected.newest, "newest {:?}, not {:?}", found.newest, expected.newest);
    ensure!(found == expected, "some other difference");
    Ok(())
}
