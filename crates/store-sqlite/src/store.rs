//! The contract, each call handed to the writer or to a reader.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use redrive_core::request::Fingerprint;
use redrive_core::task::PolicyRef;
use redrive_core::{
    Attempt, BodyHash, BodyRef, Class, IdempotencyKey, Lane, PolicyId, Task, TaskId, TenantId, Timestamp, policy,
};
use redrive_store::group_commit::GroupCommit;
use redrive_store::{
    Announced, Blob, BroughtForward, Cancelled, ClaimRequest, Claimed, Claims, CleanFrom, Cleaned, Condemned, Counts,
    DeletePolicy, Error, Expected, LaneDue, NewTask, Overdue, PolicyVersion, PutPolicy, Replay, SetAside, Settled,
    Settlement, Store, Submitted, TaskDetail, TaskPage, TaskQuery, Vitals,
};

use crate::failure::Failure;
use crate::keys::KeyHash;
use crate::open::{OpenError, Parts, open};
use crate::ops;
use crate::ops::by_key::Owner;
use crate::ops::set_aside::{Damaged, set_aside};
use crate::options::Options;
use crate::place::Place;
use crate::readers::{Reader, Readers};
use crate::writer::Writer;

/// A store in one directory of this machine, owned by this process.
pub struct SqliteStore {
    writer: GroupCommit<Writer>,
    readers: Readers,
    vitals: Vitals,
    place: Place,
}

