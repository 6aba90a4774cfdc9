//! Invariants 2, 3 and 4: how often, what, and until when requests arrived at the target.

use std::collections::BTreeMap;

use super::super::history::{Deed, History, Sighting};
use super::leases::{IN_THE_SOCKET_US, Leases};
use super::{Found, Invariant};
use crate::api::is_ended;
use crate::witness::{Arrival, RequestedTask};

pub(super) fn check(history: &History, found: &mut Found) {
    let acknowledged = acknowledged_requests(history);
    for arrival in &history.arrivals {
        same_request(history, &acknowledged, arrival, found);
    }
    let by_task = history.arrivals_by_task();
    let mut runs = runs_by_task(history);
    for (id, arrivals) in &by_task {
        let Some(key) = arrivals.first().map(|arrival| arrival.key.as_str()) else { continue };
        let Some(requested) = acknowledged.get(key) else { continue };
        within_attempts(id, requested.max_attempts, runs.remove(id).unwrap_or_default(), arrivals, found);
    }
    let leases = Leases::of(history);
    for sighting in &history.sightings {
        let arrivals = by_task.get(sighting.id.as_str()).map(Vec::as_slice).unwrap_or_default();
        nothing_after_the_end(history, &leases, sighting, arrivals, found);
    }
}

/// The acknowledged request under each key.
fn acknowledged_requests(history: &History) -> BTreeMap<&str, &RequestedTask> {
    let acknowledged = history.answers.iter().filter(|answer| answer.said.acknowledged().is_some());
    acknowledged
        .filter_map(|answer| {
            let requested = history.requested.get(&answer.key)?.get(answer.variant)?;
            Some((answer.key.as_str(), requested))
        })
        .collect()
}

fn same_request(
    history: &History,
    acknowledged: &BTreeMap<&str, &RequestedTask>,
    arrival: &Arrival,
    found: &mut Found,
) {
    let (attempt, key) = (arrival.attempt, &arrival.key);
    // Before the first acknowledgement, a request may be any of those under the key.
    let requested: Vec<&RequestedTask> = match acknowledged.get(key.as_str()) {
        Some(requested) => vec![requested],
        None => history.requested.get(key).into_iter().flatten().collect(),
    };
    let mut complain = |what: String| found.about(Invariant::SameRequest, &arrival.task, what);
    if requested.is_empty() {
        complain(format!("attempt {attempt} carried the key {key:?}, which no caller gave"));
    } else if !requested.iter().any(|requested| requested.target == arrival.target) {
        complain(format!(
            "attempt {attempt} of {key} went to {:?} instead of {:?}",
            arrival.target, requested[0].target
        ));
    } else if !requested.iter().any(|requested| requested.body_hash == arrival.body_hash) {
        complain(format!("attempt {attempt} of {key} had another body"));
    }
}

/// How many attempts had been made before each run that the API returned.
fn runs_by_task(history: &History) -> BTreeMap<&str, BTreeMap<u32, u32>> {
    let seen = history.sightings.iter().filter_map(|sighting| sighting.task.as_ref());
    let kept = history.end.kept.values().map(|kept| &kept.task);
    let mut by_task: BTreeMap<&str, BTreeMap<u32, u32>> = BTreeMap::new();
    for task in seen.chain(kept) {
        let before = task.attempt_number.saturating_sub(task.attempt_in_run);
        by_task.entry(&task.task_id).or_default().insert(task.run, before);
    }
    by_task
}

fn within_attempts(id: &str, most: u32, runs: BTreeMap<u32, u32>, arrivals: &[&Arrival], found: &mut Found) {
    let mut sent: BTreeMap<u32, usize> = BTreeMap::new();
    for arrival in arrivals {
        *sent.entry(arrival.attempt).or_default() += 1;
    }
    for (attempt, times) in sent.iter().filter(|(_, times)| **times > 1) {
        found.about(Invariant::WithinAttempts, id, format_args!("attempt {attempt} arrived {times} times"));
    }
    // A run that the API never returned is counted with the one before it.
    let mut bounds: Vec<(u32, u32)> = std::iter::once((1, 0)).chain(runs).collect();
    bounds.dedup();
    let last = bounds.last().map_or(1, |(run, _)| run + 1);
    bounds.push((last, u32::MAX));
    for pair in bounds.windows(2) {
        let [(run, before), (next, until)] = [pair[0], pair[1]];
        let allowed = most.saturating_mul(next - run);
        let count: usize = sent.range(before.saturating_add(1)..=until).map(|(_, times)| times).sum();
        if count > allowed as usize {
            let evidence = format!("from run {run} on it may be sent {allowed} times, and arrived {count} times");
            found.about(Invariant::WithinAttempts, id, evidence);
        }
    }
}

fn nothing_after_the_end(
    history: &History,
    leases: &Leases,
    seen: &Sighting,
    arrivals: &[&Arrival],
    found: &mut Found,
) {
    let Some(task) = &seen.task else { return };
    let (id, is_over) = (seen.id.as_str(), is_ended(&task.status));
    if !is_over && seen.by != Deed::Cancel {
        return;
    }
    for arrival in arrivals.iter().filter(|arrival| arrival.at > seen.at) {
        // The attempt in flight may still arrive after a cancel: another node may have it, and not know of the cancel
        // yet.
        let is_new = arrival.attempt > task.attempt_number && !is_replayed(history, seen, arrival);
        let is_late = is_over
            && arrival.attempt <= task.attempt_number
            && arrival.at > seen.at + IN_THE_SOCKET_US
            && leases.held_up(arrival).is_none();
        if is_new || is_late {
            let late = (arrival.at - seen.at) as f64 / 1e3;
            let cancelled = if seen.by == Deed::Cancel { " to a cancel" } else { "" };
            let (status, made) = (&task.status, task.attempt_number);
            let evidence = format!(
                "attempt {} arrived {late:.1} ms after the API had said {status}{cancelled}, at attempt {made}",
                arrival.attempt
            );
            found.about(Invariant::NothingAfterTheEnd, id, evidence);
        }
    }
    if seen.by == Deed::Cancel
        && let Some(kept) = history.end.kept.get(id).filter(|kept| is_ended(&kept.task.status))
        && !matches!(kept.task.status.as_str(), "CANCELLED" | "SUCCEEDED")
    {
        let evidence = format!("its cancel was accepted, and it ended {}", kept.task.status);
        found.about(Invariant::NothingAfterTheEnd, id, evidence);
    }
}

/// Whether the arrival may be of a later run than the one that was seen to end.
fn is_replayed(history: &History, seen: &Sighting, arrival: &Arrival) -> bool {
    let Some(task) = &seen.task else { return false };
    let is_later = history.end.kept.get(&seen.id).is_some_and(|kept| kept.task.run > task.run);
    let requested = history.replays_asked.get(&seen.id).into_iter().flatten();
    matches!(task.status.as_str(), "FAILED" | "EXHAUSTED")
        && is_later
        && requested.into_iter().any(|at| *at < arrival.at)
}
