//! The engine and the operations, in one process, without time: no submitted task ever gets an answer.
//!
//! Each input has a world of its own, so that its result cannot depend on the inputs before it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redrive_core::policy::Spec;
use redrive_core::{PolicyId, TenantId, Timestamp};
use redrive_engine::clock::{Clock, Sleep};
use redrive_engine::entropy::Entropy;
use redrive_engine::spawner::TokioSpawner;
use redrive_engine::transport::{Outbound, Sending, Transport};
use redrive_engine::{CommonClock, Options, Parts};
use redrive_server::{App, Caller};
use redrive_store::{Expected, MemoryStore};

/// The current time, always: 2023-11-14T22:13:20Z.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// The operations and their caller.
pub(crate) struct World {
    pub(crate) app: Arc<App>,
    pub(crate) caller: Caller,
}

impl World {
    /// A world with the default policy and nothing else.
    pub(crate) async fn start() -> World {
        let store = Arc::new(MemoryStore::new());
        let parts = Parts {
            clock: CommonClock::new(Arc::new(Still), &*store),
            entropy: Arc::new(Counting::default()),
            spawner: Arc::new(TokioSpawner),
            store,
            transport: Arc::new(Silent),
            bodies: None,
            sinks: Vec::new(),
            alert_relay: None,
        };
        let engine = redrive_engine::start(parts, Options::default()).await.expect("the engine starts");
        let tenant = TenantId::default_tenant();
        let put = engine.policies().put(tenant.clone(), PolicyId::default_policy(), Spec::default(), Expected::Absent);
        put.await.expect("the default policy is kept");
        World { app: Arc::new(App::new(engine)), caller: Caller::local(tenant) }
    }
}

/// Runs `work` on a runtime of its own; everything that it started ends with it.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(work)
}

/// A clock that never advances.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        NOW
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, wait: Duration) -> Sleep {
        if wait.is_zero() { Box::pin(std::future::ready(())) } else { Box::pin(std::future::pending()) }
    }
}

/// Numbers that differ from each other and are the same in every run.
#[derive(Default)]
struct Counting(AtomicU64);

impl Entropy for Counting {
    fn bits(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// A transport that sends nothing and never answers.
struct Silent;

impl Transport for Silent {
    fn send(&self, _: Outbound) -> Sending {
        Box::pin(std::future::pending())
    }
}
