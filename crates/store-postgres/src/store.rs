//! The contract, each call handed to its writers or run on a connection of its own.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use redrive_core::request::Fingerprint;
use redrive_core::task::PolicyRef;
use redrive_core::{
    Attempt, BodyHash, BodyRef, Class, IdempotencyKey, Lane, Policy, PolicyId, Status, Task, TaskId, TenantId,
    Timestamp, policy,
};
use redrive_store::{
    Announced, Blob, BroughtForward, Cancelled, ClaimRequest, Claimed, Claims, CleanFrom, Cleaned, Condemned, Counts,
    DeletePolicy, Departures, Error, Expected, LaneDue, NewTask, NodeId, Overdue, PolicyVersion, PutPolicy, Replay,
    SetAside, Settled, Settlement, Shared, Start, Store, Submitted, TaskDetail, TaskPage, TaskQuery, Vitals,
};
use tokio::task::JoinSet;

use crate::batch::{Batches, Pools, Work, Writing};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::fence::Fence;
use crate::floors::{Floors, Index};
use crate::news::News;
use crate::open::{OpenError, Ways, open};
use crate::ops;
use crate::ops::claim::Claimant;
use crate::ops::set_aside::Aside;
use crate::ops::settle::WaitsAgain;
use crate::options::Options;
use crate::pool::{Pool, call, read, transact};
use crate::take_back::{take_back_again_and_again, take_back_at_start};
use crate::upkeep::Upkeep;

/// A store in a PostgreSQL database that other processes use as well.
pub struct PostgresStore {
    pub(crate) pool: Pool,
    /// For what keeps the work going.
    pub(crate) going: Pool,
    /// For the writers.
    pools: Pools,
    pub(crate) node: NodeId,
    pub(crate) news: Arc<News>,
    pub(crate) aside: Arc<Aside>,
    floors: Arc<Floors>,
    pub(crate) fence: Fence,
    pub(crate) departures: Mutex<Departures>,
    /// The last submission that failed found no space on the disk.
    is_full: AtomicBool,
    upkeep: Upkeep,
    /// Gone once the store is closed.
    writers: Mutex<Option<Arc<Writers>>>,
    writing: tokio::sync::Mutex<Writing>,
    /// What goes on beside the calls: it ends with the store.
    background: tokio::sync::Mutex<JoinSet<()>>,
    vitals: Vitals,
}

struct Writers {
    submits: Batches<Submits>,
    settles: Batches<Settles>,
}

struct Submits {
    node: NodeId,
    floors: Arc<Floors>,
}

impl Work for Submits {
    type Item = ops::submit::Prepared;
    type Answer = ops::submit::Answer;
    const DOING: &'static str = "submitting tasks";
    const CAN_REPEAT: bool = true;

    fn size(item: &Self::Item) -> usize {
        item.size()
    }

    async fn run(&self, connection: &Connection, items: &[&Self::Item]) -> Result<Vec<Self::Answer>, Failure> {
        let writing = self.floors.writing();
        let outcome = ops::submit::submit(connection, self.node.as_str(), items).await;
        for (item, answer) in items.iter().zip(outcome.iter().flatten()) {
            if let Ok(Submitted::Created(None)) = answer {
                let (lane, due) = due_at_once(&item.new);
                self.floors.note(&lane, Class::First, due);
                self.floors.note_deadline(item.new.task.deadline_at);
            }
        }
        writing.came_to(&outcome);
        outcome
    }
}

struct Settles {
    floors: Arc<Floors>,
}

impl Work for Settles {
    type Item = ops::settle::Prepared;
    type Answer = Settled;
    const DOING: &'static str = "settling attempts";
    /// What was settled already would look like a lease that was lost: the caller knows better what that means.
    const CAN_REPEAT: bool = false;

    fn size(item: &Self::Item) -> usize {
        item.size()
    }

    async fn run(&self, connection: &Connection, items: &[&Self::Item]) -> Result<Vec<Settled>, Failure> {
        let writing = self.floors.writing();
        let outcome = ops::settle::settle(connection, items).await;
        writing.came_to(&outcome);
        let (answers, waiting) = outcome?;
        for WaitsAgain { due, deadline } in waiting {
            self.floors.note_all(&[due]);
            self.floors.note_deadline(deadline);
        }
        // One that was in doubt may have been settled all the same, and wait.
        if answers.contains(&Settled::LeaseLost) {
            self.floors.forget_all();
        }
        Ok(answers)
    }
}

