//! A small world for the engine: paused time, seeded randomness, a scripted dependency, a store that can fail.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "each test binary uses its own part of the world")]
#![allow(clippy::unwrap_used, reason = "a world that cannot be built is a failed test")]
#![allow(clippy::disallowed_methods, reason = "this is where the engine's clock comes from")]

mod events;
mod failing_store;
mod log;
mod peers;
mod scripted;

pub use events::RecordedEvents;
pub use failing_store::{FailingStore, Hold};
pub use log::Log;
pub use peers::Peers;
pub use scripted::{Reply, Scripted, Wire};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use redrive_core::policy::Spec;
use redrive_core::request::Fingerprinter;
use redrive_core::{
    Class, Dependency, IdempotencyKey, Lane, PolicyId, Request, Status, Task, TaskId, TenantId, Timestamp,
};
use redrive_engine::clock::{Clock, Sleep};
use redrive_engine::entropy::Entropy;
use redrive_engine::{CommonClock, Handle, Options, Parts, ValidatedTask};
use redrive_store::{
    ClaimRequest, ClaimedTask, Expected, LaneRoom, LeaseTerms, Store, TaskDetail, memory::MemoryStore,
};

/// The start of every world, in epoch milliseconds.
pub const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// The default options without any guard.
pub fn unguarded() -> Options {
    Options { guards: redrive_core::guards::Settings::off(), ..Options::default() }
}

/// Tokio's paused time as a clock: it jumps to the next timer whenever everything waits.
pub struct PausedClock {
    started: tokio::time::Instant,
    ahead_millis: AtomicI64,
}

impl PausedClock {
    pub fn start() -> Arc<Self> {
        Arc::new(PausedClock { started: tokio::time::Instant::now(), ahead_millis: AtomicI64::new(0) })
    }

    /// Sets the wall clock this far ahead of the right time; elapsed time continues as before.
    pub fn set_ahead(&self, by: Duration) {
        self.set_off(by.as_millis() as i64);
    }

    /// Sets the wall clock off by this much, ahead of the right time or behind it.
    pub fn set_off(&self, millis: i64) {
        self.ahead_millis.store(millis, Ordering::Relaxed);
    }
}

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        let elapsed = self.started.elapsed().as_millis() as u64;
        Timestamp::from_millis(
            (START.as_millis() + elapsed).saturating_add_signed(self.ahead_millis.load(Ordering::Relaxed)),
        )
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn sleep(&self, wait: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(wait))
    }
}

/// How many worlds there are: each draws other bits, so that no two engines take each other for themselves.
static WORLDS: AtomicU64 = AtomicU64::new(0);

/// Always draws 0.5: full jitter halves every ceiling.
#[derive(Default)]
pub struct Half(AtomicU64);

impl Entropy for Half {
    fn bits(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    fn unit(&self) -> f64 {
        0.5
    }
}

pub struct World {
    pub clock: Arc<PausedClock>,
    pub store: Arc<FailingStore>,
    pub dependency: Arc<Scripted>,
    pub engine: Handle,
    pub events: Arc<RecordedEvents>,
    options: Options,
}

impl World {
    pub async fn new() -> Self {
        World::with(Options::default()).await
    }

    pub async fn with(options: Options) -> Self {
        World::over(Arc::new(FailingStore::new(MemoryStore::new())), PausedClock::start(), options).await
    }

    /// An engine over a store that may already hold tasks.
    pub async fn over(store: Arc<FailingStore>, clock: Arc<PausedClock>, options: Options) -> Self {
        let dependency = Arc::new(Scripted::new(clock.clone()));
        let events = Arc::<RecordedEvents>::default();
        let parts = Parts {
            clock: CommonClock::new(clock.clone(), &*store),
            entropy: Arc::new(Half(AtomicU64::new(1 + (WORLDS.fetch_add(1, Ordering::Relaxed) << 32)))),
            spawner: Arc::new(redrive_engine::spawner::TokioSpawner),
            store: store.clone(),
            transport: Arc::new(Wire(dependency.clone())),
            bodies: None,
            sinks: vec![events.clone()],
            alert_relay: None,
        };
        let engine = redrive_engine::start(parts, options.clone()).await.unwrap();
        let default = PolicyId::default_policy();
        engine.policies().put(tenant(), default, Spec::default(), Expected::Anything).await.unwrap();
        World { clock, store, dependency, engine, events, options }
    }

