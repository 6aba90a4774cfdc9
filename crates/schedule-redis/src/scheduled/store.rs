use std::sync::atomic::Ordering;

use async_trait::async_trait;
use redrive_core::request::Fingerprint;
use redrive_core::task::PolicyRef;
use redrive_core::{
    Attempt, BodyHash, BodyRef, Class, IdempotencyKey, Lane, PolicyId, Status, Task, TaskId, TenantId, Timestamp,
    policy,
};
use redrive_store::*;

use super::{Scheduled, claim};
use crate::schedule::Gone;
use crate::unsaid::Change;

impl Scheduled {
    /// Tells the index of a task that is due now by somebody's wish. Its token is the store's to know.
    async fn note_due(&self, task: &Task) {
        if let Some(task) = self.state.look_up(&task.lane.tenant, task.id).await {
            self.state.note([Change::Waiting { task, is_due: true }]);
        }
    }

    /// Tells the index of a task that waits again.
    async fn note_retry(&self, retry: Retry) {
        let Retry { tenant, id, token, due, is_due, is_counted } = retry;
        let task = match self.state.underway.forget(id) {
            Some((lane, class)) if lane.tenant == tenant => {
                let class = if is_counted { Class::Retry } else { class };
                Some(Waiting { lane, class, id, token, due })
            }
            _ => self.state.look_up(&tenant, id).await,
        };
        self.state.note(task.map(|task| Change::Waiting { task, is_due }));
    }
}

/// How many claims of a task that were given back are reckoned with when it ends by its deadline.
const MOST_GIVEN_BACK: u64 = 8;

