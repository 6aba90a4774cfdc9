use redis::Value;
use redrive_core::{Lane, Timestamp};
use redrive_store::{LaneRoom, Waiting};

use super::{CALL_TIMEOUT, Schedule, TASKS_PER_CALL, parse_score};
use crate::failure::Failure;
use crate::keys::Partition;
use crate::member;
use crate::script::{Call, TAKE};

/// What came of a lane's turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Take {
    /// The lane's partition has lost something or was never filled: nothing was taken, and there may be more in the
    /// store than is known here.
    Incomplete,
    /// The lane is known.
    Taken(Taken),
}

/// Tasks that are nobody else's now, and not in the index any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// The tasks, earliest due first.
    pub tasks: Vec<Waiting>,
    /// When the lane's next one is due; `None` if it has none.
    pub next_due: Option<Timestamp>,
}

impl Schedule {
    /// Takes up to `room` tasks of each lane that are due by `now`, earliest first, and answers for each lane in order.
    /// A lane whose call failed may have lost tasks: they were taken, but the answer did not arrive.
    pub async fn take(&self, lanes: &[LaneRoom], now: Timestamp) -> Vec<Result<Take, Failure>> {
        let calls = lanes.iter().map(|turn| {
            let keys = [self.keys.book(Partition::of(&turn.lane)), self.keys.due(&turn.lane)];
            let room = turn.room.min(TASKS_PER_CALL);
            Call::script(&TAKE, &keys).arg(turn.lane.to_string()).arg(member::score(now)).arg(room)
        });
        let answers = self.link.call(calls.collect(), CALL_TIMEOUT).await;
        let answers = lanes.iter().zip(answers);
        answers.map(|(turn, answer)| parse(&turn.lane, &answer?).ok_or(Failure::Unexpected("a take"))).collect()
    }
}

fn parse(lane: &Lane, answer: &Value) -> Option<Take> {
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
        // What is no task of ours has no business here, and is gone now.
        let Some((id, token)) = member::decode(member) else { continue };
        taken.tasks.push(Waiting { lane: lane.clone(), id, token, due: parse_score(score)? });
    }
    Some(Take::Taken(taken))
}
