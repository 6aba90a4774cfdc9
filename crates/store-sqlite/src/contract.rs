//! The store's contract: each call goes to the writer or to a reader.

use std::cell::RefCell;
use std::sync::Arc;

use async_trait::async_trait;
use redrive_core::guards::Controls;
use redrive_core::idempotency::{Operation, Record, RecordKey, Reserved};
use redrive_core::request::Fingerprint;
use redrive_core::task::PolicyRef;
use redrive_core::{
    Attempt, BodyHash, BodyRef, Class, IdempotencyKey, Lane, PolicyId, Task, TaskId, TenantId, Timestamp, policy,
};
use redrive_store::*;

use crate::keys::KeyHash;
use crate::ops;
use crate::ops::by_key::Owner;
use crate::ops::records::change::EncodedChange;
use crate::ops::records::reserve::HashedReservation;
use crate::store::{SqliteStore, answer_each};
use crate::writer::Writer;

#[async_trait]
impl Store for SqliteStore {
    redrive_store::own_concepts!();

    fn guard_states(&self) -> Option<&dyn GuardStates> {
        Some(self)
    }

    /// Always true: the directory's lock keeps other processes out.
    fn is_exclusive(&self) -> bool {
        true
    }

    async fn close(&self) {
        // Readers first: the last checkpoint must be the only user of the log.
        self.readers.close().await;
        self.writer.close().await;
    }
}