/// A task that is to wait again, if the settlement takes effect.
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
    async fn submit(&self, tasks: Vec<NewTask>) -> Result<Vec<Submitted>, Error> {
        let outline = |new: &NewTask| {
            let task = &new.task;
            (task.lane.clone(), task.id, task.next_attempt_at.unwrap_or(task.created_at), task.created_at)
        };
        let outlines: Vec<_> = tasks.iter().map(outline).collect();
        let submitted = self.state.store.submit(tasks).await?;
        let mut changes = Vec::new();
        for ((lane, id, due, now), submitted) in outlines.into_iter().zip(&submitted) {
            match submitted {
                Submitted::Created(Some(_)) => self.state.underway.remember(id, (lane, Class::First)),
                Submitted::Created(None) => {
                    let task = Waiting { lane, class: Class::First, id, token: Token(0), due };
                    changes.push(Change::Waiting { task, is_due: due <= now });
                }
                Submitted::Replayed(_)
                | Submitted::KeyReused(_)
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
        let settled = self.state.store.settle(ends).await?;
        for ((id, retry), settled) in retries.into_iter().zip(&settled) {
            match (retry, settled) {
                (Some(retry), Settled::Done(Status::Pending)) => self.note_retry(retry).await,
                _ => drop(self.state.underway.forget(id)),
            }
        }
        Ok(settled)
    }

    /// What the index calls the task is looked up before: afterwards nobody knows. Should it change in between, something
    /// out of date stays in the index, and is left out when it is taken.
    async fn cancel(&self, tenant: TenantId, id: TaskId, now: Timestamp) -> Result<Cancelled, Error> {
        let waiting = self.state.look_up(&tenant, id).await;
        let cancelled = self.state.store.cancel(tenant.clone(), id, now).await?;
        let Cancelled::Done(task) = &cancelled else { return Ok(cancelled) };
        match (waiting, task.status) {
            (_, Status::InFlight) => self.state.news.say_cancel(tenant, id),
            (Some(Waiting { lane, class, token, .. }), Status::Cancelled) => {
                self.state.note([Change::Gone(Gone { lane, class, id, token })]);
            }
            _ => {}
        }
        Ok(cancelled)
    }

    async fn bring_forward(&self, tenant: TenantId, id: TaskId, now: Timestamp) -> Result<BroughtForward, Error> {
        let brought = self.state.store.bring_forward(tenant, id, now).await?;
        if let BroughtForward::Done(task) = &brought {
            self.note_due(task).await;
        }
        Ok(brought)
    }

    async fn replay(&self, tenant: TenantId, id: TaskId, now: Timestamp) -> Result<Replay, Error> {
        let replay = self.state.store.replay(tenant, id, now).await?;
        if let Replay::Done(task) = &replay {
            self.note_due(task).await;
        }
        Ok(replay)
    }

    async fn unannounced(&self, ended_before: Timestamp, limit: usize) -> Result<Vec<Task>, Error> {
        self.state.store.unannounced(ended_before, limit).await
    }

    async fn announced(&self, dead_letters: Vec<Announced>) -> Result<(), Error> {
        self.state.store.announced(dead_letters).await
    }

    async fn expired(&self, now: Timestamp, limit: usize) -> Result<Vec<Claimed>, Error> {
        let expired = self.state.store.expired(now, limit).await?;
        for Claimed { task, .. } in &expired {
            self.state.underway.remember(task.id, claim::claimed_from(task));
        }
        Ok(expired)
    }

    /// The store does not say with which tokens the tasks waited. A token is the number of claims: the attempts, and a few
    /// that were given back. What is not removed is out of date, and is left out when it is taken.
    async fn end_overdue(&self, now: Timestamp, limit: usize) -> Result<Overdue, Error> {
        let overdue = self.state.store.end_overdue(now, limit).await?;
        let gone = |task: &Task| {
            let (lane, class, id) = (task.lane.clone(), task.class(), task.id);
            let claims = u64::from(task.attempt_number);
            let tokens = (claims..=claims + MOST_GIVEN_BACK).map(Token);
            tokens.map(move |token| Change::Gone(Gone { lane: lane.clone(), class, id, token }))
        };
        self.state.note(overdue.ended.iter().flat_map(gone));
        Ok(overdue)
    }

    /// What the store says, compared with the index on the way: see the module `suspects`.
    async fn pending_lanes(&self, after: Option<(Lane, Class)>, limit: usize) -> Result<Vec<LaneDue>, Error> {
        let lanes = self.state.store.pending_lanes(after, limit).await?;
        self.state.look(&lanes).await;
        Ok(lanes)
    }

    async fn task(&self, tenant: TenantId, id: TaskId) -> Result<Option<TaskDetail>, Error> {
        self.state.store.task(tenant, id).await
    }

    async fn by_key(&self, tenant: TenantId, key: IdempotencyKey) -> Result<Option<(Task, Fingerprint)>, Error> {
        self.state.store.by_key(tenant, key).await
    }

    async fn tasks(&self, query: TaskQuery) -> Result<TaskPage, Error> {
        self.state.store.tasks(query).await
    }

    async fn counts(&self, tenant: TenantId) -> Result<Counts, Error> {
        self.state.store.counts(tenant).await
    }

    async fn attempts(
        &self,
        tenant: TenantId,
        id: TaskId,
        after: u32,
        limit: usize,
    ) -> Result<Option<Vec<Attempt>>, Error> {
        self.state.store.attempts(tenant, id, after, limit).await
    }

    async fn put_policy(
        &self,
        tenant: TenantId,
        id: PolicyId,
        spec: policy::Spec,
        expected: Expected,
        now: Timestamp,
    ) -> Result<PutPolicy, Error> {
        self.state.store.put_policy(tenant, id, spec, expected, now).await
    }

    async fn policy(&self, tenant: TenantId, id: PolicyId) -> Result<Vec<PolicyVersion>, Error> {
        self.state.store.policy(tenant, id).await
    }

    async fn policies(
        &self,
        tenant: TenantId,
        after: Option<PolicyId>,
        limit: usize,
    ) -> Result<Vec<PolicyVersion>, Error> {
        self.state.store.policies(tenant, after, limit).await
    }

    async fn delete_policy(&self, tenant: TenantId, id: PolicyId, expected: Expected) -> Result<DeletePolicy, Error> {
        self.state.store.delete_policy(tenant, id, expected).await
    }

    async fn clean(&self, ended_before: Timestamp, from: CleanFrom, limit: usize) -> Result<Cleaned, Error> {
        self.state.store.clean(ended_before, from, limit).await
    }

    async fn adopt_blob(&self, tenant: TenantId, body: BodyRef, now: Timestamp) -> Result<BodyRef, Error> {
        self.state.store.adopt_blob(tenant, body, now).await
    }

    async fn blob(&self, tenant: TenantId, hash: BodyHash) -> Result<Option<BodyRef>, Error> {
        self.state.store.blob(tenant, hash).await
    }

    async fn condemn_blobs(&self, before: Timestamp, after: Option<Blob>, limit: usize) -> Result<Condemned, Error> {
        self.state.store.condemn_blobs(before, after, limit).await
    }

    async fn forget_blobs(&self, blobs: Vec<Blob>) -> Result<(), Error> {
        self.state.store.forget_blobs(blobs).await
    }

    async fn policy_version(&self, tenant: TenantId, policy: PolicyRef) -> Result<Option<PolicyVersion>, Error> {
        self.state.store.policy_version(tenant, policy).await
    }

    async fn set_aside(&self, limit: usize) -> Result<SetAside, Error> {
        self.state.store.set_aside(limit).await
    }

    async fn check_place(&self) -> Result<(), Error> {
        self.state.store.check_place().await
    }

    async fn died(&self) -> &'static str {
        tokio::select! {
            name = self.vitals.died() => name,
            name = self.state.store.died() => name,
        }
    }

    async fn newest_task(&self) -> Result<Option<TaskId>, Error> {
        self.state.store.newest_task().await
    }

    async fn check(&self) -> Result<(), Error> {
        self.state.store.check().await
    }

    fn is_exclusive(&self) -> bool {
        self.state.store.is_exclusive()
    }

    fn shared(&self) -> Option<&dyn Shared> {
        Some(self)
    }

    async fn close(&self) {
        if !self.state.unsaid.flushed().await {
            tracing::debug!("closing before the index was told everything: the next look at the store finds it");
        }
        self.is_closed.store(true, Ordering::Release);
        self.stop_loops();
        self.state.store.close().await;
    }
}
