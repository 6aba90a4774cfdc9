//! Facts about ending waiting tasks because a retry budget is spent.

use redrive_core::{Reason, Status, Task, TaskId, TenantId, Timestamp};

use crate::conformance::samples::*;
use crate::conformance::whole::together;
use crate::{
    CleanFrom, DeletePolicy, Error, Expected, RaisedAlert, ReplayOutcome, Settled, Store, Submitted, SuppressOutcome,
    Suppression,
};

fn suppression(tenant: TenantId, id: TaskId, attempt_number: u32) -> Suppression {
    Suppression { tenant, id, attempt_number }
}

/// Suppresses the retry of task `n`, which has made this number of attempts.
async fn suppress(store: &dyn Store, n: u64, attempts: u32, now: Timestamp) -> SuppressOutcome {
    let answers = store.tasks().suppress(vec![suppression(acme(), id(n), attempts)], now).await.unwrap();
    assert_eq!(answers.len(), 1);
    answers.into_iter().next().unwrap().unwrap()
}

fn suppressed(pending: Task, now: Timestamp) -> Task {
    let (status, reason) = (Status::Exhausted, Some(Reason::Budget));
    Task { status, reason, next_attempt_at: None, ended_at: Some(now), ..pending }
}

pub(crate) async fn a_suppressed_retry_ends_exhausted_and_keeps_the_record_of_its_attempts(store: &dyn Store) {
    // Due, and due later.
    for (n, due) in [(1, at(20)), (2, at(9_000))] {
        let claimed = keep_and_claim(store, task(n)).await;
        settle(store, retry(&claimed, at(10), due)).await;
        let pending = now_of(store, &claimed.task).await;
        assert!(pending.last_error.is_some());
        let expected = suppressed(pending, at(30));
        assert_eq!(suppress(store, n, 1, at(30)).await, SuppressOutcome::Done(Box::new(expected.clone())));
        let found = detail(store, &expected).await;
        assert_eq!((found.task, found.answer), (expected.clone(), None));
        assert_eq!(attempts(store, &expected).await.len(), 1);
        assert_eq!(counts(store, acme()).await, [0, 0, 0, 0, n, 0]);
        assert!(claim(store, billing(), 10, at(9_000_000)).await.is_empty());
        assert_eq!(store.upkeep().pending_lanes(None, 10).await.unwrap(), []);
        assert_eq!(store.upkeep().end_overdue(Timestamp::MAX, 10).await.unwrap().ended, []);
    }
}

pub(crate) async fn only_a_task_that_waits_with_this_number_of_attempts_is_suppressed(store: &dyn Store) {
    keep(store, [task(1)]).await;
    keep_retries(store, [task(2).due(at(50))]).await;
    // In flight, and given back unsent after a cancel.
    keep(store, [task(3).claimed(at(0))]).await;
    let marked = keep_and_claim(store, task(4).to("other")).await;
    store.tasks().cancel_one(acme(), id(4), at(5)).await.unwrap();
    for (n, status) in [(5, Status::Succeeded), (6, Status::Failed), (7, Status::Exhausted)] {
        keep_and_end(store, task(n).to("ended"), status, at(5)).await;
    }
    let before = crate::conformance::snapshot(store, [acme()]).await;
    let unchanged = [(1, 1), (2, 0), (2, 2), (2, u32::MAX), (3, 1), (3, 0), (4, 1), (5, 1), (6, 1), (7, 1)];
    for (n, attempts) in unchanged {
        let is = now_of(store, &task(n).0.task).await;
        let said = suppress(store, n, attempts, at(30)).await;
        assert_eq!(said, SuppressOutcome::NotWaiting(Box::new(is)), "task {n}, {attempts} attempts");
    }
    for (tenant, n) in [(acme(), 99), (tenant("other"), 2), (tenant("nobody"), 2)] {
        let said = store.tasks().suppress(vec![suppression(tenant, id(n), 1)], at(30)).await.unwrap();
        assert!(matches!(said[..], [Ok(SuppressOutcome::NotFound)]), "task {n}: {said:?}");
    }
    crate::conformance::snapshot(store, [acme()]).await.assert_is(&before, "after suppressions that change nothing");
    assert_eq!(settle(store, unsent(&marked, at(40), at(50))).await, Settled::Done(Status::Cancelled));
    assert!(matches!(suppress(store, 4, 0, at(60)).await, SuppressOutcome::NotWaiting(_)));
}

pub(crate) async fn a_suppressed_task_is_an_unannounced_dead_letter(store: &dyn Store) {
    keep_retries(store, [task(1).due(at(50))]).await;
    assert!(matches!(suppress(store, 1, 1, at(30)).await, SuppressOutcome::Done(_)));
    let ended = now_of(store, &task(1).0.task).await;
    assert_eq!(store.upkeep().pending_alerts(at(30), 10).await.unwrap(), []);
    assert_eq!(store.upkeep().pending_alerts(at(31), 10).await.unwrap(), [ended]);
    store.upkeep().confirm_alerts(vec![RaisedAlert { tenant: acme(), id: id(1), run: 1 }]).await.unwrap();
    assert_eq!(store.upkeep().pending_alerts(at(31), 10).await.unwrap(), []);
}

