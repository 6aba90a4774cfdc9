//! Many healthy tasks that are due at one moment, in 1, 100, 10,000 and 20,000 lanes: does the number of lanes change
//! the delivery rate?

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::json;

use super::super::batches;
use super::super::deliveries::NUMBER_DIGITS;
use super::super::world::World;
use super::options::Options;
use crate::clock::now_us;
use crate::stats::Spread;

/// Tasks that are due at one moment.
const TASKS: u64 = 20_000;
/// The numbers of lanes over which they are spread, one measurement for each.
const LANES: [u64; 4] = [1, 100, 10_000, TASKS];
/// The time from the first submission to the moment when all are due.
const LEAD: Duration = Duration::from_secs(10);
/// How long the last delivery may take.
const DELIVERY_LIMIT: Duration = Duration::from_secs(60);

/// The burst, for each number of lanes.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Burst {
    /// Tasks that were due at one moment.
    pub tasks: u64,
    /// By number of lanes.
    pub lanes: Vec<BurstLanes>,
    /// The rate in 10,000 lanes divided by the rate in one, per round.
    pub ratio: Spread,
    /// The rate with one lane per task divided by the rate in one lane, per round.
    pub ratio_apart: Spread,
}

/// The burst in one number of lanes.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BurstLanes {
    /// How many.
    pub lanes: u64,
    /// The time from when all were due to the last delivery, by round.
    pub seconds: Vec<f64>,
    /// Tasks that arrived before they were due, in all rounds: there must be none.
    pub early: usize,
}

/// Measures every round, the numbers of lanes in turns.
pub fn measure(world: &World, options: &Options) -> Result<Burst> {
    let mut measured = LANES.map(|lanes| BurstLanes { lanes, seconds: Vec::new(), early: 0 });
    for round in 1..=options.rounds {
        for of in &mut measured {
            let (seconds, early) = measure_one(world, options, of.lanes)?;
            eprintln!("  round {round}/{}: {} lanes, the last delivery after {seconds:.2} s", options.rounds, of.lanes);
            of.seconds.push(seconds);
            of.early += early;
        }
    }
    Ok(Burst::of(TASKS, measured.to_vec()))
}

impl Burst {
    pub(super) fn of(tasks: u64, lanes: Vec<BurstLanes>) -> Self {
        // The number of tasks is the same: the ratio of the rates is the inverse ratio of the times.
        let (ratio, ratio_apart) = match lanes.as_slice() {
            [one, .., many, apart] => {
                (Spread::ratio(&one.seconds, &many.seconds), Spread::ratio(&one.seconds, &apart.seconds))
            }
            _ => (Spread::default(), Spread::default()),
        };
        Burst { tasks, lanes, ratio, ratio_apart }
    }
}

/// Seconds from due to the last delivery, and how many tasks were early, on a fresh service.
fn measure_one(world: &World, options: &Options, lanes: u64) -> Result<(f64, usize)> {
    let service = world.start(options.store.variant())?;
    world.deliveries.reset();
    let due_us = (now_us() + LEAD.as_micros() as u64) / 1_000 * 1_000;
    let rest = "x".repeat(options.body.saturating_sub(NUMBER_DIGITS));
    let target = format!("http://{}/", world.target.address());
    batches::submit(&service, TASKS, |number| {
        json!({
            "targetUrl": target,
            "method": "POST",
            "body": format!("{number:0width$}{rest}", width = NUMBER_DIGITS),
            "dependency": format!("lane-{}", number % lanes),
            "notBefore": due_us / 1_000,
        })
        .to_string()
    })?;
    if now_us() >= due_us {
        bail!("submitting {TASKS} tasks took longer than {LEAD:?}: they were not due at one moment");
    }
    let begin = Instant::now();
    while world.deliveries.count() < TASKS {
        if begin.elapsed() > LEAD + DELIVERY_LIMIT {
            bail!("a failed run: {} of {TASKS} tasks have arrived\n{}", world.deliveries.count(), service.log_tail());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    world.deliveries.verify(TASKS)?;
    let arrivals: Option<Vec<u64>> = (0..TASKS).map(|number| world.deliveries.arrived_us(number)).collect();
    let arrivals = arrivals.context("a verified task has no arrival")?;
    let early = arrivals.iter().filter(|at| **at < due_us).count();
    let last = arrivals.into_iter().max().unwrap_or(due_us);
    Ok((last.saturating_sub(due_us) as f64 / 1e6, early))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A burst that took this long in one lane and in many.
    pub(in super::super) fn burst(one: &[f64], most: &[f64]) -> Burst {
        let lanes = |lanes, seconds: &[f64]| BurstLanes { lanes, seconds: seconds.to_vec(), early: 0 };
        Burst::of(TASKS, vec![lanes(1, one), lanes(100, one), lanes(10_000, most), lanes(TASKS, most)])
    }

    #[test]
    fn the_ratio_is_of_rates_and_not_of_times() {
        assert_eq!(burst(&[0.6, 1.2], &[2.4, 4.8]).ratio, Spread { median: 0.25, min: 0.25, max: 0.25 });
    }
}
