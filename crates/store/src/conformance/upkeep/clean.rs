//! Facts about removing tasks that ended long ago.

use redrive_core::{Status, Timestamp};

use crate::conformance::samples::*;
use crate::{CleanFrom, Cleaned, Store, Submitted};

/// A whole pass in steps of `limit`; returns how many tasks each step removed.
async fn pass(store: &dyn Store, ended_before: Timestamp, limit: usize) -> Vec<usize> {
    let (mut from, mut steps) = (CleanFrom::Start, Vec::new());
    loop {
        let Cleaned { removed, next } = store.upkeep().clean(ended_before, from, limit).await.unwrap();
        assert!(removed <= limit, "a step of {limit} removed {removed}");
        steps.push(removed);
        let Some(next) = next else { return steps };
        assert_ne!(next, from, "a pass gets on, or it never ends");
        from = next;
    }
}

pub(crate) async fn an_old_ended_task_goes_with_all_that_belongs_to_it(store: &dyn Store) {
    let claimed = keep_and_end(store, task(1).key("k"), Status::Succeeded, at(10)).await;
    assert_eq!(pass(store, at(11), 100).await.iter().sum::<usize>(), 1);
    assert_eq!(store.reads().task(acme(), id(1)).await.unwrap(), None);
    assert_eq!(store.reads().attempts(acme(), id(1), 0, 10).await.unwrap(), None);
    assert_eq!(list(store, everything(acme())).await, []);
    assert_eq!(counts(store, acme()).await, [0; 6]);
    assert_eq!(settle(store, succeed(&claimed, at(12))).await, crate::Settled::LeaseLost);
    // The key is free again, even for another request.
    let other = task(2).key("k").body("other");
    assert_eq!(submit(store, [other.clone()]).await, [Submitted::Created(Box::new(other.0.task), None)]);
}

pub(crate) async fn a_task_is_old_if_it_ended_before_the_moment_and_not_at_it(store: &dyn Store) {
    for (n, status) in [(1, Status::Succeeded), (2, Status::Failed), (3, Status::Exhausted)] {
        keep_and_end(store, task(n), status, at(n * 10)).await;
    }
    keep(store, [task(4)]).await;
    store.tasks().cancel_one(acme(), id(4), at(40)).await.unwrap();
    let left = async || list(store, everything(acme())).await.len();
    for (before, expected) in [(10, 4), (11, 3), (20, 3), (21, 2), (31, 1), (40, 1), (41, 0)] {
        pass(store, at(before), 100).await;
        assert_eq!(left().await, expected, "before {before}");
    }
}

pub(crate) async fn a_live_task_is_never_cleaned_away(store: &dyn Store) {
    keep(store, [task(1).created(at(0)), task(2).claimed(at(0))]).await;
    let retried = keep_and_claim(store, task(3).to("three")).await;
    settle(store, retry(&retried, at(5), at(6))).await;
    assert_eq!(pass(store, Timestamp::MAX, 100).await.iter().sum::<usize>(), 0);
    assert_eq!(counts(store, acme()).await, [2, 1, 0, 0, 0, 0]);
    assert_eq!(claim(store, billing(), 10, at(9)).await.len(), 1);
    assert_eq!(attempts(store, &retried.task).await.len(), 1);
}

pub(crate) async fn a_pass_goes_in_steps_and_reaches_everything(store: &dyn Store) {
    keep(store, (0..50).map(|n| task(n).of(["one", "two"][n as usize % 2]))).await;
    for n in (0..50).filter(|n| n % 3 != 0) {
        store.tasks().cancel_one(tenant(["one", "two"][n as usize % 2]), id(n), at(n)).await.unwrap();
    }
    let steps = pass(store, at(1_000), 7).await;
    assert_eq!(steps.iter().sum::<usize>(), 33);
    assert!(steps.len() > 1, "50 tasks are not looked at in one step of 7");
    let (one, two) = (counts(store, tenant("one")).await, counts(store, tenant("two")).await);
    assert_eq!((one[0] + two[0], one[5] + two[5]), (17, 0));
    assert_eq!(pass(store, at(1_000), 7).await.iter().sum::<usize>(), 0, "a second pass finds nothing");
}

pub(crate) async fn the_first_step_begins_with_the_oldest(store: &dyn Store) {
    for n in [3, 1, 2] {
        keep_and_end(store, task(n), Status::Failed, at(5)).await;
    }
    let step = store.upkeep().clean(at(6), CleanFrom::Start, 1).await.unwrap();
    assert_eq!(step, Cleaned { removed: 1, next: Some(CleanFrom::After(id(1))) });
    assert_eq!(store.reads().task(acme(), id(1)).await.unwrap(), None);
    let step = store.upkeep().clean(at(6), CleanFrom::After(id(2)), 10).await.unwrap();
    assert_eq!(step, Cleaned { removed: 1, next: None });
    assert!(store.reads().task(acme(), id(2)).await.unwrap().is_some());
}

pub(crate) async fn the_newest_id_outlives_its_task(store: &dyn Store) {
    keep_and_end(store, task(5), Status::Succeeded, at(5)).await;
    pass(store, at(6), 100).await;
    assert_eq!(store.upkeep().newest_task().await.unwrap(), Some(id(5)));
}

pub(crate) async fn the_current_version_of_a_policy_is_never_cleaned_away(store: &dyn Store) {
    keep_and_end(store, task(1), Status::Succeeded, at(5)).await;
    pass(store, Timestamp::MAX, 100).await;
    keep(store, [task(2)]).await;
}
