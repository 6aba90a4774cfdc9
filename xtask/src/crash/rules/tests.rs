//! A true history passes; for each rule, a history that breaks it is detected, and by that rule.

use super::super::history::{Acknowledged, History, Kept, MISSING, Sighting};
use super::*;
use crate::api::{Attempt, Task};
use crate::witness::{Arrival, RequestedTask};

const SECOND: u64 = 1_000_000;

/// Task `a` was interrupted by a kill at 2 s and succeeded at the second attempt; task `b` was refused and is a dead
/// letter; task `c` was cancelled in flight.
fn truth() -> History {
    let mut history = History { kills: vec![2 * SECOND], ..History::default() };
    for (id, status, attempts) in [
        ("a", "SUCCEEDED", vec![attempt(1, 1_900, "unknown", None), attempt(2, 2_500, "success", Some(200))]),
        ("b", "FAILED", vec![attempt(1, 3_000, "permanent", Some(400))]),
        ("c", "CANCELLED", vec![attempt(1, 4_000, "retryable", Some(500))]),
    ] {
        let key = format!("key-{id}");
        let (target, dependency) = (format!("POST /{id}"), "north".to_owned());
        let requested = RequestedTask { target, body_hash: 7, dependency, max_attempts: 3, attempt_timeout_ms: 1_000 };
        history.requested.insert(key.clone(), requested);
        history.acknowledged.push(Acknowledged { key: key.clone(), task: id.to_owned() });
        for attempt in &attempts {
            let answered = attempt.response_status;
            history.arrivals.push(arrival(id, attempt.attempt_number, attempt.started_at * 1_000, answered));
        }
        let task = Task {
            task_id: id.to_owned(),
            status: status.to_owned(),
            attempt_number: attempts.len() as u32,
            run: 1,
            attempt_in_run: attempts.len() as u32,
            max_attempts: 3,
            next_attempt_at: None,
            idempotency_key: key,
        };
        history.kept.insert(id.to_owned(), Kept { task, attempts });
        history.counts.insert(status.to_owned(), 1);
    }
    history.listed.insert("FAILED".to_owned(), ["b".to_owned()].into());
    history.alerts.insert("b".to_owned());
    history.told.insert("north".to_owned());
    history.sightings.push(sighting("a", "SUCCEEDED", 2, 3 * SECOND));
    history.sightings.push(Sighting { cancelled: true, ..sighting("c", "IN_FLIGHT", 1, 4 * SECOND) });
    history
}

fn attempt(attempt_number: u32, started_at: u64, outcome: &str, response_status: Option<u16>) -> Attempt {
    Attempt { attempt_number, started_at, outcome: outcome.to_owned(), response_status }
}

fn arrival(id: &str, attempt: u32, at: u64, answered: Option<u16>) -> Arrival {
    let (key, target) = (format!("key-{id}"), format!("POST /{id}"));
    Arrival { at, task: id.to_owned(), attempt, key, target, body_hash: 7, answered }
}

fn sighting(id: &str, status: &str, attempt_number: u32, at: u64) -> Sighting {
    Sighting { at, task: id.to_owned(), status: status.to_owned(), attempt_number, cancelled: false }
}

fn kept<'a>(history: &'a mut History, id: &str) -> &'a mut Kept {
    history.kept.get_mut(id).unwrap()
}

#[test]
fn a_true_history_breaks_no_rule() {
    assert_eq!(check(&truth()), []);
}

type Change = fn(&mut History);

