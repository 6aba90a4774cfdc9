//! Rules 2, 3, 4, 6 and 7: what arrived at the target.

use super::super::history::{History, Sighting};
use super::{Found, Rule};
use crate::api::is_ended;
use crate::witness::Arrival;

/// A request may stay in the target's socket for a moment after its sender was killed, and be read after the next
/// process has already ended the task.
const IN_THE_SOCKET_US: u64 = 250_000;

pub(super) fn check(history: &History, found: &mut Found) {
    let by_task = history.arrivals_by_task();
    for (id, arrivals) in &by_task {
        within_attempts(history, id, arrivals, found);
        numbers_grow(id, arrivals, found);
    }
    for arrival in &history.arrivals {
        same_request(history, arrival, found);
    }
    for (id, kept) in history.kept.iter().filter(|(_, kept)| kept.task.status == "SUCCEEDED") {
        let arrivals = by_task.get(id.as_str()).map(Vec::as_slice).unwrap_or_default();
        if !arrivals.iter().any(|arrival| matches!(arrival.answered, Some(200..300))) {
            let answers: Vec<_> = arrivals.iter().map(|arrival| arrival.answered).collect();
            let attempts = kept.task.attempt_number;
            let evidence = format!("task {id} SUCCEEDED after {attempts} attempts that were answered {answers:?}");
            found.add(Rule::TrueSuccess, evidence);
        }
    }
    for sighting in &history.sightings {
        let arrivals = by_task.get(sighting.task.as_str()).map(Vec::as_slice).unwrap_or_default();
        nothing_after_the_end(history, sighting, arrivals, found);
    }
}

fn within_attempts(history: &History, id: &str, arrivals: &[&Arrival], found: &mut Found) {
    let Some(requested) = arrivals.first().and_then(|arrival| history.requested.get(&arrival.key)) else { return };
    if arrivals.len() > requested.max_attempts as usize {
        let evidence =
            format!("task {id} may be sent {} times and arrived {} times", requested.max_attempts, arrivals.len());
        found.add(Rule::WithinAttempts, evidence);
    }
}

fn numbers_grow(id: &str, arrivals: &[&Arrival], found: &mut Found) {
    let numbers: Vec<u32> = arrivals.iter().map(|arrival| arrival.attempt).collect();
    if numbers.first() == Some(&0) || !numbers.is_sorted_by(|earlier, later| earlier < later) {
        found.add(Rule::NumbersGrow, format!("task {id} arrived with the attempt numbers {numbers:?}"));
    }
}

fn same_request(history: &History, arrival: &Arrival, found: &mut Found) {
    let (id, attempt, key) = (&arrival.task, arrival.attempt, &arrival.key);
    let Some(requested) = history.requested.get(key) else {
        found.add(
            Rule::SameRequest,
            format!("attempt {attempt} of task {id} carried the key {key:?}, which no caller gave"),
        );
        return;
    };
    if arrival.target != requested.target {
        let evidence =
            format!("attempt {attempt} of {key} went to {:?} instead of {:?}", arrival.target, requested.target);
        found.add(Rule::SameRequest, evidence);
    }
    if arrival.body_hash != requested.body_hash {
        found.add(Rule::SameRequest, format!("attempt {attempt} of {key} (task {id}) had another body"));
    }
}

fn nothing_after_the_end(history: &History, sighting: &Sighting, arrivals: &[&Arrival], found: &mut Found) {
    let Sighting { task: id, status, attempt_number, .. } = sighting;
    let ended = is_ended(status);
    if !ended && !sighting.cancelled {
        return;
    }
    for arrival in arrivals.iter().filter(|arrival| arrival.at > sighting.at) {
        // The attempt in flight may still arrive after a cancel, and after a kill even after the end; no other may.
        let is_new = arrival.attempt > *attempt_number;
        if is_new || (ended && arrival.at > sighting.at + IN_THE_SOCKET_US) {
            let late = (arrival.at - sighting.at) as f64 / 1e3;
            let evidence = format!(
                "attempt {} of task {id} arrived {late:.1} ms after the API had said {status}{} at attempt {attempt_number}",
                arrival.attempt,
                if sighting.cancelled { " (cancelled)" } else { "" },
            );
            found.add(Rule::NothingAfterTheEnd, evidence);
        }
    }
    if sighting.cancelled
        && let Some(kept) = history.kept.get(id)
        && !matches!(kept.task.status.as_str(), "CANCELLED" | "SUCCEEDED")
    {
        let evidence = format!("the cancel of task {id} was accepted, and it ended {}", kept.task.status);
        found.add(Rule::NothingAfterTheEnd, evidence);
    }
}
