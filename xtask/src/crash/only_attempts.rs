//! Tasks with `maxAttempts = 1` that lost their only attempt before it was sent.
//!
//! Such a task ends EXHAUSTED with an unknown outcome, although no delivery was tried. A kill between the claim and the
//! first byte can cause that for a task that holds one of its lane's slots, and for no other. So one kill costs a lane
//! no more tasks than it has slots.

use std::collections::BTreeMap;
use std::fmt;

use super::history::{History, Kept};
use crate::witness::Verdict;

/// The log's times are whole milliseconds.
const ROUNDING_US: u64 = 1_000;

/// How many tasks lost their only attempt unsent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnlyAttempts {
    /// Tasks with `maxAttempts = 1`.
    pub tasks: usize,
    /// Those that ended EXHAUSTED with an unknown outcome although the target received no request for them.
    pub lost: usize,
    /// The most of these that one kill cost one lane.
    pub most: usize,
    /// The slots of a lane.
    pub lane_slots: usize,
    /// How often the service was killed.
    pub kills: usize,
}

impl OnlyAttempts {
    /// Counts them in the history of a service with this many slots in a lane.
    pub fn of(history: &History, lane_slots: usize) -> Self {
        let arrivals = history.arrivals_by_task();
        let once: Vec<_> = history.kept.iter().filter(|(_, kept)| kept.task.max_attempts == 1).collect();
        let mut lost: BTreeMap<(usize, &str), usize> = BTreeMap::new();
        for (id, kept) in &once {
            if is_lost(kept) && !arrivals.contains_key(id.as_str()) {
                let lane = history
                    .requested
                    .get(&kept.task.idempotency_key)
                    .map_or("", |requested| requested.dependency.as_str());
                *lost.entry((killed_by(kept, &history.kills), lane)).or_default() += 1;
            }
        }
        OnlyAttempts {
            tasks: once.len(),
            lost: lost.values().sum(),
            most: lost.values().copied().max().unwrap_or(0),
            lane_slots,
            kills: history.kills.len(),
        }
    }

    /// Whether no kill cost a lane more tasks than it has slots.
    pub fn verdict(self) -> Verdict {
        match self {
            OnlyAttempts { tasks: 0, .. } => Verdict::NotJudged,
            OnlyAttempts { most, lane_slots, .. } if most > lane_slots => Verdict::Missed,
            _ => Verdict::Reached,
        }
    }
}

fn is_lost(kept: &Kept) -> bool {
    kept.task.status == "EXHAUSTED" && kept.attempts.last().is_some_and(|attempt| attempt.outcome == "unknown")
}

/// The kill that interrupted the last attempt: the first one after it had begun.
fn killed_by(kept: &Kept, kills: &[u64]) -> usize {
    let began = kept.attempts.last().map_or(0, |attempt| attempt.started_at * 1_000);
    kills.partition_point(|kill| *kill + ROUNDING_US < began)
}

impl fmt::Display for OnlyAttempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OnlyAttempts { tasks, lost, most, lane_slots, kills } = self;
        let per_kill = *lost as f64 / (*kills).max(1) as f64;
        write!(
            f,
            "{lost} of {tasks} tasks with maxAttempts = 1 ended EXHAUSTED and were never sent ({per_kill:.2} per kill, \
             at most {most} of a lane by one kill); goal: at most a lane's {lane_slots} slots by one kill"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Attempt, Task};
    use crate::witness::{Arrival, RequestedTask};

    const SECOND: u64 = 1_000_000;

    /// Adds a task whose last attempt began and ended like this; the target did not receive it.
    fn add(history: &mut History, lane: &str, max_attempts: u32, status: &str, began_ms: u64, outcome: &str) -> String {
        let id = format!("task-{}", history.kept.len());
        let key = format!("key-{id}");
        let attempt =
            Attempt { attempt_number: 1, started_at: began_ms, outcome: outcome.to_owned(), response_status: None };
        let requested = RequestedTask {
            target: "POST /".to_owned(),
            body_hash: 7,
            dependency: lane.to_owned(),
            max_attempts,
            attempt_timeout_ms: 1_000,
        };
        history.requested.insert(key.clone(), requested);
        let task = Task {
            task_id: id.clone(),
            status: status.to_owned(),
            attempt_number: 1,
            run: 1,
            attempt_in_run: 1,
            max_attempts,
            next_attempt_at: None,
            idempotency_key: key,
        };
        history.kept.insert(id.clone(), Kept { task, attempts: vec![attempt] });
        id
    }

    /// Kills at 2 s and at 4 s. In lane `north` the first kill cost two tasks and the second one; in `south` the second
    /// cost one.
    fn history() -> History {
        let mut history = History { kills: vec![2 * SECOND, 4 * SECOND], ..History::default() };
        for (lane, began_ms) in [("north", 1_900), ("north", 1_950), ("north", 3_900), ("south", 3_950)] {
            add(&mut history, lane, 1, "EXHAUSTED", began_ms, "unknown");
        }
        history
    }

    #[test]
    fn lost_tasks_are_counted_by_lane_and_kill() {
        let of = OnlyAttempts::of(&history(), 2);
        assert_eq!(of, OnlyAttempts { tasks: 4, lost: 4, most: 2, lane_slots: 2, kills: 2 });
        assert_eq!(of.verdict(), Verdict::Reached);
        assert_eq!(OnlyAttempts::of(&history(), 1).verdict(), Verdict::Missed, "two in one lane by one kill");
    }

    #[test]
    fn what_was_sent_or_could_be_sent_again_or_ended_otherwise_is_not_lost() {
        let mut history = history();
        add(&mut history, "north", 1, "EXHAUSTED", 1_900, "retryable");
        add(&mut history, "north", 1, "SUCCEEDED", 1_900, "success");
        add(&mut history, "north", 1, "CANCELLED", 1_900, "unknown");
        add(&mut history, "north", 2, "EXHAUSTED", 1_900, "unknown");
        let task = add(&mut history, "north", 1, "EXHAUSTED", 1_900, "unknown");
        let (key, target) = (format!("key-{task}"), "POST /".to_owned());
        history.arrivals.push(Arrival { at: 0, task, attempt: 1, key, target, body_hash: 7, answered: None });
        let of = OnlyAttempts::of(&history, 2);
        assert_eq!((of.tasks, of.lost, of.most), (8, 4, 2));
    }

    #[test]
    fn without_such_tasks_nothing_is_judged() {
        assert_eq!(OnlyAttempts::of(&History::default(), 128).verdict(), Verdict::NotJudged);
    }
}