#[async_trait]
impl Tasks for SqliteStore {
    async fn submit(&self, tasks: Vec<NewTask>) -> Result<Vec<Submitted>, Error> {
        let tasks: Arc<[_]> = tasks.into_iter().map(ops::submit::EncodedTask::new).collect::<Result<_, _>>()?;
        let submitted = tasks.clone();
        let decisions = self.gather("submitting tasks", move |writer| ops::submit::submit(writer, &submitted)).await?;
        Ok(decisions.into_iter().zip(&*tasks).map(|(decision, task)| decision.answer(task)).collect())
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claims, Error> {
        self.write("claiming tasks", move |writer| ops::claim::claim(writer, &request)).await
    }

    async fn settle(&self, ends: Vec<Settlement>) -> Result<Vec<Settled>, Error> {
        let ends: Arc<[_]> = ends.into_iter().map(ops::settle::EncodedSettlement::new).collect::<Result<_, _>>()?;
        self.gather("settling attempts", move |writer| ops::settle::settle(writer, &ends)).await
    }

    async fn cancel(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<CancelOutcome>, Error> {
        self.change_each("cancelling tasks", tasks, move |writer, task| ops::cancel::cancel(writer, task, now)).await
    }

    async fn bring_forward(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<BringForwardOutcome>, Error> {
        let bring = move |writer: &mut Writer, task: &TaskKey| ops::bring_forward::bring_forward(writer, task, now);
        self.change_each("bringing tasks forward", tasks, bring).await
    }

    async fn replay(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<ReplayOutcome>, Error> {
        self.change_each("replaying dead letters", tasks, move |writer, task| ops::replay::replay(writer, task, now))
            .await
    }

    async fn suppress(&self, tasks: Vec<Suppression>, now: Timestamp) -> Result<Answers<SuppressOutcome>, Error> {
        self.change_each("suppressing retries", tasks, move |writer, task| ops::suppress::suppress(writer, task, now))
            .await
    }
}

#[async_trait]
impl Upkeep for SqliteStore {
    async fn pending_lanes(&self, after: Option<(Lane, Class)>, limit: usize) -> Result<Vec<LaneDue>, Error> {
        self.read_around("finding pending lanes", move |reader, damaged| {
            ops::pending_lanes::pending_lanes(reader, after.as_ref(), limit, damaged)
        })
        .await
    }

    async fn expired_leases(&self, now: Timestamp, limit: usize) -> Result<Vec<ClaimedTask>, Error> {
        self.read_around("finding expired leases", move |reader, damaged| {
            ops::expired_leases::expired_leases(reader, now, limit, damaged)
        })
        .await
    }

    async fn end_overdue(&self, now: Timestamp, limit: usize) -> Result<Overdue, Error> {
        self.write("ending overdue tasks", move |writer| ops::end_overdue::end_overdue(writer, now, limit)).await
    }

    async fn pending_alerts(&self, ended_before: Timestamp, limit: usize) -> Result<Vec<Task>, Error> {
        self.read_around("finding unannounced dead letters", move |reader, damaged| {
            ops::alerts::pending(reader, ended_before, limit, damaged)
        })
        .await
    }

    async fn confirm_alerts(&self, alerts: Vec<RaisedAlert>) -> Result<(), Error> {
        self.write("confirming alerts", move |writer| ops::alerts::confirm(writer, &alerts)).await
    }

    async fn clean(&self, ended_before: Timestamp, from: CleanFrom, limit: usize) -> Result<Cleaned, Error> {
        self.write("cleaning", move |writer| ops::clean::clean(writer, ended_before, from, limit)).await
    }

    async fn newest_task(&self) -> Result<Option<TaskId>, Error> {
        self.readers.run("finding the newest task", ops::newest_task::newest_task).await
    }
}

#[async_trait]
impl Reads for SqliteStore {
    async fn task(&self, tenant: TenantId, id: TaskId) -> Result<Option<TaskDetail>, Error> {
        self.readers.run("reading a task", move |reader| ops::find::task(reader, &tenant, id)).await
    }

    async fn by_key(&self, tenant: TenantId, key: IdempotencyKey) -> Result<Option<(Task, Fingerprint)>, Error> {
        let hash = KeyHash::of(tenant.as_str(), key.as_str());
        self.gather("finding a key", move |writer| match ops::by_key::by_key(writer, &tenant, &key, hash)? {
            None => Ok(None),
            Some(Owner::Task(owner, fingerprint)) => Ok(Some((*owner, fingerprint))),
            Some(Owner::Damaged(_, failure)) => Err(failure),
        })
        .await
    }

    async fn list(&self, query: TaskQuery) -> Result<TaskPage, Error> {
        self.read_around("listing tasks", move |reader, damaged| ops::list::list(reader, &query, damaged)).await
    }

    async fn counts(&self, tenant: TenantId) -> Result<Counts, Error> {
        self.readers.run("counting tasks", move |reader| ops::counts::counts(reader, &tenant)).await
    }

    async fn backlogs(&self, lanes: Vec<Lane>, now: Timestamp, most: u32) -> Result<Vec<Backlog>, Error> {
        self.readers
            .run("counting the pending tasks of lanes", move |reader| {
                lanes.iter().map(|lane| ops::backlog::backlog(reader, lane, now, most)).collect()
            })
            .await
    }

    async fn old_retries(&self, lanes: Vec<Lane>, accepted_before: Timestamp, look_at: u32) -> Result<Vec<u32>, Error> {
        self.readers
            .run("counting the old retries of lanes", move |reader| {
                lanes.iter().map(|lane| ops::backlog::old_retries(reader, lane, accepted_before, look_at)).collect()
            })
            .await
    }

    async fn attempts(
        &self,
        tenant: TenantId,
        id: TaskId,
        after: u32,
        limit: usize,
    ) -> Result<Option<Vec<Attempt>>, Error> {
        self.readers
            .run("reading attempts", move |reader| ops::attempts::attempts(reader, &tenant, id, after, limit))
            .await
    }
}

#[async_trait]
impl GuardStates for SqliteStore {
    fn keep(&self, states: Vec<GuardState>) {
        self.guards.add(states);
    }

    async fn kept(&self, after: Option<Lane>, limit: usize) -> Result<Vec<GuardState>, Error> {
        self.readers
            .run("reading the states of guards", move |reader| ops::guard_states::kept(reader, after.as_ref(), limit))
            .await
    }
}

#[async_trait]
impl LaneControls for SqliteStore {
    async fn replace(&self, lane: Lane, expected: Controls, new: Controls) -> Result<bool, Error> {
        self.write("setting the controls of a lane", move |writer| {
            ops::guard_states::replace_controls(writer, &lane, &expected, &new)
        })
        .await
    }

    async fn list(&self, after: Option<Lane>, limit: usize) -> Result<Vec<(Lane, Controls)>, Error> {
        self.readers
            .run("reading the controls of lanes", move |reader| {
                ops::guard_states::controls(reader, after.as_ref(), limit)
            })
            .await
    }
}

#[async_trait]
impl Policies for SqliteStore {
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
        self.write("keeping a policy", move |writer| {
            ops::policies::put_policy(writer, &tenant, id.clone(), (spec.clone(), &json), expected, now)
        })
        .await
    }

    async fn versions(&self, tenant: TenantId, id: PolicyId) -> Result<Vec<PolicyVersion>, Error> {
        self.read_around("reading a policy", move |reader, damaged| {
            ops::policies::policy(reader, &tenant, &id, damaged)
        })
        .await
    }

    async fn version(&self, tenant: TenantId, policy: PolicyRef) -> Result<Option<PolicyVersion>, Error> {
        self.readers
            .run("reading a policy version", move |reader| ops::policies::policy_version(reader, &tenant, &policy))
            .await
    }

    async fn list(&self, tenant: TenantId, after: Option<PolicyId>, limit: usize) -> Result<Vec<PolicyVersion>, Error> {
        self.read_around("listing policies", move |reader, damaged| {
            ops::policies::policies(reader, &tenant, after.as_ref(), limit, damaged)
        })
        .await
    }

    async fn delete(&self, tenant: TenantId, id: PolicyId, expected: Expected) -> Result<DeletePolicy, Error> {
        self.write("deleting a policy", move |writer| ops::policies::delete_policy(writer, &tenant, &id, expected))
            .await
    }
}

#[async_trait]
impl Blobs for SqliteStore {
    async fn adopt(&self, tenant: TenantId, fresh: BodyRef, now: Timestamp) -> Result<BodyRef, Error> {
        self.write("keeping a blob", move |writer| ops::blobs::adopt(writer, &tenant, fresh, now)).await
    }

    async fn find(&self, tenant: TenantId, hash: BodyHash) -> Result<Option<BodyRef>, Error> {
        self.readers.run("finding a blob", move |reader| ops::blobs::blob(reader, &tenant, hash)).await
    }

    async fn condemn(&self, adopted_before: Timestamp, after: Option<Blob>, limit: usize) -> Result<Condemned, Error> {
        self.write("condemning blobs", move |writer| ops::blobs::condemn(writer, adopted_before, after.as_ref(), limit))
            .await
    }

    async fn forget(&self, blobs: Vec<Blob>) -> Result<(), Error> {
        self.write("forgetting blobs", move |writer| ops::blobs::forget(writer, &blobs)).await
    }
}

#[async_trait]
impl Health for SqliteStore {
    async fn check(&self) -> Result<(), Error> {
        self.location.check()?;
        self.write("checking that the store can be written to", ops::check::check).await
    }

    async fn check_location(&self) -> Result<(), Error> {
        self.location.check()
    }

    async fn set_aside(&self, limit: usize) -> Result<SetAside, Error> {
        self.readers.run("finding what is set aside", move |reader| ops::set_aside::list(reader, limit)).await
    }

    fn commits(&self) -> Option<CommitCounts> {
        Some(self.writer.commits())
    }

    async fn died(&self) -> &'static str {
        tokio::select! {
            () = self.writer.died() => "writer",
            name = self.liveness.died() => name,
        }
    }
}

#[async_trait]
impl Records for SqliteStore {
    async fn reserve(&self, reservations: Vec<Reservation>, now: Timestamp) -> Result<Answers<Reserved>, Error> {
        let reservations: Vec<_> = reservations.into_iter().map(HashedReservation::new).collect();
        let doing = "reserving records";
        self.gather(doing, move |writer| {
            // For each run: the writer repeats a job whose commit has failed.
            let bodies = RefCell::new(BodyAllowance::default());
            answer_each(writer, doing, &reservations, |writer, reservation| {
                let answer = ops::records::reserve::reserve(writer, reservation, now)?;
                Ok(bodies.borrow_mut().limit(answer))
            })
        })
        .await
    }

    async fn change(&self, changes: Vec<RecordChange>, now: Timestamp) -> Result<Answers<RecordChanged>, Error> {
        let changes: Vec<_> = changes.into_iter().map(EncodedChange::new).collect::<Result<_, _>>()?;
        self.change_records("changing records", changes, move |writer, change| {
            ops::records::change::change(writer, change, now)
        })
        .await
    }

    async fn read(&self, key: RecordKey, now: Timestamp) -> Result<Option<Record>, Error> {
        let (hash, name) = (KeyHash::of_record(&key), key.name.clone());
        let candidates =
            self.gather("finding a record", move |writer| ops::records::find::candidates(writer, &key, hash)).await?;
        let Some(candidates) = candidates else { return Ok(None) };
        let row = self
            .readers
            .run("reading a record", move |reader| ops::records::find::among(&reader.connection, &candidates, &name))
            .await?;
        Ok(row.map(|row| row.record).filter(|record| record.is_present(now)))
    }

    async fn list(&self, query: RecordQuery) -> Result<RecordPage, Error> {
        self.read_around("listing records", move |reader, damaged| ops::records::list::list(reader, &query, damaged))
            .await
    }

    async fn delete(&self, key: RecordKey, seen: Option<SeenRecord>, now: Timestamp) -> Result<DeletedRecord, Error> {
        let hash = KeyHash::of_record(&key);
        self.gather("deleting a record", move |writer| ops::records::delete::delete(writer, &key, hash, seen, now))
            .await
    }

    async fn counts(
        &self,
        tenant: TenantId,
        after: Option<Operation>,
        limit: usize,
        most: u32,
    ) -> Result<Vec<OperationCounts>, Error> {
        self.readers
            .run("counting records", move |reader| {
                ops::records::counts::counts(reader, &tenant, after.as_ref(), limit, most)
            })
            .await
    }

    async fn clean(&self, now: Timestamp, limit: usize) -> Result<usize, Error> {
        self.gather("cleaning records", move |writer| ops::records::clean::clean(writer, now, limit)).await
    }
}
