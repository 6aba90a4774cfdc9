//! Facts about how much one claim takes: slots, tasks ahead of them, and the most in all.

use redrive_core::{Class, Reason, Status};

use crate::conformance::samples::*;
use crate::{ClaimRequest, ReplayOutcome, Store};

/// Claims into one room of the samples' lane and returns the claimed tasks.
async fn claimed_by(store: &dyn Store, class: Class, slots: usize, ahead: usize) -> Vec<crate::ClaimedTask> {
    claim_rooms(store, [room(billing(), class, slots, ahead)], at(1_000)).await.claimed
}

pub(crate) async fn a_room_takes_its_slots_and_what_is_ahead_of_them(store: &dyn Store) {
    keep(store, (1..=6).map(|n| task(n).due(at(n)))).await;
    // slots, ahead, claimed
    for (slots, ahead, expected) in [(0, 0, 0), (2, 0, 2), (0, 2, 2), (2, 3, 5), (5, 5, 6)] {
        let claimed = claimed_by(store, Class::First, slots, ahead).await;
        assert_eq!(ids(&claimed), (1..=expected).map(id).collect::<Vec<_>>(), "{slots} slots, {ahead} ahead");
        give_back(store, &claimed, at(1_000)).await;
    }
}

pub(crate) async fn a_room_may_be_larger_than_any_backlog(store: &dyn Store) {
    keep(store, [task(1), task(2)]).await;
    let half = usize::MAX >> 1;
    assert_eq!(claimed_by(store, Class::First, half, half).await.len(), 2);
}

pub(crate) async fn rooms_are_served_in_their_order_until_the_most_is_claimed(store: &dyn Store) {
    let (one, two) = (lane(TENANT, "one"), lane(TENANT, "two"));
    keep(store, [task(1).to("one").due(at(1)), task(2).to("one").due(at(2)), task(4).to("two").due(at(4))]).await;
    keep_retries(store, [task(3).to("one").due(at(3))]).await;
    let rooms = [(two.clone(), Class::First), (one.clone(), Class::Retry), (one, Class::First), (two, Class::Retry)];
    // most, claimed, what is left of each room
    let cases = [
        (0, vec![], [Some(4), Some(3), Some(1), None]),
        (1, vec![4], [None, Some(3), Some(1), None]),
        (2, vec![4, 3], [None, None, Some(1), None]),
        (3, vec![4, 3, 1], [None, None, Some(2), None]),
        (4, vec![4, 3, 1, 2], [None; 4]),
        (usize::MAX, vec![4, 3, 1, 2], [None; 4]),
    ];
    for (most, expected, left) in cases {
        let asked = rooms.clone().map(|(lane, class)| room(lane, class, 1, 1));
        let claims = store.tasks().claim(ClaimRequest { most, ..request(asked, at(50)) }).await.unwrap();
        assert_eq!(ids(&claims.claimed), expected.into_iter().map(id).collect::<Vec<_>>(), "at most {most}");
        let left = rooms.iter().zip(left).map(|((lane, class), due)| lane_due(lane.clone(), *class, due.map(at)));
        assert_eq!(claims.lanes, left.collect::<Vec<_>>(), "at most {most}");
        give_back(store, &claims.claimed, at(50)).await;
    }
}

pub(crate) async fn a_last_attempt_is_claimed_only_into_a_slot_and_ends_the_room_otherwise(store: &dyn Store) {
    // In the order of their due times; the second and the fourth have one attempt in all.
    keep(store, (1..=5).map(|n| task(n).due(at(n)).max_attempts(if n % 2 == 0 { 1 } else { 5 }))).await;
    // slots, ahead, claimed: tasks behind the one that does not fit are not claimed in its place
    let cases = [
        (0, 0, 0),
        (0, 1, 1),
        (0, 9, 1),
        (1, 0, 1),
        (1, 9, 1),
        (2, 0, 2),
        (2, 1, 3),
        (2, 9, 3),
        (3, 9, 3),
        (4, 0, 4),
        (4, 9, 5),
        (9, 0, 5),
    ];
    for (slots, ahead, expected) in cases {
        let claims = claim_rooms(store, [room(billing(), Class::First, slots, ahead)], at(50)).await;
        assert_eq!(ids(&claims.claimed), (1..=expected).map(id).collect::<Vec<_>>(), "{slots} slots, {ahead} ahead");
        let next_due = (expected < 5).then(|| at(expected + 1));
        assert_eq!(claims.lanes, [lane_due(billing(), Class::First, next_due)], "{slots} slots, {ahead} ahead");
        give_back(store, &claims.claimed, at(50)).await;
    }
}

pub(crate) async fn tasks_with_a_single_attempt_are_never_claimed_ahead(store: &dyn Store) {
    keep(store, (1..=4).map(|n| task(n).due(at(n)).max_attempts(1))).await;
    // slots, claimed
    for (slots, expected) in [(0, 0), (1, 1), (3, 3), (4, 4), (5, 4)] {
        let claimed = claimed_by(store, Class::First, slots, 100).await;
        assert_eq!(claimed.len(), expected, "{slots} slots");
        give_back(store, &claimed, at(50)).await;
    }
}

pub(crate) async fn the_last_attempt_of_every_run_needs_a_slot(store: &dyn Store) {
    keep(store, [task(1).max_attempts(3)]).await;
    for run in 1..=3 {
        for (attempt, class) in [(1, Class::First), (2, Class::Retry)] {
            let claimed = claimed_by(store, class, 0, 1).await;
            assert_eq!(ids(&claimed), [id(1)], "run {run}, attempt {attempt}");
            settle(store, retry(&claimed[0], at(100), at(100))).await;
        }
        assert!(claimed_by(store, Class::Retry, 0, 1).await.is_empty(), "run {run}");
        let last = claimed_by(store, Class::Retry, 1, 0).await;
        assert_eq!(last[0].task.attempt_in_run(), 3, "run {run}");
        // Given back unsent, it is the last attempt as before.
        give_back(store, &last, at(100)).await;
        assert!(claimed_by(store, Class::Retry, 0, 1).await.is_empty(), "run {run}");
        let last = claimed_by(store, Class::Retry, 1, 0).await.remove(0);
        settle(store, end(&last, Status::Exhausted, Some(Reason::Attempts), at(200))).await;
        assert!(matches!(store.tasks().replay_one(acme(), id(1), at(300)).await.unwrap(), ReplayOutcome::Done(_)));
    }
}

pub(crate) async fn a_last_attempt_that_ends_its_room_does_not_end_the_others(store: &dyn Store) {
    keep(store, [task(1).due(at(1)).max_attempts(1), task(2).due(at(2)), task(3).to("other").due(at(3))]).await;
    keep_retries(store, [task(4).due(at(4))]).await;
    let other = lane(TENANT, "other");
    let rooms = [(billing(), Class::First), (billing(), Class::Retry), (other, Class::First)];
    let claims = claim_rooms(store, rooms.map(|(lane, class)| room(lane, class, 0, 5)), at(50)).await;
    assert_eq!(ids(&claims.claimed), [id(4), id(3)]);
    assert_eq!(claims.lanes[0], lane_due(billing(), Class::First, Some(at(1))));
}
