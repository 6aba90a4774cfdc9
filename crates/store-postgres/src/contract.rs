//! The store's contract: each call goes to the writers' queue or runs on a connection of the pool.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use redrive_core::guards::Controls;
use redrive_core::request::Fingerprint;
use redrive_core::task::PolicyRef;
use redrive_core::{
    Attempt, BodyHash, BodyRef, Class, IdempotencyKey, Lane, Policy, PolicyId, Status, Task, TaskId, TenantId,
    Timestamp, policy,
};
use redrive_store::*;

use crate::floors::Index;
use crate::ops;
use crate::pool::{call, read, transact};
use crate::postgres_error::PostgresError;
use crate::store::{PostgresStore, due_at_once};

/// Changes tasks one by one, in the order of their keys. Every call locks rows in this order, so that no deadlock
/// occurs. Answers come in the order of `tasks`. A row that cannot be read fails only its own task.
macro_rules! each_in_order {
    ($doing:expr, $tasks:expr, |$task:ident| $change:expr) => {
        async {
            let mut order: Vec<usize> = (0..$tasks.len()).collect();
            // Items about the same task stay in their order.
            order.sort_by_key(|&at| (&$tasks[at].tenant, $tasks[at].id));
            let mut answers = Vec::with_capacity(order.len());
            for at in order {
                let $task = &$tasks[at];
                let answer = match $change.await {
                    Err(failure @ PostgresError::Corrupt(_)) => Err(failure.into_error($doing)),
                    outcome => Ok(outcome?),
                };
                answers.push((at, answer));
            }
            answers.sort_by_key(|(at, _)| *at);
            Ok(answers.into_iter().map(|(_, answer)| answer).collect::<Answers<_>>())
        }
    };
}

#[async_trait]
impl Store for PostgresStore {
    redrive_store::own_concepts!();

    fn shared(&self) -> Option<&dyn SharedStore> {
        Some(self)
    }

    fn is_exclusive(&self) -> bool {
        false
    }

    async fn close(&self) {
        let writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(writers);
        let mut writing = self.writing.lock().await;
        while writing.join_next().await.is_some() {}
        self.background.lock().await.shutdown().await;
        self.pools.close();
        self.loop_pool.close();
        self.pool.close();
    }
}

