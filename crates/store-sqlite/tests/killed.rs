//! A process that is killed while it works: everything that was acknowledged is kept.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;

use redrive_core::Status;
use redrive_store::conformance::samples::{acme, allow, at, everything, id, keep, list, succeed, task};
use redrive_store::{ClaimedTask, Settled, Store};

use support::{child, child_directory, open};

const CALLERS: u64 = 16;

/// Submits and settles endlessly, and prints what was acknowledged.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the child of another test"]
async fn work_until_killed() {
    let store = Arc::new(open(&child_directory()));
    allow(&*store, acme()).await;
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for n in (caller..).step_by(CALLERS as usize) {
                    let lease = keep(&*store, [task(n).claimed(at(0))]).await[0].unwrap();
                    say(&format!("kept {n}"));
                    let new = task(n).0;
                    let claimed = ClaimedTask { task: new.task, request: new.request, lease };
                    let settled = store.tasks().settle(vec![succeed(&claimed, at(1))]).await.unwrap();
                    assert_eq!(settled, [Settled::Done(Status::Succeeded)]);
                    say(&format!("settled {n}"));
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
}

/// Writes one line per call, so that a line is either complete or absent.
fn say(what: &str) {
    std::io::stdout().lock().write_all(format!("{what}\n").as_bytes()).unwrap();
}

#[tokio::test]
async fn what_was_acknowledged_before_a_kill_is_there() {
    for lines in [1, 500, 3_000] {
        let directory = tempfile::tempdir().unwrap();
        let mut child = child("work_until_killed", directory.path(), &[]);
        let mut acknowledged = BTreeMap::new();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut note = |line: String| {
            // The test harness prints its own lines, one of them without a line end before ours.
            let mut words = line.split_whitespace().rev();
            let (Some(number), Some(what)) = (words.next(), words.next()) else { return false };
            let Ok(n) = number.parse::<u64>() else { return false };
            let what = if what.ends_with("settled") { Status::Succeeded } else { Status::InFlight };
            acknowledged.insert(n, what);
            true
        };
        let mut heard = 0;
        while heard < lines {
            heard += usize::from(note(said.next().unwrap().unwrap()));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for line in said {
            note(line.unwrap());
        }

        let store = open(directory.path());
        let found: BTreeMap<_, _> = list(&store, everything(acme()))
            .await
            .into_iter()
            .map(|detail| (detail.task.id, detail.task.status))
            .collect();
        for (n, status) in &acknowledged {
            let now = found.get(&id(*n)).unwrap_or_else(|| panic!("task {n} was kept and is gone"));
            assert!(now >= status, "task {n} was {status:?} and is {now:?}");
        }
        let counted: u64 = store.reads().counts(acme()).await.unwrap().values().sum();
        assert_eq!(counted, found.len() as u64, "the counts are of the same moment as the tasks");
    }
}
