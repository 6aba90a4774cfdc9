use std::time::Duration;

use redrive_core::task::PolicyRef;
use redrive_core::{Dependency, IdempotencyKey, TaskId};

use super::super::busiest::{MOST, REVIEW_EVERY};
use super::*;

fn task(dependency: &str, policy: &str) -> Task {
    let at = Timestamp::from_millis(0);
    Task {
        id: TaskId::from_parts(1, 2),
        lane: Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new(dependency).unwrap() },
        idempotency_key: IdempotencyKey::try_new("key").unwrap(),
        correlation_id: None,
        trace_parent: None,
        policy: PolicyRef { id: PolicyId::try_new(policy).unwrap(), version: 1 },
        status: Status::InFlight,
        reason: None,
        attempt_number: 1,
        run: 1,
        attempts_before: 0,
        max_attempts: 3,
        attempt_timeout: Duration::from_secs(30),
        created_at: at,
        run_started_at: at,
        deadline_at: at,
        next_attempt_at: None,
        ended_at: Some(at.after(Duration::from_secs(3))),
        backoff: None,
        dns_failures: 0,
        cancel_requested: false,
        last_error: None,
    }
}

fn attempt(number_in_run: u32) -> Attempt {
    Attempt {
        number: 40,
        number_in_run,
        started_at: Timestamp::from_millis(0),
        duration: Some(Duration::from_millis(20)),
        outcome: Outcome::Success,
        response_status: Some(200),
        error: None,
        backoff: None,
    }
}

fn attempts(counts: &mut Counts, dependency: &str, policy: &str, times: usize) {
    for _ in 0..times {
        counts.on(&Event::AttemptEnded(&task(dependency, policy), &attempt(1)));
    }
}

/// How many series of attempts there are for this policy.
fn series(snapshot: &Snapshot, policy: &str) -> usize {
    let policy = PolicyId::try_new(policy).unwrap();
    snapshot.named.iter().filter(|(_, counts)| counts.attempts.contains_key(&policy)).count()
}

fn total(table: &AttemptTable) -> u64 {
    table.counts().map(|(_, _, count)| count).sum()
}

#[test]
fn attempts_are_counted_by_their_number_in_the_run_and_high_numbers_share_a_label() {
    let mut counts = Counts::default();
    for number in [1, 2, 2, 10, 11, 12, u32::MAX] {
        counts.on(&Event::AttemptEnded(&task("a", "p"), &attempt(number)));
    }
    let snapshot = counts.snapshot();
    let table = snapshot.named[0].1.attempts.values().next().unwrap();
    let expected = [("1", 1), ("2", 2), ("10", 1), ("11+", 3)].map(|(number, count)| (Outcome::Success, number, count));
    assert_eq!(table.counts().collect::<Vec<_>>(), expected);
}

#[test]
fn dependencies_beyond_the_limit_share_a_series_and_nothing_is_lost() {
    let mut counts = Counts::default();
    for number in 0..10_000 {
        attempts(&mut counts, &format!("d{number}"), "p", 1);
    }
    let snapshot = counts.snapshot();
    assert_eq!(snapshot.named.len(), MOST);
    let others = snapshot.others.values().next().unwrap();
    let of_others: u64 = others.attempts.values().map(total).sum();
    assert_eq!((of_others, others.duration.count()), (10_000 - MOST as u64, 10_000 - MOST as u64));
}

#[test]
fn a_dependency_that_is_called_other_shares_the_series_of_the_others() {
    let mut counts = Counts::default();
    attempts(&mut counts, OTHER, "p", 2);
    attempts(&mut counts, "a", OTHER, 3);
    let snapshot = counts.snapshot();
    assert!(snapshot.named.iter().all(|(lane, _)| lane.dependency.as_str() != OTHER));
    assert_eq!(snapshot.others.values().next().unwrap().attempts.values().map(total).sum::<u64>(), 2);
    let named = snapshot.named.iter().find(|(lane, _)| lane.dependency.as_str() == "a").unwrap();
    assert_eq!((named.1.attempts.len(), total(&named.1.attempts_of_others)), (0, 3));
}

#[test]
fn policies_beyond_the_limit_share_a_series() {
    let mut counts = Counts::default();
    for number in 0..POLICIES + 5 {
        attempts(&mut counts, "a", &format!("p{number}"), 1);
    }
    let counted = &counts.snapshot().named[0].1;
    assert_eq!((counted.attempts.len(), total(&counted.attempts_of_others)), (POLICIES, 5));

    let mut counts = Counts::default();
    for lane in 0..100 {
        for policy in 0..10 {
            attempts(&mut counts, &format!("d{lane}"), &format!("p{policy}"), 1);
        }
    }
    let pairs: usize = (0..10).map(|policy| series(&counts.snapshot(), &format!("p{policy}"))).sum();
    assert_eq!(pairs, LANE_POLICIES);
}

#[test]
fn a_lane_that_takes_the_place_of_another_begins_at_zero_and_the_shared_series_do_not_jump() {
    let mut counts = Counts::default();
    counts.review(Timestamp::from_millis(0));
    for number in 0..MOST {
        attempts(&mut counts, &format!("d{number}"), "p", if number == 5 { 1 } else { 10 });
    }
    attempts(&mut counts, "busy", "p", 90);
    let of_others = |counts: &Counts| counts.snapshot().others.values().next().unwrap().duration.count();
    assert_eq!(of_others(&counts), 90);
    counts.review(Timestamp::from_millis(0).after(REVIEW_EVERY));
    attempts(&mut counts, "busy", "p", 7);
    assert_eq!(of_others(&counts), 90);
    let snapshot = counts.snapshot();
    let (lane, counted) = &snapshot.named[5];
    assert_eq!((lane.dependency.as_str(), counted.duration.count()), ("busy", 7));
    attempts(&mut counts, "d5", "p", 1);
    assert_eq!(of_others(&counts), 91);
}

#[test]
fn tasks_that_end_without_a_settlement_have_a_reason_and_an_age() {
    let mut counts = Counts::default();
    for (status, by) in [
        (Status::Exhausted, EndedBy::Deadline),
        (Status::Exhausted, EndedBy::Budget),
        (Status::Cancelled, EndedBy::Cancel),
    ] {
        counts.on(&Event::Ended(&task("a", "p"), status, by));
    }
    let snapshot = counts.snapshot();
    let reasons: Vec<&str> = Reason::ALL
        .iter()
        .zip(snapshot.named[0].1.exhausted)
        .filter(|(_, count)| *count == 1)
        .map(|(reason, _)| reason.as_str())
        .collect();
    assert_eq!(reasons, ["deadline", "budget"]);
    assert_eq!(snapshot.named[0].1.dead_letters, 2);
    let ages = ENDS.iter().zip(&snapshot.process.age).map(|(end, age)| (*end, age.count(), age.sum()));
    let expected = [
        (Status::Succeeded, 0, 0.0),
        (Status::Failed, 0, 0.0),
        (Status::Exhausted, 2, 6.0),
        (Status::Cancelled, 1, 3.0),
    ];
    assert_eq!(ages.collect::<Vec<_>>(), expected);
}
