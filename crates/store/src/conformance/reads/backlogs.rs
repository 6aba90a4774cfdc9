//! Facts about the numbers of pending tasks of lanes.

use redrive_core::{Lane, Status, TaskId, Timestamp};

use crate::conformance::samples::*;
use crate::{Backlog, Store};

/// The numbers of one lane, due and due later, up to 1,000.
async fn backlog(store: &dyn Store, lane: Lane, now: Timestamp) -> (u32, u32) {
    let backlogs = store.reads().backlogs(vec![lane], now, 1_000).await.unwrap();
    assert_eq!(backlogs.len(), 1);
    (backlogs[0].due, backlogs[0].waiting)
}

pub(crate) async fn a_backlog_is_what_is_due_and_what_is_due_later(store: &dyn Store) {
    keep(store, [10, 20, 20, 30].into_iter().zip(1..).map(|(due, n)| task(n).due(at(due)))).await;
    for (now, due, waiting) in [(9, 0, 4), (10, 1, 3), (19, 1, 3), (20, 3, 1), (30, 4, 0), (9_000_000, 4, 0)] {
        assert_eq!(backlog(store, billing(), at(now)).await, (due, waiting), "at {now}");
    }
    store.tasks().bring_one_forward(acme(), id(4), at(5)).await.unwrap();
    assert_eq!(backlog(store, billing(), at(9)).await, (1, 3));
}

pub(crate) async fn a_backlog_has_both_classes(store: &dyn Store) {
    keep(store, [task(1).due(at(10)), task(2).due(at(50))]).await;
    keep_retries(store, [task(3).due(at(5)), task(4).due(at(40)), task(5).due(at(60))]).await;
    assert_eq!(backlog(store, billing(), at(45)).await, (3, 2));
    let counted = store.reads().backlogs(vec![billing()], at(45), 2).await.unwrap();
    assert_eq!(counted, [Backlog { due: 2, waiting: 2 }], "the bound is that of both classes together");
}

pub(crate) async fn only_pending_tasks_are_in_a_backlog(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    keep(store, [task(2).claimed(at(0))]).await;
    keep_and_end(store, task(3).to("other"), Status::Failed, at(5)).await;
    keep(store, [task(4)]).await;
    store.tasks().cancel_one(acme(), id(4), at(5)).await.unwrap();
    keep(store, [task(5).deadline(at(7))]).await;
    assert_eq!(store.upkeep().end_overdue(at(7), 10).await.unwrap().ended.len(), 1);
    assert_eq!(backlog(store, billing(), at(9)).await, (0, 0));
    assert_eq!(backlog(store, lane(TENANT, "other"), at(9)).await, (0, 0));
    settle(store, retry(&claimed, at(10), at(20))).await;
    assert_eq!(backlog(store, billing(), at(10)).await, (0, 1), "a retry waits");
    store.tasks().replay_one(acme(), id(3), at(10)).await.unwrap();
    assert_eq!(backlog(store, lane(TENANT, "other"), at(10)).await, (1, 0), "a replay is due");
}

pub(crate) async fn a_backlog_is_counted_up_to_the_bound(store: &dyn Store) {
    keep(store, (1..=7).map(|n| task(n).due(at(n)))).await;
    // At most, due, due later.
    for (most, due, waiting) in [(0, 0, 0), (1, 1, 1), (2, 2, 2), (3, 3, 3), (4, 4, 3), (5, 4, 3), (u32::MAX, 4, 3)] {
        let counted = store.reads().backlogs(vec![billing()], at(4), most).await.unwrap();
        assert_eq!(counted, [Backlog { due, waiting }], "at most {most}");
    }
}

pub(crate) async fn backlogs_are_answered_in_order_whatever_lanes_are_asked_for(store: &dyn Store) {
    keep(store, [task(1).to("a"), task(2).to("b"), task(3).to("b"), task(4).to("a").of("other")]).await;
    let lanes = [(TENANT, "b"), (TENANT, "none"), ("nobody", "a"), ("other", "b"), ("other", "a"), (TENANT, "b")];
    let lanes = lanes.map(|(tenant, dependency)| lane(tenant, dependency)).to_vec();
    let counted = store.reads().backlogs(lanes, at(0), 10).await.unwrap();
    assert_eq!(counted, [2, 0, 0, 0, 1, 2].map(|due| Backlog { due, waiting: 0 }));
    assert_eq!(store.reads().backlogs(Vec::new(), at(0), 10).await.unwrap(), []);
}

pub(crate) async fn old_retries_are_those_of_tasks_that_were_accepted_before(store: &dyn Store) {
    let early = |n: u64| TaskId::from_parts(TaskId::first_sequence(at(1_000)) + n, 7);
    let late = |n: u64| TaskId::from_parts(TaskId::first_sequence(at(2_000)) + n, 7);
    keep(store, [task(1).id(early(0)).due(at(9_000))]).await;
    let retries = [(early(1), 9_001), (late(1), 9_002), (early(2), 9_003), (late(2), 9_004), (early(3), 9_005)];
    keep_retries(store, retries.into_iter().zip(2..).map(|((id, due), n)| task(n).id(id).due(at(due)))).await;
    // Accepted before, looked at, counted. The first attempt of task 1 is no retry.
    for (before, look_at, counted) in
        [(1_000, 10, 0), (2_000, 10, 3), (2_001, 10, 5), (2_000, 1, 1), (2_000, 2, 1), (2_000, 3, 2), (2_000, 0, 0)]
    {
        let lanes = vec![billing(), lane(TENANT, "none"), lane("nobody", "none")];
        let said = store.reads().old_retries(lanes, at(before), look_at).await.unwrap();
        assert_eq!(said, [counted, 0, 0], "before {before}, looking at {look_at}");
    }
}
