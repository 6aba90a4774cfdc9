//! Facts about pending tasks whose deadline has passed.

use redrive_core::{Class, Reason, Status, Task, Timestamp};

use crate::conformance::samples::*;
use crate::{CleanFrom, DeletePolicy, Expected, Overdue, RaisedAlert, ReplayOutcome, Settled, Store, Submitted};

/// Ends at most 100 overdue tasks; returns them and the next deadline.
async fn end_overdue(store: &dyn Store, now: Timestamp) -> (Vec<Task>, Option<Timestamp>) {
    let Overdue { ended, next_deadline } = store.upkeep().end_overdue(now, 100).await.unwrap();
    (ended, next_deadline)
}

pub(crate) async fn a_pending_task_ends_exhausted_at_its_deadline_without_an_attempt(store: &dyn Store) {
    // Due long before the deadline, and due only after it.
    for (n, due) in [(1, at(0)), (2, at(9_000))] {
        let sample = task(n).due(due).deadline(at(500));
        keep(store, [sample.clone()]).await;
        assert_eq!(end_overdue(store, at(499)).await, (vec![], Some(at(500))));
        let expected = Task {
            status: Status::Exhausted,
            reason: Some(Reason::Deadline),
            next_attempt_at: None,
            ended_at: Some(at(500)),
            ..sample.0.task
        };
        assert_eq!(end_overdue(store, at(500)).await, (vec![expected.clone()], None));
        let found = detail(store, &expected).await;
        assert_eq!((found.task, found.answer), (expected.clone(), None));
        assert_eq!(attempts(store, &expected).await, []);
        assert_eq!(counts(store, acme()).await, [0, 0, 0, 0, n, 0]);
        assert!(claim(store, billing(), 10, at(9_000_000)).await.is_empty());
        assert_eq!(store.upkeep().pending_lanes(None, 10).await.unwrap(), []);
        assert_eq!(end_overdue(store, at(9_000)).await, (vec![], None), "it has ended already");
    }
}

pub(crate) async fn an_overdue_retry_keeps_the_record_of_its_attempts(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1).deadline(at(500))).await;
    settle(store, retry(&claimed, at(10), at(400))).await;
    let pending = now_of(store, &claimed.task).await;
    let (ended, _) = end_overdue(store, at(600)).await;
    let expected = Task {
        status: Status::Exhausted,
        reason: Some(Reason::Deadline),
        next_attempt_at: None,
        ended_at: Some(at(600)),
        ..pending
    };
    assert_eq!(ended, [expected]);
    assert_eq!(attempts(store, &claimed.task).await.len(), 1);
}

pub(crate) async fn overdue_tasks_end_earliest_deadline_first_up_to_the_limit(store: &dyn Store) {
    let late = [(1, "one", 40), (2, "two", 10), (3, "one", 30), (4, "three", 20)];
    keep(store, late.map(|(n, name, deadline)| task(n).of(name).to(name).deadline(at(deadline)))).await;
    keep_retries(store, [task(5).deadline(at(25))]).await;
    keep(store, [task(6).deadline(at(99))]).await;
    // limit, ended, the next deadline
    for (limit, ended, next) in
        [(0, vec![], 10), (2, vec![2, 4], 25), (1, vec![5], 30), (9, vec![3, 1], 99), (9, vec![], 99)]
    {
        let overdue = store.upkeep().end_overdue(at(50), limit).await.unwrap();
        let found: Vec<_> = overdue.ended.iter().map(|task| task.id).collect();
        assert_eq!(found, ended.into_iter().map(id).collect::<Vec<_>>(), "at most {limit}");
        assert_eq!(overdue.next_deadline, Some(at(next)), "at most {limit}");
    }
    assert_eq!(counts(store, tenant("one")).await, [0, 0, 0, 0, 2, 0]);
    assert_eq!(counts(store, acme()).await, [1, 0, 0, 0, 1, 0]);
}

pub(crate) async fn a_task_in_flight_is_not_ended_by_its_deadline(store: &dyn Store) {
    keep(store, [task(1).deadline(at(500)).claimed(at(0))]).await;
    let claimed = keep_and_claim(store, task(2).deadline(at(600))).await;
    assert_eq!(end_overdue(store, at(9_000)).await, (vec![], None));
    assert_eq!(now_of(store, &claimed.task).await, claimed.task);
    settle(store, unsent(&claimed, at(9_000), at(9_000))).await;
    let (ended, _) = end_overdue(store, at(9_000)).await;
    assert_eq!(ended.iter().map(|task| task.id).collect::<Vec<_>>(), [id(2)], "once it is pending again");
}

