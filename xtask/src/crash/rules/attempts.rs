//! Rule 9: the attempt log.

use super::super::history::{History, Kept};
use super::{Found, Rule};
use crate::api::Attempt;
use crate::witness::Arrival;

/// The log's times are whole milliseconds.
const ROUNDING_US: u64 = 1_000;

pub(super) fn check(history: &History, found: &mut Found) {
    let by_task = history.arrivals_by_task();
    for (id, kept) in &history.kept {
        let arrivals = by_task.get(id.as_str()).map(Vec::as_slice).unwrap_or_default();
        let mut complain = |evidence: String| found.add(Rule::AttemptLog, format!("task {id}: {evidence}"));
        complete(kept, arrivals, &mut complain);
        for attempt in &kept.attempts {
            let arrival = arrivals.iter().find(|arrival| arrival.attempt == attempt.attempt_number);
            true_to_arrival(attempt, arrival.copied(), &mut complain);
        }
        unknown_only_by_kill(&kept.attempts, &history.kills, &mut complain);
    }
}

fn complete(kept: &Kept, arrivals: &[&Arrival], complain: &mut impl FnMut(String)) {
    let numbers: Vec<u32> = kept.attempts.iter().map(|attempt| attempt.attempt_number).collect();
    let expected: Vec<u32> = (1..=kept.task.attempt_number).collect();
    if numbers != expected {
        complain(format!("its log has the attempts {numbers:?}, and it made {}", kept.task.attempt_number));
    }
    for arrival in arrivals.iter().filter(|arrival| !numbers.contains(&arrival.attempt)) {
        complain(format!("attempt {} arrived and is not in its log", arrival.attempt));
    }
}

fn true_to_arrival(attempt: &Attempt, arrival: Option<&Arrival>, complain: &mut impl FnMut(String)) {
    let Attempt { attempt_number: number, outcome, response_status, .. } = attempt;
    let answered = arrival.and_then(|arrival| arrival.answered);
    if response_status.is_some() && *response_status != answered {
        complain(format!("attempt {number} is logged with the answer {response_status:?} and had {answered:?}"));
    }
    if outcome == "success" && !matches!(response_status, Some(200..300)) {
        complain(format!("attempt {number} is logged as a success with the answer {response_status:?}"));
    }
}

/// An attempt is interrupted at most once per kill, and only by a kill after it began.
fn unknown_only_by_kill(attempts: &[Attempt], kills: &[u64], complain: &mut impl FnMut(String)) {
    let mut kills = kills.iter().peekable();
    for attempt in attempts.iter().filter(|attempt| attempt.outcome == "unknown") {
        let began = attempt.started_at * 1_000;
        while kills.next_if(|kill| **kill + ROUNDING_US < began).is_some() {}
        if kills.next().is_none() {
            complain(format!(
                "attempt {} is logged as unknown, and no kill can have cut it off",
                attempt.attempt_number
            ));
        }
    }
}
