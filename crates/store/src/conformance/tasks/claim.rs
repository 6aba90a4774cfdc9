//! Facts about leasing due work.

use redrive_core::{Class, Status, Task};

use crate::conformance::samples::*;
use crate::{Lease, Store, Token};

pub(crate) async fn a_claim_counts_the_attempt_and_leases_the_task(store: &dyn Store) {
    let sample = task(1).due(at(5));
    keep(store, [sample.clone()]).await;
    let claimed = claim(store, billing(), 1, at(30)).await.remove(0);
    let expected = Task { status: Status::InFlight, attempt_number: 1, ..sample.0.task.clone() };
    assert_eq!(claimed.task, expected, "all else stays, also when the attempt was due");
    assert_eq!(claimed.request, sample.0.request);
    assert_eq!(now_of(store, &sample.0.task).await, expected);
}

pub(crate) async fn a_lease_lasts_for_the_attempts_timeout_and_the_margin(store: &dyn Store) {
    let mut sample = task(1);
    sample.0.task.attempt_timeout = std::time::Duration::from_millis(1_234);
    keep(store, [sample]).await;
    let claimed = claim(store, billing(), 1, at(100)).await.remove(0);
    assert_eq!(claimed.lease, Lease { token: Token(1), since: at(100), until: at(100 + 1_234 + 5_000) });
}

pub(crate) async fn the_earliest_due_come_first_whatever_their_ids(store: &dyn Store) {
    keep(store, [task(1).due(at(30)), task(2).due(at(10)), task(3).due(at(20)), task(4).due(at(40))]).await;
    assert_eq!(ids(&claim(store, billing(), 2, at(50)).await), [id(2), id(3)]);
    assert_eq!(ids(&claim(store, billing(), 9, at(50)).await), [id(1), id(4)]);
}

pub(crate) async fn a_task_is_claimed_from_its_due_moment_on_and_not_before(store: &dyn Store) {
    keep(store, [task(1).due(at(10))]).await;
    assert!(claim(store, billing(), 1, at(9)).await.is_empty());
    assert_eq!(counts(store, acme()).await, [1, 0, 0, 0, 0, 0]);
    assert_eq!(ids(&claim(store, billing(), 1, at(10)).await), [id(1)]);
}

pub(crate) async fn a_claim_takes_no_more_than_the_room(store: &dyn Store) {
    keep(store, (0..10).map(|n| task(n).due(at(n)))).await;
    assert_eq!(ids(&claim(store, billing(), 3, at(100)).await), [id(0), id(1), id(2)]);
    assert_eq!(counts(store, acme()).await, [7, 3, 0, 0, 0, 0]);
}

pub(crate) async fn a_lane_without_room_is_left_alone_and_still_says_when_it_is_due(store: &dyn Store) {
    keep(store, [task(1).due(at(10))]).await;
    let claims = claim_rooms(store, [room(billing(), Class::First, 0, 0)], at(50)).await;
    assert!(claims.claimed.is_empty());
    assert_eq!(claims.lanes, [lane_due(billing(), Class::First, Some(at(10)))]);
    assert_eq!(now_of(store, &task(1).0.task).await.status, Status::Pending);
}

pub(crate) async fn a_lane_that_is_not_asked_is_left_alone(store: &dyn Store) {
    keep(store, [task(1).to("one"), task(2).to("two"), task(3).to("one.more"), task(4).of("other").to("one")]).await;
    assert_eq!(ids(&claim(store, lane(TENANT, "one"), 10, at(50)).await), [id(1)]);
    assert_eq!(counts(store, acme()).await, [2, 1, 0, 0, 0, 0]);
    assert_eq!(counts(store, tenant("other")).await, [1, 0, 0, 0, 0, 0]);
}

pub(crate) async fn every_lane_asked_is_answered_in_order_with_what_is_left(store: &dyn Store) {
    keep(store, [task(1).to("one"), task(2).to("one").due(at(10)), task(3).to("two"), task(4).to("three").due(at(99))])
        .await;
    let asked = ["three", "nowhere", "one", "two"].map(|name| room(lane(TENANT, name), Class::First, 1, 0));
    let claims = claim_rooms(store, asked, at(50)).await;
    assert_eq!(ids(&claims.claimed), [id(1), id(3)]);
    let left = [("three", Some(at(99))), ("nowhere", None), ("one", Some(at(10))), ("two", None)];
    assert_eq!(claims.lanes, left.map(|(name, due)| lane_due(lane(TENANT, name), Class::First, due)));
}

pub(crate) async fn a_task_in_flight_is_not_claimed_again(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    // Not even after the lease has expired: only the rescuer settles it then.
    for now in [at(1), claimed.lease.until, at(9_000_000)] {
        assert!(claim(store, billing(), 10, now).await.is_empty());
    }
    assert_eq!(now_of(store, &claimed.task).await, claimed.task);
}

pub(crate) async fn an_ended_task_is_not_claimed_again(store: &dyn Store) {
    for (n, status) in [(1, Status::Succeeded), (2, Status::Failed), (3, Status::Exhausted)] {
        keep_and_end(store, task(n), status, at(10)).await;
    }
    assert!(claim(store, billing(), 10, at(9_000_000)).await.is_empty());
}

pub(crate) async fn a_retry_is_claimed_once_it_is_due(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    settle(store, retry(&claimed, at(10), at(500))).await;
    assert!(claim(store, billing(), 1, at(499)).await.is_empty());
    let again = claim(store, billing(), 1, at(500)).await.remove(0);
    assert_eq!((again.task.attempt_number, again.task.next_attempt_at), (2, Some(at(500))));
}

pub(crate) async fn tokens_grow_with_every_claim(store: &dyn Store) {
    let mut claimed = keep_and_claim(store, task(1)).await;
    for round in 1..=10 {
        let (now, token) = (at(round * 100), claimed.lease.token);
        // An attempt that is taken back keeps its token: the next claim gets a higher one.
        let end = if round % 2 == 0 { unsent(&claimed, now, now) } else { retry(&claimed, now, now) };
        settle(store, end).await;
        claimed = claim(store, billing(), 1, now).await.remove(0);
        assert!(claimed.lease.token > token, "{:?} after {token:?}", claimed.lease.token);
    }
}

pub(crate) async fn the_first_token_is_1_however_the_task_began(store: &dyn Store) {
    let lease = keep(store, [task(1).claimed(at(0))]).await.remove(0).unwrap();
    assert_eq!(lease.token, Token(1));
    assert_eq!(keep_and_claim(store, task(2)).await.lease.token, Token(1));
}
