//! Adding pending tasks to the index.

use redrive_store::PendingTask;

use super::{CALL_TIMEOUT, Schedule, TASKS_PER_CALL, TASKS_TOGETHER, by_queue};
use crate::keys::{Partition, in_book};
use crate::member;
use crate::redis_call_error::RedisCallError;
use crate::script::{ADD, Call};

/// Tasks of one class of a lane that may not be in the index.
#[derive(Debug, Clone)]
pub struct NotAdded {
    /// The tasks.
    pub tasks: Vec<PendingTask>,
    /// Why they were not added.
    pub failure: RedisCallError,
}

impl Schedule {
    /// Adds tasks; a task that is present already keeps the earlier of both due times. Returns those that may not have
    /// been added; adding them again is harmless.
    pub async fn add(&self, tasks: Vec<PendingTask>) -> Vec<NotAdded> {
        let sorted = by_queue(tasks.into_iter().map(|task| ((task.lane.clone(), task.class), task)));
        let mut pieces: Vec<Vec<PendingTask>> = Vec::new();
        for tasks in sorted.into_values() {
            pieces.extend(tasks.chunks(TASKS_PER_CALL).map(<[PendingTask]>::to_vec));
        }
        let mut missing = Vec::new();
        while !pieces.is_empty() {
            let together = split_off_together(&mut pieces);
            let calls = together.iter().filter_map(|tasks| self.add_call(tasks)).collect();
            let answers = self.link.call(calls, CALL_TIMEOUT).await;
            let failed = together.into_iter().zip(answers);
            missing.extend(failed.filter_map(|(tasks, answer)| Some(NotAdded { tasks, failure: answer.err()? })));
        }
        missing
    }

    /// The call for tasks of one class of a lane.
    fn add_call(&self, tasks: &[PendingTask]) -> Option<Call> {
        let PendingTask { lane, class, .. } = tasks.first()?;
        let keys = [self.keys.book(Partition::of(lane)), self.keys.due(lane, *class)];
        let mut call = Call::script(&ADD, &keys).arg(in_book(lane, *class));
        for task in tasks {
            call = call.arg(member::score(task.due)).arg(member::encode(task.id, task.token));
        }
        Some(call)
    }
}

/// As many chunks from the end as may be sent at once, at least one.
fn split_off_together<T>(pieces: &mut Vec<Vec<T>>) -> Vec<Vec<T>> {
    let mut tasks = 0;
    let fits = |piece: &&Vec<T>| {
        tasks += piece.len();
        tasks <= TASKS_TOGETHER
    };
    let count = pieces.iter().rev().take_while(fits).count().max(1);
    pieces.split_off(pieces.len().saturating_sub(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_too_many_tasks_are_sent_at_once() {
        let mut pieces = vec![vec![0; TASKS_PER_CALL]; 25];
        let sent: Vec<usize> = std::iter::from_fn(|| {
            let together = split_off_together(&mut pieces);
            (!together.is_empty()).then_some(together.len())
        })
        .collect();
        assert_eq!(sent, [10, 10, 5]);
        let mut one = vec![vec![0; TASKS_TOGETHER + 1]];
        assert_eq!(split_off_together(&mut one).len(), 1);
    }
}
