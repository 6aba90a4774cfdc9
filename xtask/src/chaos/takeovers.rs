//! Slow answers to takeovers, so that a node is resumed at the worst moment: while another one sends its task.
//!
//! Such an attempt usually takes 1 ms, and a suspension ends within it once in 1,000 times. So the target delays these
//! answers, and reports that there is one: if a suspension ends now, both nodes settle the same task at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::now_us;
use crate::http::{Reply, Request, Respond};

/// Longer than any wait before a retry: an attempt that comes later is a takeover.
const TAKEN_OVER_AFTER_US: u64 = 1_500_000;
/// The delay of the answer to a takeover: less than the shortest attempt timeout.
const HELD_BACK: Duration = Duration::from_millis(400);
/// The most that are delayed at a time: under a backlog everything is late, and slow answers would make it worse.
const MOST_HELD_BACK: usize = 4;
/// How long after its arrival a takeover is certainly still in flight, with time left to resume a node.
const UNDER_WAY_US: u64 = 250_000;

/// When the last takeover arrived.
#[derive(Debug, Default)]
pub struct LastTakeover(AtomicU64);

impl LastTakeover {
    /// Whether a takeover is on the wire now.
    pub fn is_under_way(&self) -> bool {
        now_us() < self.0.load(Ordering::Acquire) + UNDER_WAY_US
    }
}

/// A target that answers takeovers slowly.
pub struct SlowTakeovers<Target> {
    target: Arc<Target>,
    last: Arc<LastTakeover>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// When each task's last attempt arrived.
    arrived: HashMap<String, u64>,
    /// The arrival times of those that are delayed.
    held_back: Vec<u64>,
}

impl<Target> SlowTakeovers<Target> {
    /// Wraps `target`.
    pub fn new(target: Arc<Target>, last: Arc<LastTakeover>) -> Self {
        SlowTakeovers { target, last, seen: Mutex::default() }
    }

    /// Notes an arrival of this task. Returns whether an earlier one was so long ago that this is a takeover whose
    /// answer is to be delayed.
    fn is_held_back(&self, task: &str, now: u64) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = seen.arrived.insert(task.to_owned(), now);
        seen.held_back.retain(|at| now < at + HELD_BACK.as_micros() as u64);
        let is_takeover = earlier.is_some_and(|earlier| now > earlier + TAKEN_OVER_AFTER_US);
        if is_takeover && seen.held_back.len() < MOST_HELD_BACK {
            seen.held_back.push(now);
            return true;
        }
        false
    }
}

impl<Target: Respond> Respond for SlowTakeovers<Target> {
    fn respond(&self, request: &Request<'_>) -> Reply {
        let (task, now) = (request.header("redrive-task-id").unwrap_or_default(), now_us());
        let reply = self.target.respond(request);
        let is_held_back = self.is_held_back(task, now);
        match reply {
            Reply::Now(answer) if is_held_back => {
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
            assert_eq!(slow.is_held_back(task, now), expected, "{task} at {now}");
        }
    }

    #[test]
    fn only_a_few_are_held_back_at_a_time() {
        let slow = SlowTakeovers::new(Arc::new(Nothing), Arc::default());
        let arrive = |now: u64| (0..6).filter(|task| slow.is_held_back(&format!("{task}"), now)).count();
        assert_eq!([arrive(0), arrive(2_000_000), arrive(4_000_000)], [0, MOST_HELD_BACK, MOST_HELD_BACK]);
    }
}
