//! Ending or rescheduling attempts.

use redrive_core::Status;

use super::state::{Entry, State};
use crate::{Next, Settled, Settlement, rules};

impl State {
    pub(super) fn settle(&mut self, ends: Vec<Settlement>) -> Vec<Settled> {
        ends.into_iter().map(|end| self.settle_one(end)).collect()
    }

    fn settle_one(&mut self, mut end: Settlement) -> Settled {
        let holds_lease = self
            .entry(&end.tenant, end.id)
            .is_some_and(|entry| entry.task.status == Status::InFlight && entry.lease.token == end.token);
        if !holds_lease {
            return Settled::LeaseLost;
        }
        if let Next::End { answer: Some(answer), .. } = &mut end.next
            && let Some(body) = answer.body.stored()
            && !super::blobs::is_kept(&self.blobs, &end.tenant, body)
        {
            **answer = answer.as_ref().clone().without_body();
        }
        match self.change(end.id, |entry| entry.settle(end)) {
            Some(status) => Settled::Done(status),
            None => Settled::LeaseLost,
        }
    }
}

impl Entry {
    fn settle(&mut self, end: Settlement) -> Status {
        self.task.attempt_number = rules::attempts_after(self.task.attempt_number, end.attempt.is_some());
        if let Some(attempt) = end.attempt {
            // A success keeps the error of the attempts before it.
            if let Some(error) = &attempt.error {
                self.task.last_error = Some(error.clone());
            }
            self.attempts.push(attempt);
        }
        let (status, reason, answer) = match end.next {
            Next::RetryAt { at, backoff, dns_failures } => {
                self.task.backoff = backoff;
                self.task.dns_failures = dns_failures;
                self.task.next_attempt_at = Some(at);
                (Status::Pending, None, None)
            }
            Next::End { status, reason, answer } => {
                debug_assert!(status.is_ended(), "a task ends in a status that is an end");
                (status, reason, answer)
            }
        };
        (self.task.status, self.task.reason) = rules::settled_as(status, reason, self.task.cancel_requested);
        if self.task.status.is_ended() {
            self.task.next_attempt_at = None;
            self.task.ended_at = Some(end.at);
            self.answer = answer.map(|answer| *answer);
            self.is_unannounced = self.task.status.is_dead_letter();
        }
        self.task.status
    }
}