pub(crate) async fn a_suppressed_task_is_replayed_and_may_be_suppressed_again(store: &dyn Store) {
    let first = keep_and_claim(store, task(1)).await;
    settle(store, retry(&first, at(10), at(20))).await;
    assert!(matches!(suppress(store, 1, 1, at(30)).await, SuppressOutcome::Done(_)));
    let replayed = store.tasks().replay_one(acme(), id(1), at(40)).await.unwrap();
    assert!(
        matches!(&replayed, ReplayOutcome::Done(task) if (task.run, task.attempt_number) == (2, 1)),
        "{replayed:?}"
    );
    assert_eq!(store.upkeep().pending_alerts(Timestamp::MAX, 10).await.unwrap(), []);
    let second = claim(store, billing(), 1, at(40)).await.remove(0);
    assert_eq!((second.lease.token.0, second.task.attempt_number), (first.lease.token.0 + 1, 2));
    settle(store, retry(&second, at(50), at(60))).await;
    assert!(matches!(suppress(store, 1, 1, at(70)).await, SuppressOutcome::NotWaiting(_)));
    let pending = now_of(store, &second.task).await;
    assert_eq!(suppress(store, 1, 2, at(70)).await, SuppressOutcome::Done(Box::new(suppressed(pending, at(70)))));
    assert_eq!(attempts(store, &second.task).await.len(), 2);
    assert_eq!(counts(store, acme()).await, [0, 0, 0, 0, 1, 0]);
}

pub(crate) async fn a_suppressed_task_no_longer_pins_its_policy_and_keeps_its_key(store: &dyn Store) {
    let spec = redrive_core::policy::Spec::default();
    store.policies().put(acme(), policy_id("hooks"), spec, Expected::Anything, at(0)).await.unwrap();
    keep_retries(store, [task(1).key("k").policy("hooks", 1)]).await;
    let delete = || store.policies().delete(acme(), policy_id("hooks"), Expected::Anything);
    assert_eq!(delete().await.unwrap(), DeletePolicy::Pinned(1));
    let SuppressOutcome::Done(ended) = suppress(store, 1, 1, at(30)).await else { panic!("it was not suppressed") };
    assert_eq!(submit(store, [task(2).key("k")]).await, [Submitted::Replayed(ended)]);
    assert_eq!(delete().await.unwrap(), DeletePolicy::Done);
}

pub(crate) async fn a_suppressed_task_is_cleaned_away_with_its_note(store: &dyn Store) {
    keep_retries(store, [task(1)]).await;
    suppress(store, 1, 1, at(30)).await;
    assert_eq!(store.upkeep().clean(at(31), CleanFrom::Start, 10).await.unwrap().removed, 1);
    assert_eq!(store.reads().task(acme(), id(1)).await.unwrap(), None);
    assert_eq!(store.upkeep().pending_alerts(Timestamp::MAX, 10).await.unwrap(), []);
    assert_eq!(counts(store, acme()).await, [0; 6]);
}

pub(crate) async fn many_tasks_are_suppressed_in_one_call_and_answered_in_order(store: &dyn Store) {
    keep_retries(store, [task(1), task(2), task(3), task(4).of("other")]).await;
    let given =
        [(acme(), 3, 1), (acme(), 8, 1), (acme(), 1, 2), (tenant("other"), 4, 1), (acme(), 1, 1), (acme(), 3, 1)];
    let given = given.into_iter().map(|(tenant, n, attempts)| suppression(tenant, id(n), attempts)).collect();
    let answers = store.tasks().suppress(given, at(40)).await.unwrap();
    let said = |answer: &Result<SuppressOutcome, Error>| match answer.as_ref().unwrap() {
        SuppressOutcome::Done(task) => ("done", Some(task.id)),
        SuppressOutcome::NotWaiting(task) => ("not waiting", Some(task.id)),
        SuppressOutcome::NotFound => ("not found", None),
    };
    let done = |n| ("done", Some(id(n)));
    let not_waiting = |n| ("not waiting", Some(id(n)));
    let answered: Vec<_> = answers.iter().map(said).collect();
    assert_eq!(answered, [done(3), ("not found", None), not_waiting(1), done(4), done(1), not_waiting(3)]);
    assert_eq!(counts(store, acme()).await, [1, 0, 0, 0, 2, 0]);
    assert_eq!(counts(store, tenant("other")).await, [0, 0, 0, 0, 1, 0]);
    assert_eq!(store.tasks().suppress(Vec::new(), at(40)).await.unwrap().len(), 0);
}

pub(crate) async fn of_many_callers_at_once_one_suppresses(store: &dyn Store) {
    keep_retries(store, [task(1)]).await;
    let said = together((0..10).map(|_| suppress(store, 1, 1, at(30)))).await;
    assert_eq!(said.iter().filter(|said| matches!(said, SuppressOutcome::Done(_))).count(), 1);
    assert_eq!(counts(store, acme()).await, [0, 0, 0, 0, 1, 0]);
}