impl PostgresStore {
    /// Opens the store and, unless told otherwise, brings its schema up to date. Needs tokio's runtime.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let Ways { pool, going, writers: pools, listen } = open(&options).await?;
        let node = options.node.clone();
        let floors = Floors::new(options.floors_last.clone());
        let news = News::new(node.as_str(), floors.clone());
        let aside = Arc::new(Aside::new(node.as_str()));
        take_back_at_start(&pool).await;
        let upkeep = Upkeep::default();
        let mut background = JoinSet::new();
        let vitals = Vitals::default();
        background.spawn(vitals.clone().watch("news", news.clone().say(pool.clone())));
        if let Some(address) = listen {
            background.spawn(vitals.clone().watch("listener", news.clone().listen(address)));
        }
        background.spawn(vitals.clone().watch("upkeep", upkeep.clone().run(pool.clone(), options.upkeep_after)));
        let taking_back =
            take_back_again_and_again(pool.clone(), options.take_back_every, news.clone(), floors.clone());
        background.spawn(vitals.clone().watch("take back", taking_back));
        let mut writing = Writing::new();
        let submits = Submits { node: node.clone(), floors: floors.clone() };
        let settles = Settles { floors: floors.clone() };
        let writers = Arc::new(Writers {
            submits: Batches::start(&pools, options.writers, submits, &mut writing, &vitals),
            settles: Batches::start(&pools, options.writers, settles, &mut writing, &vitals),
        });
        Ok(PostgresStore {
            pool,
            going,
            pools,
            node,
            news,
            aside,
            floors,
            fence: Fence::default(),
            departures: Mutex::default(),
            is_full: AtomicBool::new(false),
            upkeep,
            writers: Mutex::new(Some(writers)),
            writing: tokio::sync::Mutex::new(writing),
            background: tokio::sync::Mutex::new(background),
            vitals,
        })
    }

    /// Who claims here.
    pub(crate) fn claimant(&self) -> Claimant<'_> {
        Claimant { node: self.node.as_str(), aside: &self.aside }
    }

    fn writers(&self) -> Result<Arc<Writers>, Error> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or(Error::Closed)
    }

    /// Tells the others of what a claim has left, though it is due: there is more of it than this process gets done.
    fn tell_of_left(&self, lanes: &[LaneDue], due_by: Timestamp) {
        let is_due = |lane: &&LaneDue| lane.next_due.is_some_and(|due| due <= due_by);
        for lane in lanes.iter().filter(is_due) {
            self.news.tell(&lane.lane, lane.class, lane.next_due.unwrap_or(due_by));
        }
    }

    /// Tells the others of what is due and was not claimed in the same transaction.
    fn tell_of_unclaimed(&self, due: Vec<(Lane, Timestamp)>, answers: &[Submitted]) {
        for ((lane, at), answer) in due.into_iter().zip(answers) {
            if *answer == Submitted::Created(None) {
                self.news.tell(&lane, Class::First, at);
            }
        }
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("node", &self.node).finish_non_exhaustive()
    }
}

/// The lane of a task that is due when it is submitted, and since when.
fn due_at_once(new: &NewTask) -> (Lane, Timestamp) {
    (new.task.lane.clone(), new.task.next_attempt_at.unwrap_or(new.task.created_at))
}

#[async_trait]
impl Store for PostgresStore {
    async fn submit(&self, tasks: Vec<NewTask>) -> Result<Vec<Submitted>, Error> {
        let writers = self.writers()?;
        self.fence.check()?;
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        // Most start claimed, and there is nothing to tell.
        let is_pending = tasks.iter().any(|new| matches!(new.start, Start::Pending));
        let due: Vec<_> = if is_pending { tasks.iter().map(due_at_once).collect() } else { Vec::new() };
        let tasks = tasks.into_iter().map(ops::submit::Prepared::new).collect::<Result<_, _>>()?;
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
        let claims = call!(self.going, |connection| ops::claim::claim(connection, claimant, &look, &request))
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
        let ends = ends.into_iter().map(ops::settle::Prepared::new).collect::<Result<_, _>>()?;
        let settled = writers.settles.call(ends).await?;
        self.upkeep.written();
        Ok(settled)
    }

