//! Checks of calls to the store: leases, tokens, the attempt log.

use std::time::Duration;

use redrive_core::{Outcome, Reason, Status, TaskId};
use redrive_store::{ClaimedTask, Next, Settled, Settlement};

use super::Model;
use super::facts::End;
use crate::moment::Moment;

/// Tasks are claimed no longer than this before they are due.
const CLAIMS_AHEAD: Duration = Duration::from_millis(50);

impl Model {
    /// The store granted a lease.
    pub fn leased(&mut self, claimed: &ClaimedTask) {
        let (id, lease, task) = (claimed.task.id, claimed.lease, &claimed.task);
        let due = task.next_attempt_at.unwrap_or(lease.since);
        self.must(due <= lease.since.after(CLAIMS_AHEAD), 6, id, || {
            format!("a task was claimed {:?} before it is due", due.since(lease.since))
        });
        self.leases.insert(id, Some((task.attempt_number, lease.until)));
        let before = self.tokens.insert(id, (lease.token, false));
        if let Some((token, _)) = before {
            self.must(lease.token > token, 5, id, || {
                format!("token {:?} was given after token {token:?}", lease.token)
            });
        }
        let least = lease.since.max(due).after(task.attempt_timeout).after(self.rules.lease_margin);
        self.must(lease.until >= least, 7, id, || {
            let short = least.since(lease.until);
            format!("a lease is {short:?} shorter than its attempt's timeout and the margin")
        });
    }

    /// Invariant 7: an attempt is sent under a valid lease.
    pub(super) fn is_leased(&mut self, id: TaskId, attempt: u32) {
        let Some(lease) = self.leases.get(&id).copied() else { return };
        let (now, slack) = (self.now, self.rules.slack);
        let holds = |(of, until): (u32, _)| of == attempt && now <= Moment::of_wall(until).after(slack);
        let name = self.item(id).unwrap_or("a task").to_owned();
        self.must(lease.is_some_and(holds), 7, id, || {
            format!("{name}: attempt {attempt} was sent under a lease that had run out or been taken over")
        });
    }

    /// A process called settle for an attempt, and the store returned this.
    pub fn settled(&mut self, settlement: &Settlement, settled: Settled) {
        let id = settlement.id;
        if settled == Settled::LeaseLost {
            return;
        }
        self.leases.insert(id, None);
        let known = self.tokens.get(&id).copied();
        if let Some((token, was_settled)) = known {
            self.must(settlement.token == token, 5, id, || {
                format!("a settlement with token {:?} took effect though the newest is {token:?}", settlement.token)
            });
            self.must(!was_settled, 5, id, || format!("token {token:?} was settled twice"));
            self.tokens.insert(id, (token, true));
        }
        if let Settled::Done(status) = settled {
            let lane = self.waiting.get(&id).map(|waiting| waiting.lane.clone());
            if let Some(lane) = lane.filter(|_| status.is_dead_letter()) {
                self.becomes_dead_letter(&lane, id);
            }
            self.ended(settlement, status);
        }
        match &settlement.attempt {
            Some(attempt) => self.logged(id, attempt),
            None => self.is_taken_back_unsent(id),
        }
        self.waits_again(settlement, settled);
        if settlement.attempt.as_ref().is_some_and(|attempt| attempt.outcome == Outcome::Unknown) {
            let undisturbed = self.rules.is_undisturbed;
            self.must(!undisturbed, 8, id, || {
                "an attempt's outcome is unknown in a world in which every process and the store were well".to_owned()
            });
        }
    }

    /// The end of a task is stored. It is not checked while it is unknown whether a replay comes before or after.
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

    /// A claim is taken back only if nothing was sent under it: its number will be reused.
    fn is_taken_back_unsent(&mut self, id: TaskId) {
        let Some(facts) = self.tasks.get_mut(&id) else { return };
        let Some(last) = facts.sends.last().filter(|send| send.logged.is_none()) else { return };
        let (attempt, counts) = (last.attempt, last.counts());
        if counts {
            return self.broken(
                2,
                Some(id),
                format!("attempt {attempt} was sent and then taken back as if it had not been"),
            );
        }
        facts.sends.pop();
    }
}
