//! The store's contract: each call goes to the store, and its changes of pending tasks are queued for the index.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use redrive_core::{Class, Lane, Status, Task, TaskId, TenantId, Timestamp};
use redrive_store::*;

use super::{Scheduled, claim};
use crate::pending_changes::Change;
use crate::schedule::Gone;

impl Scheduled {
    /// Adds a task to the index that was made due by a request. Its token is read from the store.
    async fn note_due(&self, task: &Task) {
        if let Some(task) = self.state.look_up(&task.lane.tenant, task.id).await {
            self.state.note([Change::PendingTask { task, is_due: true }]);
        }
    }

    /// Adds a task to the index that is pending again.
    async fn note_retry(&self, retry: Retry) {
        let Retry { tenant, id, token, due, is_due, is_counted } = retry;
        let task = match self.state.claimed_queues.forget(id) {
            Some((lane, class)) if lane.tenant == tenant => {
                let class = if is_counted { Class::Retry } else { class };
                Some(PendingTask { lane, class, id, token, due })
            }
            _ => self.state.look_up(&tenant, id).await,
        };
        self.state.note(task.map(|task| Change::PendingTask { task, is_due }));
    }
}

/// How many claims that were given back are assumed at most when a task ends by its deadline.
const MOST_GIVEN_BACK: u64 = 8;

/// A task that is pending again if the settlement takes effect.
struct Retry {
    tenant: TenantId,
    id: TaskId,
    token: Token,
    due: Timestamp,
    is_due: bool,
    /// Whether an attempt was made. A claim that is given back leaves the task in the class that it was claimed from.
    is_counted: bool,
}

impl Retry {
    fn of(end: &Settlement) -> Option<Self> {
        let Next::RetryAt { at, .. } = end.next else { return None };
        let Settlement { ref tenant, id, token, .. } = *end;
        let is_counted = end.attempt.is_some();
        Some(Retry { tenant: tenant.clone(), id, token, due: at, is_due: at <= end.at, is_counted })
    }
}

#[async_trait]
impl Store for Scheduled {
    fn tasks(&self) -> &dyn Tasks {
        self
    }

    fn upkeep(&self) -> &dyn Upkeep {
        self
    }

    fn reads(&self) -> &dyn Reads {
        self.state.store.reads()
    }

    fn policies(&self) -> &dyn Policies {
        self.state.store.policies()
    }

    fn blobs(&self) -> &dyn Blobs {
        self.state.store.blobs()
    }

    fn records(&self) -> &dyn Records {
        self.state.store.records()
    }

    fn controls(&self) -> &dyn LaneControls {
        self
    }

    fn health(&self) -> &dyn Health {
        self
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        Some(self)
    }

    fn is_exclusive(&self) -> bool {
        self.state.store.is_exclusive()
    }

    async fn close(&self) {
        if !self.state.pending_changes.flushed().await {
            tracing::debug!("closing before the index was told everything: the next look at the store finds it");
        }
        self.is_closed.store(true, Ordering::Release);
        self.stop_loops();
        self.state.store.close().await;
    }
}

#[async_trait]
impl Tasks for Scheduled {
    async fn submit(&self, tasks: Vec<NewTask>) -> Result<Vec<Submitted>, Error> {
        let outline = |new: &NewTask| {
            let task = &new.task;
            (task.lane.clone(), task.id, task.next_attempt_at.unwrap_or(task.created_at), task.created_at)
        };
        let outlines: Vec<_> = tasks.iter().map(outline).collect();
        let submitted = self.state.store.tasks().submit(tasks).await?;
        let mut changes = Vec::new();
        for ((lane, id, due, now), submitted) in outlines.into_iter().zip(&submitted) {
            match submitted {
                Submitted::Created(_, Some(_)) => self.state.claimed_queues.remember(id, (lane, Class::First)),
                Submitted::Created(_, None) => {
                    let task = PendingTask { lane, class: Class::First, id, token: Token(0), due };
                    changes.push(Change::PendingTask { task, is_due: due <= now });
                }
                Submitted::Replayed(_)
                | Submitted::KeyReused(_)
                | Submitted::KeyOfVersion(..)
                | Submitted::KeyUnreadable(_)
                | Submitted::PolicyGone
                | Submitted::BodyGone => {}
            }
        }
        self.state.note(changes);
        Ok(submitted)
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claims, Error> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        claim::claim(&self.state, request).await
    }

    async fn settle(&self, ends: Vec<Settlement>) -> Result<Vec<Settled>, Error> {
        let retries: Vec<(TaskId, Option<Retry>)> = ends.iter().map(|end| (end.id, Retry::of(end))).collect();
        let settled = self.state.store.tasks().settle(ends).await?;
        for ((id, retry), settled) in retries.into_iter().zip(&settled) {
            match (retry, settled) {
                (Some(retry), Settled::Done(Status::Pending)) => self.note_retry(retry).await,
                _ => drop(self.state.claimed_queues.forget(id)),
            }
        }
        Ok(settled)
    }

