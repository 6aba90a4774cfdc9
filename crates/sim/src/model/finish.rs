//! Checks at the end of a world, after all faults are over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use redrive_core::{Attempt, ErrorType, Reason, Status, Task, TaskId, TenantId};
use redrive_store::Counts;

use super::Model;
use super::facts::{Departure, Said};
use crate::moment::Moment;
use crate::plan::SHIFTING;

impl Model {
    /// The log contains the alert of this run of a task.
    pub fn alert(&mut self, id: TaskId, run: u32) {
        // It may be the first sign of the task: its client got no answer, and nothing was sent.
        self.alerts.insert((id, run));
        let Some(facts) = self.tasks.get(&id) else { return };
        // An alert names its run. A replay may come between the end of that run and its alert, and the task may have
        // succeeded since.
        let may_be_replayed = run <= facts.replays_asked;
        let (end, name) = (facts.end, facts.name.clone());
        if let Some(end) = end.filter(|_| !may_be_replayed) {
            self.must(end.status.is_dead_letter(), 9, id, || {
                format!("an alert was raised for {name}, which had ended {}", end.status.as_str())
            });
        }
    }

    /// Checks, some time after the last fault, that due work is in flight or has ended. Returns when the last task that
    /// is not due yet will be due.
    pub fn is_moving(&mut self, tasks: &[Task], well_since: Moment) -> Option<Moment> {
        let within = self.rules.settles_within;
        let mut last_due = None;
        for task in tasks.iter().filter(|task| !task.status.is_ended()) {
            let due = task.next_attempt_at.map(Moment::of_wall).unwrap_or(well_since).max(well_since);
            let (now, name) = (self.now, self.name_of(task.id));
            let held = if task.status == Status::InFlight { task.attempt_timeout } else { Default::default() };
            self.must(due.after(within).after(held) >= now, 13, task.id, || {
                format!("{name} was due at {due} and is {} at {now}", task.status.as_str())
            });
            last_due = last_due.max(Some(due));
        }
        last_due
    }

    /// Checks the final state of a tenant: all of its tasks, the list of dead letters, and the counts.
    pub fn is_finished(&mut self, tenant: &TenantId, tasks: &[Task], dead: &BTreeSet<TaskId>, counts: &Counts) {
        let shown: BTreeMap<TaskId, &Task> = tasks.iter().map(|task| (task.id, task)).collect();
        for task in tasks {
            let name = self.name_of(task.id);
            self.must(task.status.is_ended(), 13, task.id, || format!("{name} never ended: {:?}", task.status));
            self.raised_its_alert(task);
        }
        let expected: BTreeSet<TaskId> =
            tasks.iter().filter(|task| task.status.is_dead_letter()).map(|task| task.id).collect();
        self.must(expected == *dead, 9, None, || format!("the dead letters are {expected:?}, the lists say {dead:?}"));
        let mut counted = Counts::new();
        for task in tasks {
            *counted.entry(task.status).or_default() += 1;
        }
        let counts: Counts = counts.iter().filter(|(_, count)| **count > 0).map(|(k, v)| (*k, *v)).collect();
        self.must(counted == counts, 9, None, || format!("there are {counted:?}, the counts say {counts:?}"));
        self.nothing_is_lost(tenant, &shown);
    }

    /// Invariant 9: each dead letter raised its alert, and no other task raised one.
    fn raised_its_alert(&mut self, task: &Task) {
        let Some(facts) = self.tasks.get(&task.id) else { return };
        let (is_raised, name) = (self.alerts.contains(&(task.id, task.run)), facts.name.clone());
        // The alert of a task that ended a moment ago may still come.
        let ended = task.ended_at.map(Moment::of_wall).unwrap_or(self.now);
        let is_owed = task.status.is_dead_letter() && ended.after(self.rules.alerts_within) <= self.now;
        let (status, run) = (task.status, task.run);
        self.must(is_raised || !is_owed, 9, task.id, || format!("{name} is a dead letter, and no alert was raised"));
        self.must(!is_raised || !status.is_ended() || status.is_dead_letter(), 9, task.id, || {
            format!("run {run} of {name} raised an alert and ended {}", status.as_str())
        });
    }

