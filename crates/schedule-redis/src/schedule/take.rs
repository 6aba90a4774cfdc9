//! Taking due tasks from the index.

use redis::Value;
use redrive_core::{Class, Lane, Timestamp};
use redrive_store::PendingTask;

use super::{CALL_TIMEOUT, Schedule, TASKS_PER_CALL, parse_score};
use crate::keys::{Partition, in_book};
use crate::member;
use crate::redis_call_error::RedisCallError;
use crate::script::{Call, TAKE};

/// A request for tasks of one class of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The lane.
    pub lane: Lane,
    /// The class.
    pub class: Class,
    /// The most tasks to take.
    pub tasks: usize,
}

/// The answer to a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Take {
    /// The lane's partition has lost data or was never filled: nothing was taken, and the store may have more tasks
    /// than the index.
    Incomplete,
    /// The lane's partition is complete.
    Taken(Taken),
}

/// Tasks that were removed from the index and given to this caller alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// The tasks, earliest due first.
    pub tasks: Vec<PendingTask>,
    /// When the next task of the same class of the lane is due; `None` if there is none.
    pub next_due: Option<Timestamp>,
}

impl Schedule {
    /// Takes tasks that are due by `due_by`, earliest first; returns the answers in the order of the turns. A turn
    /// whose call failed may have lost tasks: they were taken, but the answer did not arrive.
    pub async fn take(&self, turns: &[Turn], due_by: Timestamp) -> Vec<Result<Take, RedisCallError>> {
        let calls = turns.iter().map(|Turn { lane, class, tasks }| {
            let keys = [self.keys.book(Partition::of(lane)), self.keys.due(lane, *class)];
            let most = (*tasks).min(TASKS_PER_CALL);
            Call::script(&TAKE, &keys).arg(in_book(lane, *class)).arg(member::score(due_by)).arg(most)
        });
        let answers = self.link.call(calls.collect(), CALL_TIMEOUT).await;
        let answers = turns.iter().zip(answers);
        answers.map(|(turn, answer)| parse(turn, &answer?).ok_or(RedisCallError::Unexpected("a take"))).collect()
    }
}

fn parse(turn: &Turn, answer: &Value) -> Option<Take> {
    let (next, tasks) = match answer {
        Value::Nil => return Some(Take::Incomplete),
        Value::Array(parts) => match parts.as_slice() {
            [next, Value::Array(tasks)] => (next, tasks),
            _ => return None,
        },
        _ => return None,
    };
    let next_due = match next {
        Value::Nil => None,
        score => Some(parse_score(score)?),
    };
    let mut taken = Taken { tasks: Vec::with_capacity(tasks.len() / 2), next_due };
    for pair in tasks.chunks_exact(2) {
        let [Value::BulkString(member), score] = pair else { return None };
        // An invalid member is dropped; the take has removed it.
        let Some((id, token)) = member::decode(member) else { continue };
        let (lane, class) = (turn.lane.clone(), turn.class);
        taken.tasks.push(PendingTask { lane, class, id, token, due: parse_score(score)? });
    }
    Some(Take::Taken(taken))
}
