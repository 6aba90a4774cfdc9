//! Reading the earliest due time of classes of lanes.

use redis::Value;
use redrive_core::{Class, Lane, Timestamp};

use super::{CALL_TIMEOUT, Schedule, parse_score};
use crate::redis_call_error::RedisCallError;
use crate::script::Call;

impl Schedule {
    /// When the earliest task of each class of a lane is due, according to the index; `None` if it has none.
    pub async fn heads(&self, queues: &[(Lane, Class)]) -> Vec<Result<Option<Timestamp>, RedisCallError>> {
        let call = |(lane, class): &(Lane, Class)| {
            Call::command("ZRANGE").arg(self.keys.due(lane, *class)).arg(&[0, 0]).arg("WITHSCORES")
        };
        let calls = queues.iter().map(call);
        let answers = self.link.call(calls.collect(), CALL_TIMEOUT).await;
        let parse = |answer: Value| match &answer {
            Value::Array(parts) => match parts.as_slice() {
                [] => Ok(None),
                [_, score] => parse_score(score).map(Some).ok_or(RedisCallError::Unexpected("a look")),
                _ => Err(RedisCallError::Unexpected("a look")),
            },
            _ => Err(RedisCallError::Unexpected("a look")),
        };
        answers.into_iter().map(|answer| answer.and_then(parse)).collect()
    }
}
