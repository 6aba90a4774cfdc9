//! Facts about the two queues of a lane: first attempts and retries.

use redrive_core::{Class, Reason, Status};

use crate::conformance::samples::*;
use crate::{ReplayOutcome, Store};

/// The classes in which the lane of the samples has pending tasks.
async fn classes(store: &dyn Store) -> Vec<Class> {
    store.upkeep().pending_lanes(None, 10).await.unwrap().into_iter().map(|due| due.class).collect()
}

pub(crate) async fn a_claim_takes_only_the_class_that_was_asked_for(store: &dyn Store) {
    keep_retries(store, [task(1).due(at(10))]).await;
    keep(store, [task(2).due(at(20))]).await;
    let claims = claim_rooms(store, [room(billing(), Class::First, 9, 9)], at(50)).await;
    assert_eq!(ids(&claims.claimed), [id(2)]);
    assert_eq!(claims.lanes, [lane_due(billing(), Class::First, None)]);
    let claims = claim_rooms(store, [room(billing(), Class::Retry, 9, 9)], at(50)).await;
    assert_eq!(ids(&claims.claimed), [id(1)]);
    assert_eq!(claims.lanes, [lane_due(billing(), Class::Retry, None)]);
}

pub(crate) async fn a_thousand_retries_do_not_hide_a_first_attempt(store: &dyn Store) {
    keep_retries(store, (0..1_000).map(|n| task(n).due(at(n)))).await;
    keep(store, [task(5_000).due(at(5_000))]).await;
    let rooms = [room(billing(), Class::Retry, 0, 0), room(billing(), Class::First, 1, 0)];
    let claims = claim_rooms(store, rooms, at(5_000)).await;
    assert_eq!(ids(&claims.claimed), [id(5_000)]);
    let left = [lane_due(billing(), Class::Retry, Some(at(0))), lane_due(billing(), Class::First, None)];
    assert_eq!(claims.lanes, left);
}

pub(crate) async fn a_thousand_first_attempts_do_not_hide_a_retry(store: &dyn Store) {
    keep(store, (0..1_000).map(|n| task(n).due(at(n)))).await;
    keep_retries(store, [task(5_000).due(at(5_000))]).await;
    let rooms = [room(billing(), Class::First, 0, 0), room(billing(), Class::Retry, 1, 0)];
    let claims = claim_rooms(store, rooms, at(5_000)).await;
    assert_eq!(ids(&claims.claimed), [id(5_000)]);
    let left = [lane_due(billing(), Class::First, Some(at(0))), lane_due(billing(), Class::Retry, None)];
    assert_eq!(claims.lanes, left);
}

pub(crate) async fn each_class_has_the_order_of_its_own_due_times(store: &dyn Store) {
    keep(store, [task(1).due(at(40)), task(2).due(at(20))]).await;
    keep_retries(store, [task(3).due(at(30)), task(4).due(at(10))]).await;
    // The claimed tasks come in the order of the rooms.
    let rooms = [room(billing(), Class::Retry, 2, 0), room(billing(), Class::First, 2, 0)];
    assert_eq!(ids(&claim_rooms(store, rooms, at(50)).await.claimed), [id(4), id(3), id(2), id(1)]);
}

pub(crate) async fn a_failed_attempt_moves_its_task_to_the_retries(store: &dyn Store) {
    let first = keep_and_claim(store, task(1)).await;
    assert_eq!(classes(store).await, []);
    settle(store, retry(&first, at(10), at(20))).await;
    assert_eq!(classes(store).await, [Class::Retry]);
    assert!(claim_class(store, billing(), Class::First, 1, at(20)).await.is_empty());
    let second = claim_class(store, billing(), Class::Retry, 1, at(20)).await.remove(0);
    settle(store, retry(&second, at(30), at(40))).await;
    assert_eq!(classes(store).await, [Class::Retry]);
    assert_eq!(ids(&claim_class(store, billing(), Class::Retry, 1, at(40)).await), [id(1)]);
}

pub(crate) async fn a_task_given_back_unsent_returns_to_its_class(store: &dyn Store) {
    for (n, class) in [(1, Class::First), (2, Class::Retry)] {
        let sample = task(n).to(&format!("dependency-{n}"));
        let lane = sample.0.task.lane.clone();
        match class {
            Class::First => drop(keep(store, [sample]).await),
            Class::Retry => keep_retries(store, [sample]).await,
        }
        for round in 0..3 {
            let claimed = claim_class(store, lane.clone(), class, 1, at(round)).await;
            assert_eq!(ids(&claimed), [id(n)], "{class:?}, round {round}");
            give_back(store, &claimed, at(round)).await;
        }
        let other = if class == Class::First { Class::Retry } else { Class::First };
        assert!(claim_class(store, lane, other, 1, at(10)).await.is_empty());
    }
}

pub(crate) async fn a_replayed_task_begins_among_the_first_attempts(store: &dyn Store) {
    keep_retries(store, [task(1)]).await;
    let last = claim_class(store, billing(), Class::Retry, 1, at(10)).await.remove(0);
    settle(store, end(&last, Status::Exhausted, Some(Reason::Attempts), at(20))).await;
    assert!(matches!(store.tasks().replay_one(acme(), id(1), at(30)).await.unwrap(), ReplayOutcome::Done(_)));
    assert_eq!(classes(store).await, [Class::First]);
    let first = claim_class(store, billing(), Class::First, 1, at(30)).await;
    assert_eq!(first[0].task.attempt_number, 3);
    give_back(store, &first, at(40)).await;
    assert_eq!(classes(store).await, [Class::First]);
    let first = claim_class(store, billing(), Class::First, 1, at(40)).await.remove(0);
    settle(store, retry(&first, at(50), at(60))).await;
    assert_eq!(classes(store).await, [Class::Retry]);
}

pub(crate) async fn a_task_that_is_brought_forward_stays_in_its_class(store: &dyn Store) {
    keep(store, [task(1).due(at(5_000))]).await;
    keep_retries(store, [task(2).due(at(6_000))]).await;
    for n in [1, 2] {
        store.tasks().bring_one_forward(acme(), id(n), at(n)).await.unwrap();
    }
    let due = [lane_due(billing(), Class::First, Some(at(1))), lane_due(billing(), Class::Retry, Some(at(2)))];
    assert_eq!(store.upkeep().pending_lanes(None, 10).await.unwrap(), due);
    assert_eq!(ids(&claim_class(store, billing(), Class::First, 9, at(10)).await), [id(1)]);
    assert_eq!(ids(&claim_class(store, billing(), Class::Retry, 9, at(10)).await), [id(2)]);
}

pub(crate) async fn a_cancelled_task_is_in_no_class(store: &dyn Store) {
    keep(store, [task(1)]).await;
    keep_retries(store, [task(2)]).await;
    for (n, left) in [(1, vec![Class::Retry]), (2, vec![])] {
        store.tasks().cancel_one(acme(), id(n), at(10)).await.unwrap();
        assert_eq!(classes(store).await, left);
    }
}
