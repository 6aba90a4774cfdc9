//! Life: a sequence of calls of every kind, drawn from a seed. It is the same on every store.
//!
//! Each call depends on the seed and on the answers to the calls before. So a store in memory that runs the same life
//! shows what the store on disk must hold after each call.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use redrive_core::policy::Spec;
use redrive_core::{Class, Lane, PolicyId, Reason, Status, Task, TaskId, TenantId, Timestamp};
use redrive_sim::random::Random;
use redrive_store::conformance::samples::{
    at, end, id, lane, policy_id, request, retry, room, stored, succeed, task, tenant, unsent,
};
use redrive_store::{
    Blob, ClaimRequest, ClaimedTask, CleanFrom, Expected, PutPolicy, RaisedAlert, Settlement, Store, Submitted,
};

const TENANTS: [&str; 2] = ["acme", "globex"];
const DEPENDENCIES: [&str; 3] = ["billing", "https://hooks.example", "mail"];

/// A body of some pages: it overflows in the database, and a batch of such outgrows the page cache.
const LARGE_BODY: usize = 9_000;

/// The tenants of a life.
pub(crate) fn tenants() -> impl Iterator<Item = TenantId> {
    TENANTS.into_iter().map(tenant)
}

/// A life in progress.
#[derive(Debug)]
pub(crate) struct Life {
    random: Random,
    seconds: u64,
    calls: usize,
    made: u64,
    /// Due times in use: no two are the same, because the contract does not define the order of equal ones.
    taken: BTreeSet<Timestamp>,
    /// Claims, some of them stale by now.
    held: Vec<ClaimedTask>,
    /// Uploaded blobs, some of them condemned by now.
    blobs: Vec<Blob>,
    /// The current version of each tenant's default policy.
    versions: BTreeMap<TenantId, u32>,
}

impl Life {
    pub(crate) fn new(seed: u64) -> Self {
        Life {
            random: Random::stream(seed, 0),
            seconds: 0,
            calls: 0,
            made: 0,
            taken: BTreeSet::new(),
            held: Vec::new(),
            blobs: Vec::new(),
            versions: BTreeMap::new(),
        }
    }

    /// Makes the next call that changes something, and no other.
    pub(crate) async fn call(&mut self, store: &dyn Store) {
        self.calls += 1;
        self.seconds += self.random.within(1..=4);
        if let Some(new) = tenants().nth(self.calls - 1) {
            return self.put_default_policy(store, new).await;
        }
        match self.random.within(0..=99) {
            0..34 => self.submit(store).await,
            34..48 => self.claim(store).await,
            48..73 => self.settle(store).await,
            73..76 => self.cancel(store).await,
            76..79 => self.bring_forward(store).await,
            79..82 => self.replay(store).await,
            82..84 => self.announce(store).await,
            84..93 => self.clean(store).await,
            93..95 => {
                let tenant = self.some_tenant();
                self.put_default_policy(store, tenant).await;
            }
            95..96 => self.put_or_delete_spare_policy(store).await,
            96..98 => self.adopt_or_collect(store).await,
            98 => self.end_overdue(store).await,
            _ => self.rescue(store).await,
        }
    }

