//! Facts about expired leases.

use redrive_core::{Status, TaskId};

use crate::conformance::samples::*;
use crate::{ClaimedTask, Settled, Store};

fn sorted(mut claimed: Vec<ClaimedTask>) -> Vec<ClaimedTask> {
    claimed.sort_by_key(|claimed| claimed.task.id);
    claimed
}

fn sorted_ids(claimed: Vec<ClaimedTask>) -> Vec<TaskId> {
    sorted(claimed).into_iter().map(|claimed| claimed.task.id).collect()
}

pub(crate) async fn a_lease_is_found_from_its_end_on_just_as_it_was_given(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    let until = claimed.lease.until.as_millis();
    let before = redrive_core::Timestamp::from_millis(until - 1);
    assert_eq!(store.upkeep().expired_leases(before, 10).await.unwrap(), []);
    assert_eq!(store.upkeep().expired_leases(claimed.lease.until, 10).await.unwrap(), [claimed]);
}

pub(crate) async fn looking_for_expired_leases_changes_nothing(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    let looks = [
        store.upkeep().expired_leases(at(9_000_000), 10).await.unwrap(),
        store.upkeep().expired_leases(at(9_000_000), 10).await.unwrap(),
    ];
    assert_eq!(looks.concat(), [claimed.clone(), claimed.clone()]);
    assert_eq!(now_of(store, &claimed.task).await, claimed.task);
}

pub(crate) async fn a_task_that_started_claimed_expires_like_any_other(store: &dyn Store) {
    keep(store, [task(1).claimed(at(0))]).await;
    assert_eq!(sorted_ids(store.upkeep().expired_leases(at(15_000), 10).await.unwrap()), [id(1)]);
}

pub(crate) async fn only_tasks_in_flight_have_leases(store: &dyn Store) {
    keep_and_end(store, task(1), Status::Succeeded, at(5)).await;
    let retried = keep_and_claim(store, task(2).to("two")).await;
    settle(store, retry(&retried, at(5), at(6))).await;
    keep(store, [task(3).to("three")]).await;
    assert_eq!(store.upkeep().expired_leases(at(9_000_000), 10).await.unwrap(), []);
}

pub(crate) async fn a_new_claim_has_a_new_lease(store: &dyn Store) {
    let first = keep_and_claim(store, task(1)).await;
    settle(store, retry(&first, at(5), at(1_000))).await;
    let second = claim(store, billing(), 1, at(1_000)).await.remove(0);
    assert_eq!(store.upkeep().expired_leases(first.lease.until, 10).await.unwrap(), []);
    assert_eq!(store.upkeep().expired_leases(second.lease.until, 10).await.unwrap(), [second]);
}

pub(crate) async fn expired_leases_of_all_tenants_are_found_up_to_the_limit(store: &dyn Store) {
    keep(store, (0..30).map(|n| task(n).of(["one", "two", "three"][n as usize % 3]).claimed(at(n)))).await;
    assert_eq!(store.upkeep().expired_leases(at(9_000_000), 7).await.unwrap().len(), 7);
    assert_eq!(
        sorted_ids(store.upkeep().expired_leases(at(9_000_000), 1_000).await.unwrap()),
        (0..30).map(id).collect::<Vec<_>>()
    );
    assert_eq!(
        sorted_ids(store.upkeep().expired_leases(at(15_009), 1_000).await.unwrap()),
        (0..10).map(id).collect::<Vec<_>>()
    );
}

pub(crate) async fn whoever_settles_an_expired_lease_first_wins(store: &dyn Store) {
    let slow = keep_and_claim(store, task(1)).await;
    let rescued = store.upkeep().expired_leases(slow.lease.until, 10).await.unwrap().remove(0);
    assert_eq!(settle(store, retry(&rescued, at(20_000), at(20_000))).await, Settled::Done(Status::Pending));
    assert_eq!(settle(store, succeed(&slow, at(20_001))).await, Settled::LeaseLost);
    let again = claim(store, billing(), 1, at(20_002)).await.remove(0);
    assert_eq!(again.task.attempt_number, 2, "the attempt that was cut off counts");
    assert_eq!(settle(store, succeed(&slow, at(20_003))).await, Settled::LeaseLost);
    assert_eq!(settle(store, succeed(&again, at(20_004))).await, Settled::Done(Status::Succeeded));
}

pub(crate) async fn a_marked_task_whose_worker_died_is_cancelled_by_the_rescuer(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    store.tasks().cancel_one(acme(), id(1), at(10)).await.unwrap();
    let rescued = store.upkeep().expired_leases(claimed.lease.until, 10).await.unwrap().remove(0);
    assert!(rescued.task.cancel_requested);
    assert_eq!(settle(store, retry(&rescued, at(20_000), at(20_000))).await, Settled::Done(Status::Cancelled));
}
