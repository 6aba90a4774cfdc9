//! Unreadable rows: each affects only itself.

use redrive_store::conformance::samples::at;
use redrive_store::{Error, RecordChange};
use rusqlite::Connection;

use super::support::{database, open};
use super::*;

/// Values that this program does not write, by column.
const DAMAGES: [(&str, &str); 21] = [
    ("operation", "'pay'"),
    ("name", "x'FFFE'"),
    ("name", "CAST(x'FF' AS TEXT)"),
    ("state", "9"),
    ("state", "'martian'"),
    ("state", "2.5"),
    ("updated_at", "-1"),
    ("started_at", "'now'"),
    ("lease_until", "x'00'"),
    ("retention_ms", "-1"),
    ("epoch", "'one'"),
    ("epoch", "9223372036854775807"),
    ("execution", "x'00'"),
    ("execution", "'0123456789abcdef'"),
    ("request_hash", "x'00'"),
    ("request_hash", "7"),
    ("resource_kind", "''"),
    ("resource_id", "NULL"),
    ("response_status", "99999"),
    ("response_headers", "'[[1]]'"),
    ("body", "'no blob'"),
];

fn damage(directory: &Path, column: &str, value: &str, name: &str) {
    let connection = Connection::open(database(directory)).unwrap();
    let sql = format!("UPDATE records SET {column} = {value} WHERE name = ?1");
    assert_eq!(connection.execute(&sql, [name]).unwrap(), 1, "{sql}");
}

fn is_corrupt<T>(answer: &Result<T, Error>) -> bool {
    matches!(answer, Err(Error::Corrupt(_)))
}

#[tokio::test]
async fn a_damaged_record_is_refused_alone_and_cleaned_in_its_time() {
    for (column, value) in DAMAGES {
        let what = format!("{column} = {value}");
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        let bad = own(&store, key("bad"), 1, at(0)).await;
        make(&store, key("bad"), bad, Change::Complete(completion("done")), at(1)).await;
        let good = own(&store, key("good"), 1, at(0)).await;
        damage(directory.path(), column, value, "bad");

        let asked = [key("bad"), key("good"), key("new")].map(|key| reservation(key, 2)).into();
        let answers = store.records().reserve(asked, at(2)).await.unwrap();
        assert!(is_corrupt(&answers[0]), "{what}: {answers:?}");
        assert!(matches!(answers[1], Ok(Reserved::InProgress { .. })), "{what}");
        assert!(matches!(answers[2], Ok(Reserved::Granted { .. })), "{what}");
        let release = |key, owner| RecordChange { key, owner, change: Change::Release };
        let changes = vec![release(key("bad"), bad), release(key("new"), owner(2, 1))];
        let answers = store.records().change(changes, at(2)).await.unwrap();
        assert!(is_corrupt(&answers[0]), "{what}: {answers:?}");
        assert!(matches!(answers[1], Ok(RecordChanged::Decided(Changed::Done(_)))), "{what}");
        assert!(is_corrupt(&store.records().read(key("bad"), at(2)).await), "{what}");
        assert!(is_corrupt(&store.records().delete(key("bad"), None, at(2)).await), "{what}");

        let listed: Vec<_> = list(&store, query(acme(), at(2))).await.into_iter().map(|(key, _)| key).collect();
        assert_eq!(listed, [key("good")], "{what}");
        assert!(store.health().set_aside(9).await.unwrap().count <= 1, "{what}");
        let counts = store.records().counts(acme(), None, 9, 9).await.unwrap();
        assert_eq!((counts.len(), counts[0].in_progress), (1, 1), "{what}");

        assert_eq!(store.records().clean(Timestamp::MAX, 9).await.unwrap(), 3, "{what}");
        assert_eq!(store.health().set_aside(9).await.unwrap().count, 0, "{what}");
        for name in ["bad", "good"] {
            assert_eq!(own(&store, key(name), 3, at(3)).await.epoch, Epoch(1), "{what}");
        }
        assert_eq!(good.epoch, Epoch(1));
    }
}

