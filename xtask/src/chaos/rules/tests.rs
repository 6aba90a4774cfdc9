//! A true history passes; for each invariant, histories that break it are detected, and by that invariant.

use super::super::frail::FRAIL;
use super::super::history::{Answer, Deed, Kept, Pause, Said, Sighting};
use super::super::node::SLOTS;
use super::*;
use crate::api::{Attempt, Task};
use crate::witness::{Alert, Arrival, RequestedTask};

const SECOND: u64 = 1_000_000;
/// The attempt timeout plus the lease margin.
const LEASE: u64 = 2 * SECOND;

/// Task `a` lost its first attempt to a suspension from 1 s to 9 s, was taken over and succeeded at the second. Task
/// `b` was refused, replayed and refused again: a dead letter. Task `c` was cancelled in flight. Another request was
/// tried under the key of `a`.
fn truth() -> History {
    let pauses = vec![Pause { node: "node 1".to_owned(), from: SECOND, until: 9 * SECOND }];
    let mut history = History { lease_margin_ms: 1_000, pauses, ..History::default() };
    for (id, status, runs, attempts) in [
        ("a", "SUCCEEDED", 1, vec![attempt(1, 900, "unknown", None), attempt(2, 6_000, "success", Some(200))]),
        ("b", "FAILED", 2, vec![attempt(1, 3_000, "permanent", Some(400)), attempt(2, 7_000, "permanent", Some(400))]),
        ("c", "CANCELLED", 1, vec![attempt(1, 4_000, "retryable", Some(500))]),
    ] {
        let key = format!("key-{id}");
        let (target, dependency) = (format!("POST /{id}"), "north".to_owned());
        let requested = RequestedTask { target, body_hash: 7, dependency, max_attempts: 3, attempt_timeout_ms: 1_000 };
        history.requested.insert(key.clone(), vec![requested]);
        history.answers.push(answer(id, 0, Said::Created(id.to_owned())));
        for attempt in &attempts {
            history.arrivals.push(arrival(
                id,
                attempt.attempt_number,
                attempt.started_at * 1_000,
                attempt.response_status,
            ));
        }
        let tokens = attempts.iter().map(|attempt| (attempt.attempt_number, u64::from(attempt.attempt_number)));
        history.end.tokens.insert(id.to_owned(), tokens.collect());
        let made = attempts.len() as u32;
        let task = Task { run: runs, attempt_in_run: if runs == 1 { made } else { 1 }, ..task(id, status, made) };
        history.end.kept.insert(id.to_owned(), Kept { task, attempts });
        history.end.counts.entry("node 1".to_owned()).or_default().insert(status.to_owned(), 1);
    }
    let other = RequestedTask { body_hash: 8, ..history.requested["key-a"][0].clone() };
    history.requested.get_mut("key-a").unwrap().push(other);
    history.answers.push(answer("a", 1, Said::Reused("a".to_owned())));
    history.end.listed.insert("FAILED".to_owned(), ["b".to_owned()].into());
    history.end.tenants.insert("default".to_owned());
    history.end.at = 60 * SECOND;
    history.alerts = Some([1, 2].map(|run| Alert { task: "b".to_owned(), run }).into());
    history.replays_asked.insert("b".to_owned(), vec![5 * SECOND]);
    history.lines_seen.insert(("a".to_owned(), 1), attempt(1, 900, "unknown", None));
    history.sightings.push(sighting(task("a", "PENDING", 1), 5 * SECOND, Deed::Look));
    history.sightings.push(sighting(task("a", "SUCCEEDED", 2), 8 * SECOND, Deed::Look));
    history.sightings.push(sighting(task("b", "FAILED", 1), 4 * SECOND, Deed::Look));
    let replayed = Task { run: 2, attempt_in_run: 0, ..task("b", "PENDING", 1) };
    history.sightings.push(sighting(replayed, 5 * SECOND + 1, Deed::Replay));
    history.sightings.push(sighting(task("c", "IN_FLIGHT", 1), 4 * SECOND, Deed::Cancel));
    history
}

