//! One arm of a comparison: the healthy lanes of one service, with a constant backlog and at a steady rate.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use super::super::bound::Bound;
use super::super::callers::{AcknowledgedTask, Callers, Pace};
use super::super::template::{Shape, Template};
use super::super::world::{Service, World};
use super::options::{Options, seconds};
use crate::clock::now_us;
use crate::stats::Latency;

/// Tasks that are submitted and have not arrived, for the constant backlog.
const OUTSTANDING: usize = 2_048;
/// How long to wait for tasks that have not arrived when the callers stop.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(5);

/// The result of one arm.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Arm {
    /// Deliveries per second with a constant backlog.
    pub deliveries_per_second: f64,
    /// Submissions per second of the open loop.
    pub open_loop_rate: f64,
    /// The time from a submission of the open loop to its arrival at the target. A task that did not arrive counts with
    /// the time that it had waited until then.
    pub submit_to_wire: Latency,
    /// Tasks of the open loop that did not arrive within 5 s after the callers had stopped.
    pub missing: usize,
}

/// Loads the healthy lanes of `service`; without a `rate`, the open loop has half of the rate of the closed one.
pub fn measure(world: &World, service: &Service, options: &Options, rate: Option<f64>) -> Result<Arm> {
    world.deliveries.reset();
    let shape = Shape { body: options.body, keys: false, delays: false, lanes: options.lanes.max(1) };
    let target = world.target.address();
    let mut callers = Callers::connect(&service.addresses(), options.callers.max(1), |caller| {
        Template::task(target, &shape, caller)
    })?;
    let closed_loop = Pace::Bounded(Arc::new(Bound::new(OUTSTANDING, Arc::clone(&world.deliveries))));
    callers.run(&closed_loop, seconds(options.warm_up))?;
    let (begin, before) = (Instant::now(), world.deliveries.count());
    callers.run(&closed_loop, options.duration())?;
    let deliveries_per_second = (world.deliveries.count() - before) as f64 / begin.elapsed().as_secs_f64();
    wait_for_arrivals(world, callers.acknowledged());

    let open_loop_rate = rate.unwrap_or(deliveries_per_second / 2.0).max(1.0);
    let sent = callers.run(&Pace::PerSecond(open_loop_rate), options.duration())?;
    if wait_for_arrivals(world, callers.acknowledged()) {
        world.deliveries.verify(callers.acknowledged())?;
    }
    let (waits, missing) = waits(&sent, |number| world.deliveries.arrived_us(number), now_us());
    Ok(Arm { deliveries_per_second, open_loop_rate, submit_to_wire: Latency::of(waits), missing })
}

/// Waits for a bounded time until `expected` tasks have arrived. Returns whether they have.
fn wait_for_arrivals(world: &World, expected: u64) -> bool {
    let begin = Instant::now();
    while world.deliveries.count() < expected && begin.elapsed() < ARRIVAL_LIMIT {
        std::thread::sleep(Duration::from_millis(5));
    }
    world.deliveries.count() >= expected
}

/// The time from each submission to its arrival, or to `now` if there was none, in microseconds; and how many had none.
fn waits(sent: &[AcknowledgedTask], arrived_us: impl Fn(u64) -> Option<u64>, now: u64) -> (Vec<i64>, usize) {
    let arrivals: Vec<_> = sent.iter().map(|sent| (sent.sent_us, arrived_us(sent.number))).collect();
    let missing = arrivals.iter().filter(|(_, arrived)| arrived.is_none()).count();
    let wait = |(sent, arrived): (u64, Option<u64>)| arrived.unwrap_or(now) as i64 - sent as i64;
    (arrivals.into_iter().map(wait).collect(), missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_did_not_arrive_counts_with_the_time_that_it_has_waited() {
        let sent = |number, sent_us| AcknowledgedTask { number, sent_us, took_us: 1, due_ms: None };
        let arrived = |number| (number != 1).then_some(1_500);
        let (waits, missing) = waits(&[sent(0, 1_000), sent(1, 1_100), sent(2, 1_200)], arrived, 9_100);
        assert_eq!((waits, missing), (vec![500, 8_000, 300], 1));
    }
}
