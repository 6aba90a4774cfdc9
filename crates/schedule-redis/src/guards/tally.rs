//! Adding up the guards' counts of all processes.

use std::collections::BTreeMap;
use std::time::Duration;

use redis::Value;
use redrive_core::{Lane, Timestamp};
use redrive_store::{Tally, Totals};

use crate::redis_call_error::RedisCallError;
use crate::schedule::{CALL_TIMEOUT, Schedule};
use crate::script::{Call, TALLY};

/// How long a second's counts are kept: longer than any guard's window.
pub(crate) const TALLY_KEPT: Duration = Duration::from_secs(120);

impl Schedule {
    /// Adds these tallies. Returns for each lane among them the sums over all processes of its seconds from `since` on.
    pub async fn tally(&self, tallies: &[Tally], since: Timestamp) -> BTreeMap<Lane, Result<Totals, RedisCallError>> {
        let mut calls: BTreeMap<Lane, Call> = BTreeMap::new();
        for Tally { lane, at, counted } in tallies {
            let begin = || {
                let call = Call::script(&TALLY, &[self.keys.tally(lane)]);
                call.arg(second(since)).arg(TALLY_KEPT.as_secs())
            };
            let call = calls.remove(lane).unwrap_or_else(begin);
            let counted = [second(*at), counted.first, counted.retries, counted.failures];
            calls.insert(lane.clone(), call.arg(&counted));
        }
        let (lanes, calls): (Vec<Lane>, Vec<Call>) = calls.into_iter().unzip();
        let answers = self.link.call(calls, CALL_TIMEOUT).await;
        lanes.into_iter().zip(answers.into_iter().map(|answer| parse(&answer?))).collect()
    }
}

fn second(at: Timestamp) -> u64 {
    at.as_millis() / 1_000
}

fn parse(answer: &Value) -> Result<Totals, RedisCallError> {
    let number = |value: &Value| match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    let sums = match answer {
        Value::Array(sums) => sums.iter().map(number).collect::<Option<Vec<u64>>>(),
        _ => None,
    };
    match sums.as_deref() {
        Some(&[first, retries, failures]) => Ok(Totals { first, retries, failures }),
        _ => Err(RedisCallError::Unexpected("a tally")),
    }
}
