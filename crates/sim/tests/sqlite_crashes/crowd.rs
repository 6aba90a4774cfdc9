//! Many concurrent callers, whose calls share transactions: every call that was acknowledged is there, and every other
//! call happened completely or not at all.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, ensure};
use redrive_core::{Status, TaskId};
use redrive_sim::disk::{Crash, Marks, recorded_directory};
use redrive_store::conformance::samples::{acme, allow, at, id, keep, succeed, task};
use redrive_store::{ClaimedTask, Settled, Store};
use redrive_store_sqlite::SqliteStore;

use crate::reopened::{options, reopen};

const CALLERS: u64 = 12;
const ROUNDS: u64 = 7;

/// How many tasks each call has.
const BATCH: u64 = 3;

/// How many calls there are: each batch is submitted and settled.
pub(crate) const CALLS: usize = 2 * (CALLERS * ROUNDS) as usize;

/// The child: each caller submits and settles, and marks what was answered.
#[tokio::test]
#[ignore = "the child of another test"]
async fn child() {
    let directory = recorded_directory().expect("this is run by another test");
    let marks = Marks::open(&directory).unwrap();
    let store = SqliteStore::open(options(&directory)).unwrap();
    allow(&store, acme()).await;
    futures_util::future::join_all((0..CALLERS).map(|caller| call_again_and_again(&store, &marks, caller))).await;
    store.close().await;
}

async fn call_again_and_again(store: &SqliteStore, marks: &Marks, caller: u64) {
    for round in 0..ROUNDS {
        let call = round * CALLERS + caller;
        let leases = keep(store, tasks_of(call).map(|n| task(n).claimed(at(0)))).await;
        marks.mark(format!("kept {call}").as_bytes()).unwrap();
        let ends = tasks_of(call).zip(leases).map(|(n, lease)| {
            let mut new = task(n).0;
            new.task.attempt_number = 1;
            succeed(&ClaimedTask { task: new.task, request: new.request, lease: lease.unwrap() }, at(1))
        });
        let settled = store.tasks().settle(ends.collect()).await.unwrap();
        assert_eq!(settled, [Settled::Done(Status::Succeeded); BATCH as usize]);
        marks.mark(format!("ended {call}").as_bytes()).unwrap();
    }
}

/// The tasks of a call.
fn tasks_of(call: u64) -> impl Iterator<Item = u64> {
    (0..BATCH).map(move |n| 1 + call * BATCH + n)
}

/// Whether the store opens with what was acknowledged.
pub(crate) fn survives(crash: &Crash<'_>) -> anyhow::Result<()> {
    let (mut kept, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for mark in &crash.marks {
        let (what, call) = std::str::from_utf8(mark)?.split_once(' ').context("a mark of two words")?;
        if what == "kept" { &mut kept } else { &mut ended }.insert(call.parse::<u64>()?);
    }
    let held = reopen(&crash.image, [acme()])?;
    let held: BTreeMap<TaskId, Status> =
        held.tenants[&acme()].tasks.iter().map(|(detail, _)| (detail.task.id, detail.task.status)).collect();
    for call in 0..CALLERS * ROUNDS {
        let found: Vec<_> = tasks_of(call).map(|n| held.get(&id(n)).copied()).collect();
        ensure!(found.iter().all(|status| *status == found[0]), "of call {call} there are parts: {found:?}");
        let found = found[0];
        ensure!(!kept.contains(&call) || found.is_some(), "call {call} was acknowledged and is gone");
        let is_ended = found == Some(Status::Succeeded);
        ensure!(!ended.contains(&call) || is_ended, "the end of call {call} was acknowledged, and it is {found:?}");
    }
    Ok(())
}
