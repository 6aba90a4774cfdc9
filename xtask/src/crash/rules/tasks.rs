//! Rules 1, 5, 8, 10 and 11: tasks as the API returns them.

use std::collections::{BTreeMap, BTreeSet};

use super::super::history::{History, MISSING};
use super::{Found, Rule};
use crate::api::is_ended;

pub(super) fn check(history: &History, found: &mut Found) {
    ends_once(history, found);
    one_task_per_key(history, found);
    dead_letters_and_counts(history, found);
    alerts(history, found);
    told(history, found);
}

fn ends_once(history: &History, found: &mut Found) {
    for id in history.acknowledged_tasks() {
        match history.kept.get(id) {
            None => found.add(Rule::EndsOnce, format!("task {id} was acknowledged and is gone")),
            Some(kept) if !is_ended(&kept.task.status) => {
                found.add(Rule::EndsOnce, format!("task {id} has not ended: it is {}", kept.task.status));
            }
            Some(_) => {}
        }
    }
    for sighting in &history.sightings {
        if sighting.status == MISSING {
            found.add(Rule::EndsOnce, format!("task {} was acknowledged and then not found", sighting.task));
        } else if is_ended(&sighting.status)
            && let Some(kept) = history.kept.get(&sighting.task)
            && kept.task.status != sighting.status
        {
            let (id, then, now) = (&sighting.task, &sighting.status, &kept.task.status);
            found.add(Rule::EndsOnce, format!("task {id} had ended {then}, and later was {now}"));
        }
    }
}

fn one_task_per_key(history: &History, found: &mut Found) {
    let said = history.acknowledged.iter().map(|acknowledged| (&acknowledged.key, &acknowledged.task));
    let sent = history.arrivals.iter().map(|arrival| (&arrival.key, &arrival.task));
    let kept = history.kept.values().map(|kept| (&kept.task.idempotency_key, &kept.task.task_id));
    let mut tasks: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (key, task) in said.chain(sent).chain(kept) {
        tasks.entry(key).or_default().insert(task);
    }
    for (key, tasks) in tasks {
        if tasks.len() > 1 {
            found.add(Rule::OneTaskPerKey, format!("key {key} is {} tasks: {tasks:?}", tasks.len()));
        }
    }
    let total: u64 = history.counts.values().sum();
    if total > history.requested.len() as u64 {
        found.add(Rule::OneTaskPerKey, format!("{} keys became {total} tasks", history.requested.len()));
    }
}

fn dead_letters_and_counts(history: &History, found: &mut Found) {
    let mut by_status: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (id, kept) in &history.kept {
        by_status.entry(&kept.task.status).or_default().insert(id);
    }
    for status in ["FAILED", "EXHAUSTED"] {
        let listed: BTreeSet<&str> = history.listed.get(status).into_iter().flatten().map(String::as_str).collect();
        let ended = by_status.get(status).cloned().unwrap_or_default();
        for id in listed.symmetric_difference(&ended) {
            let (is, is_not) =
                if ended.contains(id) { ("ended so", "listed") } else { ("listed", "a task that ended so") };
            found.add(Rule::DeadLettersAndCounts, format!("task {id} is {is} as {status} and not {is_not}"));
        }
    }
    let statuses: BTreeSet<&str> = by_status.keys().copied().chain(history.counts.keys().map(String::as_str)).collect();
    for status in statuses {
        let counted = history.counts.get(status).copied().unwrap_or(0);
        let there = by_status.get(status).map_or(0, BTreeSet::len) as u64;
        if counted != there {
            found.add(Rule::DeadLettersAndCounts, format!("{status}: {counted} are counted, {there} are there"));
        }
    }
}

fn alerts(history: &History, found: &mut Found) {
    let dead_letter = |status: &str| status == "FAILED" || status == "EXHAUSTED";
    for (id, kept) in history.kept.iter().filter(|(_, kept)| dead_letter(&kept.task.status)) {
        if !history.alerts.contains(id) {
            found.add(Rule::Alerts, format!("task {id} ended {} without an alert", kept.task.status));
        }
    }
    for id in &history.alerts {
        if let Some(kept) = history.kept.get(id).filter(|kept| !dead_letter(&kept.task.status)) {
            found.add(Rule::Alerts, format!("task {id} raised an alert and ended {}", kept.task.status));
        }
    }
}

fn told(history: &History, found: &mut Found) {
    for (id, dependency) in history.dead_letters() {
        if !history.told.contains(dependency) {
            found.add(Rule::Told, format!("task {id} of {dependency} is a dead letter, and the sink was not told"));
        }
    }
}
