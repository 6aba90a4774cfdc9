//! Facts about recording which dead letters still need an alert.

use redrive_core::{Reason, Status, Task, TaskId, Timestamp};

use crate::conformance::samples::*;
use crate::{CleanFrom, RaisedAlert, Settled, Store};

async fn unannounced(store: &dyn Store) -> Vec<TaskId> {
    store.upkeep().pending_alerts(Timestamp::MAX, 1_000).await.unwrap().iter().map(|task| task.id).collect()
}

fn said(task: &Task, run: u32) -> RaisedAlert {
    RaisedAlert { tenant: task.lane.tenant.clone(), id: task.id, run }
}

pub(crate) async fn a_dead_letter_is_unannounced_until_its_alert_is_confirmed(store: &dyn Store) {
    for (n, status) in [(1, Status::Failed), (2, Status::Exhausted)] {
        let dead = keep_and_end(store, task(n), status, at(10)).await.task;
        assert_eq!(store.upkeep().pending_alerts(at(11), 10).await.unwrap(), [now_of(store, &dead).await]);
        for _ in 0..2 {
            store.upkeep().confirm_alerts(vec![said(&dead, 1)]).await.unwrap();
            assert_eq!(unannounced(store).await, []);
        }
        assert_eq!(now_of(store, &dead).await.status, status, "it is a dead letter all the same");
    }
}

pub(crate) async fn only_dead_letters_are_to_be_announced(store: &dyn Store) {
    keep_and_end(store, task(1), Status::Succeeded, at(10)).await;
    let retried = keep_and_claim(store, task(2)).await;
    settle(store, retry(&retried, at(10), at(9_000))).await;
    keep(store, [task(3).to("b"), task(4).to("c"), task(5).to("d")]).await;
    store.tasks().cancel_one(acme(), id(3), at(10)).await.unwrap();
    // Cancelled while in flight: it ends CANCELLED and not as a dead letter.
    let marked = claim(store, lane(TENANT, "c"), 1, at(0)).await.remove(0);
    store.tasks().cancel_one(acme(), id(4), at(10)).await.unwrap();
    let ended = end(&marked, Status::Failed, Some(Reason::NotRetryable), at(20));
    assert_eq!(settle(store, ended).await, Settled::Done(Status::Cancelled));
    claim(store, lane(TENANT, "d"), 1, at(0)).await;
    assert_eq!(unannounced(store).await, []);
}

pub(crate) async fn a_settle_that_changes_nothing_announces_nothing(store: &dyn Store) {
    let held = keep_and_claim(store, task(1)).await;
    settle(store, succeed(&held, at(10))).await;
    let late = end(&held, Status::Failed, Some(Reason::NotRetryable), at(20));
    assert_eq!(settle(store, late).await, Settled::LeaseLost);
    assert_eq!(unannounced(store).await, []);
}

pub(crate) async fn what_ended_first_is_announced_first_up_to_the_limit(store: &dyn Store) {
    for (n, ended) in [(1, 40), (2, 20), (3, 30), (4, 10)] {
        let sample = task(n).of(["acme", "other"][n as usize % 2]);
        keep_and_end(store, sample, Status::Failed, at(ended)).await;
    }
    // ended before, limit, found
    for (before, limit, found) in [
        (10, 10, vec![]),
        (11, 10, vec![4]),
        (31, 10, vec![4, 2, 3]),
        (41, 10, vec![4, 2, 3, 1]),
        (41, 2, vec![4, 2]),
        (41, 0, vec![]),
    ] {
        let tasks = store.upkeep().pending_alerts(at(before), limit).await.unwrap();
        let ids: Vec<_> = tasks.iter().map(|task| task.id).collect();
        assert_eq!(ids, found.into_iter().map(id).collect::<Vec<_>>(), "before {before}, at most {limit}");
    }
}

pub(crate) async fn a_tenant_cannot_confirm_alerts_of_another(store: &dyn Store) {
    let dead = keep_and_end(store, task(1), Status::Failed, at(10)).await.task;
    keep_and_end(store, task(2).of("other"), Status::Failed, at(10)).await;
    for (tenant, id) in [(tenant("other"), id(1)), (tenant("nobody"), id(1)), (acme(), id(2)), (acme(), id(77))] {
        store.upkeep().confirm_alerts(vec![RaisedAlert { tenant, id, run: 1 }]).await.unwrap();
    }
    assert_eq!(unannounced(store).await, [id(1), id(2)]);
    // An unknown task does not affect the rest of the call.
    let unknown = RaisedAlert { tenant: tenant("nobody"), id: id(9), run: 1 };
    store.upkeep().confirm_alerts(vec![unknown, said(&dead, 1)]).await.unwrap();
    assert_eq!(unannounced(store).await, [id(2)]);
}

pub(crate) async fn a_replay_makes_an_alert_needless_and_the_next_end_needs_one_of_its_own(store: &dyn Store) {
    let dead = keep_and_end(store, task(1), Status::Failed, at(10)).await.task;
    store.tasks().replay_one(acme(), id(1), at(20)).await.unwrap();
    assert_eq!(unannounced(store).await, []);
    let again = claim(store, billing(), 1, at(20)).await.remove(0);
    settle(store, end(&again, Status::Exhausted, Some(Reason::Attempts), at(30))).await;
    store.upkeep().confirm_alerts(vec![said(&dead, 1)]).await.unwrap();
    assert_eq!(unannounced(store).await, [id(1)], "the first run's alert says nothing of the second");
    store.upkeep().confirm_alerts(vec![said(&dead, 2)]).await.unwrap();
    assert_eq!(unannounced(store).await, []);
}

pub(crate) async fn a_replay_of_what_was_announced_is_announced_again(store: &dyn Store) {
    let dead = keep_and_end(store, task(1), Status::Failed, at(10)).await.task;
    store.upkeep().confirm_alerts(vec![said(&dead, 1)]).await.unwrap();
    store.tasks().replay_one(acme(), id(1), at(20)).await.unwrap();
    let again = claim(store, billing(), 1, at(20)).await.remove(0);
    settle(store, end(&again, Status::Failed, Some(Reason::NotRetryable), at(30))).await;
    assert_eq!(store.upkeep().pending_alerts(at(31), 10).await.unwrap(), [now_of(store, &dead).await]);
}

pub(crate) async fn a_task_that_is_cleaned_away_is_not_announced(store: &dyn Store) {
    for n in [1, 2] {
        keep_and_end(store, task(n), Status::Failed, at(n * 10)).await;
    }
    store.upkeep().clean(at(15), CleanFrom::Start, 10).await.unwrap();
    assert_eq!(unannounced(store).await, [id(2)]);
    // The store must accept the same id again: nothing of the first task is left.
    keep(store, [task(1)]).await;
    assert_eq!(unannounced(store).await, [id(2)]);
}