    /// Invariants 1 and 2: every task that was acknowledged, or sent, exists.
    fn nothing_is_lost(&mut self, tenant: &TenantId, shown: &BTreeMap<TaskId, &Task>) {
        let mut lost = Vec::new();
        for (id, facts) in &self.tasks {
            let is_mine = self.wanted.get(&facts.name).is_some_and(|wanted| wanted.item.document.tenant == *tenant);
            if !is_mine || shown.contains_key(id) || self.may_be_cleaned(facts) {
                continue;
            }
            if facts.acknowledged.is_some() {
                lost.push((1, *id, format!("{} was acknowledged and is gone", facts.name)));
            } else if !facts.sends.is_empty() {
                lost.push((2, *id, format!("{} was sent, and there is no such task", facts.name)));
            }
        }
        for (invariant, id, what) in lost {
            self.broken(invariant, Some(id), what);
        }
    }

    /// Checks the end of one task with its whole attempt log.
    pub fn ended_rightly(&mut self, task: &Task, attempts: &[Attempt]) {
        let (id, name) = (task.id, self.name_of(task.id));
        self.shows_attempts(id, attempts);
        self.must(attempts.len() as u32 == task.attempt_number, 2, id, || {
            format!("{name} made {} attempts, and its log has {}", task.attempt_number, attempts.len())
        });
        let Some(facts) = self.tasks.get(&id) else { return };
        let unlogged = facts.sends.iter().find(|send| attempts.iter().all(|line| line.number != send.attempt));
        let unlogged = unlogged.map(|send| send.attempt);
        self.must(unlogged.is_none(), 2, id, || {
            format!("attempt {unlogged:?} of {name} was sent and is not in the log")
        });
        self.gave_up_rightly(task);
        let in_run = task.attempt_number.saturating_sub(task.attempts_before);
        let by_dns = |attempt: &&Attempt| attempt.error.as_ref().is_some_and(|error| error.kind == ErrorType::Dns);
        let run = || attempts.iter().filter(|attempt| attempt.number > task.attempts_before);
        let (dns, is_last_dns) = (run().filter(by_dns).count(), run().next_back().as_ref().is_some_and(by_dns));
        let most = task.max_attempts;
        let holds = match task.reason {
            Some(Reason::Attempts) => in_run == most,
            Some(Reason::DnsAttempts) => dns == 2 && is_last_dns,
            _ => true,
        };
        self.must(holds, 1, id, || {
            let reason = task.reason.map_or("nothing", Reason::as_str);
            format!("{name} gave up for {reason} after {in_run} of {most} attempts, of which {dns} failed by DNS")
        });
    }

    /// A task does not end early: not for a deadline that is far, not for a Retry-After that fits before it.
    fn gave_up_rightly(&mut self, task: &Task) {
        let Some(facts) = self.tasks.get(&task.id) else { return };
        let Some(item) = self.wanted.get(&facts.name).map(|wanted| &wanted.item) else { return };
        let ended = Moment::of_wall(task.ended_at.unwrap_or_default());
        let deadline = Moment::of_wall(task.deadline_at);
        // The longest time that an attempt could take, and the difference of two clocks and of a date in whole seconds.
        let slop = task.attempt_timeout + self.rules.slack + Duration::from_secs(1);
        let last = facts.sends.last();
        let heard = last.and_then(|send| Some((send.said?, send.over?)));
        // A process that was suspended after it received the answer evaluated it later: its wait began then.
        let is_late = |send: &Departure| {
            let disturbed = self.disturbed.get(&send.whose);
            send.over.is_some_and(|over| disturbed.is_some_and(|disturbed| *disturbed >= over))
        };
        let holds = match (task.reason, heard) {
            (Some(Reason::Deadline), _) => ended.after(3 * item.policy.backoff.longest()).after(slop) >= deadline,
            // The Retry-After setting of this policy is unknown here.
            (Some(Reason::RetryAfter), _) if item.document.policy_id == Some(SHIFTING) => true,
            (Some(Reason::RetryAfter), _) if last.is_some_and(is_late) => true,
            (Some(Reason::RetryAfter), Some((Said::Later(asked) | Said::TooMany(Some(asked)), heard))) => {
                let is_impatient = |most| asked.since(heard) + Duration::from_secs(1) + self.rules.slack > most;
                item.policy.retry_after_max.is_some_and(is_impatient) || asked.after(slop) >= deadline
            }
            (Some(Reason::RetryAfter), _) => false,
            _ => true,
        };
        let (name, reason) = (facts.name.clone(), task.reason.map_or("nothing", Reason::as_str));
        self.must(holds, 1, task.id, || {
            format!("{name} gave up at {ended} for {reason}; its deadline is {deadline}, and it last heard {heard:?}")
        });
    }

    fn name_of(&self, id: TaskId) -> String {
        self.tasks.get(&id).map_or_else(|| id.to_string(), |facts| facts.name.clone())
    }
}