fn task(id: &str, status: &str, attempts: u32) -> Task {
    Task {
        task_id: id.to_owned(),
        status: status.to_owned(),
        attempt_number: attempts,
        run: 1,
        attempt_in_run: attempts,
        max_attempts: 3,
        next_attempt_at: None,
        idempotency_key: format!("key-{id}"),
    }
}

fn attempt(attempt_number: u32, started_at: u64, outcome: &str, response_status: Option<u16>) -> Attempt {
    Attempt { attempt_number, started_at, outcome: outcome.to_owned(), response_status }
}

fn arrival(id: &str, attempt: u32, at: u64, answered: Option<u16>) -> Arrival {
    let (key, target) = (format!("key-{id}"), format!("POST /{id}"));
    Arrival { at, task: id.to_owned(), attempt, key, target, body_hash: 7, answered }
}

fn answer(id: &str, variant: usize, said: Said) -> Answer {
    Answer { at: SECOND, key: format!("key-{id}"), variant, said }
}

fn sighting(task: Task, at: u64, by: Deed) -> Sighting {
    Sighting { at, id: task.task_id.clone(), task: Some(task), by }
}

fn kept<'a>(history: &'a mut History, id: &str) -> &'a mut Kept {
    history.end.kept.get_mut(id).unwrap()
}

/// A further attempt of task `c`; only its existence is wrong.
fn sent_again(history: &mut History, number: u32, at: u64) {
    history.arrivals.push(arrival("c", number, at, Some(500)));
    history.end.tokens.get_mut("c").unwrap().push((number, number.into()));
    let kept = kept(history, "c");
    kept.attempts.push(attempt(number, at / 1_000, "retryable", Some(500)));
    (kept.task.attempt_number, kept.task.attempt_in_run) = (number, number);
}

#[test]
fn a_true_history_breaks_no_invariant() {
    assert_eq!(check(&truth()), []);
}

type Change = fn(&mut History);

