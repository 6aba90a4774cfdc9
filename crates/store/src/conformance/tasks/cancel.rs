//! Facts about cancelling a task and bringing it forward.

use redrive_core::{Class, Reason, Status, Task};

use crate::conformance::samples::*;
use crate::{BringForwardOutcome, CancelOutcome, Error, Settled, Store, TaskKey};

pub(crate) async fn a_pending_task_is_cancelled_at_once(store: &dyn Store) {
    let sample = task(1).due(at(100));
    keep(store, [sample.clone()]).await;
    let expected = Task {
        status: Status::Cancelled,
        reason: Some(Reason::Cancelled),
        next_attempt_at: None,
        ended_at: Some(at(40)),
        ..sample.0.task
    };
    assert_eq!(
        store.tasks().cancel_one(acme(), id(1), at(40)).await.unwrap(),
        CancelOutcome::Done(Box::new(expected.clone()))
    );
    assert_eq!(now_of(store, &expected).await, expected);
    assert!(claim(store, billing(), 10, at(9_000_000)).await.is_empty(), "no send begins after a committed cancel");
    assert!(store.upkeep().pending_lanes(None, 10).await.unwrap().is_empty());
    assert_eq!(counts(store, acme()).await, [0, 0, 0, 0, 0, 1]);
}

pub(crate) async fn a_task_between_two_attempts_is_cancelled_at_once(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    settle(store, retry(&claimed, at(10), at(20))).await;
    store.tasks().cancel_one(acme(), id(1), at(15)).await.unwrap();
    let found = now_of(store, &claimed.task).await;
    assert_eq!((found.status, found.attempt_number), (Status::Cancelled, 1));
    assert_eq!(attempts(store, &claimed.task).await.len(), 1);
}

pub(crate) async fn a_task_in_flight_is_only_marked(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    let marked = Task { cancel_requested: true, ..claimed.task.clone() };
    for now in [at(10), at(11)] {
        let cancelled = store.tasks().cancel_one(acme(), id(1), now).await.unwrap();
        assert_eq!(cancelled, CancelOutcome::Done(Box::new(marked.clone())));
    }
    assert_eq!(now_of(store, &claimed.task).await, marked);
}

pub(crate) async fn a_marked_task_is_cancelled_when_its_attempt_ends_without_success(store: &dyn Store) {
    keep(store, (1..=4).map(|n| task(n).due(at(n)))).await;
    let claimed = claim(store, billing(), 4, at(10)).await;
    for claimed in &claimed {
        store.tasks().cancel_one(acme(), claimed.task.id, at(20)).await.unwrap();
    }
    let settled = store
        .tasks()
        .settle(vec![
            retry(&claimed[0], at(30), at(40)),
            end(&claimed[1], Status::Failed, Some(Reason::NotRetryable), at(30)),
            end(&claimed[2], Status::Exhausted, Some(Reason::Attempts), at(30)),
            unsent(&claimed[3], at(30), at(40)),
        ])
        .await
        .unwrap();
    assert_eq!(settled, [Settled::Done(Status::Cancelled); 4]);
    for claimed in &claimed {
        let found = now_of(store, &claimed.task).await;
        assert_eq!((found.status, found.reason), (Status::Cancelled, Some(Reason::Cancelled)));
        assert_eq!((found.ended_at, found.next_attempt_at), (Some(at(30)), None));
    }
    assert_eq!(attempts(store, &claimed[0].task).await.len(), 1, "the attempt was made, so it is logged");
    assert_eq!(detail(store, &claimed[1].task).await.answer, Some(*answer(503)));
    assert_eq!(now_of(store, &claimed[3].task).await.attempt_number, 0);
    assert!(claim(store, billing(), 10, at(9_000_000)).await.is_empty());
    assert_eq!(counts(store, acme()).await, [0, 0, 0, 0, 0, 4]);
}

pub(crate) async fn a_marked_task_that_succeeds_has_succeeded(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    store.tasks().cancel_one(acme(), id(1), at(10)).await.unwrap();
    assert_eq!(settle(store, succeed(&claimed, at(20))).await, Settled::Done(Status::Succeeded));
    let found = now_of(store, &claimed.task).await;
    assert_eq!((found.status, found.reason, found.ended_at), (Status::Succeeded, None, Some(at(20))));
}

pub(crate) async fn an_ended_task_cannot_be_cancelled(store: &dyn Store) {
    for (n, status) in [(1, Status::Succeeded), (2, Status::Failed), (3, Status::Exhausted)] {
        keep_and_end(store, task(n), status, at(10)).await;
    }
    keep(store, [task(4)]).await;
    store.tasks().cancel_one(acme(), id(4), at(10)).await.unwrap();
    for n in 1..=4 {
        let before = now_of(store, &task(n).0.task).await;
        let cancelled = store.tasks().cancel_one(acme(), id(n), at(20)).await.unwrap();
        assert_eq!(cancelled, CancelOutcome::AlreadyEnded(Box::new(before.clone())));
        assert_eq!(now_of(store, &before).await, before);
    }
}

