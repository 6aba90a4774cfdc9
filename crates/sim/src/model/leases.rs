//! What the store was asked for: leases, tokens, the attempt log.

use redrive_core::{Outcome, Reason, Status, TaskId, Timestamp};
use redrive_store::{Lease, Next, Settled, Settlement};

use super::Model;
use super::facts::End;

impl Model {
    /// The store gave a lease, by the asker's clock at `asked`.
    pub fn leased(&mut self, id: TaskId, lease: Lease, attempt_timeout: std::time::Duration, asked: Timestamp) {
        let before = self.tokens.insert(id, (lease.token, false));
        if let Some((token, _)) = before {
            self.must(lease.token > token, 5, id, || {
                format!("token {:?} was given after token {token:?}", lease.token)
            });
        }
        let least = asked.after(attempt_timeout).after(self.rules.lease_margin);
        self.must(lease.until >= least, 7, id, || {
            let short = least.since(lease.until);
            format!("a lease is {short:?} shorter than its attempt's timeout and the margin")
        });
    }

    /// The store was asked to end or reschedule an attempt, and said this.
    pub fn settled(&mut self, settlement: &Settlement, settled: Settled) {
        let id = settlement.id;
        if settled == Settled::LeaseLost {
            return;
        }
        let known = self.tokens.get(&id).copied();
        if let Some((token, was_settled)) = known {
            self.must(settlement.token == token, 5, id, || {
                format!("a settlement with token {:?} took effect though the newest is {token:?}", settlement.token)
            });
            self.must(!was_settled, 5, id, || format!("token {token:?} was settled twice"));
            self.tokens.insert(id, (token, true));
        }
        if let Settled::Done(status) = settled {
            self.ended(settlement, status);
        }
        match &settlement.attempt {
            Some(attempt) => self.logged(id, attempt.number, attempt.outcome),
            None => self.is_taken_back_unsent(id),
        }
        if settlement.attempt.as_ref().is_some_and(|attempt| attempt.outcome == Outcome::Unknown) {
            let undisturbed = self.rules.is_undisturbed;
            self.must(!undisturbed, 8, id, || {
                "an attempt's outcome is unknown in a world in which every process and the store were well".to_owned()
            });
        }
    }

    /// The end of a task is written down. As long as nobody knows whether a replay comes before or after, it says nothing.
    fn ended(&mut self, settlement: &Settlement, status: Status) {
        let now = self.now;
        let Some(facts) = self.tasks.get_mut(&settlement.id) else { return };
        if !status.is_ended() || facts.replays_unknown > 0 {
            return;
        }
        let reason = match (&settlement.next, status) {
            (_, Status::Cancelled) => Some(Reason::Cancelled),
            (Next::End { reason, .. }, _) => *reason,
            (Next::RetryAt { .. }, _) => None,
        };
        facts.end.get_or_insert(End { status, reason, at: settlement.at, seen: now });
    }

    /// A claim is taken back only if nothing was sent under it: its number will be used again.
    fn is_taken_back_unsent(&mut self, id: TaskId) {
        let Some(facts) = self.tasks.get(&id) else { return };
        let unsettled = facts.sends.last().filter(|send| send.logged.is_none()).map(|send| send.attempt);
        if let Some(attempt) = unsettled {
            self.broken(2, Some(id), format!("attempt {attempt} was sent and then taken back as if it had not been"));
        }
    }
}
