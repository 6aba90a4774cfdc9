//! A process that is killed while it works: every record that was acknowledged is kept.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;

use redrive_core::idempotency::State;
use redrive_store::conformance::samples::at;

use super::support::{child, child_directory, open};
use super::*;

const CALLERS: u64 = 16;
const RECENT_KEYS: usize = 200;

/// Reserves and completes endlessly, and prints what was acknowledged.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the child of another test"]
async fn reserve_until_killed() {
    let store = Arc::new(open_with(&child_directory(), RECENT_KEYS));
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for n in (caller..).step_by(CALLERS as usize) {
                    let one = own(&*store, numbered(n), u128::from(n), at(0)).await;
                    say(&format!("reserved {n}"));
                    make(&*store, numbered(n), one, Change::Complete(completion("done")), at(1)).await;
                    say(&format!("completed {n}"));
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
    for lines in [1, 500, 2_000] {
        let directory = tempfile::tempdir().unwrap();
        let mut child = child("killed::reserve_until_killed", directory.path(), &[]);
        let mut acknowledged = BTreeMap::new();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut note = |line: String| {
            // The test harness prints its own lines, one of them without a line end before ours.
            let mut words = line.split_whitespace().rev();
            let (Some(number), Some(what)) = (words.next(), words.next()) else { return false };
            let Ok(n) = number.parse::<u64>() else { return false };
            acknowledged.insert(n, what.ends_with("completed"));
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
        for (n, is_completed) in &acknowledged {
            let record = read(&store, numbered(*n), at(2)).await;
            let record = record.unwrap_or_else(|| panic!("record {n} was reserved and is gone"));
            assert_eq!(record.owner, owner(u128::from(*n), 1));
            assert!(!is_completed || record.state == State::Succeeded, "record {n} was completed");
            let again = store.records().reserve_one(numbered(*n), ask(u128::MAX), at(2)).await.unwrap();
            assert!(!matches!(again, Reserved::Granted { .. }), "record {n} has an owner: {again:?}");
        }
        let counted: u32 = store
            .records()
            .counts(acme(), None, 9, u32::MAX)
            .await
            .unwrap()
            .iter()
            .map(|counts| counts.in_progress + counts.succeeded)
            .sum();
        assert_eq!(counted as usize, list(&store, query(acme(), at(2))).await.len());
    }
}
