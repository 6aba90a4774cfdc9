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
/// The most that are held back at a time: where work has piled up, everything is late, and slow answers would add to it.
const MOST_HELD_BACK: usize = 4;
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
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// When each task's last attempt arrived.
    arrived: HashMap<String, u64>,
    /// When each of those arrived that are held back.
    held_back: Vec<u64>,
}

impl<Target> SlowTakeovers<Target> {
    /// `target`, but slow at times.
    pub fn new(target: Arc<Target>, last: Arc<LastTakeover>) -> Self {
        SlowTakeovers { target, last, seen: Mutex::default() }
    }

    /// Notes an arrival of this task; says whether an earlier one was so long ago that this is a takeover, and to be held
    /// back.
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
