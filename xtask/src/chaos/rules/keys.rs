//! Invariant 10: callers, target and API agree about each idempotency key.

use std::collections::{BTreeMap, BTreeSet};

use super::super::history::{History, Said};
use super::{Found, Invariant};

/// The answers to the submissions under one key.
#[derive(Default)]
struct Key<'a> {
    tasks: BTreeSet<&'a str>,
    accepted: BTreeSet<usize>,
    refused: BTreeSet<usize>,
    created: usize,
}

pub(super) fn check(history: &History, found: &mut Found) {
    let mut keys: BTreeMap<&str, Key<'_>> = BTreeMap::new();
    for answer in &history.answers {
        let key = keys.entry(&answer.key).or_default();
        key.tasks.insert(answer.said.task());
        match answer.said {
            Said::Created(_) | Said::Known(_) => key.accepted.insert(answer.variant),
            Said::Reused(_) => key.refused.insert(answer.variant),
        };
        key.created += usize::from(matches!(answer.said, Said::Created(_)));
    }
    let sent = history.arrivals.iter().map(|arrival| (arrival.key.as_str(), arrival.task.as_str()));
    let kept = history.end.kept.values().map(|kept| (kept.task.idempotency_key.as_str(), kept.task.task_id.as_str()));
    for (key, task) in sent.chain(kept) {
        keys.entry(key).or_default().tasks.insert(task);
    }
    for (name, key) in &keys {
        let mut complain = |evidence: String| match key.tasks.first() {
            Some(task) => found.about(Invariant::OneTaskPerKey, task, evidence),
            None => found.add(Invariant::OneTaskPerKey, evidence),
        };
        if key.tasks.len() > 1 {
            complain(format!("key {name} is {} tasks: {:?}", key.tasks.len(), key.tasks));
        }
        if key.accepted.len() > 1 {
            complain(format!("{} different requests were accepted under key {name}", key.accepted.len()));
        }
        if key.accepted.intersection(&key.refused).next().is_some() {
            complain(format!("the same request was both accepted and refused under key {name}"));
        }
        if key.accepted.is_empty() && !key.refused.is_empty() {
            complain(format!("every request under key {name} was refused, as if there had been another"));
        }
        if key.created > 1 {
            complain(format!("{} submissions under key {name} were told that the task was new", key.created));
        }
    }
    for (node, counts) in &history.end.counts {
        let total: u64 = counts.values().sum();
        if total > history.requested.len() as u64 {
            let evidence = format!("{} keys became {total} tasks, as {node} counts them", history.requested.len());
            found.add(Invariant::OneTaskPerKey, evidence);
        }
    }
}