/// The change of the true history, the invariant that it breaks, and a part of the evidence.
const LIES: &[(Invariant, &str, Change)] = &[
    (Invariant::Durable, "is gone", |history| {
        history.end.kept.remove("a");
    }),
    (Invariant::Durable, "not found", |history| history.sightings[0].task = None),
    (Invariant::Durable, "run 1 ended both SUCCEEDED and EXHAUSTED", |history| {
        history.sightings.push(sighting(task("a", "EXHAUSTED", 2), 8 * SECOND, Deed::Look));
    }),
    (Invariant::Durable, "run 2, and a replay was asked for 0 times", |history| history.replays_asked.clear()),
    (Invariant::Durable, "run 1 ended CANCELLED, and another one followed", |history| {
        history.sightings[2] = sighting(task("b", "CANCELLED", 1), 4 * SECOND, Deed::Look);
    }),
    (Invariant::Durable, "seen in run 1 after attempt 3, and is in run 1 after 2", |history| {
        history.sightings.push(sighting(task("a", "PENDING", 3), 7 * SECOND, Deed::Look));
    }),
    (Invariant::Durable, "which was answered Some(Some(500))", |history| history.arrivals[1].answered = Some(500)),
    (Invariant::WithinAttempts, "attempt 2 arrived 2 times", |history| {
        history.arrivals.push(arrival("a", 2, 6 * SECOND + 1, Some(200)));
    }),
    (Invariant::WithinAttempts, "may be sent 3 times, and arrived 4 times", |history| {
        for number in 2..=4 {
            sent_again(history, number, 4 * SECOND);
        }
    }),
    (Invariant::SameRequest, "which no caller gave", |history| history.arrivals[0].key = "another".to_owned()),
    (Invariant::SameRequest, "instead of", |history| history.arrivals[1].target = "PUT /a".to_owned()),
    (Invariant::SameRequest, "another body", |history| history.arrivals[1].body_hash = 9),
    (Invariant::SameRequest, "another body", |history| history.arrivals[1].body_hash = 8),
    (Invariant::NothingAfterTheEnd, "said IN_FLIGHT to a cancel, at attempt 1", |history| {
        sent_again(history, 2, 5 * SECOND);
    }),
    (Invariant::NothingAfterTheEnd, "its cancel was accepted, and it ended FAILED", |history| {
        kept(history, "c").task.status = "FAILED".to_owned();
    }),
    (Invariant::NothingAfterTheEnd, "attempt 2 arrived 1000.0 ms after the API had said SUCCEEDED", |history| {
        history.arrivals[1].at = 9 * SECOND;
    }),
    (Invariant::NothingAfterTheEnd, "attempt 2 arrived 3000.0 ms after the API had said FAILED", |history| {
        // The replay had not been requested yet.
        history.replays_asked.insert("b".to_owned(), vec![8 * SECOND]);
    }),
    (Invariant::NothingAfterTheEnd, "said CANCELLED to a cancel, at attempt 0", |history| {
        history.sightings[4] = sighting(task("c", "CANCELLED", 0), 3 * SECOND, Deed::Cancel);
    }),
    (Invariant::Fenced, "attempt numbers [2, 1]", |history| history.arrivals.swap(0, 1)),
    (Invariant::Fenced, "attempt numbers [0]", |history| history.arrivals[4].attempt = 0),
    (Invariant::Fenced, "attempt 1 arrived before it was claimed", |history| history.arrivals[4].at = 3 * SECOND),
    (Invariant::Fenced, "attempt 1 arrived 1000.0 ms after its lease had run out", |history| {
        history.pauses.clear();
        history.arrivals[0].at = 900_000 + LEASE + SECOND;
    }),
    (Invariant::Fenced, "attempt 1 arrived 6700.0 ms after its lease had run out", |history| {
        // Not as soon as the suspension was over.
        history.arrivals[0].at = 9 * SECOND + 600_000;
    }),
    (Invariant::Fenced, "attempt 1 arrived after the API had said that it was over", |history| {
        history.arrivals[0].at = 5 * SECOND + 600_000;
        kept(history, "a").attempts[0].started_at = 5_000;
    }),
    (Invariant::Fenced, "attempts [2], and it made 2", |history| {
        kept(history, "a").attempts.remove(0);
    }),
    (Invariant::Fenced, "attempt 2 arrived and is not in its log", |history| {
        history.arrivals.push(arrival("c", 2, 4 * SECOND, Some(500)));
    }),
    (Invariant::Fenced, "logged with the answer Some(500) and had None", |history| history.arrivals[4].answered = None),
    (Invariant::Fenced, "attempt 1 is logged as a success, and others followed", |history| {
        kept(history, "a").attempts[0].outcome = "success".to_owned();
    }),
    (Invariant::Fenced, "logged as [\"permanent\", \"success\"]", |history| {
        kept(history, "a").attempts[0].outcome = "permanent".to_owned();
    }),
    (Invariant::Fenced, "it ended SUCCEEDED, and its last attempt is logged as unknown", |history| {
        kept(history, "a").attempts[1].outcome = "unknown".to_owned();
    }),
    (Invariant::Fenced, "attempts and tokens [(1, 2), (2, 2)]", |history| {
        history.end.tokens.insert("a".to_owned(), vec![(1, 2), (2, 2)]);
    }),
    (Invariant::Fenced, "attempts and tokens [(1, 1), (2, 2), (2, 3)]", |history| {
        history.end.tokens.insert("a".to_owned(), vec![(1, 1), (2, 2), (2, 3)]);
    }),
    (Invariant::Fenced, "its log said", |history| {
        kept(history, "a").attempts[0] = attempt(1, 900, "retryable", None);
    }),
    (
        Invariant::RetryBudget,
        "frail got 20 retries within 26 s that were not refunded, and 19 are allowed",
        |history| {
            *history = frail(&[], &retries(20, 100));
        },
    ),
    (Invariant::DeadLetters, "not listed", |history| history.end.listed.clear()),
    (Invariant::DeadLetters, "is listed as EXHAUSTED", |history| {
        history.end.listed.insert("EXHAUSTED".to_owned(), ["a".to_owned()].into());
    }),
    (Invariant::DeadLetters, "node 1 counts 2 FAILED, and 1 are there", |history| {
        history.end.counts.get_mut("node 1").unwrap().insert("FAILED".to_owned(), 2);
    }),
    (Invariant::DeadLetters, "run 2 without an alert", |history| {
        history.alerts = Some([Alert { task: "b".to_owned(), run: 1 }].into());
    }),
    (Invariant::DeadLetters, "run 1 raised an alert, and it ended SUCCEEDED", |history| {
        history.alerts.as_mut().unwrap().insert(Alert { task: "a".to_owned(), run: 1 });
    }),
    (Invariant::OneTaskPerKey, "is 2 tasks", |history| {
        history.answers.push(answer("a", 0, Said::Known("b".to_owned())));
    }),
    (Invariant::OneTaskPerKey, "2 different requests were accepted", |history| {
        history.answers[3].said = Said::Known("a".to_owned());
    }),
    (Invariant::OneTaskPerKey, "both accepted and refused", |history| history.answers[3].variant = 0),
    (Invariant::OneTaskPerKey, "every request under key key-c was refused", |history| {
        history.answers[2].said = Said::Reused("c".to_owned());
    }),
    (Invariant::OneTaskPerKey, "2 submissions under key key-a were told that the task was new", |history| {
        history.answers.push(answer("a", 0, Said::Created("a".to_owned())));
    }),
    (Invariant::OneTaskPerKey, "3 keys became 4 tasks", |history| {
        history.end.counts.get_mut("node 1").unwrap().insert("PENDING".to_owned(), 1);
    }),
    (Invariant::ScheduleIsAnIndex, "it is due, and no node sends it", |history| {
        let task = &mut kept(history, "c").task;
        (task.status, task.next_attempt_at) = ("PENDING".to_owned(), Some(59_000));
    }),
    (Invariant::TenantsApart, "tenant \"other\"", |history| {
        history.end.tenants.insert("other".to_owned());
    }),
    (Invariant::Settles, "it has not ended: it is IN_FLIGHT", |history| {
        kept(history, "c").task.status = "IN_FLIGHT".to_owned();
    }),
    (Invariant::Settles, "ended by itself", |history| history.deaths.push("node 1 ended by itself".to_owned())),
];