/// The rule that a change of the true history breaks, a part of the evidence, and the change.
type FalseHistory = (Rule, &'static str, Change);

fn false_histories() -> impl Iterator<Item = FalseHistory> {
    let first = false_ends_and_requests().into_iter();
    first.chain(false_numbers_and_late_sends()).chain(false_counts_logs_and_alerts())
}

fn false_ends_and_requests() -> [FalseHistory; 8] {
    [
        (Rule::EndsOnce, "is gone", |history| {
            history.kept.remove("a");
            history.counts.remove("SUCCEEDED");
        }),
        (Rule::EndsOnce, "has not ended", |history| {
            kept(history, "a").task.status = "PENDING".to_owned();
            history.sightings.clear();
            history.counts = [("PENDING", 1), ("FAILED", 1), ("CANCELLED", 1)].map(|(s, n)| (s.to_owned(), n)).into();
        }),
        (Rule::EndsOnce, "had ended EXHAUSTED, and later was SUCCEEDED", |history| {
            history.sightings.push(sighting("a", "EXHAUSTED", 2, 3 * SECOND));
        }),
        (Rule::EndsOnce, "not found", |history| history.sightings.push(sighting("a", MISSING, 0, SECOND))),
        (Rule::WithinAttempts, "3 times and arrived 4", |history| {
            for number in 2..=4 {
                history.arrivals.push(arrival("b", number, 4 * SECOND, Some(500)));
                kept(history, "b").attempts.push(attempt(number, 4_000, "retryable", Some(500)));
            }
            kept(history, "b").task.attempt_number = 4;
        }),
        (Rule::SameRequest, "no caller gave", |history| {
            history.arrivals[0].key = "another".to_owned();
            history.arrivals.remove(1);
            kept(history, "a").attempts.pop();
            kept(history, "a").task.attempt_number = 1;
            kept(history, "a").task.status = "CANCELLED".to_owned();
            history.sightings.remove(0);
            history.counts = [("FAILED", 1), ("CANCELLED", 2)].map(|(s, n)| (s.to_owned(), n)).into();
        }),
        (Rule::SameRequest, "instead of", |history| history.arrivals[1].target = "PUT /a".to_owned()),
        (Rule::SameRequest, "another body", |history| history.arrivals[1].body_hash = 8),
    ]
}

fn false_numbers_and_late_sends() -> [FalseHistory; 10] {
    [
        (Rule::NumbersGrow, "[2, 1]", |history| history.arrivals.swap(0, 1)),
        (Rule::NumbersGrow, "[1, 2, 2]", |history| {
            history.arrivals.insert(2, arrival("a", 2, 2_600_000, Some(200)));
        }),
        (Rule::NumbersGrow, "[0]", |history| {
            history.arrivals[2].attempt = 0;
            kept(history, "b").attempts[0].attempt_number = 0;
        }),
        (Rule::OneTaskPerKey, "2 tasks", |history| {
            let again = Acknowledged { key: "key-a".to_owned(), task: "b".to_owned() };
            history.acknowledged.push(again);
        }),
        (Rule::OneTaskPerKey, "3 keys became 4 tasks", |history| {
            history.counts.insert("EXHAUSTED".to_owned(), 1);
        }),
        (Rule::TrueSuccess, "answered [None, Some(500)]", |history| {
            history.arrivals[1].answered = Some(500);
        }),
        (Rule::NothingAfterTheEnd, "attempt 3", |history| {
            history.arrivals.push(arrival("a", 3, 3 * SECOND + 1, Some(200)));
            kept(history, "a").attempts.push(attempt(3, 3_000, "success", Some(200)));
            kept(history, "a").task.attempt_number = 3;
        }),
        (Rule::NothingAfterTheEnd, "attempt 2", |history| history.arrivals[1].at = 4 * SECOND),
        (Rule::NothingAfterTheEnd, "(cancelled)", |history| {
            history.arrivals.push(arrival("c", 2, 5 * SECOND, Some(500)));
            kept(history, "c").attempts.push(attempt(2, 5_000, "retryable", Some(500)));
            kept(history, "c").task.attempt_number = 2;
        }),
        (Rule::NothingAfterTheEnd, "and it ended FAILED", |history| {
            kept(history, "c").task.status = "FAILED".to_owned();
            history.listed.insert("FAILED".to_owned(), ["b".to_owned(), "c".to_owned()].into());
            history.counts = [("SUCCEEDED", 1), ("FAILED", 2)].map(|(s, n)| (s.to_owned(), n)).into();
        }),
    ]
}

fn false_counts_logs_and_alerts() -> [FalseHistory; 8] {
    [
        (Rule::DeadLettersAndCounts, "not listed", |history| history.listed.clear()),
        (Rule::DeadLettersAndCounts, "FAILED: 0 are counted, 1 are there", |history| {
            history.counts.remove("FAILED");
        }),
        (Rule::AttemptLog, "attempts [2], and it made 2", |history| {
            kept(history, "a").attempts.remove(0);
        }),
        (Rule::AttemptLog, "logged with the answer Some(500)", |history| {
            kept(history, "c").attempts[0].response_status = Some(500);
            history.arrivals[3].answered = None;
        }),
        (Rule::AttemptLog, "no kill", |history| history.kills = vec![SECOND]),
        (Rule::Alerts, "task b ended FAILED without an alert", |history| history.alerts.clear()),
        (Rule::Told, "task b of north is a dead letter", |history| history.told = ["south".to_owned()].into()),
        (Rule::Alerts, "task a raised an alert and ended SUCCEEDED", |history| {
            history.alerts.insert("a".to_owned());
        }),
    ]
}

#[test]
fn a_history_that_breaks_a_rule_is_found_by_that_rule() {
    for (rule, evidence, change) in false_histories() {
        let mut history = truth();
        change(&mut history);
        let violations = check(&history);
        let by_rule: Vec<_> = violations.iter().filter(|violation| violation.rule == rule).collect();
        assert!(by_rule.iter().any(|found| found.evidence.contains(evidence)), "{evidence:?} not in {violations:#?}");
    }
}

#[test]
fn every_rule_is_broken_by_one_of_the_false_histories() {
    for rule in Rule::ALL {
        assert!(false_histories().any(|(broken, ..)| broken == rule), "{rule:?}");
    }
}

#[test]
fn one_kill_cuts_off_one_attempt_of_a_task() {
    let mut history = truth();
    kept(&mut history, "a").attempts = vec![
        attempt(1, 1_800, "unknown", None),
        attempt(2, 1_900, "unknown", None),
        attempt(3, 2_500, "success", Some(200)),
    ];
    kept(&mut history, "a").task.attempt_number = 3;
    history.arrivals[1].attempt = 3;
    history.sightings[0].attempt_number = 3;
    let violations = check(&history);
    assert_eq!(violations.len(), 1, "{violations:#?}");
    assert_eq!(violations[0].rule, Rule::AttemptLog);
    history.kills.push(1_850_000);
    history.kills.sort_unstable();
    assert_eq!(check(&history), []);
}
