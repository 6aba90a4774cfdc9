//! Records after a restart, however the process ended and wherever their keys are.

use redrive_core::idempotency::{Previous, State};
use redrive_store::conformance::samples::at;

use super::support::{copy, onlooker, open};
use super::*;

/// Records in every state; returns each as it is.
async fn fill(store: &dyn Store, names: std::ops::Range<u64>) -> Vec<(RecordKey, Option<Record>)> {
    let mut made = Vec::new();
    for n in names {
        let one = own(store, numbered(n), u128::from(n), at(n)).await;
        let change = match n % 5 {
            0 => None,
            1 => Some(Change::Complete(completion("done"))),
            2 => Some(Change::FailFinal(completion("never"))),
            3 => Some(Change::FailRetryable),
            _ => Some(Change::Release),
        };
        if let Some(change) = change {
            make(store, numbered(n), one, change, at(n + 1)).await;
        }
        made.push((numbered(n), read(store, numbered(n), at(n + 1)).await));
    }
    made
}

fn in_table(directory: &Path) -> u64 {
    onlooker(directory).query_row("SELECT count(*) FROM record_keys", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn records_survive_any_number_of_restarts_wherever_their_keys_are_by_then() {
    for (recent_keys, moved) in [(1, true), (40, true), (1_000_000, false)] {
        let directory = tempfile::tempdir().unwrap();
        let mut made = Vec::new();
        for round in 0..5 {
            let store = open_with(directory.path(), recent_keys);
            made.extend(fill(&store, round * 60..(round + 1) * 60).await);
            for (key, record) in &made {
                assert_eq!(read(&store, key.clone(), at(400)).await, *record, "{recent_keys} keys, round {round}");
            }
            store.close().await;
        }
        assert_eq!(in_table(directory.path()) > 100, moved, "{recent_keys} keys");
    }
}

#[tokio::test]
async fn epochs_go_on_after_a_restart() {
    for recent_keys in [1, 1_000] {
        let directory = tempfile::tempdir().unwrap();
        let store = open_with(directory.path(), recent_keys);
        fill(&store, 0..5).await;
        store.close().await;
        let store = open_with(directory.path(), recent_keys);
        let granted =
            |epoch, previous| Reserved::Granted { epoch: Epoch(epoch), lease_until: at(10).after(LEASE), previous };
        let asked = (0..5).map(|n| reservation(numbered(n), 9)).collect();
        let answers = store.records().reserve(asked, at(10)).await.unwrap();
        let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
        assert!(matches!(answers[0], Reserved::InProgress { .. }), "its lease outlives the process: {answers:?}");
        assert!(matches!(answers[1], Reserved::Ended(_)), "{answers:?}");
        assert!(matches!(answers[2], Reserved::Ended(_)), "{answers:?}");
        let failed = Previous { owner: owner(3, 1), state: State::FailedRetryable };
        assert_eq!(answers[3], granted(2, Some(failed)));
        assert_eq!(answers[4], granted(2, None), "released");
    }
}

#[tokio::test]
async fn a_record_is_found_after_a_crash_at_any_step_of_moving_keys_to_disk() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_with(directory.path(), 100);
    let many = (1..=101).map(|n| reservation(numbered(n), 1)).collect();
    store.records().reserve(many, at(0)).await.unwrap();
    for n in 102..=110 {
        // Each of these commits moves a slice of the first hundred.
        own(&store, numbered(n), 1, at(0)).await;
        let crashed = tempfile::tempdir().unwrap();
        copy(directory.path(), crashed.path());
        let after = open(crashed.path());
        let again = (1..=n).map(|n| reservation(numbered(n), 2)).collect();
        let answers = after.records().reserve(again, at(1)).await.unwrap();
        let held = answers.iter().filter(|answer| matches!(answer, Ok(Reserved::InProgress { .. }))).count();
        assert_eq!(held as u64, n, "after commit {n}");
    }
    assert!(in_table(directory.path()) > 100);
}

#[tokio::test]
async fn cleaning_removes_keys_from_memory_and_from_the_table() {
    for recent_keys in [1, 30, 1_000] {
        let directory = tempfile::tempdir().unwrap();
        let mut store = open_with(directory.path(), recent_keys);
        for round in 0..4_u64 {
            for n in 0..100 {
                let one = own(&store, numbered(n), 1, at(round)).await;
                assert_eq!(one.epoch, Epoch(1), "{recent_keys} keys, round {round}: nothing is left of it");
            }
            assert_eq!(store.records().clean(Timestamp::MAX, 70).await.unwrap(), 70);
            store.close().await;
            store = open_with(directory.path(), recent_keys);
            assert_eq!(store.records().clean(Timestamp::MAX, 70).await.unwrap(), 30);
        }
        assert_eq!(in_table(directory.path()), 0, "{recent_keys} keys");
        let left = "SELECT (SELECT count(*) FROM records) + (SELECT count(*) FROM operations)";
        let left: u64 = onlooker(directory.path()).query_row(left, [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0, "{recent_keys} keys");
    }
}

#[tokio::test]
async fn tasks_and_records_do_not_mix_their_keys() {
    use redrive_store::Submitted;
    use redrive_store::conformance::samples::{allow, keep, submit, task};
    for recent_keys in [1, 1_000] {
        let directory = tempfile::tempdir().unwrap();
        let store = open_with(directory.path(), recent_keys);
        allow(&store, acme()).await;
        for n in 1..=50 {
            keep(&store, [task(n).key(&format!("k-{n}"))]).await;
            own(&store, numbered(n), 1, at(0)).await;
        }
        store.close().await;
        let store = open_with(directory.path(), recent_keys);
        for n in 1..=50 {
            let again = submit(&store, [task(n).key(&format!("k-{n}"))]).await;
            assert!(matches!(again[..], [Submitted::Replayed(_)]), "{again:?}");
            let held = store.records().reserve_one(numbered(n), ask(2), at(1)).await.unwrap();
            assert!(matches!(held, Reserved::InProgress { .. }), "{held:?}");
        }
    }
}
