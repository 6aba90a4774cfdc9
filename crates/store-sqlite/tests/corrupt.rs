//! What cannot be understood is an error that says where, and never a panic.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use redrive_core::{Class, Status};
use redrive_store::conformance::samples::{
    acme, allow, at, billing, everything, id, keep, keep_and_end, request, room, task,
};
use redrive_store::{CleanFrom, Error, Store};
use rusqlite::Connection;

use support::{database, open};

#[tokio::test]
async fn a_damaged_row_is_named() {
    let damages = [
        ("UPDATE tasks SET status = 77 WHERE id = ?1", "task"),
        ("UPDATE tasks SET lane = 77 WHERE id = ?1", "lane 77"),
        ("UPDATE tasks SET policy = 77 WHERE id = ?1", "policy version 77"),
        ("UPDATE tasks SET idempotency_key = '' WHERE id = ?1", "task"),
        ("UPDATE tasks SET created_at = -1 WHERE id = ?1", "task"),
        ("UPDATE tasks SET deadline_at = 'tomorrow' WHERE id = ?1", "task"),
        ("UPDATE tasks SET max_attempts = -5 WHERE id = ?1", "task"),
        ("UPDATE tasks SET dns_failures = -1 WHERE id = ?1", "task"),
        ("UPDATE tasks SET reason = 'because' WHERE id = ?1", "task"),
        ("UPDATE tasks SET error_kind = 'odd' WHERE id = ?1", "task"),
        ("UPDATE tasks SET idempotency_key = x'FFFE' WHERE id = ?1", "task"),
        ("UPDATE requests SET headers = '[[1]]' WHERE task = ?1", "request of task"),
        ("UPDATE requests SET labels = '{' WHERE task = ?1", "request of task"),
        ("UPDATE requests SET body = 'text' WHERE task = ?1", "request of task"),
        ("UPDATE answers SET status = 99999 WHERE task = ?1", "answer of task"),
    ];
    for (damage, place) in damages {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        allow(&store, acme()).await;
        keep_and_end(&store, task(1), Status::Failed, at(1)).await;
        store.close().await;
        let changed = Connection::open(database(directory.path()))
            .unwrap()
            .execute(damage, [id(1).sequence().cast_signed()])
            .unwrap();
        assert_eq!(changed, 1, "{damage}");

        let store = match redrive_store_sqlite::SqliteStore::open(redrive_store_sqlite::Options::new(directory.path()))
        {
            Ok(store) => store,
            Err(error) => {
                let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                assert!(source.contains(place), "{damage}: {error}: {source}");
                continue;
            }
        };
        let read = store.task(acme(), id(1)).await;
        assert!(matches!(&read, Err(Error::Corrupt(what)) if what.contains(place)), "{damage}: {read:?}");
        let listed = store.tasks(everything(acme())).await;
        assert!(matches!(&listed, Err(Error::Corrupt(what)) if what.contains(place)), "{damage}: {listed:?}");
        // The others go on.
        keep(&store, [task(2)]).await;
        assert!(store.task(acme(), id(2)).await.unwrap().is_some(), "{damage}");
    }
}

#[tokio::test]
async fn a_damaged_row_does_not_panic_the_writer() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    allow(&store, acme()).await;
    keep(&store, [task(1), task(2).to("https://b.example")]).await;
    store.close().await;
    let connection = Connection::open(database(directory.path())).unwrap();
    connection.execute("UPDATE tasks SET created_at = -1 WHERE id = ?1", [id(1).sequence().cast_signed()]).unwrap();
    drop(connection);

    let store = open(directory.path());
    let claim = |lane| store.claim(request([room(lane, Class::First, 5, 0)], at(0)));
    assert!(matches!(claim(billing()).await, Err(Error::Corrupt(_))));
    let mut other = billing();
    other.dependency = redrive_core::Dependency::try_new("https://b.example").unwrap();
    assert_eq!(claim(other).await.unwrap().claimed.len(), 1);
    assert!(matches!(store.cancel(acme(), id(1), at(0)).await, Err(Error::Corrupt(_))));
    store.clean(at(5), CleanFrom::Start, 10).await.unwrap();
}
