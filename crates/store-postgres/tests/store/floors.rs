//! Floors: claims start where the previous one ended, and no task is lost.

use std::sync::Arc;
use std::time::Duration;

use redrive_core::Class;
use redrive_store::conformance::samples::*;
use redrive_store::conformance::workload;
use redrive_store::{News, Store};
use redrive_store_postgres::{Options, PostgresStore};

use crate::support::{NEVER, Opened, neighbour, open_with, plain, until_listening};

/// A store that has claimed a task with a late due time, so that its next claim starts there. It receives no news.
async fn deaf(floors_last: Duration) -> Opened {
    let opened =
        open_with("one", |options| Options { floors_last: floors_last..=floors_last, is_pooled: true, ..options })
            .await;
    claim_late(&opened.store).await;
    opened
}

async fn claim_late(store: &PostgresStore) {
    keep(store, [task(1).due(at(60_000))]).await;
    assert_eq!(ids(&claim(store, billing(), 5, at(61_000)).await), [id(1)]);
}

/// Another process writes a pending task that is due long before.
async fn write_early(opened: &Opened) -> Arc<PostgresStore> {
    let other = neighbour(opened, "two").await;
    keep(&*other, [task(2).due(at(10))]).await;
    other
}

/// Claims until a task is found.
async fn claim_until_found(store: &PostgresStore) -> Vec<redrive_core::TaskId> {
    loop {
        let claimed = claim(store, billing(), 5, at(62_000)).await;
        if !claimed.is_empty() {
            return ids(&claimed);
        }
    }
}

#[tokio::test]
async fn what_another_process_wrote_is_found_without_news_by_the_next_look_from_the_beginning() {
    let opened = deaf(Duration::from_millis(20)).await;
    write_early(&opened).await;
    assert_eq!(claim_until_found(&opened.store).await, [id(2)]);
}

#[tokio::test]
async fn what_another_process_wrote_is_found_without_news_after_a_look_around() {
    let opened = deaf(NEVER).await;
    write_early(&opened).await;
    let store = &*opened.store;
    let claims = claim_rooms(store, [room(billing(), Class::First, 5, 0)], at(62_000)).await;
    assert_eq!(claims.claimed, [], "the claim started behind it");
    assert_eq!(claims.lanes, [lane_due(billing(), Class::First, None)]);
    let lanes = store.upkeep().pending_lanes(None, 5).await.unwrap();
    assert_eq!(lanes, [lane_due(billing(), Class::First, Some(at(10)))]);
    assert_eq!(ids(&claim(store, billing(), 5, at(62_000)).await), [id(2)]);
}

#[tokio::test]
async fn what_another_process_wrote_is_found_as_soon_as_there_is_news_of_it() {
    let opened = open_with("one", |options| Options { floors_last: NEVER..=NEVER, ..options }).await;
    claim_late(&opened.store).await;
    until_listening(&opened, 1).await;
    let _other = write_early(&opened).await;
    let early = News::Due(lane_due(billing(), Class::First, Some(at(10))));
    while !opened.store.shared().unwrap().next_news().await.contains(&early) {}
    assert_eq!(ids(&claim(&*opened.store, billing(), 5, at(62_000)).await), [id(2)]);
}

#[tokio::test]
async fn a_task_that_was_damaged_before_the_floor_is_set_aside_by_the_next_look_from_the_beginning() {
    // PostgreSQL refuses to change the first of these, and this program cannot read the second.
    for damage in ["due_at = 5, token = 9223372036854775807", "due_at = -1"] {
        for floors_last in [Duration::from_millis(20), NEVER] {
            let opened = deaf(floors_last).await;
            let (store, client) = (&*opened.store, plain(opened.database.url()).await);
            keep(store, [task(2).due(at(61_500))]).await;
            client.execute(&format!("UPDATE redrive.live SET {damage} WHERE id = '{}'", id(2)), &[]).await.unwrap();
            if floors_last == NEVER {
                store.upkeep().pending_lanes(None, 5).await.unwrap();
            }
            loop {
                assert_eq!(claim(store, billing(), 5, at(62_000)).await, []);
                if store.health().set_aside(9).await.unwrap().count == 1 {
                    break;
                }
                assert_ne!(floors_last, NEVER, "{damage}");
            }
        }
    }
}

#[tokio::test]
async fn leases_and_deadlines_of_another_process_are_found_after_looks_that_found_nothing() {
    let opened = deaf(NEVER).await;
    let (store, other) = (&*opened.store, neighbour(&opened, "two").await);
    settle(store, succeed(&store.upkeep().expired_leases(at(90_000), 5).await.unwrap()[0], at(90_000))).await;
    for now in [91_000, 9_000_000, 92_000] {
        assert_eq!(store.upkeep().expired_leases(at(now), 5).await.unwrap(), []);
        assert_eq!(store.upkeep().end_overdue(at(now), 5).await.unwrap().ended, []);
    }
    keep(&*other, [task(2).claimed(at(80_000)), task(3).deadline(at(95_000))]).await;
    let until = at(80_000 + 15_000);
    assert_eq!(ids(&store.upkeep().expired_leases(until, 5).await.unwrap()), [id(2)], "its commit took 12 s");
    let ended = store.upkeep().end_overdue(at(96_000), 5).await.unwrap().ended;
    assert_eq!(ended.iter().map(|task| task.id).collect::<Vec<_>>(), [id(3)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_random_life_ends_as_the_model_says_however_long_claims_start_where_the_one_before_ended() {
    for seed in 1..4 {
        let opened = open_with("one", |options| Options { floors_last: NEVER..=NEVER, ..options }).await;
        workload::run(&*opened.store, seed, 1_000).await;
    }
}

/// The task is set aside while the floor is below it, and taken back while the floor is above it.
#[tokio::test]
async fn what_is_taken_back_is_found_before_the_floor_and_looked_for() {
    let options = |options| Options {
        floors_last: NEVER..=NEVER,
        take_back_every: Duration::from_millis(5),
        is_pooled: true,
        ..options
    };
    let opened = open_with("one", options).await;
    let (store, client) = (&*opened.store, plain(opened.database.url()).await);
    keep(store, [task(2).due(at(10))]).await;
    let headers = |text: &str| format!("UPDATE redrive.tasks SET headers = {text} WHERE id = '{}'", id(2));
    client.batch_execute(&headers("'none'")).await.unwrap();
    assert_eq!(claim(store, billing(), 5, at(20)).await.len(), 0);
    claim_late(store).await;
    assert_eq!(claim(store, billing(), 5, at(62_000)).await.len(), 0);
    client.batch_execute(&headers("NULL")).await.unwrap();
    assert_eq!(claim_until_found(store).await, [id(2)]);
    assert!(store.shared().unwrap().may_have_missed(at(0)).await.unwrap(), "its lane may be unknown");
}
