//! Bringing the schema up to date, and living beside a newer program.

use crate::support::{node, open, plain};
use redrive_store::Store;
use redrive_store::conformance::samples::*;
use redrive_store_postgres::{Options, PostgresStore, migrate};
use redrive_testbed::Postgres;

#[tokio::test(flavor = "multi_thread")]
async fn of_many_that_come_at_once_one_makes_the_schema() {
    let database = Postgres::shared().fresh_database();
    let opening = (0..8).map(|n| {
        let options = Options::new(database.url(), node(&format!("node-{n}")));
        tokio::spawn(async move { PostgresStore::open(options).await.map(drop) })
    });
    for opened in futures_util::future::join_all(opening).await {
        opened.unwrap().unwrap();
    }
    let versions = plain(database.url()).await.query("SELECT version FROM redrive.schema_versions", &[]).await.unwrap();
    assert_eq!(versions.len(), 1);
}

#[tokio::test]
async fn a_schema_that_is_made_by_hand_is_used_as_it_is() {
    let database = Postgres::shared().fresh_database();
    let by_hand = Options { migrate: false, ..Options::new(database.url(), node("one")) };
    let refused = PostgresStore::open(by_hand.clone()).await.unwrap_err().to_string();
    assert!(
        refused.contains("the database's schema is at version 0") && refused.contains("redrive migrate"),
        "{refused}"
    );
    let state = migrate(&by_hand).await.unwrap();
    assert_eq!((state.version, state.program), (0, 1));
    assert_eq!(migrate(&by_hand).await.unwrap().version, 1);
    PostgresStore::open(by_hand).await.unwrap();
}

/// What the next version may do to be used beside this one: add what has a default.
const NEXT_VERSION: &str = "
ALTER TABLE redrive.tasks ADD COLUMN added text;
ALTER TABLE redrive.live ADD COLUMN added bigint NOT NULL DEFAULT 0;
ALTER TABLE redrive.log ADD COLUMN added text;
CREATE TABLE redrive.new_things (id bigint PRIMARY KEY);
INSERT INTO redrive.schema_versions (version, oldest_program) VALUES (2, 1);";

#[tokio::test]
async fn a_program_goes_on_working_when_the_next_version_migrates_under_it() {
    let opened = open("old").await;
    let claimed = keep_and_claim(&*opened.store, task(1)).await;
    plain(opened.database.url()).await.batch_execute(NEXT_VERSION).await.unwrap();
    // Running, with statements prepared before; and one that is started now.
    settle(&*opened.store, retry(&claimed, at(5), at(6))).await;
    let started = crate::support::neighbour(&opened, "old-too").await;
    let again = claim(&*started, billing(), 5, at(9)).await.remove(0);
    settle(&*opened.store, succeed(&again, at(10))).await;
    assert_eq!(counts(&*started, acme()).await, [0, 0, 1, 0, 0, 0]);
    assert_eq!(attempts(&*opened.store, &claimed.task).await.len(), 2);
}

#[tokio::test]
async fn a_schema_that_needs_a_newer_program_is_refused() {
    let opened = open("old").await;
    let client = plain(opened.database.url()).await;
    client.batch_execute("INSERT INTO redrive.schema_versions (version, oldest_program) VALUES (3, 2)").await.unwrap();
    let refused = PostgresStore::open(Options::new(opened.database.url(), node("two"))).await.unwrap_err().to_string();
    assert!(refused.contains("is at version 3, which needs a newer program"), "{refused}");
}

#[tokio::test]
async fn an_address_that_cannot_be_used_is_told_without_its_password() {
    for (url, told) in [
        ("postgres://redrive:s3cret@127.0.0.1:1/x", "connecting to PostgreSQL"),
        ("postgres://redrive:s3cret@127.0.0.1:bad/x", "the address cannot be read"),
    ] {
        let error = PostgresStore::open(Options::new(url, node("one"))).await.unwrap_err().to_string();
        assert!(error.contains(told) && !error.contains("s3cret"), "{error}");
    }
}

#[tokio::test]
async fn a_task_that_only_a_newer_program_understands_holds_up_none_of_the_others() {
    let opened = open("old").await;
    let store = &*opened.store;
    keep(store, (1..=5).map(task)).await;
    let client = plain(opened.database.url()).await;
    let newer = format!("UPDATE redrive.live SET error_kind = 'solar_flare' WHERE id IN ('{}', '{}')", id(1), id(3));
    client.batch_execute(&newer).await.unwrap();
    let readable = [id(2), id(4), id(5)];
    let claimed: Vec<_> = claim(store, billing(), 5, at(5)).await.into_iter().map(|claimed| claimed.task.id).collect();
    assert_eq!(claimed, readable);
    // Also when a whole page of what has run out is of that kind: the first lease to run out is theirs.
    client.batch_execute("UPDATE redrive.live SET lease_until = 1 WHERE error_kind IS NOT NULL").await.unwrap();
    let expired = store.expired(at(9_000_000), 2).await.unwrap();
    assert_eq!(expired.iter().map(|claimed| claimed.task.id).collect::<Vec<_>>(), readable[..2]);
}

#[tokio::test]
async fn a_schema_of_the_same_name_that_is_somebody_elses_is_left_alone() {
    let database = Postgres::shared().fresh_database();
    let client = plain(database.url()).await;
    client.batch_execute("CREATE SCHEMA redrive; CREATE TABLE redrive.orders (id int)").await.unwrap();
    let refused = PostgresStore::open(Options::new(database.url(), node("one"))).await.unwrap_err().to_string();
    assert!(refused.contains("has a table orders that Redrive did not make"), "{refused}");
}
