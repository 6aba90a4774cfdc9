//! Counting the due tasks of classes of lanes.

use redis::Value;
use redrive_core::Timestamp;

use super::{CALL_TIMEOUT, Queue, Schedule};
use crate::member;
use crate::redis_call_error::RedisCallError;
use crate::script::Call;

impl Schedule {
    /// How many tasks of each class of a lane are due by `due_by`, according to the index.
    pub(crate) async fn count_due(&self, queues: &[Queue], due_by: Timestamp) -> Vec<Result<usize, RedisCallError>> {
        let call = |(lane, class): &Queue| {
            Call::command("ZCOUNT").arg(self.keys.due(lane, *class)).arg("-inf").arg(member::score(due_by))
        };
        let answers = self.link.call(queues.iter().map(call).collect(), CALL_TIMEOUT).await;
        let parse = |answer| match answer {
            Value::Int(count) => usize::try_from(count).map_err(|_| RedisCallError::Unexpected("a count")),
            _ => Err(RedisCallError::Unexpected("a count")),
        };
        answers.into_iter().map(|answer| answer.and_then(parse)).collect()
    }
}