#[tokio::test]
async fn a_damaged_record_is_refused_after_a_restart_and_reported_until_it_is_repaired() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    own(&store, key("bad"), 1, at(0)).await;
    damage(directory.path(), "epoch", "-1", "bad");
    assert_eq!(list(&store, query(acme(), at(0))).await, []);
    store.close().await;

    let store = open(directory.path());
    assert!(is_corrupt(&store.records().reserve_one(key("bad"), ask(2), at(1)).await));
    let aside = store.health().set_aside(9).await.unwrap();
    assert_eq!(aside.count, 1);
    assert!(aside.rows[0].row.starts_with("record "), "{aside:?}");
    store.close().await;
    damage(directory.path(), "epoch", "7", "bad");
    let store = open(directory.path());
    assert_eq!(store.health().set_aside(9).await.unwrap().count, 0);
    assert_eq!(read(&store, key("bad"), at(1)).await.unwrap().owner, owner(1, 7));
}

#[tokio::test]
async fn a_record_whose_expiry_cannot_be_read_is_kept() {
    for value in ["'never'", "x'00'"] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        own(&store, key("bad"), 1, at(0)).await;
        own(&store, key("good"), 1, at(0)).await;
        damage(directory.path(), "expires_at", value, "bad");
        assert_eq!(store.records().clean(Timestamp::MAX, 9).await.unwrap(), 1, "{value}");
        assert!(is_corrupt(&store.records().reserve_one(key("bad"), ask(2), at(1)).await), "{value}");
        assert_eq!(list(&store, query(acme(), at(1))).await, [], "{value}");
    }
}

#[tokio::test]
async fn a_damaged_operation_hides_only_its_own_records() {
    for value in ["'a/b'", "x'00'", "''"] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        own(&store, key("bad"), 1, at(0)).await;
        own(&store, key_of(acme(), "refund", "good"), 1, at(0)).await;
        let connection = Connection::open(database(directory.path())).unwrap();
        let sql = format!("UPDATE operations SET name = {value} WHERE name = 'pay'");
        assert_eq!(connection.execute(&sql, []).unwrap(), 1);
        assert_eq!(list(&store, query(acme(), at(1))).await.len(), 1, "{value}");
        assert_eq!(store.records().counts(acme(), None, 9, 9).await.unwrap().len(), 1, "{value}");
        store.close().await;
        let store = open(directory.path());
        assert_eq!(store.records().clean(Timestamp::MAX, 9).await.unwrap(), 2, "{value}");
    }
}

/// No two keys with the same hash are known, so the table is changed to lead one key to the record of another.
#[tokio::test]
async fn a_key_that_leads_to_the_record_of_another_key_is_compared() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_with(directory.path(), 1);
    let others = [key_of(acme(), "refund", "a"), key("b"), key_of(acme(), "inbox/pay", "a")];
    for key in [key("a")].iter().chain(&others) {
        own(&store, key.clone(), 1, at(0)).await;
    }
    // Each commit moves keys to the table.
    for n in 0..20 {
        own(&store, numbered(n), 1, at(0)).await;
    }
    store.close().await;
    let connection = Connection::open(database(directory.path())).unwrap();
    for number in 2..=4 {
        connection.execute("DELETE FROM records WHERE id = ?1", [number]).unwrap();
        let led = connection.execute("UPDATE record_keys SET record = 1 WHERE record = ?1", [number]).unwrap();
        assert_eq!(led, 1, "record {number}");
    }
    drop(connection);
    let store = open_with(directory.path(), 1);
    for key in others {
        assert_eq!(read(&store, key.clone(), at(1)).await, None, "{key}");
        assert_eq!(own(&store, key, 2, at(1)).await.epoch, Epoch(1));
    }
    assert_eq!(read(&store, key("a"), at(1)).await.unwrap().owner, owner(1, 1));
}