    async fn cancel(&self, tenant: TenantId, id: TaskId, now: Timestamp) -> Result<Cancelled, Error> {
        let cancelled = transact!(self.pool, |connection| ops::cancel::cancel(connection, &tenant, id, now))
            .map_err(|failure| failure.into_error("cancelling a task"))?;
        if matches!(&cancelled, Cancelled::Done(task) if task.status == Status::InFlight) {
            self.news.tell_cancel(tenant, id);
        }
        Ok(cancelled)
    }

    async fn bring_forward(&self, tenant: TenantId, id: TaskId, now: Timestamp) -> Result<BroughtForward, Error> {
        let writing = self.floors.writing();
        let outcome =
            transact!(self.pool, |connection| ops::bring_forward::bring_forward(connection, &tenant, id, now));
        writing.came_to(&outcome);
        let brought = outcome.map_err(|failure| failure.into_error("bringing a task forward"))?;
        if let BroughtForward::Done(task) = &brought {
            self.floors.note(&task.lane, task.class(), task.next_attempt_at.unwrap_or(now));
            self.news.tell(&task.lane, task.class(), now);
        }
        Ok(brought)
    }

    async fn replay(&self, tenant: TenantId, id: TaskId, now: Timestamp) -> Result<Replay, Error> {
        self.fence.check()?;
        let writing = self.floors.writing();
        let outcome = transact!(self.pool, |connection| ops::replay::replay(connection, &tenant, id, now));
        writing.came_to(&outcome);
        let replayed = outcome.map_err(|failure| failure.into_error("replaying a dead letter"))?;
        if let Replay::Done(task) = &replayed {
            self.floors.note(&task.lane, task.class(), now);
            self.floors.note_deadline(task.deadline_at);
            self.news.tell(&task.lane, task.class(), now);
        }
        Ok(replayed)
    }

    async fn unannounced(&self, ended_before: Timestamp, limit: usize) -> Result<Vec<Task>, Error> {
        read!(self.pool, |connection| ops::announce::unannounced(connection, &self.aside, ended_before, limit))
            .map_err(|failure| failure.into_error("finding unannounced dead letters"))
    }

    async fn announced(&self, dead_letters: Vec<Announced>) -> Result<(), Error> {
        call!(self.pools.apart, |connection| ops::announce::announced(connection, &dead_letters))
            .map_err(|failure| failure.into_error("confirming alerts"))
    }

    async fn expired(&self, now: Timestamp, limit: usize) -> Result<Vec<Claimed>, Error> {
        read!(self.going, |connection| ops::expired::expired(connection, &self.aside, &self.floors, now, limit))
            .map_err(|failure| failure.into_error("finding expired leases"))
    }