#[async_trait]
impl Tasks for PostgresStore {
    async fn submit(&self, tasks: Vec<NewTask>) -> Result<Vec<Submitted>, Error> {
        let writers = self.writers()?;
        self.fence.check()?;
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        // Most tasks start claimed, so there is nothing to announce.
        let is_pending = tasks.iter().any(|new| matches!(new.start, Start::Pending));
        let due: Vec<_> = if is_pending { tasks.iter().map(due_at_once).collect() } else { Vec::new() };
        let tasks = tasks.into_iter().map(ops::submit::EncodedTask::new).collect::<Result<_, _>>()?;
        let answers = writers.submits.call(tasks).await.and_then(|answers| answers.into_iter().collect());
        if matches!(answers, Err(Error::Full(_))) {
            self.is_full.store(true, Ordering::Release);
        }
        let answers: Vec<Submitted> = answers?;
        self.tell_of_unclaimed(due, &answers);
        self.upkeep.written();
        Ok(answers)
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claims, Error> {
        self.writers()?;
        self.fence.check()?;
        if request.rooms.is_empty() {
            return Ok(Claims::default());
        }
        let claimant = self.claimant();
        let look = self.floors.look(request.rooms.iter().map(Index::of));
        let claims = call!(self.loop_pool, |connection| ops::claim::claim(connection, claimant, &look, &request))
            .map_err(|failure| failure.into_error("claiming tasks"))?;
        self.upkeep.written();
        self.tell_of_left(&claims.lanes, request.due_by);
        Ok(claims)
    }

    async fn settle(&self, ends: Vec<Settlement>) -> Result<Vec<Settled>, Error> {
        let writers = self.writers()?;
        if ends.is_empty() {
            return Ok(Vec::new());
        }
        let ends = ends.into_iter().map(ops::settle::EncodedSettlement::new).collect::<Result<_, _>>()?;
        let settled = writers.settles.call(ends).await?;
        self.upkeep.written();
        Ok(settled)
    }

    async fn cancel(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<CancelOutcome>, Error> {
        let answers =
            transact!(self.pool, |connection| each_in_order!("cancelling tasks", tasks, |task| ops::cancel::cancel(
                connection, task, now
            )))
            .map_err(|failure| failure.into_error("cancelling tasks"))?;
        for (TaskKey { tenant, id }, answer) in tasks.into_iter().zip(&answers) {
            if matches!(answer, Ok(CancelOutcome::Done(task)) if task.status == Status::InFlight) {
                self.news.tell_cancel(tenant, id);
            }
        }
        Ok(answers)
    }

    async fn bring_forward(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<BringForwardOutcome>, Error> {
        let writing = self.floors.writing();
        let outcome = transact!(self.pool, |connection| each_in_order!("bringing tasks forward", tasks, |task| {
            ops::bring_forward::bring_forward(connection, task, now)
        }));
        writing.came_to(&outcome);
        let answers = outcome.map_err(|failure| failure.into_error("bringing tasks forward"))?;
        for answer in &answers {
            if let Ok(BringForwardOutcome::Done(task)) = answer {
                self.floors.note(&task.lane, task.class(), task.next_attempt_at.unwrap_or(now));
                self.news.tell(&task.lane, task.class(), now);
            }
        }
        Ok(answers)
    }

    async fn replay(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<ReplayOutcome>, Error> {
        self.fence.check()?;
        let writing = self.floors.writing();
        let outcome = transact!(self.pool, |connection| each_in_order!("replaying dead letters", tasks, |task| {
            ops::replay::replay(connection, task, now)
        }));
        writing.came_to(&outcome);
        let answers = outcome.map_err(|failure| failure.into_error("replaying dead letters"))?;
        for answer in &answers {
            if let Ok(ReplayOutcome::Done(task)) = answer {
                self.floors.note(&task.lane, task.class(), now);
                self.floors.note_deadline(task.deadline_at);
                self.news.tell(&task.lane, task.class(), now);
            }
        }
        Ok(answers)
    }

    async fn suppress(&self, tasks: Vec<Suppression>, now: Timestamp) -> Result<Answers<SuppressOutcome>, Error> {
        self.fence.check()?;
        let answers = transact!(self.pool, |connection| each_in_order!("suppressing retries", tasks, |task| {
            ops::suppress::suppress(connection, task, now)
        }))
        .map_err(|failure| failure.into_error("suppressing retries"))?;
        self.upkeep.written();
        Ok(answers)
    }
}

#[async_trait]
impl Upkeep for PostgresStore {
    async fn pending_lanes(&self, after: Option<(Lane, Class)>, limit: usize) -> Result<Vec<LaneDue>, Error> {
        let lanes = read!(self.loop_pool, |connection| ops::pending_lanes::pending_lanes(
            connection,
            &self.aside,
            after.as_ref(),
            limit
        ))
        .map_err(|failure| failure.into_error("finding pending lanes"))?;
        self.floors.note_all(&lanes);
        Ok(lanes)
    }

    async fn expired_leases(&self, now: Timestamp, limit: usize) -> Result<Vec<ClaimedTask>, Error> {
        read!(self.loop_pool, |connection| ops::expired_leases::expired_leases(
            connection,
            &self.aside,
            &self.floors,
            now,
            limit
        ))
        .map_err(|failure| failure.into_error("finding expired leases"))
    }

    async fn end_overdue(&self, now: Timestamp, limit: usize) -> Result<Overdue, Error> {
        self.writers()?;
        self.fence.check()?;
        let overdue = call!(self.loop_pool, |connection| ops::end_overdue::end_overdue(
            connection,
            &self.aside,
            &self.floors,
            now,
            limit
        ))
        .map_err(|failure| failure.into_error("ending overdue tasks"))?;
        if !overdue.ended.is_empty() {
            self.upkeep.written();
        }
        Ok(overdue)
    }

    async fn pending_alerts(&self, ended_before: Timestamp, limit: usize) -> Result<Vec<Task>, Error> {
        read!(self.pool, |connection| ops::alerts::pending(connection, &self.aside, ended_before, limit))
            .map_err(|failure| failure.into_error("finding unannounced dead letters"))
    }

    async fn confirm_alerts(&self, alerts: Vec<RaisedAlert>) -> Result<(), Error> {
        call!(self.pools.repeats, |connection| ops::alerts::confirm(connection, &alerts))
            .map_err(|failure| failure.into_error("confirming alerts"))
    }

    async fn clean(&self, ended_before: Timestamp, from: CleanFrom, limit: usize) -> Result<Cleaned, Error> {
        self.fence.check()?;
        transact!(self.pool, |connection| ops::clean::clean(connection, &self.aside, ended_before, from, limit))
            .map_err(|failure| failure.into_error("cleaning"))
    }

    async fn newest_task(&self) -> Result<Option<TaskId>, Error> {
        read!(self.pool, |connection| ops::newest_task::newest_task(connection))
            .map_err(|failure| failure.into_error("finding the newest task"))
    }
}

#[async_trait]
impl Reads for PostgresStore {
    async fn task(&self, tenant: TenantId, id: TaskId) -> Result<Option<TaskDetail>, Error> {
        read!(self.pool, |connection| ops::find::task(connection, &tenant, id))
            .map_err(|failure| failure.into_error("reading a task"))
    }

    async fn by_key(&self, tenant: TenantId, key: IdempotencyKey) -> Result<Option<(Task, Fingerprint)>, Error> {
        let owners = read!(self.pool, |connection| ops::by_key::owners(connection, &[(&tenant, &key)]))
            .map_err(|failure| failure.into_error("finding a key"))?;
        let Some(owner) = owners.into_iter().next().flatten() else { return Ok(None) };
        owner.task.map(Some).map_err(|failure| failure.into_error("finding a key"))
    }

    async fn list(&self, query: TaskQuery) -> Result<TaskPage, Error> {
        read!(self.pool, |connection| ops::list::list(connection, &self.aside, &query))
            .map_err(|failure| failure.into_error("listing tasks"))
    }

    async fn counts(&self, tenant: TenantId) -> Result<Counts, Error> {
        read!(self.pool, |connection| ops::counts::counts(connection, &tenant))
            .map_err(|failure| failure.into_error("counting tasks"))
    }

    async fn backlogs(&self, lanes: Vec<Lane>, now: Timestamp, most: u32) -> Result<Vec<Backlog>, Error> {
        read!(self.pool, |connection| ops::backlogs::backlogs(connection, &lanes, now, most))
            .map_err(|failure| failure.into_error("counting the pending tasks of lanes"))
    }

    async fn old_retries(&self, lanes: Vec<Lane>, accepted_before: Timestamp, look_at: u32) -> Result<Vec<u32>, Error> {
        read!(self.pool, |connection| ops::backlogs::old_retries(connection, &lanes, accepted_before, look_at))
            .map_err(|failure| failure.into_error("counting the old retries of lanes"))
    }

    async fn attempts(
        &self,
        tenant: TenantId,
        id: TaskId,
        after: u32,
        limit: usize,
    ) -> Result<Option<Vec<Attempt>>, Error> {
        read!(self.pool, |connection| ops::attempts::attempts(connection, &tenant, id, after, limit))
            .map_err(|failure| failure.into_error("reading attempts"))
    }
}

#[async_trait]
impl Policies for PostgresStore {
    async fn put(
        &self,
        tenant: TenantId,
        id: PolicyId,
        spec: policy::Spec,
        expected: Expected,
        now: Timestamp,
    ) -> Result<PutPolicy, Error> {
        let json = serde_json::to_string(&spec)
            .map_err(|error| Error::Unavailable(format!("writing a policy as JSON: {error}")))?;
        let resolved = Policy::resolve(&spec).ok();
        let put = ops::policies::Put { tenant, id, spec, json, resolved, expected, now };
        transact!(self.pool, |connection| ops::policies::put(connection, &put))
            .map_err(|failure| failure.into_error("keeping a policy"))
    }

    async fn versions(&self, tenant: TenantId, id: PolicyId) -> Result<Vec<PolicyVersion>, Error> {
        read!(self.pool, |connection| ops::policies::versions(connection, &self.aside, &tenant, &id))
            .map_err(|failure| failure.into_error("reading a policy"))
    }

    async fn version(&self, tenant: TenantId, policy: PolicyRef) -> Result<Option<PolicyVersion>, Error> {
        let (tenant, id, version) = (tenant.as_str(), policy.id.as_str(), i64::from(policy.version));
        read!(self.pool, |connection| ops::policies::read_version(connection, tenant, id, version))
            .map_err(|failure| failure.into_error("reading a policy version"))
    }

    async fn list(&self, tenant: TenantId, after: Option<PolicyId>, limit: usize) -> Result<Vec<PolicyVersion>, Error> {
        read!(self.pool, |connection| ops::policies::list(connection, &self.aside, &tenant, after.as_ref(), limit))
            .map_err(|failure| failure.into_error("listing policies"))
    }

    async fn delete(&self, tenant: TenantId, id: PolicyId, expected: Expected) -> Result<DeletePolicy, Error> {
        transact!(self.pool, |connection| ops::policies::delete(connection, &tenant, &id, expected))
            .map_err(|failure| failure.into_error("deleting a policy"))
    }
}

#[async_trait]
impl LaneControls for PostgresStore {
    async fn replace(&self, lane: Lane, expected: Controls, new: Controls) -> Result<bool, Error> {
        let json = serde_json::to_string(&new)
            .map_err(|error| Error::Unavailable(format!("writing the controls of a lane as JSON: {error}")))?;
        let json = (!new.is_empty()).then_some(&*json);
        let replaced = call!(self.pool, |connection| ops::lane_controls::replace(connection, &lane, &expected, json))
            .map_err(|failure| failure.into_error("setting the controls of a lane"))?;
        if replaced {
            self.news.tell_guards(lane);
        }
        Ok(replaced)
    }

    async fn list(&self, after: Option<Lane>, limit: usize) -> Result<Vec<(Lane, Controls)>, Error> {
        read!(self.loop_pool, |connection| ops::lane_controls::list(connection, &self.aside, after.as_ref(), limit))
            .map_err(|failure| failure.into_error("reading the controls of lanes"))
    }
}

#[async_trait]
impl Blobs for PostgresStore {
    async fn adopt(&self, tenant: TenantId, fresh: BodyRef, now: Timestamp) -> Result<BodyRef, Error> {
        call!(self.pool, |connection| ops::blobs::adopt(connection, &tenant, fresh, now))
            .map_err(|failure| failure.into_error("adopting a blob"))
    }

    async fn find(&self, tenant: TenantId, hash: BodyHash) -> Result<Option<BodyRef>, Error> {
        read!(self.pool, |connection| ops::blobs::kept(connection, &tenant, hash))
            .map_err(|failure| failure.into_error("finding a blob"))
    }

    async fn condemn(&self, adopted_before: Timestamp, after: Option<Blob>, limit: usize) -> Result<Condemned, Error> {
        transact!(self.pool, |connection| ops::blobs::condemn(
            connection,
            &self.aside,
            adopted_before,
            after.as_ref(),
            limit
        ))
        .map_err(|failure| failure.into_error("condemning blobs"))
    }

    async fn forget(&self, blobs: Vec<Blob>) -> Result<(), Error> {
        call!(self.pools.repeats, |connection| ops::blobs::forget(connection, &blobs))
            .map_err(|failure| failure.into_error("forgetting blobs"))
    }
}

#[async_trait]
impl Health for PostgresStore {
    async fn check(&self) -> Result<(), Error> {
        // With the writers' connections, so that the check covers what submissions need and takes no connection from
        // other calls.
        call!(self.pools.batches, |connection| async {
            ops::check::check(connection).await?;
            if self.is_full.load(Ordering::Acquire) {
                // A few bytes may still fit where a task does not.
                ops::check::room(connection).await?;
                self.is_full.store(false, Ordering::Release);
            }
            self.fence.look(connection).await
        })
        .map_err(|failure| failure.into_error("checking that the store can be written to"))?;
        self.fence.check()
    }

    async fn set_aside(&self, limit: usize) -> Result<SetAside, Error> {
        read!(self.pool, |connection| ops::set_aside::list(connection, limit))
            .map_err(|failure| failure.into_error("finding what is set aside"))
    }

    fn commits(&self) -> Option<CommitCounts> {
        Some(self.pools.commits.counts())
    }

    async fn died(&self) -> &'static str {
        self.liveness.died().await
    }
}