    async fn submit(&mut self, store: &dyn Store) {
        let mut batch = Vec::new();
        let size = if self.random.chance(0.08) { 25 } else { self.random.within(1..=3) };
        for _ in 0..size {
            self.made += 1;
            let tenant = self.some_tenant();
            let version = self.versions[&tenant];
            let mut sample = task(self.made).of(tenant.as_str()).to(self.random.pick::<&str>(&DEPENDENCIES));
            sample = sample.created(self.now()).label("n", &self.made.to_string()).policy("default", version);
            if self.random.chance(0.15) {
                sample = sample.key(&format!("key-{}", self.random.within(1..=self.made)));
            }
            if self.random.chance(0.15) {
                sample = sample.body(vec![b'x'; self.random.within(1..=LARGE_BODY as u64) as usize]);
            }
            let uploaded: Vec<_> = self.blobs.iter().filter(|blob| blob.tenant == tenant).collect();
            if !uploaded.is_empty() && self.random.chance(0.2) {
                sample = sample.stored(uploaded[self.random.below(uploaded.len())].body);
            }
            if self.random.chance(0.2) {
                sample = sample.deadline(self.some_time());
            }
            let due = self.some_time();
            sample = if self.random.chance(0.4) { sample.claimed(self.now()) } else { sample.due(due) };
            batch.push(sample.0);
        }
        let said = store.tasks().submit(batch.clone()).await.unwrap();
        for (new, submitted) in batch.into_iter().zip(said) {
            if let Submitted::Created(_, Some(lease)) = submitted {
                let mut task = new.task;
                (task.status, task.attempt_number) = (Status::InFlight, 1);
                self.held.push(ClaimedTask { task, request: new.request, lease });
            }
        }
    }

    /// Adds uploads, condemns blobs that no task refers to, and sometimes forgets them.
    async fn adopt_or_collect(&mut self, store: &dyn Store) {
        if self.random.chance(0.7) {
            let tenant = self.some_tenant();
            self.made += 1;
            let fresh = stored(&format!("content {}", self.random.within(1..=4)), self.made);
            let body = store.blobs().adopt(tenant.clone(), fresh, self.now()).await.unwrap();
            self.blobs.push(Blob { tenant, body });
            return;
        }
        let found = store.blobs().condemn(self.now(), None, 1_000).await.unwrap();
        if self.random.chance(0.5) {
            store.blobs().forget(found.blobs).await.unwrap();
        }
    }

    async fn claim(&mut self, store: &dyn Store) {
        let mut rooms = Vec::new();
        for (lane, class) in all_lanes().flat_map(|lane| Class::ALL.map(|class| (lane.clone(), class))) {
            let mut few = || self.random.within(0..=2) as usize;
            rooms.push(room(lane, class, few(), few()));
        }
        let due_by = self.now().after(Duration::from_millis(self.random.within(0..=50)));
        let request = ClaimRequest { due_by, ..request(rooms, self.now()) };
        self.held.extend(store.tasks().claim(request).await.unwrap().claimed);
    }

    async fn end_overdue(&mut self, store: &dyn Store) {
        let limit = self.random.within(1..=5) as usize;
        store.upkeep().end_overdue(self.now(), limit).await.unwrap();
    }

    async fn settle(&mut self, store: &dyn Store) {
        let mut ends = Vec::new();
        for _ in 0..=self.random.within(0..=5) {
            if self.held.is_empty() {
                break;
            }
            let at = self.random.below(self.held.len());
            let stays = self.random.chance(0.1);
            let claimed = if stays { self.held[at].clone() } else { self.held.swap_remove(at) };
            ends.push(self.some_end(&claimed));
        }
        store.tasks().settle(ends).await.unwrap();
    }

    fn some_end(&mut self, claimed: &ClaimedTask) -> Settlement {
        let (now, later) = (self.now(), self.some_time());
        match self.random.within(0..=19) {
            0..9 => succeed(claimed, now),
            9..15 => retry(claimed, now, later),
            15..18 => end(claimed, Status::Failed, Some(Reason::NotRetryable), now),
            _ => unsent(claimed, now, later),
        }
    }

    async fn cancel(&mut self, store: &dyn Store) {
        let (tenant, id) = (self.some_tenant(), self.some_task());
        store.tasks().cancel_one(tenant, id, self.now()).await.unwrap();
    }

    async fn bring_forward(&mut self, store: &dyn Store) {
        let (tenant, id) = (self.some_tenant(), self.some_task());
        store.tasks().bring_one_forward(tenant, id, self.now()).await.unwrap();
    }

