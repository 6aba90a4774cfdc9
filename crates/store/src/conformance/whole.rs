//! Facts about a store as a whole: its initial state, closing, and concurrent calls.

use std::future::poll_fn;
use std::task::Poll;

use redrive_core::guards::Controls;
use redrive_core::{PolicyId, Status, Timestamp, policy};

use super::samples::*;
use crate::{
    CleanFrom, Cleaned, CommitHistogram, Condemned, Error, Expected, GuardState, Overdue, Settled, Store, Submitted,
};

pub(super) async fn a_fresh_store_is_empty_and_can_be_written_to(store: &dyn Store) {
    store.health().check().await.unwrap();
    assert_eq!(store.upkeep().newest_task().await.unwrap(), None);
    assert_eq!(store.upkeep().pending_lanes(None, 10).await.unwrap(), []);
    assert_eq!(store.upkeep().expired_leases(at(9_000_000), 10).await.unwrap(), []);
    assert_eq!(store.upkeep().pending_alerts(at(9_000_000), 10).await.unwrap(), []);
    assert_eq!(store.upkeep().end_overdue(Timestamp::MAX, 10).await.unwrap(), Overdue::default());
    assert_eq!(store.reads().list(everything(acme())).await.unwrap(), crate::TaskPage::default());
    assert_eq!(store.policies().list(acme(), None, 10).await.unwrap(), []);
    assert_eq!(store.controls().list(None, 10).await.unwrap(), []);
    assert_eq!(store.reads().task(acme(), id(1)).await.unwrap(), None);
    assert_eq!(counts(store, acme()).await, [0; 6]);
    assert_eq!(store.blobs().condemn(Timestamp::MAX, None, 10).await.unwrap(), Condemned::default());
    let nothing = Cleaned { removed: 0, next: None };
    assert_eq!(store.upkeep().clean(at(0), CleanFrom::Start, 10).await.unwrap(), nothing);
}

pub(super) async fn a_call_by_itself_is_counted_as_one_commit(store: &dyn Store) {
    allow(store, acme()).await;
    let Some(before) = store.health().commits() else { return };
    submit(store, [task(1), task(2)]).await;
    let after = store.health().commits().unwrap();
    let commits = |histogram: &CommitHistogram| histogram.buckets.iter().map(|(_, count)| count).sum::<u64>();
    for (before, after) in [(&before.seconds, &after.seconds), (&before.calls, &after.calls)] {
        assert_eq!(commits(after), commits(before) + 1);
    }
    assert_eq!(after.calls.sum, before.calls.sum + 1.0);
    assert!(after.seconds.sum > before.seconds.sum);
}

pub(super) async fn the_newest_task_is_the_highest_id_ever_kept(store: &dyn Store) {
    keep(store, [task(3)]).await;
    keep(store, [task(7).of("other"), task(5)]).await;
    assert_eq!(store.upkeep().newest_task().await.unwrap(), Some(id(7)));
    submit(store, [task(8).key("key-3"), task(9).policy("nowhere", 1)]).await;
    assert_eq!(store.upkeep().newest_task().await.unwrap(), Some(id(7)), "what was refused was not kept");
}