pub(crate) async fn an_ended_task_is_not_ended_again_by_its_deadline(store: &dyn Store) {
    for (n, status) in [(1, Status::Succeeded), (2, Status::Failed), (3, Status::Exhausted)] {
        keep_and_end(store, task(n).deadline(at(500)), status, at(10)).await;
    }
    keep(store, [task(4).deadline(at(500))]).await;
    store.tasks().cancel_one(acme(), id(4), at(10)).await.unwrap();
    // Cancelled in flight, then given back unsent.
    let marked = keep_and_claim(store, task(5).deadline(at(500))).await;
    store.tasks().cancel_one(acme(), id(5), at(10)).await.unwrap();
    assert_eq!(settle(store, unsent(&marked, at(20), at(30))).await, Settled::Done(Status::Cancelled));
    let before = crate::conformance::snapshot(store, [acme()]).await;
    assert_eq!(end_overdue(store, at(9_000)).await, (vec![], None));
    crate::conformance::snapshot(store, [acme()]).await.assert_is(&before, "after the deadlines of ended tasks");
}

pub(crate) async fn a_task_that_was_brought_forward_keeps_its_deadline(store: &dyn Store) {
    keep(store, [task(1).due(at(400)).deadline(at(500))]).await;
    store.tasks().bring_one_forward(acme(), id(1), at(10)).await.unwrap();
    assert_eq!(end_overdue(store, at(499)).await, (vec![], Some(at(500))));
    assert_eq!(end_overdue(store, at(500)).await.0.len(), 1);
}

pub(crate) async fn an_overdue_task_is_an_unannounced_dead_letter(store: &dyn Store) {
    keep(store, [task(1).deadline(at(500))]).await;
    let (ended, _) = end_overdue(store, at(510)).await;
    assert_eq!(store.upkeep().pending_alerts(at(510), 10).await.unwrap(), []);
    assert_eq!(store.upkeep().pending_alerts(at(511), 10).await.unwrap(), ended);
    store.upkeep().confirm_alerts(vec![RaisedAlert { tenant: acme(), id: id(1), run: 1 }]).await.unwrap();
    assert_eq!(store.upkeep().pending_alerts(at(511), 10).await.unwrap(), []);
}

pub(crate) async fn an_overdue_task_keeps_its_key(store: &dyn Store) {
    let sample = task(1).key("k").deadline(at(500));
    keep(store, [sample.clone()]).await;
    let ended = end_overdue(store, at(500)).await.0.remove(0);
    let found = store.reads().by_key(acme(), ended.idempotency_key.clone()).await.unwrap();
    assert_eq!(found, Some((ended.clone(), sample.0.fingerprint)));
    assert_eq!(submit(store, [task(2).key("k")]).await, [Submitted::Replayed(Box::new(ended))]);
}

pub(crate) async fn an_overdue_task_is_replayed_with_its_whole_time(store: &dyn Store) {
    keep(store, [task(1).deadline(at(500))]).await;
    assert_eq!(end_overdue(store, at(510)).await.0.len(), 1);
    let replayed = match store.tasks().replay_one(acme(), id(1), at(2_000)).await.unwrap() {
        ReplayOutcome::Done(task) => *task,
        other => panic!("an overdue task was not replayed: {other:?}"),
    };
    assert_eq!((replayed.status, replayed.run, replayed.deadline_at), (Status::Pending, 2, at(2_500)));
    assert_eq!(store.upkeep().pending_alerts(Timestamp::MAX, 10).await.unwrap(), []);
    let due = lane_due(billing(), Class::First, Some(at(2_000)));
    assert_eq!(store.upkeep().pending_lanes(None, 10).await.unwrap(), [due]);
    assert_eq!(end_overdue(store, at(2_499)).await, (vec![], Some(at(2_500))));
    let claimed = claim(store, billing(), 1, at(2_499)).await;
    assert_eq!(claimed[0].task.attempt_number, 1);
    give_back(store, &claimed, at(2_499)).await;
    let (ended, next) = end_overdue(store, at(2_500)).await;
    assert_eq!((ended[0].run, ended[0].reason, next), (2, Some(Reason::Deadline), None));
}

pub(crate) async fn an_overdue_task_no_longer_pins_its_policy(store: &dyn Store) {
    let spec = redrive_core::policy::Spec::default();
    store.policies().put(acme(), policy_id("hooks"), spec, Expected::Anything, at(0)).await.unwrap();
    keep(store, [task(1).policy("hooks", 1).deadline(at(500))]).await;
    let delete = || store.policies().delete(acme(), policy_id("hooks"), Expected::Anything);
    assert_eq!(delete().await.unwrap(), DeletePolicy::Pinned(1));
    end_overdue(store, at(500)).await;
    assert_eq!(delete().await.unwrap(), DeletePolicy::Done);
}

pub(crate) async fn an_overdue_task_is_cleaned_away_with_its_note(store: &dyn Store) {
    keep(store, [task(1).deadline(at(500))]).await;
    end_overdue(store, at(510)).await;
    assert_eq!(store.upkeep().clean(at(511), CleanFrom::Start, 10).await.unwrap().removed, 1);
    assert_eq!(store.reads().task(acme(), id(1)).await.unwrap(), None);
    assert_eq!(store.upkeep().pending_alerts(Timestamp::MAX, 10).await.unwrap(), []);
    assert_eq!(counts(store, acme()).await, [0; 6]);
}