/// A send to the frail dependency: when it began, when it arrived, in milliseconds, and its answer. `None` if it
/// never arrived.
type FrailSend = (u64, Option<(u64, u16)>);

/// A history with these first attempts of one task each, and these retries of one further task.
fn frail(firsts: &[FrailSend], retries: &[FrailSend]) -> History {
    let mut history = History::default();
    let firsts = firsts.iter().enumerate().map(|(at, first)| (format!("first-{at}"), 1, std::slice::from_ref(first)));
    for (id, number, sends) in firsts.chain([("retried".to_owned(), 2, retries)]) {
        let key = format!("key-{id}");
        let target = format!("POST /{id}");
        let requested = RequestedTask {
            target,
            body_hash: 7,
            dependency: FRAIL.to_owned(),
            max_attempts: 1_000,
            attempt_timeout_ms: 1_000,
        };
        history.requested.insert(key.clone(), vec![requested]);
        let mut attempts = Vec::new();
        for (number, (began, arrived)) in (number..).zip(sends) {
            attempts.push(attempt(number, *began, "retryable", None));
            if let Some((at, status)) = arrived {
                history.arrivals.push(arrival(&id, number, at * 1_000, Some(*status)));
            }
        }
        history.end.kept.insert(id.clone(), Kept { task: task(&id, "PENDING", number), attempts });
    }
    history
}

/// Failed retries from 100 s on, each so many milliseconds after the one before.
fn retries(count: u64, every: u64) -> Vec<FrailSend> {
    (0..count).map(|at| (100_000 + at * every, Some((100_000 + at * every, 500)))).collect()
}