    async fn replay(&mut self, store: &dyn Store) {
        let mut dead = store.upkeep().pending_alerts(Timestamp::MAX, 10_000).await.unwrap();
        dead.sort_by_key(|task| task.id);
        let (tenant, id) = match dead.first() {
            Some(task) => (task.lane.tenant.clone(), task.id),
            None => (self.some_tenant(), self.some_task()),
        };
        store.tasks().replay_one(tenant, id, self.now()).await.unwrap();
    }

    async fn announce(&mut self, store: &dyn Store) {
        let mut dead = store.upkeep().pending_alerts(Timestamp::MAX, 10_000).await.unwrap();
        dead.sort_by_key(|task| task.id);
        let announced = |task: Task| RaisedAlert { tenant: task.lane.tenant, id: task.id, run: task.run };
        store.upkeep().confirm_alerts(dead.into_iter().take(3).map(announced).collect()).await.unwrap();
    }

    /// One step of a pass; another call may do the next step.
    async fn clean(&mut self, store: &dyn Store) {
        let before = at(self.seconds.saturating_sub(self.random.within(0..=29)) * 1_000);
        let from = if self.random.chance(0.8) { CleanFrom::Start } else { CleanFrom::After(self.some_task()) };
        store.upkeep().clean(before, from, self.random.within(1..=80) as usize).await.unwrap();
    }

    async fn put_default_policy(&mut self, store: &dyn Store, tenant: TenantId) {
        let spec = Spec { max_attempts: Some(self.calls as u32), ..Spec::default() };
        let put =
            store.policies().put(tenant.clone(), PolicyId::default_policy(), spec, Expected::Anything, self.now());
        let (PutPolicy::Created(kept) | PutPolicy::Updated(kept)) = put.await.unwrap() else { panic!("not kept") };
        self.versions.insert(tenant, kept.version);
    }

    async fn put_or_delete_spare_policy(&mut self, store: &dyn Store) {
        let (tenant, spare) = (self.some_tenant(), policy_id("spare"));
        if self.random.chance(0.5) {
            let spec = Spec { max_attempts: Some(self.calls as u32), ..Spec::default() };
            store.policies().put(tenant, spare, spec, Expected::Anything, self.now()).await.unwrap();
        } else {
            store.policies().delete(tenant, spare, Expected::Anything).await.unwrap();
        }
    }

    /// Settles some of what is in flight with the token that is found. Expired or not, leases are equal here: on disk
    /// all of them have expired once the store was opened again.
    async fn rescue(&mut self, store: &dyn Store) {
        let mut found = store.upkeep().expired_leases(Timestamp::MAX, 10_000).await.unwrap();
        found.sort_by_key(|claimed| claimed.task.id);
        let mut ends = Vec::new();
        for claimed in found.iter().take(5) {
            let later = self.some_time();
            ends.push(retry(claimed, self.now(), later));
        }
        store.tasks().settle(ends).await.unwrap();
    }

    fn some_tenant(&mut self) -> TenantId {
        tenant(self.random.pick::<&str>(&TENANTS))
    }

    fn some_task(&mut self) -> TaskId {
        id(self.random.within(0..=self.made + 1))
    }

    /// Whole seconds, different for each call, so that a task that is brought forward has a due time of its own.
    fn now(&self) -> Timestamp {
        at(self.seconds * 1_000)
    }

    /// Somewhat earlier or later than now, and never the same twice.
    fn some_time(&mut self) -> Timestamp {
        let second = (self.seconds + self.random.within(0..=24)).saturating_sub(5);
        loop {
            let due = at(second * 1_000 + self.random.within(1..=999));
            if self.taken.insert(due) {
                return due;
            }
        }
    }
}

fn all_lanes() -> impl Iterator<Item = Lane> {
    TENANTS.into_iter().flat_map(|tenant| DEPENDENCIES.into_iter().map(move |dependency| lane(tenant, dependency)))
}
