//! The target of the benchmarks: answers 200 and records when each task arrived.
//!
//! A task is identified by the number at the beginning of its body, so that the target needs to read nothing else.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Result, bail};
use bytes::Bytes;

use crate::clock::now_us;
use crate::http::{Reply, Request, Respond};

/// Digits of the task's number at the beginning of each body.
pub const NUMBER_DIGITS: usize = 16;
/// A request to this path is never answered.
pub const DEAD_PATH: &str = "/dead";

const OK: Bytes = Bytes::from_static(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
const NOT_ARRIVED: u64 = 0;

/// The arrivals. Task numbers are expected to be dense from 0, as the load generator assigns them.
#[derive(Debug, Default)]
pub struct Deliveries {
    /// By task number: when it arrived, in microseconds since the epoch.
    arrived_us: Mutex<Vec<u64>>,
    count: AtomicU64,
    duplicates: AtomicU64,
    malformed: AtomicU64,
    held: AtomicU64,
}

impl Deliveries {
    /// How many different tasks have arrived.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// How many requests are or were held at the dead path.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Acquire)
    }

    /// When the task `number` arrived, in microseconds since the epoch.
    pub fn arrived_us(&self, number: u64) -> Option<u64> {
        let at = *self.arrivals().get(usize::try_from(number).ok()?)?;
        (at != NOT_ARRIVED).then_some(at)
    }

    /// Fails unless exactly the tasks 0 to `expected` have arrived, each of them once.
    pub fn verify(&self, expected: u64) -> Result<()> {
        let duplicates = self.duplicates.load(Ordering::Acquire);
        let malformed = self.malformed.load(Ordering::Acquire);
        let arrived = self.arrivals().iter().take(expected as usize).filter(|&&at| at != NOT_ARRIVED).count() as u64;
        if (arrived, self.count(), duplicates, malformed) != (expected, expected, 0, 0) {
            bail!(
                "a failed run: {expected} tasks were acknowledged, {arrived} of them arrived, {} tasks arrived in all, \
                 {duplicates} more than once, {malformed} requests were malformed",
                self.count()
            );
        }
        Ok(())
    }

    /// Forgets all arrivals, for the next measurement.
    pub fn reset(&self) {
        self.arrivals().clear();
        for counter in [&self.count, &self.duplicates, &self.malformed, &self.held] {
            counter.store(0, Ordering::Release);
        }
    }

    pub(super) fn record(&self, number: usize, now: u64) {
        let mut arrivals = self.arrivals();
        if number >= arrivals.len() {
            arrivals.resize((number + 1).next_power_of_two(), NOT_ARRIVED);
        }
        if arrivals[number] == NOT_ARRIVED {
            arrivals[number] = now;
            self.count.fetch_add(1, Ordering::AcqRel);
        } else {
            self.duplicates.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn arrivals(&self) -> MutexGuard<'_, Vec<u64>> {
        self.arrived_us.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Respond for Deliveries {
    fn respond(&self, request: &Request<'_>) -> Reply {
        let now = now_us();
        if request.path() == DEAD_PATH {
            self.held.fetch_add(1, Ordering::AcqRel);
            return Reply::Never;
        }
        match number_of(request.body) {
            Some(number) => self.record(number, now),
            None => {
                self.malformed.fetch_add(1, Ordering::AcqRel);
            }
        }
        Reply::Now(OK)
    }
}

fn number_of(body: &[u8]) -> Option<usize> {
    std::str::from_utf8(body.get(..NUMBER_DIGITS)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_fails_if_a_task_is_missing_or_came_twice() {
        let deliveries = Deliveries::default();
        deliveries.record(0, 10);
        deliveries.record(2, 30);
        assert!(deliveries.verify(3).is_err(), "task 1 is missing");
        deliveries.record(1, 20);
        deliveries.verify(3).unwrap();
        assert!(deliveries.verify(2).is_err(), "task 2 was not acknowledged");
        assert_eq!(deliveries.arrived_us(1), Some(20));
        deliveries.record(1, 40);
        assert!(deliveries.verify(3).is_err(), "task 1 came twice");
        deliveries.reset();
        deliveries.verify(0).unwrap();
    }
}