#[test]
fn retries_within_the_floor_the_probes_and_a_fifth_of_the_first_attempts_are_within_the_budget() {
    let at = |ms| (ms, Some((ms, 200)));
    let began_before = |ms, retry: &FrailSend| (retry.0 - ms, retry.1);
    let late: Vec<FrailSend> = retries(40, 1).iter().map(|retry| began_before(30_000, retry)).collect();
    let mut refunded = retries(20, 100);
    refunded[3].1 = Some((100_300, 200));
    // What it is about, first attempts, retries, and whether they break the budget.
    let cases: [(&str, Vec<FrailSend>, Vec<FrailSend>, bool); 11] = [
        ("the floor and the probes", vec![], retries(19, 100), false),
        ("one more", vec![], retries(20, 100), true),
        ("four first attempts earn less than a retry", vec![at(99_000); 4], retries(20, 100), true),
        ("five earn one", vec![at(99_000); 5], retries(20, 100), false),
        ("they are forgotten after 30 s and the slack", vec![at(68_000); 5], retries(20, 100), true),
        ("they must be sent before the last retry and the slack", vec![at(104_000); 5], retries(20, 100), true),
        ("they may not have arrived", vec![(99_000, None); 5], retries(20, 100), false),
        ("a retry that succeeded does not count", vec![], refunded, false),
        ("retries that took longer than the window were charged in one before", vec![], late, false),
        ("retries over more than the window", vec![], retries(20, 1_500), false),
        ("a little faster", vec![], retries(20, 1_300), true),
    ];
    for (what, firsts, retries, is_broken) in cases {
        let broken = check(&frail(&firsts, &retries));
        let broken = broken.iter().any(|violation| violation.invariant == Invariant::RetryBudget);
        assert_eq!(broken, is_broken, "{what}");
    }
}

#[test]
fn other_dependencies_are_not_judged_by_the_budget() {
    let mut history = frail(&[], &retries(100, 10));
    history.requested.values_mut().flatten().for_each(|requested| requested.dependency = "north".to_owned());
    assert_eq!(fullest_window(&history), None);
}

#[test]
fn a_history_that_breaks_an_invariant_is_found_by_that_invariant() {
    for (invariant, evidence, change) in LIES {
        let mut history = truth();
        change(&mut history);
        let violations = check(&history);
        let mut by_it = violations.iter().filter(|violation| violation.invariant == *invariant);
        assert!(by_it.any(|found| found.evidence.contains(evidence)), "{evidence:?} not in {violations:#?}");
    }
}

#[test]
fn every_invariant_is_broken_by_one_of_the_lies() {
    for invariant in Invariant::ALL {
        assert!(LIES.iter().any(|(broken, ..)| *broken == invariant), "{invariant:?}");
    }
}

#[test]
fn a_send_that_began_before_a_pause_may_arrive_when_it_is_over() {
    let mut history = truth();
    // It was about to be sent at 1 s, when its process was suspended, and is sent as soon as that is resumed.
    history.arrivals[0].at = 9 * SECOND + 1_000;
    history.arrivals.swap(0, 1);
    assert_eq!(check(&history), []);
    assert_eq!(held_up_by_a_pause(&history), 1);
    // Claimed after the suspension began, it cannot have been about to be sent.
    history.pauses[0].from = 500_000;
    let broken: Vec<Invariant> = check(&history).into_iter().map(|violation| violation.invariant).collect();
    assert!(broken.contains(&Invariant::Fenced) && broken.contains(&Invariant::NothingAfterTheEnd), "{broken:?}");
}

#[test]
fn a_pause_holds_up_no_more_sends_than_a_node_has_slots() {
    let mut history = truth();
    for number in 0..=SLOTS {
        let id = format!("held-{number}");
        let (mut arrived, mut made) = (arrival(&id, 1, 9 * SECOND + 1_000, Some(200)), truth().end.kept["a"].clone());
        arrived.key = "key-a".to_owned();
        arrived.target = "POST /a".to_owned();
        made.attempts.truncate(1);
        history.arrivals.push(arrived);
        history.end.kept.insert(id, made);
        let late =
            check(&history).into_iter().filter(|violation| violation.evidence.contains("after one pause")).count();
        assert_eq!(late, usize::from(number == SLOTS), "{} sends", number + 1);
    }
}
