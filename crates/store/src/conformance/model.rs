//! A reference model of the store's contract: a list of tasks and nothing else.
//!
//! It has no index and no counter: every answer comes from a scan of all tasks. So it is simple enough to be trusted,
//! and the answers of an indexed store are compared with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use redrive_core::{Answer, Attempt, Class, Lane, PolicyId, Reason, Status, Task, TaskId, TenantId, Timestamp, policy};

use super::samples::{TERMS, at};
use super::snapshot::{Snapshot, TenantSnapshot};
use crate::{
    Backlog, BringForwardOutcome, CancelOutcome, ClaimRequest, ClaimedTask, Claims, LaneDue, LaneRoom, Lease, NewTask,
    Next, Overdue, PolicyVersion, RaisedAlert, ReplayOutcome, Settled, Settlement, Start, Submitted, SuppressOutcome,
    Suppression, TaskDetail, Token,
};

/// A model in which every tenant has version 1 of the default policy and no other.
#[derive(Default)]
pub(super) struct Model {
    rows: BTreeMap<TaskId, Row>,
    newest: Option<TaskId>,
}

struct Row {
    new: NewTask,
    task: Task,
    lease: Lease,
    attempts: Vec<Attempt>,
    answer: Option<Answer>,
    /// The last run whose alert was confirmed.
    announced_run: u32,
}

impl Row {
    fn claim(&mut self, now: Timestamp) {
        self.task.status = Status::InFlight;
        self.task.attempt_number += 1;
        let from = self.task.next_attempt_at.map_or(now, |due| due.max(now));
        let until = from.after(self.task.attempt_timeout).after(TERMS.margin);
        self.lease = Lease { token: Token(self.lease.token.0 + 1), since: now, until };
    }

    fn claimed(&self) -> ClaimedTask {
        ClaimedTask { task: self.task.clone(), request: Arc::clone(&self.new.request), lease: self.lease }
    }
}

impl Model {
    pub(super) fn submit(&mut self, new: NewTask) -> Submitted {
        let owner = self.rows.values().find(|row| {
            row.task.lane.tenant == new.task.lane.tenant && row.task.idempotency_key == new.task.idempotency_key
        });
        if let Some(owner) = owner {
            let (stored, given) = (owner.new.fingerprint, new.fingerprint);
            return match (stored == given, stored.version == given.version) {
                (true, _) => Submitted::Replayed(Box::new(owner.task.clone())),
                (false, true) => Submitted::KeyReused(owner.task.id),
                (false, false) => Submitted::KeyOfVersion(Box::new(owner.task.clone()), stored),
            };
        }
        if new.task.policy.id != PolicyId::default_policy() || new.task.policy.version != 1 {
            return Submitted::PolicyGone;
        }
        let lease = Lease { token: Token(0), since: at(0), until: at(0) };
        let mut row = Row { task: new.task.clone(), new, lease, attempts: Vec::new(), answer: None, announced_run: 0 };
        let mut given = None;
        if let Start::Claimed(_, now) = row.new.start {
            row.claim(now);
            given = Some(row.lease);
        }
        self.newest = self.newest.max(Some(row.task.id));
        let stored = Box::new(row.task.clone());
        self.rows.insert(row.task.id, row);
        Submitted::Created(stored, given)
    }

    pub(super) fn claim(&mut self, request: &ClaimRequest) -> Claims {
        let mut claims = Claims::default();
        for LaneRoom { lane, class, slots, ahead } in request.rooms.clone() {
            for taken in 0..slots + ahead {
                let Some((due, id)) = self.pending(&lane, class).min() else { break };
                let Some(row) = self.rows.get_mut(&id) else { break };
                let attempts_left = row.task.max_attempts.saturating_sub(row.task.attempt_in_run());
                let fits = taken < slots || attempts_left > 1;
                if due > request.due_by || !fits || claims.claimed.len() >= request.most {
                    break;
                }
                row.claim(request.now);
                claims.claimed.push(row.claimed());
            }
            let next_due = self.pending(&lane, class).min().map(|(due, _)| due);
            claims.lanes.push(LaneDue { lane, class, next_due });
        }
        claims
    }

    /// The overdue tasks, by deadline and id.
    pub(super) fn overdue(&self, now: Timestamp) -> Vec<(Timestamp, TaskId)> {
        let pending = self.rows.values().map(|row| &row.task).filter(|task| task.status == Status::Pending);
        let mut overdue: Vec<_> = pending.map(|task| (task.deadline_at, task.id)).collect();
        overdue.retain(|(deadline, _)| *deadline <= now);
        overdue.sort();
        overdue
    }

