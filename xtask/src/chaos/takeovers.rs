//! The worst moment for a node to wake up: while another one sends what it has taken over.
//!
//! Such an attempt usually takes a millisecond, and a pause ends within it once in a thousand times. So the target answers
//! these late, and says that there is one: a pause that ends now lets the two meet at their settlement.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::now_us;
use crate::http::{Reply, Request, Respond};

/// Longer than any wait before a retry: what comes later was taken over.
const TAKEN_OVER_AFTER_US: u64 = 1_500_000;
/// How long the answer to a takeover takes: less than the shortest attempt timeout.
const HELD_BACK: Duration = Duration::from_millis(400);
/// How long after its arrival a takeover is sure to be under way still, with time left to wake a node up.
const UNDER_WAY_US: u64 = 250_000;

/// When the last takeover arrived.
#[derive(Debug, Default)]
pub struct LastTakeover(AtomicU64);

impl LastTakeover {
    /// Whether an attempt that was taken over is on the wire right now.
    pub fn is_under_way(&self) -> bool {
        now_us() < self.0.load(Ordering::Acquire) + UNDER_WAY_US
    }
}

/// A target that is slow to answer what was taken over.
pub struct SlowTakeovers<Target> {
    target: Arc<Target>,
    last: Arc<LastTakeover>,
    /// When each task's last attempt arrived.
    arrived: Mutex<HashMap<String, u64>>,
}

impl<Target> SlowTakeovers<Target> {
    /// `target`, but slow at times.
    pub fn new(target: Arc<Target>, last: Arc<LastTakeover>) -> Self {
        SlowTakeovers { target, last, arrived: Mutex::default() }
    }

    /// Notes an arrival of this task; says whether an earlier one was so long ago that this is a takeover.
    fn is_takeover(&self, task: &str, now: u64) -> bool {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = arrived.insert(task.to_owned(), now);
        earlier.is_some_and(|earlier| now > earlier + TAKEN_OVER_AFTER_US)
    }
}

impl<Target: Respond> Respond for SlowTakeovers<Target> {
    fn respond(&self, request: &Request<'_>) -> Reply {
        let (task, now) = (request.header("redrive-task-id").unwrap_or_default(), now_us());
        let reply = self.target.respond(request);
        let is_takeover = self.is_takeover(task, now);
        match reply {
            Reply::Now(answer) if is_takeover => {
                self.last.0.store(now, Ordering::Release);
                Reply::After(HELD_BACK, answer)
            }
            reply => reply,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    #[test]
    fn an_attempt_long_after_another_is_a_takeover() {
        let slow = SlowTakeovers::new(Arc::new(Nothing), Arc::default());
        for (task, now, expected) in
            [("a", 1, false), ("b", 2_000_000, false), ("a", 1_500_002, true), ("a", 1_600_000, false)]
        {
            assert_eq!(slow.is_takeover(task, now), expected, "{task} at {now}");
        }
    }
}