impl SqliteStore {
    /// Opens the store, or makes it if the directory has none. Blocks while it reads the newest idempotency keys.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let Parts { writer, readers, vitals, place } = open(&options)?;
        Ok(SqliteStore { writer, readers, vitals, place })
    }

    /// Runs a job that finds all rows of its transaction written.
    async fn write<R: Send + 'static>(
        &self,
        doing: &'static str,
        mut job: impl FnMut(&mut Writer) -> Result<R, Failure> + Send + 'static,
    ) -> Result<R, Error> {
        self.gather(doing, move |writer| {
            writer.write_rows()?;
            job(writer)
        })
        .await
    }

    /// Reads, and sets aside what could not be understood. Then it is read again, because that may have stood before others.
    async fn read_around<R: Send + 'static>(
        &self,
        doing: &'static str,
        read: impl Fn(&mut Reader, &mut Vec<Damaged>) -> Result<R, Failure> + Clone + Send + 'static,
    ) -> Result<R, Error> {
        loop {
            let read = read.clone();
            let look = move |reader: &mut Reader| {
                let mut damaged = Vec::new();
                read(reader, &mut damaged).map(|found| (found, damaged))
            };
            let (found, damaged) = self.readers.run(doing, look).await?;
            if damaged.is_empty() {
                return Ok(found);
            }
            let aside = self.write("setting rows aside", move |writer| set_aside(&writer.connection, &damaged)).await;
            match aside {
                Ok(0) => return Ok(found),
                Ok(_) => {}
                // A full disk, for example: what can be understood is still found.
                Err(error) => {
                    tracing::warn!(%error, "rows that cannot be understood could not be set aside");
                    return Ok(found);
                }
            }
        }
    }

    /// Runs a job that knows what to do about rows that are not written yet.
    async fn gather<R: Send + 'static>(
        &self,
        doing: &'static str,
        mut job: impl FnMut(&mut Writer) -> Result<R, Failure> + Send + 'static,
    ) -> Result<R, Error> {
        self.writer.run(move |writer| job(writer).map_err(|failure| failure.into_error(doing))).await
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("writer", &self.writer).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn submit(&self, tasks: Vec<NewTask>) -> Result<Vec<Submitted>, Error> {
        let tasks: Arc<[_]> = tasks.into_iter().map(ops::submit::Prepared::new).collect::<Result<_, _>>()?;
        self.gather("submitting tasks", move |writer| ops::submit::submit(writer, &tasks)).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claims, Error> {
        self.write("claiming tasks", move |writer| ops::claim::claim(writer, &request)).await
    }

    async fn settle(&self, ends: Vec<Settlement>) -> Result<Vec<Settled>, Error> {
        let ends: Arc<[_]> = ends.into_iter().map(ops::settle::Prepared::new).collect::<Result<_, _>>()?;
        self.gather("settling attempts", move |writer| ops::settle::settle(writer, &ends)).await
    }

    async fn cancel(&self, tenant: TenantId, id: TaskId, now: Timestamp) -> Result<Cancelled, Error> {
        self.write("cancelling a task", move |writer| ops::cancel::cancel(writer, &tenant, id, now)).await
    }

    async fn bring_forward(&self, tenant: TenantId, id: TaskId, now: Timestamp) -> Result<BroughtForward, Error> {
        self.write("bringing a task forward", move |writer| ops::bring_forward::bring_forward(writer, &tenant, id, now))
            .await
    }

    async fn replay(&self, tenant: TenantId, id: TaskId, now: Timestamp) -> Result<Replay, Error> {
        self.write("replaying a dead letter", move |writer| ops::replay::replay(writer, &tenant, id, now)).await
    }

    async fn unannounced(&self, ended_before: Timestamp, limit: usize) -> Result<Vec<Task>, Error> {
        self.read_around("finding unannounced dead letters", move |reader, damaged| {
            ops::announce::unannounced(reader, ended_before, limit, damaged)
        })
        .await
    }

    async fn announced(&self, dead_letters: Vec<Announced>) -> Result<(), Error> {
        self.write("confirming alerts", move |writer| ops::announce::announced(writer, &dead_letters)).await
    }

    async fn expired(&self, now: Timestamp, limit: usize) -> Result<Vec<Claimed>, Error> {
        self.read_around("finding expired leases", move |reader, damaged| {
            ops::expired::expired(reader, now, limit, damaged)
        })
        .await
    }

    async fn end_overdue(&self, now: Timestamp, limit: usize) -> Result<Overdue, Error> {
        self.write("ending overdue tasks", move |writer| ops::end_overdue::end_overdue(writer, now, limit)).await
    }

    async fn pending_lanes(&self, after: Option<(Lane, Class)>, limit: usize) -> Result<Vec<LaneDue>, Error> {
        self.read_around("finding pending lanes", move |reader, damaged| {
            ops::pending_lanes::pending_lanes(reader, after.as_ref(), limit, damaged)
        })
        .await
    }

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

    async fn tasks(&self, query: TaskQuery) -> Result<TaskPage, Error> {
        self.read_around("listing tasks", move |reader, damaged| ops::list::tasks(reader, &query, damaged)).await
    }

    async fn counts(&self, tenant: TenantId) -> Result<Counts, Error> {
        self.readers.run("counting tasks", move |reader| ops::counts::counts(reader, &tenant)).await
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

    async fn put_policy(
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

    async fn policy(&self, tenant: TenantId, id: PolicyId) -> Result<Vec<PolicyVersion>, Error> {
        self.read_around("reading a policy", move |reader, damaged| {
            ops::policies::policy(reader, &tenant, &id, damaged)
        })
        .await
    }

    async fn policy_version(&self, tenant: TenantId, policy: PolicyRef) -> Result<Option<PolicyVersion>, Error> {
        self.readers
            .run("reading a policy version", move |reader| ops::policies::policy_version(reader, &tenant, &policy))
            .await
    }

    async fn policies(
        &self,
        tenant: TenantId,
        after: Option<PolicyId>,
        limit: usize,
    ) -> Result<Vec<PolicyVersion>, Error> {
        self.read_around("listing policies", move |reader, damaged| {
            ops::policies::policies(reader, &tenant, after.as_ref(), limit, damaged)
        })
        .await
    }

    async fn delete_policy(&self, tenant: TenantId, id: PolicyId, expected: Expected) -> Result<DeletePolicy, Error> {
        self.write("deleting a policy", move |writer| ops::policies::delete_policy(writer, &tenant, &id, expected))
            .await
    }

    async fn clean(&self, ended_before: Timestamp, from: CleanFrom, limit: usize) -> Result<Cleaned, Error> {
        self.write("cleaning", move |writer| ops::clean::clean(writer, ended_before, from, limit)).await
    }

    async fn adopt_blob(&self, tenant: TenantId, fresh: BodyRef, now: Timestamp) -> Result<BodyRef, Error> {
        self.write("keeping a blob", move |writer| ops::blobs::adopt(writer, &tenant, fresh, now)).await
    }

    async fn blob(&self, tenant: TenantId, hash: BodyHash) -> Result<Option<BodyRef>, Error> {
        self.readers.run("finding a blob", move |reader| ops::blobs::blob(reader, &tenant, hash)).await
    }

    async fn condemn_blobs(
        &self,
        adopted_before: Timestamp,
        after: Option<Blob>,
        limit: usize,
    ) -> Result<Condemned, Error> {
        self.write("condemning blobs", move |writer| ops::blobs::condemn(writer, adopted_before, after.as_ref(), limit))
            .await
    }

    async fn forget_blobs(&self, blobs: Vec<Blob>) -> Result<(), Error> {
        self.write("forgetting blobs", move |writer| ops::blobs::forget(writer, &blobs)).await
    }

    async fn set_aside(&self, limit: usize) -> Result<SetAside, Error> {
        self.readers.run("finding what is set aside", move |reader| ops::set_aside::list(reader, limit)).await
    }

    async fn died(&self) -> &'static str {
        tokio::select! {
            () = self.writer.died() => "writer",
            name = self.vitals.died() => name,
        }
    }

    async fn newest_task(&self) -> Result<Option<TaskId>, Error> {
        self.readers.run("finding the newest task", ops::newest_task::newest_task).await
    }

    async fn check_place(&self) -> Result<(), Error> {
        self.place.check()
    }

    async fn check(&self) -> Result<(), Error> {
        self.place.check()?;
        self.write("checking that the store can be written to", ops::check::check).await
    }

    /// The directory's lock keeps others out.
    fn is_exclusive(&self) -> bool {
        true
    }

    async fn close(&self) {
        // Readers first: the last checkpoint needs the log to itself.
        self.readers.close().await;
        self.writer.close().await;
    }
}