    /// The index entries of the tasks are looked up before the cancel: afterwards the store no longer has them. An entry that
    /// changes in between stays in the index out of date, and is skipped when it is taken.
    async fn cancel(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<CancelOutcome>, Error> {
        let mut waiting = Vec::with_capacity(tasks.len());
        for TaskKey { tenant, id } in &tasks {
            waiting.push(self.state.look_up(tenant, *id).await);
        }
        let answers = self.state.store.tasks().cancel(tasks.clone(), now).await?;
        for ((TaskKey { tenant, id }, waiting), answer) in tasks.into_iter().zip(waiting).zip(&answers) {
            let Ok(CancelOutcome::Done(task)) = answer else { continue };
            match (waiting, task.status) {
                (_, Status::InFlight) => self.state.news.announce_cancel(tenant, id),
                (Some(PendingTask { lane, class, token, .. }), Status::Cancelled) => {
                    self.state.note([Change::Gone(Gone { lane, class, id, token })]);
                }
                _ => {}
            }
        }
        Ok(answers)
    }

    async fn bring_forward(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<BringForwardOutcome>, Error> {
        let answers = self.state.store.tasks().bring_forward(tasks, now).await?;
        for answer in &answers {
            if let Ok(BringForwardOutcome::Done(task)) = answer {
                self.note_due(task).await;
            }
        }
        Ok(answers)
    }

    async fn replay(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<ReplayOutcome>, Error> {
        let answers = self.state.store.tasks().replay(tasks, now).await?;
        for answer in &answers {
            if let Ok(ReplayOutcome::Done(task)) = answer {
                self.note_due(task).await;
            }
        }
        Ok(answers)
    }

    /// The index entries are looked up first, as for a cancel.
    async fn suppress(&self, tasks: Vec<Suppression>, now: Timestamp) -> Result<Answers<SuppressOutcome>, Error> {
        let mut waiting = Vec::with_capacity(tasks.len());
        for Suppression { tenant, id, .. } in &tasks {
            waiting.push(self.state.look_up(tenant, *id).await);
        }
        let answers = self.state.store.tasks().suppress(tasks, now).await?;
        for (waiting, answer) in waiting.into_iter().zip(&answers) {
            if let (Some(PendingTask { lane, class, id, token, .. }), Ok(SuppressOutcome::Done(_))) = (waiting, answer)
            {
                self.state.note([Change::Gone(Gone { lane, class, id, token })]);
            }
        }
        Ok(answers)
    }
}

#[async_trait]
impl Upkeep for Scheduled {
    /// The store's answer. It is also compared with the index: see the module `stale_queues`.
    async fn pending_lanes(&self, after: Option<(Lane, Class)>, limit: usize) -> Result<Vec<LaneDue>, Error> {
        let lanes = self.state.store.upkeep().pending_lanes(after, limit).await?;
        self.state.look(&lanes).await;
        Ok(lanes)
    }

    async fn expired_leases(&self, now: Timestamp, limit: usize) -> Result<Vec<ClaimedTask>, Error> {
        let expired = self.state.store.upkeep().expired_leases(now, limit).await?;
        for ClaimedTask { task, .. } in &expired {
            self.state.claimed_queues.remember(task.id, claim::claimed_from(task));
        }
        Ok(expired)
    }

    /// The store does not return the tokens under which the tasks were pending. A token is the number of claims: the
    /// attempts, and a few that were given back. An entry that is not removed is out of date, and is left out when it
    /// is taken.
    async fn end_overdue(&self, now: Timestamp, limit: usize) -> Result<Overdue, Error> {
        let overdue = self.state.store.upkeep().end_overdue(now, limit).await?;
        let gone = |task: &Task| {
            let (lane, class, id) = (task.lane.clone(), task.class(), task.id);
            let claims = u64::from(task.attempt_number);
            let tokens = (claims..=claims + MOST_GIVEN_BACK).map(Token);
            tokens.map(move |token| Change::Gone(Gone { lane: lane.clone(), class, id, token }))
        };
        self.state.note(overdue.ended.iter().flat_map(gone));
        Ok(overdue)
    }

    async fn pending_alerts(&self, ended_before: Timestamp, limit: usize) -> Result<Vec<Task>, Error> {
        self.state.store.upkeep().pending_alerts(ended_before, limit).await
    }

    async fn confirm_alerts(&self, dead_letters: Vec<RaisedAlert>) -> Result<(), Error> {
        self.state.store.upkeep().confirm_alerts(dead_letters).await
    }

    async fn clean(&self, ended_before: Timestamp, from: CleanFrom, limit: usize) -> Result<Cleaned, Error> {
        self.state.store.upkeep().clean(ended_before, from, limit).await
    }

    async fn newest_task(&self) -> Result<Option<TaskId>, Error> {
        self.state.store.upkeep().newest_task().await
    }
}

#[async_trait]
impl Health for Scheduled {
    async fn check(&self) -> Result<(), Error> {
        self.state.store.health().check().await
    }

    async fn check_location(&self) -> Result<(), Error> {
        self.state.store.health().check_location().await
    }

    async fn set_aside(&self, limit: usize) -> Result<SetAside, Error> {
        self.state.store.health().set_aside(limit).await
    }

    fn commits(&self) -> Option<CommitCounts> {
        self.state.store.health().commits()
    }

    async fn died(&self) -> &'static str {
        tokio::select! {
            name = self.liveness.died() => name,
            name = self.state.store.health().died() => name,
        }
    }
}
