//! A sink that remembers the events of tasks, lanes and loops, each as one short line.

use std::sync::Mutex;

use redrive_engine::events::{Event, Sink};

#[derive(Default)]
pub struct RecordedEvents(Mutex<Vec<String>>);

impl RecordedEvents {
    /// The events so far.
    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Sink for RecordedEvents {
    fn on(&self, event: &Event<'_>) {
        let line = match event {
            Event::Accepted(task) => format!("accepted {}", task.idempotency_key),
            Event::Claimed(claimed) => {
                format!("claimed {} {}", claimed.task.idempotency_key, claimed.task.attempt_number)
            }
            Event::Sent(sent) => format!("sent {} to {}", sent.attempt, sent.lane.dependency),
            Event::AttemptEnded(task, attempt) => {
                format!("attempt {} of {}: {}", attempt.number, task.idempotency_key, attempt.outcome.as_str())
            }
            Event::Settled(claimed, _, status) => {
                format!("settled {} {}", claimed.task.idempotency_key, status.as_str())
            }
            Event::Retried(task, _) => format!("retried {}", task.idempotency_key),
            Event::LeaseLost(task) => format!("lease lost {}", task.idempotency_key),
            Event::TakenOver(task) => format!("taken over {}", task.idempotency_key),
            Event::HeldBack(lane, reason) => format!("held back {}: {reason:?}", lane.dependency),
            Event::Breaker(lane, change) => format!("breaker of {}: {change:?}", lane.dependency),
            Event::DependencyGone(task, gone) => format!("gone {}: {}", task.lane.dependency, gone.as_str()),
            Event::PausedOnGone(task) => format!("paused {}", task.lane.dependency),
            Event::Ended(task, status, by) => format!("ended {} {} by {by:?}", task.idempotency_key, status.as_str()),
            Event::DeadLetter(task) => format!("dead letter {}", task.idempotency_key),
            Event::PolicyUnavailable(task, _) => format!("policy unavailable {}", task.idempotency_key),
            Event::PolicyLost(task, _) => format!("policy lost {}", task.idempotency_key),
            Event::BodyUnavailable(task, ..) => format!("body unavailable {}", task.idempotency_key),
            Event::LoopFailed(name) => format!("loop failed {name}"),
            Event::Stored { .. } | Event::Report(_) => return,
        };
        self.0.lock().unwrap().push(line);
    }
}