    async fn end_overdue(&self, now: Timestamp, limit: usize) -> Result<Overdue, Error> {
        self.writers()?;
        self.fence.check()?;
        let overdue = call!(self.going, |connection| ops::end_overdue::end_overdue(
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

    async fn pending_lanes(&self, after: Option<(Lane, Class)>, limit: usize) -> Result<Vec<LaneDue>, Error> {
        let lanes = read!(self.going, |connection| ops::pending_lanes::pending_lanes(
            connection,
            &self.aside,
            after.as_ref(),
            limit
        ))
        .map_err(|failure| failure.into_error("finding pending lanes"))?;
        self.floors.note_all(&lanes);
        Ok(lanes)
    }

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

    async fn tasks(&self, query: TaskQuery) -> Result<TaskPage, Error> {
        read!(self.pool, |connection| ops::list::tasks(connection, &self.aside, &query))
            .map_err(|failure| failure.into_error("listing tasks"))
    }

    async fn counts(&self, tenant: TenantId) -> Result<Counts, Error> {
        read!(self.pool, |connection| ops::counts::counts(connection, &tenant))
            .map_err(|failure| failure.into_error("counting tasks"))
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
        let resolved = Policy::resolve(&spec).ok();
        let put = ops::policies::Put { tenant, id, spec, json, resolved, expected, now };
        transact!(self.pool, |connection| ops::policies::put(connection, &put))
            .map_err(|failure| failure.into_error("keeping a policy"))
    }

    async fn policy(&self, tenant: TenantId, id: PolicyId) -> Result<Vec<PolicyVersion>, Error> {
        read!(self.pool, |connection| ops::policies::versions(connection, &self.aside, &tenant, &id))
            .map_err(|failure| failure.into_error("reading a policy"))
    }

    async fn policy_version(&self, tenant: TenantId, policy: PolicyRef) -> Result<Option<PolicyVersion>, Error> {
        let (tenant, id, version) = (tenant.as_str(), policy.id.as_str(), i64::from(policy.version));
        read!(self.pool, |connection| ops::policies::read_version(connection, tenant, id, version))
            .map_err(|failure| failure.into_error("reading a policy version"))
    }

    async fn policies(
        &self,
        tenant: TenantId,
        after: Option<PolicyId>,
        limit: usize,
    ) -> Result<Vec<PolicyVersion>, Error> {
        read!(self.pool, |connection| ops::policies::list(connection, &self.aside, &tenant, after.as_ref(), limit))
            .map_err(|failure| failure.into_error("listing policies"))
    }

    async fn delete_policy(&self, tenant: TenantId, id: PolicyId, expected: Expected) -> Result<DeletePolicy, Error> {
        transact!(self.pool, |connection| ops::policies::delete(connection, &tenant, &id, expected))
            .map_err(|failure| failure.into_error("deleting a policy"))
    }

    async fn clean(&self, ended_before: Timestamp, from: CleanFrom, limit: usize) -> Result<Cleaned, Error> {
        self.fence.check()?;
        transact!(self.pool, |connection| ops::clean::clean(connection, &self.aside, ended_before, from, limit))
            .map_err(|failure| failure.into_error("cleaning"))
    }

    async fn adopt_blob(&self, tenant: TenantId, fresh: BodyRef, now: Timestamp) -> Result<BodyRef, Error> {
        call!(self.pool, |connection| ops::blobs::adopt(connection, &tenant, fresh, now))
            .map_err(|failure| failure.into_error("adopting a blob"))
    }

    async fn blob(&self, tenant: TenantId, hash: BodyHash) -> Result<Option<BodyRef>, Error> {
        read!(self.pool, |connection| ops::blobs::kept(connection, &tenant, hash))
            .map_err(|failure| failure.into_error("finding a blob"))
    }

    async fn condemn_blobs(
        &self,
        adopted_before: Timestamp,
        after: Option<Blob>,
        limit: usize,
    ) -> Result<Condemned, Error> {
        transact!(self.pool, |connection| ops::blobs::condemn(
            connection,
            &self.aside,
            adopted_before,
            after.as_ref(),
            limit
        ))
        .map_err(|failure| failure.into_error("condemning blobs"))
    }

    async fn forget_blobs(&self, blobs: Vec<Blob>) -> Result<(), Error> {
        call!(self.pools.apart, |connection| ops::blobs::forget(connection, &blobs))
            .map_err(|failure| failure.into_error("forgetting blobs"))
    }

    async fn set_aside(&self, limit: usize) -> Result<SetAside, Error> {
        read!(self.pool, |connection| ops::set_aside::list(connection, limit))
            .map_err(|failure| failure.into_error("finding what is set aside"))
    }

    async fn died(&self) -> &'static str {
        self.vitals.died().await
    }

    async fn newest_task(&self) -> Result<Option<TaskId>, Error> {
        read!(self.pool, |connection| ops::newest_task::newest_task(connection))
            .map_err(|failure| failure.into_error("finding the newest task"))
    }

    async fn check(&self) -> Result<(), Error> {
        // On the way of submissions, which tells whether these can be written, and takes no connection from anything else.
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

    fn is_exclusive(&self) -> bool {
        false
    }

    fn shared(&self) -> Option<&dyn Shared> {
        Some(self)
    }

    async fn close(&self) {
        let writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(writers);
        let mut writing = self.writing.lock().await;
        while writing.join_next().await.is_some() {}
        self.background.lock().await.shutdown().await;
        self.pools.close();
        self.going.close();
        self.pool.close();
    }
}
