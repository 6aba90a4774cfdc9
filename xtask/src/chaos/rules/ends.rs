//! Invariants 1 and 9: acknowledged tasks exist and have ended, and those that failed are dead letters.

use std::collections::{BTreeMap, BTreeSet};

use super::super::history::{History, Kept};
use super::{Found, Invariant};
use crate::api::{Task, is_ended};
use crate::witness::Alert;

pub(super) fn check(history: &History, found: &mut Found) {
    is_there(history, found);
    ended_once(history, found);
    true_success(history, found);
    dead_letters(history, found);
    counts(history, found);
    alerts(history, found);
}

fn is_there(history: &History, found: &mut Found) {
    for id in history.acknowledged_tasks() {
        if !history.end.kept.contains_key(id) {
            found.about(Invariant::Durable, id, "it was acknowledged and is gone");
        }
    }
    for sighting in history.sightings.iter().filter(|sighting| sighting.task.is_none()) {
        found.about(Invariant::Durable, &sighting.id, "it was acknowledged and then not found");
    }
}

/// An end is final, unless a dead letter is replayed: then the next run begins.
fn ended_once(history: &History, found: &mut Found) {
    let mut ends: BTreeMap<(&str, u32), &str> = BTreeMap::new();
    let seen = history.sightings.iter().filter_map(|sighting| sighting.task.as_ref());
    let kept = history.end.kept.values().map(|kept| &kept.task);
    for task in seen.chain(kept).filter(|task| is_ended(&task.status)) {
        let (id, run, status) = (task.task_id.as_str(), task.run, task.status.as_str());
        let other = *ends.entry((id, run)).or_insert(status);
        if other != status {
            found.about(Invariant::Durable, id, format_args!("run {run} ended both {other} and {status}"));
        }
    }
    let mut furthest: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for task in history.sightings.iter().filter_map(|sighting| sighting.task.as_ref()) {
        if task.status != "IN_FLIGHT" {
            let furthest = furthest.entry(&task.task_id).or_default();
            *furthest = (*furthest).max((task.run, task.attempt_number));
        }
    }
    for (id, Kept { task, .. }) in &history.end.kept {
        let requested = history.replays_asked.get(id).map_or(0, Vec::len) as u32;
        if task.run > 1 + requested {
            let evidence = format!("it is in run {}, and a replay was asked for {requested} times", task.run);
            found.about(Invariant::Durable, id, evidence);
        }
        for run in 1..task.run {
            if let Some(status) = ends.get(&(id, run)).filter(|status| !is_dead_letter(status)) {
                found.about(Invariant::Durable, id, format_args!("run {run} ended {status}, and another one followed"));
            }
        }
        // An attempt in flight may be given back unsent, and its number with it; a settled one may not.
        let (run, attempt) = furthest.get(id.as_str()).copied().unwrap_or_default();
        if (run, attempt) > (task.run, task.attempt_number) {
            let (now, made) = (task.run, task.attempt_number);
            let evidence =
                format!("it was seen in run {run} after attempt {attempt}, and is in run {now} after {made}");
            found.about(Invariant::Durable, id, evidence);
        }
    }
}

fn true_success(history: &History, found: &mut Found) {
    let by_task = history.arrivals_by_task();
    for (id, Kept { task, .. }) in history.end.kept.iter().filter(|(_, kept)| kept.task.status == "SUCCEEDED") {
        let arrivals = by_task.get(id.as_str()).map(Vec::as_slice).unwrap_or_default();
        let last = arrivals.iter().find(|arrival| arrival.attempt == task.attempt_number);
        if !last.is_some_and(|arrival| matches!(arrival.answered, Some(200..300))) {
            let answered = last.map(|arrival| arrival.answered);
            let evidence = format!("it SUCCEEDED at attempt {}, which was answered {answered:?}", task.attempt_number);
            found.about(Invariant::Durable, id, evidence);
        }
    }
}

fn dead_letters(history: &History, found: &mut Found) {
    for status in ["FAILED", "EXHAUSTED"] {
        let listed = history.end.listed.get(status).into_iter().flatten().map(String::as_str);
        let listed: BTreeSet<&str> = listed.collect();
        let ended = history.end.kept.iter().filter(|(_, kept)| kept.task.status == status);
        let ended: BTreeSet<&str> = ended.map(|(id, _)| id.as_str()).collect();
        for id in ended.difference(&listed) {
            found.about(Invariant::DeadLetters, id, format_args!("it ended {status} and is not listed as such"));
        }
        for id in listed.difference(&ended) {
            found.about(Invariant::DeadLetters, id, format_args!("it is listed as {status} and did not end so"));
        }
    }
}

fn counts(history: &History, found: &mut Found) {
    let mut there: BTreeMap<&str, u64> = BTreeMap::new();
    for kept in history.end.kept.values() {
        *there.entry(&kept.task.status).or_default() += 1;
    }
    for (node, counted) in &history.end.counts {
        let statuses: BTreeSet<&str> = there.keys().copied().chain(counted.keys().map(String::as_str)).collect();
        for status in statuses {
            let (counted, there) = (counted.get(status).unwrap_or(&0), there.get(status).unwrap_or(&0));
            if counted != there {
                let evidence = format!("{node} counts {counted} {status}, and {there} are there");
                found.add(Invariant::DeadLetters, evidence);
            }
        }
    }
}

fn alerts(history: &History, found: &mut Found) {
    let Some(alerts) = &history.alerts else { return };
    for (id, Kept { task, .. }) in history.end.kept.iter().filter(|(_, kept)| is_dead_letter(&kept.task.status)) {
        if !alerts.contains(&Alert { task: id.clone(), run: task.run }) {
            let evidence = format!("it ended {} in run {} without an alert", task.status, task.run);
            found.about(Invariant::DeadLetters, id, evidence);
        }
    }
    for Alert { task: id, run } in alerts {
        let of_last_run = |kept: &&Kept| kept.task.run == *run && !is_dead_letter(&kept.task.status);
        if let Some(Kept { task: Task { status, .. }, .. }) = history.end.kept.get(id).filter(of_last_run) {
            found.about(Invariant::DeadLetters, id, format_args!("run {run} raised an alert, and it ended {status}"));
        }
    }
}

fn is_dead_letter(status: &str) -> bool {
    status == "FAILED" || status == "EXHAUSTED"
}