    /// A second engine over the same store, as after a restart.
    pub async fn restarted(&self) -> World {
        World::over(self.store.clone(), self.clock.clone(), self.options.clone()).await
    }

    pub async fn draft(&self, key: &str, overrides: Spec) -> ValidatedTask {
        let current = self.engine.policies().current(&tenant(), &PolicyId::default_policy()).await.unwrap().unwrap();
        let policy = Arc::new(current.with_overrides(&overrides).unwrap());
        let body = Bytes::from(format!("body of {key}"));
        let request = Request {
            target_url: "http://dependency.test/pay".into(),
            method: "POST".into(),
            headers: vec![("content-type".into(), "text/plain".into())],
            body: body.clone().into(),
            overrides: Some(overrides),
            labels: BTreeMap::new(),
        };
        ValidatedTask {
            lane: lane("dependency"),
            idempotency_key: IdempotencyKey::try_new(key).unwrap(),
            correlation_id: None,
            trace_parent: None,
            policy,
            fingerprint: Fingerprinter::default().part(&body).finish(),
            request: Arc::new(request),
            not_before: None,
        }
    }

    /// A task for this dependency.
    pub async fn submit_to(&self, dependency: &str, key: &str, overrides: Spec) -> Task {
        let mut draft = self.draft(key, overrides).await;
        draft.lane = lane(dependency);
        self.submit_draft(draft).await
    }

    /// A task that is due after `wait`.
    pub async fn submit_in(&self, wait: Duration, key: &str, overrides: Spec) -> Task {
        let mut draft = self.draft(key, overrides).await;
        draft.not_before = Some(self.clock.now().after(wait));
        self.submit_draft(draft).await
    }

    pub async fn submit(&self, key: &str, overrides: Spec) -> Task {
        let draft = self.draft(key, overrides).await;
        self.submit_draft(draft).await
    }

    pub async fn submit_draft(&self, draft: ValidatedTask) -> Task {
        match self.engine.submit(vec![draft]).await.unwrap().pop() {
            Some(redrive_store::Submitted::Created(task, _)) => *task,
            other => panic!("expected a new task, got {other:?}"),
        }
    }

    /// The task once it has ended, however long that takes.
    pub async fn ended(&self, id: TaskId) -> TaskDetail {
        let detail = self.engine.ended(tenant(), id, Duration::from_secs(100 * 24 * 3600)).await.unwrap().unwrap();
        assert!(detail.task.status.is_ended(), "{:?}", detail.task);
        detail
    }

    pub async fn task(&self, id: TaskId) -> Task {
        self.store.reads().task(tenant(), id).await.unwrap().unwrap().task
    }

    pub async fn attempts(&self, id: TaskId) -> Vec<redrive_core::Attempt> {
        self.store.reads().attempts(tenant(), id, 0, 1_000).await.unwrap().unwrap()
    }

    /// Milliseconds since the world began.
    pub fn millis(&self, at: Timestamp) -> u64 {
        at.since(START).as_millis() as u64
    }
}

pub fn tenant() -> TenantId {
    TenantId::default_tenant()
}

pub fn lane(dependency: &str) -> Lane {
    Lane { tenant: tenant(), dependency: Dependency::try_new(dependency).unwrap() }
}

/// Overrides with this many attempts.
pub fn attempts(max: u32) -> Spec {
    Spec { max_attempts: Some(max), ..Spec::default() }
}

/// Claims one task like a worker that dies right after, or is suspended.
pub async fn claim_as_another(store: &FailingStore, now: Timestamp) -> ClaimedTask {
    let room = |class| LaneRoom { lane: lane("dependency"), class, slots: 1, ahead: 0 };
    let lease = LeaseTerms { margin: Duration::from_secs(15) };
    let request = ClaimRequest { rooms: Class::ALL.map(room).into(), most: 1, due_by: now, lease, now };
    store.tasks().claim(request).await.unwrap().claimed.remove(0)
}

/// A world that stopped before its pending task was claimed, so that another worker can claim it.
pub async fn world_with_a_task_in_the_store(spec: Spec) -> (World, TaskId) {
    let world = World::new().await;
    world.store.share();
    world.engine.stop().await;
    let task = world.submit("k", spec).await;
    assert_eq!(task.status, Status::Pending, "a stopping engine starts nothing");
    (world, task.id)
}
