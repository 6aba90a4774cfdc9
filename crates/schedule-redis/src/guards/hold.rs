//! Holding lanes back for all processes.

use std::time::Duration;

use redis::Value;
use redrive_core::Timestamp;
use redrive_store::Hold;

use crate::keys;
use crate::member;
use crate::redis_call_error::RedisCallError;
use crate::schedule::{CALL_TIMEOUT, Schedule, parse_score};
use crate::script::{Call, HOLD};

/// How long an expired hold is kept, by the server's clock: longer than clocks differ.
const OVER_KEPT: Duration = Duration::from_secs(3600);
/// The most lanes that one script holds back.
const HOLDS_PER_CALL: usize = 500;

impl Schedule {
    /// Holds lanes back until a time; the latest time wins. Returns the time that applies for each lane.
    pub async fn hold(&self, holds: &[Hold]) -> Result<Vec<Timestamp>, RedisCallError> {
        let call = |holds: &[Hold]| {
            let call = Call::script(&HOLD, &[self.keys.held()]).arg(OVER_KEPT.as_millis() as u64);
            holds.iter().fold(call, |call, hold| call.arg(member::score(hold.until)).arg(hold.lane.to_string()))
        };
        let calls = holds.chunks(HOLDS_PER_CALL).map(call).collect();
        let mut standing = Vec::with_capacity(holds.len());
        for answer in self.link.call(calls, CALL_TIMEOUT).await {
            let Value::Array(times) = answer? else { return Err(RedisCallError::Unexpected("a hold")) };
            standing.extend(times.iter().filter_map(parse_score));
        }
        if standing.len() == holds.len() { Ok(standing) } else { Err(RedisCallError::Unexpected("a hold")) }
    }

    /// The lanes that are held back at `now`, at most `limit`, the longest hold first.
    pub async fn held(&self, now: Timestamp, limit: usize) -> Result<Vec<Hold>, RedisCallError> {
        let from = format!("({}", member::score(now));
        let call = Call::command("ZRANGE").arg(self.keys.held()).arg("+inf").arg(from);
        let call = call.arg(&["BYSCORE", "REV", "LIMIT"]).arg(0).arg(limit).arg("WITHSCORES");
        let Value::Array(found) = self.link.call_one(call, CALL_TIMEOUT).await? else {
            return Err(RedisCallError::Unexpected("a look at holds"));
        };
        let hold = |pair: &[Value]| match pair {
            [Value::BulkString(name), until] => {
                let lane = keys::parse_lane(std::str::from_utf8(name).ok()?)?;
                Some(Hold { lane, until: parse_score(until)? })
            }
            _ => None,
        };
        found.chunks_exact(2).map(|pair| hold(pair).ok_or(RedisCallError::Unexpected("a look at holds"))).collect()
    }
}
