//! Facts about claiming tasks shortly before they are due.

use redrive_core::{Class, Timestamp};

use crate::conformance::samples::*;
use crate::{ClaimRequest, Claims, Lease, Store, Token};

/// Claims one task of the samples' lane at `now` that is due by `due_by`.
async fn claim_by(store: &dyn Store, due_by: Timestamp, now: Timestamp) -> Claims {
    let rooms = [room(billing(), Class::First, 1, 0)];
    store.tasks().claim(ClaimRequest { due_by, ..request(rooms, now) }).await.unwrap()
}

pub(crate) async fn a_task_is_claimed_before_it_is_due_if_it_is_due_by_the_horizon(store: &dyn Store) {
    keep(store, [task(1).due(at(100))]).await;
    let claims = claim_by(store, at(99), at(50)).await;
    assert!(claims.claimed.is_empty());
    assert_eq!(claims.lanes, [lane_due(billing(), Class::First, Some(at(100)))]);
    let claimed = claim_by(store, at(100), at(50)).await.claimed.remove(0);
    assert_eq!(claimed.task.next_attempt_at, Some(at(100)), "the claim does not change when it is due");
    assert_eq!(now_of(store, &claimed.task).await, claimed.task);
}

pub(crate) async fn a_horizon_in_the_past_claims_what_was_due_then(store: &dyn Store) {
    keep(store, [task(1).due(at(5)), task(2).due(at(20))]).await;
    assert_eq!(ids(&claim_by(store, at(10), at(50)).await.claimed), [id(1)]);
    let claims = claim_by(store, at(10), at(50)).await;
    assert!(claims.claimed.is_empty());
    assert_eq!(claims.lanes, [lane_due(billing(), Class::First, Some(at(20)))]);
}

pub(crate) async fn a_lease_runs_from_the_later_of_the_claim_and_the_due_time(store: &dyn Store) {
    // due, claimed, start of the lease
    for (n, (due, now, from)) in (1..).zip([(100, 40, 100), (100, 100, 100), (100, 140, 140)]) {
        keep(store, [task(n).due(at(due))]).await;
        let claimed = claim_by(store, at(200), at(now)).await.claimed.remove(0);
        let until = at(from).after(ATTEMPT_TIMEOUT).after(TERMS.margin);
        assert_eq!(claimed.lease, Lease { token: Token(1), since: at(now), until }, "due {due}, claimed {now}");
        let before = Timestamp::from_millis(until.as_millis() - 1);
        assert_eq!(store.upkeep().expired_leases(before, 10).await.unwrap(), []);
        assert_eq!(store.upkeep().expired_leases(until, 10).await.unwrap(), std::slice::from_ref(&claimed));
        settle(store, succeed(&claimed, at(150))).await;
    }
}

pub(crate) async fn a_task_that_starts_claimed_before_it_is_due_has_a_lease_from_its_due_time(store: &dyn Store) {
    let lease = keep(store, [task(1).due(at(100)).claimed(at(40))]).await.remove(0).unwrap();
    let until = at(100).after(ATTEMPT_TIMEOUT).after(TERMS.margin);
    assert_eq!(lease, Lease { token: Token(1), since: at(40), until });
    assert_eq!(store.upkeep().expired_leases(until, 10).await.unwrap()[0].lease, lease);
}

pub(crate) async fn a_task_claimed_early_and_given_back_is_due_when_it_was(store: &dyn Store) {
    keep(store, [task(1).due(at(100))]).await;
    let claimed = claim_by(store, at(100), at(50)).await.claimed;
    give_back(store, &claimed, at(60)).await;
    assert!(claim_by(store, at(99), at(60)).await.claimed.is_empty());
    assert_eq!(ids(&claim_by(store, at(100), at(60)).await.claimed), [id(1)]);
}
