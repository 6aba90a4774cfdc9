//! A transaction that fails leaves no record, no key and no number of an operation behind.

use redrive_store::conformance::samples::{allow, at, keep, task};
use rusqlite::Connection;

use super::support::{database, open};
use super::*;

/// From now on the database refuses a record with the name `refused`.
fn refuse_one(directory: &Path) {
    let trigger = "CREATE TRIGGER refuse BEFORE INSERT ON records WHEN NEW.name = 'refused'
                   BEGIN SELECT RAISE(ABORT, 'refused'); END";
    Connection::open(database(directory)).unwrap().execute_batch(trigger).unwrap();
}

#[tokio::test]
async fn a_failed_call_leaves_no_record_no_key_and_no_operation() {
    for recent_keys in [1, 1_000] {
        let directory = tempfile::tempdir().unwrap();
        open(directory.path()).close().await;
        refuse_one(directory.path());
        let store = open_with(directory.path(), recent_keys);
        let new = || key_of(acme(), "new", "a");
        // The tenant is known already, so only the operation's number is rolled back.
        let first = key_of(acme(), "first", "a");
        own(&store, first.clone(), 1, at(0)).await;
        for _ in 0..3 {
            let asked = vec![reservation(new(), 1), reservation(key("a"), 1), reservation(key("refused"), 1)];
            store.records().reserve(asked, at(0)).await.unwrap_err();
        }
        assert_eq!(list(&store, query(acme(), at(0))).await.len(), 1);
        assert_eq!(store.records().counts(acme(), None, 9, 9).await.unwrap().len(), 1);

        // Another operation gets the number that the failed one had: no cache may still have the old name for it.
        let other = key_of(acme(), "other", "a");
        assert_eq!(own(&store, other.clone(), 2, at(1)).await.epoch, Epoch(1));
        for key in [new(), key("a")] {
            assert_eq!(read(&store, key.clone(), at(1)).await, None);
            assert_eq!(own(&store, key, 3, at(1)).await.epoch, Epoch(1));
        }
        assert_eq!(read(&store, other.clone(), at(1)).await.unwrap().owner, owner(2, 1));
        let keys: Vec<_> = list(&store, query(acme(), at(1))).await.into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [first, new(), other, key("a")]);
    }
}

#[tokio::test]
async fn calls_that_share_a_transaction_with_a_failure_are_made_again_alone() {
    for recent_keys in [1, 1_000_000] {
        let directory = tempfile::tempdir().unwrap();
        open(directory.path()).close().await;
        refuse_one(directory.path());
        let store = open_with(directory.path(), recent_keys);
        allow(&store, acme()).await;
        for round in 1..=20_u64 {
            let operation = format!("operation-{round}");
            let one = |name: &str| key_of(acme(), &operation, name);
            let old = own(&store, one("old"), 1, at(0)).await;
            let slow = (0..300).map(|n| reservation(one(&format!("slow-{n}")), 1)).collect();
            // A slow call, so that the ones behind it share the next transaction.
            let (_, granted, completed, failed, kept) = tokio::join!(
                store.records().reserve(slow, at(1)),
                store.records().reserve_one(one("new"), ask(1), at(1)),
                store.records().change_one(one("old"), old, Change::Complete(completion("done")), at(1)),
                store.records().reserve_one(one("refused"), ask(1), at(1)),
                keep(&store, [task(round)]),
            );
            assert!(failed.is_err());
            assert!(matches!(granted, Ok(Reserved::Granted { epoch: Epoch(1), .. })), "round {round}: {granted:?}");
            assert!(matches!(completed, Ok(RecordChanged::Decided(Changed::Done(_)))), "round {round}");
            assert_eq!(kept.len(), 1);
            assert_eq!(read(&store, one("refused"), at(1)).await, None);
        }
        assert_eq!(list(&store, query(acme(), at(1))).await.len(), 20 * 302);
    }
}

#[tokio::test]
async fn a_cleaning_that_fails_leaves_the_records_their_keys() {
    for recent_keys in [1, 1_000_000] {
        let directory = tempfile::tempdir().unwrap();
        let store = open_with(directory.path(), recent_keys);
        for n in 1..=3 {
            own(&store, numbered(n), 1, at(0)).await;
        }
        store.close().await;
        // The last of the three cannot be deleted. By then the other two and their keys have been deleted.
        let refuse = "CREATE TRIGGER refuse BEFORE DELETE ON records WHEN (SELECT count(*) FROM records) = 1
                      BEGIN SELECT RAISE(ABORT, 'refused'); END";
        Connection::open(database(directory.path())).unwrap().execute_batch(refuse).unwrap();

        let store = open_with(directory.path(), recent_keys);
        store.records().clean(Timestamp::MAX, 10).await.unwrap_err();
        for n in 1..=3 {
            let held = store.records().reserve_one(numbered(n), ask(2), at(1)).await.unwrap();
            assert!(matches!(held, Reserved::InProgress { .. }), "{held:?}");
        }
    }
}

#[tokio::test]
async fn an_operation_that_was_removed_and_comes_back_is_a_new_one_to_everyone() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    for round in 0..3 {
        own(&store, key("a"), 1, at(round)).await;
        own(&store, key_of(acme(), &format!("other-{round}"), "a"), 1, at(round)).await;
        // Readers and the writer know the operation by now.
        assert_eq!(list(&store, query(acme(), at(round))).await.len(), 2);
        assert!(read(&store, key("a"), at(round)).await.is_some());
        assert_eq!(store.records().clean(Timestamp::MAX, 10).await.unwrap(), 2);
        assert_eq!(list(&store, query(acme(), at(round))).await, []);
        assert_eq!(store.records().counts(acme(), None, 9, 9).await.unwrap(), []);
    }
}