pub(crate) async fn a_later_due_task_is_brought_forward_to_now(store: &dyn Store) {
    let sample = task(1).due(at(5_000));
    keep(store, [sample.clone()]).await;
    let expected = Task { next_attempt_at: Some(at(40)), ..sample.0.task };
    let brought = store.tasks().bring_one_forward(acme(), id(1), at(40)).await.unwrap();
    assert_eq!(brought, BringForwardOutcome::Done(Box::new(expected.clone())));
    assert_eq!(now_of(store, &expected).await, expected);
    let lanes = store.upkeep().pending_lanes(None, 10).await.unwrap();
    assert_eq!(lanes, [lane_due(billing(), Class::First, Some(at(40)))]);
    assert_eq!(claim(store, billing(), 1, at(40)).await.len(), 1);
}

pub(crate) async fn a_task_that_is_due_earlier_keeps_its_place(store: &dyn Store) {
    let sample = task(1).due(at(30));
    keep(store, [sample.clone()]).await;
    let brought = store.tasks().bring_one_forward(acme(), id(1), at(40)).await.unwrap();
    assert_eq!(brought, BringForwardOutcome::Done(Box::new(sample.0.task.clone())));
    assert_eq!(now_of(store, &sample.0.task).await, sample.0.task);
}

pub(crate) async fn a_task_in_flight_or_ended_is_not_brought_forward(store: &dyn Store) {
    let ended = keep_and_end(store, task(1), Status::Failed, at(10)).await.task;
    let in_flight = keep_and_claim(store, task(2)).await.task;
    let ended = now_of(store, &ended).await;
    let brought = store.tasks().bring_one_forward(acme(), id(1), at(40)).await.unwrap();
    assert_eq!(brought, BringForwardOutcome::AlreadyEnded(Box::new(ended.clone())));
    let brought = store.tasks().bring_one_forward(acme(), id(2), at(40)).await.unwrap();
    assert_eq!(brought, BringForwardOutcome::InFlight(Box::new(in_flight.clone())));
    assert_eq!(now_of(store, &ended).await, ended);
    assert_eq!(now_of(store, &in_flight).await, in_flight);
}

pub(crate) async fn a_tenant_cannot_cancel_or_bring_forward_tasks_of_another(store: &dyn Store) {
    let sample = task(1).due(at(5_000));
    keep(store, [sample.clone(), task(2).of("other")]).await;
    for (tenant, task) in [(tenant("other"), id(1)), (tenant("nobody"), id(1)), (acme(), id(77)), (acme(), id(2))] {
        assert_eq!(store.tasks().cancel_one(tenant.clone(), task, at(9)).await.unwrap(), CancelOutcome::NotFound);
        assert_eq!(store.tasks().bring_one_forward(tenant, task, at(9)).await.unwrap(), BringForwardOutcome::NotFound);
    }
    assert_eq!(now_of(store, &sample.0.task).await, sample.0.task);
}

pub(crate) async fn many_tasks_are_cancelled_in_one_call_and_answered_in_order(store: &dyn Store) {
    let ended = keep_and_end(store, task(9), Status::Succeeded, at(1)).await;
    keep(store, [task(1).due(at(50)), task(2).due(at(60)), task(3).of("other").due(at(50))]).await;
    let keys = [(acme(), 2), (acme(), 7), (acme(), 9), (acme(), 1), (tenant("other"), 1), (acme(), 2)];
    let keys = keys.into_iter().map(|(tenant, n)| TaskKey { tenant, id: id(n) }).collect();
    let answers = store.tasks().cancel(keys, at(40)).await.unwrap();
    let cancelled: Vec<_> = answers
        .iter()
        .map(|answer| match answer.as_ref().unwrap() {
            CancelOutcome::Done(task) => ("done", Some(task.id)),
            CancelOutcome::AlreadyEnded(task) => ("ended", Some(task.id)),
            CancelOutcome::NotFound => ("not found", None),
        })
        .collect();
    let expected = [
        ("done", Some(id(2))),
        ("not found", None),
        ("ended", Some(ended.task.id)),
        ("done", Some(id(1))),
        ("not found", None),
        ("ended", Some(id(2))),
    ];
    assert_eq!(cancelled, expected);
    assert_eq!(counts(store, acme()).await, [0, 0, 1, 0, 0, 2]);
    assert_eq!(counts(store, tenant("other")).await, [1, 0, 0, 0, 0, 0]);
}

pub(crate) async fn many_tasks_are_brought_forward_in_one_call_and_answered_in_order(store: &dyn Store) {
    keep(store, [task(1).due(at(500)), task(2).due(at(600)), task(3).due(at(700))]).await;
    let keys = [3, 8, 1].map(|n| TaskKey { tenant: acme(), id: id(n) }).to_vec();
    let answers = store.tasks().bring_forward(keys, at(40)).await.unwrap();
    let due = |answer: &Result<BringForwardOutcome, Error>| match answer.as_ref().unwrap() {
        BringForwardOutcome::Done(task) => Some((task.id, task.next_attempt_at)),
        other => {
            assert_eq!(*other, BringForwardOutcome::NotFound);
            None
        }
    };
    let expected = [Some((id(3), Some(at(40)))), None, Some((id(1), Some(at(40))))];
    assert_eq!(answers.iter().map(due).collect::<Vec<_>>(), expected);
    assert_eq!(ids(&claim(store, billing(), 10, at(40)).await), [id(1), id(3)]);
}