pub(super) async fn a_closed_store_says_so_to_every_call(store: &dyn Store) {
    keep(store, [task(1)]).await;
    store.close().await;
    store.close().await;
    let (tenant, policy) = (acme, PolicyId::default_policy);
    let spec = policy::Spec::default();
    let answers = [
        ("submit", store.tasks().submit(vec![task(2).0]).await.err()),
        ("claim", store.tasks().claim(request([], at(0))).await.err()),
        ("settle", store.tasks().settle(Vec::new()).await.err()),
        ("cancel", store.tasks().cancel_one(tenant(), id(1), at(0)).await.err()),
        ("bring_forward", store.tasks().bring_one_forward(tenant(), id(1), at(0)).await.err()),
        ("replay", store.tasks().replay_one(tenant(), id(1), at(0)).await.err()),
        ("suppress", store.tasks().suppress(Vec::new(), at(0)).await.err()),
        ("unannounced", store.upkeep().pending_alerts(at(0), 1).await.err()),
        ("announced", store.upkeep().confirm_alerts(Vec::new()).await.err()),
        ("expired", store.upkeep().expired_leases(at(0), 1).await.err()),
        ("end_overdue", store.upkeep().end_overdue(at(0), 1).await.err()),
        ("pending_lanes", store.upkeep().pending_lanes(None, 1).await.err()),
        ("task", store.reads().task(tenant(), id(1)).await.err()),
        ("tasks", store.reads().list(everything(tenant())).await.err()),
        ("counts", store.reads().counts(tenant()).await.err()),
        ("backlogs", store.reads().backlogs(vec![billing()], at(0), 1).await.err()),
        ("attempts", store.reads().attempts(tenant(), id(1), 0, 1).await.err()),
        ("put_policy", store.policies().put(tenant(), policy(), spec, Expected::Anything, at(0)).await.err()),
        ("policy", store.policies().versions(tenant(), policy()).await.err()),
        ("policies", store.policies().list(tenant(), None, 1).await.err()),
        ("delete_policy", store.policies().delete(tenant(), policy(), Expected::Anything).await.err()),
        ("clean", store.upkeep().clean(at(0), CleanFrom::Start, 1).await.err()),
        ("adopt_blob", store.blobs().adopt(tenant(), stored("", 1), at(0)).await.err()),
        ("blob", store.blobs().find(tenant(), stored("", 1).hash).await.err()),
        ("condemn_blobs", store.blobs().condemn(at(0), None, 1).await.err()),
        ("forget_blobs", store.blobs().forget(Vec::new()).await.err()),
        ("replace_controls", store.controls().replace(billing(), Controls::default(), Controls::default()).await.err()),
        ("controls", store.controls().list(None, 1).await.err()),
        ("reserve_record", store.records().reserve(Vec::new(), at(0)).await.err()),
        ("change_record", store.records().change(Vec::new(), at(0)).await.err()),
        ("clean_records", store.records().clean(at(0), 1).await.err()),
        ("newest_task", store.upkeep().newest_task().await.err()),
        ("check", store.health().check().await.err()),
    ];
    for (call, error) in answers {
        assert!(matches!(error, Some(Error::Closed)), "{call} answered {error:?}");
    }
    if let Some(guards) = store.guard_states() {
        guards.keep(vec![GuardState { lane: billing(), state: None }]);
        assert!(matches!(guards.kept(None, 1).await, Err(Error::Closed)));
    }
}

pub(super) async fn of_many_callers_at_once_one_gets_the_key_that_all_want(store: &dyn Store) {
    allow(store, acme()).await;
    let answers = together((0..1_000).map(|n| submit(store, [task(n), task(10_000 + n).key("wanted")]))).await;
    assert!(answers.iter().all(|answers| matches!(answers[0], Submitted::Created(_, None))));
    assert_eq!(answers.iter().filter(|answers| matches!(answers[1], Submitted::Created(_, None))).count(), 1);
    assert_eq!(counts(store, acme()).await, [1_001, 0, 0, 0, 0, 0]);
}

pub(super) async fn no_two_callers_claim_the_same_task(store: &dyn Store) {
    keep(store, (0..50).map(task)).await;
    let claims = together((0..20).map(|_| claim(store, billing(), 3, at(5)))).await;
    let mut claimed: Vec<_> = claims.into_iter().flatten().map(|claimed| claimed.task.id).collect();
    claimed.sort();
    assert_eq!(claimed, (0..50).map(id).collect::<Vec<_>>());
}

pub(super) async fn of_many_callers_at_once_one_settles(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    let settled = together((0..20).map(|_| settle(store, succeed(&claimed, at(5))))).await;
    assert_eq!(settled.iter().filter(|settled| **settled == Settled::Done(Status::Succeeded)).count(), 1);
    assert_eq!(settled.iter().filter(|settled| **settled == Settled::LeaseLost).count(), 19);
    assert_eq!(attempts(store, &claimed.task).await.len(), 1);
}

/// Runs all calls at the same time, so that they queue up at the store's writer.
pub(super) async fn together<F: Future>(calls: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut calls: Vec<_> = calls.into_iter().map(|call| (Box::pin(call), None)).collect();
    poll_fn(|context| {
        for (call, answer) in calls.iter_mut().filter(|(_, answer)| answer.is_none()) {
            if let Poll::Ready(ready) = call.as_mut().poll(context) {
                *answer = Some(ready);
            }
        }
        if calls.iter().all(|(_, answer)| answer.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    calls.into_iter().filter_map(|(_, answer)| answer).collect()
}