    /// Of tasks with the same deadline, the one with the lower id ends first.
    pub(super) fn end_overdue(&mut self, now: Timestamp, limit: usize) -> Overdue {
        let mut ended = Vec::new();
        for (_, id) in self.overdue(now).into_iter().take(limit) {
            let Some(row) = self.rows.get_mut(&id) else { continue };
            row.task.status = Status::Exhausted;
            row.task.reason = Some(Reason::Deadline);
            row.task.next_attempt_at = None;
            row.task.ended_at = Some(now);
            ended.push(row.task.clone());
        }
        Overdue { ended, next_deadline: self.next_deadline() }
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        self.overdue(Timestamp::MAX).first().map(|(deadline, _)| *deadline)
    }

    pub(super) fn settle(&mut self, end: Settlement) -> Settled {
        let Some(row) = self.rows.get_mut(&end.id) else { return Settled::LeaseLost };
        let is_theirs = row.task.lane.tenant == end.tenant;
        if !is_theirs || row.task.status != Status::InFlight || row.lease.token != end.token {
            return Settled::LeaseLost;
        }
        let task = &mut row.task;
        match end.attempt {
            Some(attempt) => {
                task.last_error = attempt.error.clone().or(task.last_error.take());
                row.attempts.push(attempt);
            }
            None => task.attempt_number -= 1,
        }
        match end.next {
            Next::RetryAt { at, backoff, dns_failures } => {
                task.status = Status::Pending;
                task.next_attempt_at = Some(at);
                task.backoff = backoff;
                task.dns_failures = dns_failures;
            }
            Next::End { status, reason, answer } => {
                task.status = status;
                task.reason = reason;
                row.answer = answer.map(|answer| *answer);
            }
        }
        if task.cancel_requested && task.status != Status::Succeeded {
            task.status = Status::Cancelled;
            task.reason = Some(Reason::Cancelled);
        }
        if task.status.is_ended() {
            task.next_attempt_at = None;
            task.ended_at = Some(end.at);
        }
        Settled::Done(task.status)
    }

    pub(super) fn cancel(&mut self, tenant: &TenantId, id: TaskId, now: Timestamp) -> CancelOutcome {
        let Some(task) = self.task(tenant, id) else { return CancelOutcome::NotFound };
        if task.status.is_ended() {
            return CancelOutcome::AlreadyEnded(Box::new(task.clone()));
        }
        if task.status == Status::InFlight {
            task.cancel_requested = true;
        } else {
            task.status = Status::Cancelled;
            task.reason = Some(Reason::Cancelled);
            task.ended_at = Some(now);
            task.next_attempt_at = None;
        }
        CancelOutcome::Done(Box::new(task.clone()))
    }

    pub(super) fn suppress(&mut self, suppression: &Suppression, now: Timestamp) -> SuppressOutcome {
        let Suppression { tenant, id, attempt_number } = suppression;
        let Some(task) = self.task(tenant, *id) else { return SuppressOutcome::NotFound };
        if task.status != Status::Pending || task.attempt_number != *attempt_number {
            return SuppressOutcome::NotWaiting(Box::new(task.clone()));
        }
        task.status = Status::Exhausted;
        task.reason = Some(Reason::Budget);
        task.next_attempt_at = None;
        task.ended_at = Some(now);
        SuppressOutcome::Done(Box::new(task.clone()))
    }

    pub(super) fn bring_forward(&mut self, tenant: &TenantId, id: TaskId, now: Timestamp) -> BringForwardOutcome {
        let Some(task) = self.task(tenant, id) else { return BringForwardOutcome::NotFound };
        match task.status {
            Status::Pending => {
                task.next_attempt_at = task.next_attempt_at.min(Some(now));
                BringForwardOutcome::Done(Box::new(task.clone()))
            }
            Status::InFlight => BringForwardOutcome::InFlight(Box::new(task.clone())),
            _ => BringForwardOutcome::AlreadyEnded(Box::new(task.clone())),
        }
    }

    pub(super) fn replay(&mut self, tenant: &TenantId, id: TaskId, now: Timestamp) -> ReplayOutcome {
        let Some(task) = self.task(tenant, id) else { return ReplayOutcome::NotFound };
        if task.status != Status::Failed && task.status != Status::Exhausted {
            return ReplayOutcome::NotDead(Box::new(task.clone()));
        }
        let budget = task.deadline_at.since(task.run_started_at);
        *task = Task {
            status: Status::Pending,
            reason: None,
            run: task.run + 1,
            attempts_before: task.attempt_number,
            run_started_at: now,
            deadline_at: now.after(budget),
            next_attempt_at: Some(now),
            ended_at: None,
            backoff: None,
            dns_failures: 0,
            cancel_requested: false,
            ..task.clone()
        };
        let replayed = ReplayOutcome::Done(Box::new(task.clone()));
        if let Some(row) = self.rows.get_mut(&id) {
            row.answer = None;
        }
        replayed
    }

    /// Dead letters whose alert has not been confirmed, by id.
    pub(super) fn backlog(&self, lane: &Lane, now: Timestamp) -> Backlog {
        let pending = Class::ALL.into_iter().flat_map(|class| self.pending(lane, class));
        let (due, waiting): (Vec<_>, Vec<_>) = pending.partition(|(due, _)| *due <= now);
        Backlog { due: due.len() as u32, waiting: waiting.len() as u32 }
    }

    pub(super) fn unannounced(&self, ended_before: Timestamp) -> Vec<Task> {
        let dead = |row: &&Row| [Status::Failed, Status::Exhausted].contains(&row.task.status);
        let rows = self.rows.values().filter(dead).filter(|row| row.announced_run < row.task.run);
        let tasks = rows.map(|row| row.task.clone());
        tasks.filter(|task| task.ended_at.is_some_and(|ended| ended < ended_before)).collect()
    }

    pub(super) fn announced(&mut self, said: &RaisedAlert) {
        let row = self.rows.get_mut(&said.id).filter(|row| row.task.lane.tenant == said.tenant);
        if let Some(row) = row.filter(|row| row.task.run == said.run) {
            // A task that has not ended has no alert to confirm.
            row.announced_run = if row.task.status.is_ended() { said.run } else { row.announced_run };
        }
    }

    /// The dead letters, by id.
    pub(super) fn dead_letters(&self) -> Vec<Task> {
        let tasks = self.rows.values().map(|row| row.task.clone());
        tasks.filter(|task| task.status.is_dead_letter()).collect()
    }

    /// Tasks in flight whose lease has run out, by id.
    pub(super) fn expired(&self, now: Timestamp) -> Vec<ClaimedTask> {
        let ran_out = |row: &&Row| row.task.status == Status::InFlight && row.lease.until <= now;
        self.rows.values().filter(ran_out).map(Row::claimed).collect()
    }

    /// A whole pass of cleaning; returns how many tasks it removed.
    pub(super) fn clean(&mut self, ended_before: Timestamp) -> usize {
        let before = self.rows.len();
        self.rows.retain(|_, row| row.task.ended_at.is_none_or(|ended| ended >= ended_before));
        before - self.rows.len()
    }

    pub(super) fn snapshot(&self, tenants: impl IntoIterator<Item = TenantId>) -> Snapshot {
        let mut lanes: Vec<_> = self.rows.values().map(|row| row.task.lane.clone()).collect();
        lanes.sort();
        lanes.dedup();
        let classes = lanes.into_iter().flat_map(|lane| [(lane.clone(), Class::First), (lane, Class::Retry)]);
        let lanes = classes.filter_map(|(lane, class)| {
            let (due, _) = self.pending(&lane, class).min()?;
            Some(LaneDue { lane, class, next_due: Some(due) })
        });
        Snapshot {
            tenants: tenants.into_iter().map(|tenant| (tenant.clone(), self.of_tenant(&tenant))).collect(),
            lanes: lanes.collect(),
            next_deadline: self.next_deadline(),
            in_flight: self.expired(Timestamp::MAX),
            unannounced: self.unannounced(Timestamp::MAX),
            newest: self.newest,
        }
    }

    fn of_tenant(&self, tenant: &TenantId) -> TenantSnapshot {
        let rows: Vec<_> = self.rows.values().rev().filter(|row| row.task.lane.tenant == *tenant).collect();
        let count = |status| rows.iter().filter(|row| row.task.status == status).count() as u64;
        let detail = |row: &&Row| TaskDetail {
            task: row.task.clone(),
            request: Arc::clone(&row.new.request),
            answer: row.answer.clone(),
        };
        let (id, spec) = (PolicyId::default_policy(), policy::Spec::default());
        TenantSnapshot {
            counts: Status::ALL.map(count),
            tasks: rows.iter().map(|row| (detail(row), row.attempts.clone())).collect(),
            policies: vec![PolicyVersion { id, version: 1, spec, created_at: at(0) }],
        }
    }

    /// The task with this id, of any tenant.
    pub(super) fn any_task(&self, id: TaskId) -> Option<&Task> {
        self.rows.get(&id).map(|row| &row.task)
    }

    fn task(&mut self, tenant: &TenantId, id: TaskId) -> Option<&mut Task> {
        self.rows.get_mut(&id).map(|row| &mut row.task).filter(|task| task.lane.tenant == *tenant)
    }

    fn pending(&self, lane: &Lane, class: Class) -> impl Iterator<Item = (Timestamp, TaskId)> {
        let waiting = self.rows.values().map(|row| &row.task);
        let waiting = waiting.filter(move |task| task.status == Status::Pending && task.lane == *lane);
        let waiting =
            waiting.filter(move |task| (task.attempt_number > task.attempts_before) == (class == Class::Retry));
        waiting.filter_map(|task| Some((task.next_attempt_at?, task.id)))
    }
}
