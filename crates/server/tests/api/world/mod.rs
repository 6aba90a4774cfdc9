//! What the tests stand on: a server, its clock, its target, and a caller.

mod caller;
mod clock;
mod entropy;
mod receiver;
mod store;
mod target;

pub(crate) use caller::{Answer, Ask, Connection};
pub(crate) use clock::{ManualClock, START};
pub(crate) use entropy::Countable;
pub(crate) use receiver::{RECEIVER, Received, Receiver};
pub(crate) use store::{LostAnswer, TestStore};
pub(crate) use target::{Plan, ScriptedTarget, answer};

use std::net::SocketAddr;
use std::sync::Arc;

use redrive_blobs::{Blobs, Credentials, Location};
use redrive_core::policy::Spec;
use redrive_core::{PolicyId, TenantId};
use redrive_engine::bodies::Bodies;
use redrive_engine::spawner::TokioSpawner;
use redrive_engine::transport::Transport;
use redrive_engine::{AlertRelay, CommonClock, Handle, Parts};
use redrive_server::alerts::{self, Alerts};
use redrive_server::metrics::Metrics;
use redrive_server::wire::Secrets;
use redrive_server::{App, HealthWindows, Limits, LiveEvents, Standard, idempotency, live_events, rest};
use redrive_store::Expected;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The name of the process in the list of nodes.
pub(crate) const NODE: &str = "node-1";

/// A running service.
pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) entropy: Arc<Countable>,
    pub(crate) target: Arc<ScriptedTarget>,
    pub(crate) engine: Handle,
    pub(crate) store: Arc<TestStore>,
    /// The context of the operations that the server calls.
    pub(crate) app: Arc<App>,
    /// What requests and answers hold.
    pub(crate) memory: Arc<rest::Memory>,
    stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<Result<(), rest::Error>>,
    /// The loop that tells the sinks of alerts.
    notifier: JoinHandle<()>,
}

/// How a world is made.
pub(crate) struct Setup {
    pub(crate) limits: Limits,
    pub(crate) options: rest::Options,
    pub(crate) standard: Standard,
    pub(crate) idempotency: idempotency::Settings,
    pub(crate) alerts: alerts::Settings,
    pub(crate) engine: redrive_engine::Options,
    /// The world before, whose store, clock and ids it goes on with.
    pub(crate) before: Option<Before>,
    /// How many events it keeps; none if they are off.
    pub(crate) events: Option<usize>,
    /// Whether it was told where to keep large bodies.
    pub(crate) keeps_bodies: bool,
    /// Whether other processes may use the store.
    pub(crate) is_shared: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            limits: Limits::default(),
            options: rest::Options::default(),
            standard: Standard::Off,
            idempotency: idempotency::Settings::default(),
            alerts: alerts::Settings::default(),
            engine: redrive_engine::Options::default(),
            before: None,
            events: Some(live_events::DEFAULT_KEPT),
            keeps_bodies: true,
            is_shared: false,
        }
    }
}

/// What outlives a process.
pub(crate) struct Before {
    store: Arc<TestStore>,
    clock: Arc<ManualClock>,
    entropy: Arc<Countable>,
}

impl World {
    pub(crate) async fn start() -> World {
        World::of(Setup::default()).await
    }

    pub(crate) async fn of(setup: Setup) -> World {
        let target = Arc::new(ScriptedTarget::default());
        World::build(setup, target.clone(), target).await
    }

    pub(crate) async fn with(limits: Limits, options: rest::Options) -> World {
        World::of(Setup { limits, options, ..Setup::default() }).await
    }

    /// One that tells sinks of alerts, and their receiver.
    pub(crate) async fn with_alerts(alerts: alerts::Settings) -> (World, Arc<Receiver>) {
        World::with_receiver(Setup { alerts, ..Setup::default() }).await
    }

    /// One whose notifications arrive at a receiver.
    pub(crate) async fn with_receiver(setup: Setup) -> (World, Arc<Receiver>) {
        let target = Arc::new(ScriptedTarget::default());
        let receiver = Receiver::new(target.clone());
        (World::build(setup, receiver.clone(), target).await, receiver)
    }

    /// Ends the loop that tells of alerts, as a crash does, and returns what a process after this one finds.
    pub(crate) fn crash_notifier(&self) -> Before {
        self.notifier.abort();
        Before { store: self.store.clone(), clock: self.clock.clone(), entropy: self.entropy.clone() }
    }

    /// One that was not told where to keep large bodies.
    pub(crate) async fn without_bodies() -> World {
        World::of(Setup { keeps_bodies: false, ..Setup::default() }).await
    }

    /// One that looks at the retry standard.
    pub(crate) async fn with_standard(standard: Standard) -> World {
        World::of(Setup { standard, ..Setup::default() }).await
    }

    pub(crate) async fn with_transport(
        limits: Limits,
        options: rest::Options,
        transport: Arc<dyn Transport>,
        target: Arc<ScriptedTarget>,
    ) -> World {
        World::build(Setup { limits, options, ..Setup::default() }, transport, target).await
    }

    async fn build(setup: Setup, transport: Arc<dyn Transport>, target: Arc<ScriptedTarget>) -> World {
        let Setup { limits, options, standard, idempotency, alerts, engine, before, events, keeps_bodies, is_shared } =
            setup;
        let Before { store, clock, entropy } = before.unwrap_or_else(|| {
            let clock = Arc::new(ManualClock::default());
            Before { store: TestStore::new(&clock, is_shared), clock, entropy: Arc::default() }
        });
        let known = redrive_blobs::Parts { store: store.clone(), clock: clock.clone(), entropy: entropy.clone() };
        let bodies = Blobs::open(&Location::Memory, &Credentials::default(), known).unwrap();
        let (metrics, health) = (Arc::new(Metrics::default()), Arc::new(HealthWindows::default()));
        let alerts = Alerts::new(alerts);
        let common_clock = CommonClock::new(clock.clone(), &*store);
        let live_events = match events {
            Some(kept) => LiveEvents::new(kept, common_clock.clone(), &*entropy),
            None => LiveEvents::off(),
        };
        let parts = Parts {
            clock: common_clock,
            entropy: entropy.clone(),
            spawner: Arc::new(TokioSpawner),
            store: store.clone(),
            transport,
            bodies: keeps_bodies.then(|| Arc::new(bodies) as Arc<dyn Bodies>),
            sinks: vec![metrics.clone(), health.clone(), alerts.clone(), live_events.clone()],
            alert_relay: alerts.relays().then(|| alerts.clone() as Arc<dyn AlertRelay>),
        };
        let engine = redrive_engine::start(parts, engine).await.unwrap();
        let (tenant, policy) = (TenantId::default_tenant(), PolicyId::default_policy());
        engine.policies().put(tenant, policy, Spec::default(), Expected::Absent).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Arc::new(App {
            limits,
            standard,
            idempotency,
            metrics,
            health,
            thresholds: alerts.settings().thresholds(),
            alerts,
            live_events,
            node: NODE.to_owned(),
            ..App::new(engine.clone())
        });
        let notifier = tokio::spawn(alerts::run(app.clone()));
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async move { stopped.await.unwrap_or_default() };
        let memory = rest::Memory::new(options.max_memory_bytes);
        let server = tokio::spawn(rest::serve_within(memory.clone(), listener, app.clone(), options, shutdown));
        World { address, clock, entropy, target, engine, store, app, memory, stop: Some(stop), server, notifier }
    }

    /// The same engine behind a new server that enforces the retry standard.
    pub(crate) async fn enforce_standard(&mut self) {
        let app = App { standard: Standard::Enforce, ..App::new(self.engine.clone()) };
        self.serve_again("127.0.0.1:0", app).await;
    }

    /// One whose server listens on this address.
    pub(crate) async fn listening_on(address: &str) -> World {
        let mut world = World::start().await;
        world.serve_again(address, App::new(world.engine.clone())).await;
        world
    }

    /// One that hides the values of more names.
    pub(crate) async fn with_secrets(names: &[&str]) -> World {
        let mut world = World::start().await;
        let secrets = Secrets::and(names.iter().map(ToString::to_string));
        world.serve_again("127.0.0.1:0", App { secrets, ..App::new(world.engine.clone()) }).await;
        world
    }

    /// The same engine behind a new server.
    async fn serve_again(&mut self, address: &str, app: App) {
        let listener = TcpListener::bind(address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async move { stopped.await.unwrap_or_default() };
        self.stop = Some(stop);
        self.server = tokio::spawn(rest::serve(listener, Arc::new(app), rest::Options::default(), shutdown));
    }

    /// Asks on a connection of its own.
    pub(crate) async fn ask(&self, ask: Ask) -> Answer {
        Connection::open(self.address).await.ask(ask).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(Ask::get(path)).await
    }

    pub(crate) async fn post(&self, path: &str, document: &str) -> Answer {
        self.ask(Ask::post(path, document)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.ask(Ask::new("DELETE", path)).await
    }

    /// Submits a task and returns its id.
    pub(crate) async fn submit(&self, document: &str) -> String {
        let answer = self.post("/retry-tasks", document).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()["taskId"].as_str().unwrap().to_owned()
    }

    /// The task, once it has ended.
    pub(crate) async fn ended(&self, id: &str) -> serde_json::Value {
        let answer = self.ask(Ask::get(&format!("/retry-tasks/{id}")).header("prefer", "wait=30")).await;
        let task = answer.json();
        assert!(!task["endedAt"].is_null(), "{task:#}");
        task
    }

    /// The task as soon as `is_so`: asks again and again, for a bounded number of times.
    pub(crate) async fn until(&self, id: &str, is_so: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        let mut connection = Connection::open(self.address).await;
        for _ in 0..10_000 {
            let task = connection.ask(Ask::get(&format!("/retry-tasks/{id}"))).await.json();
            if is_so(&task) {
                return task;
            }
        }
        panic!("task {id} never came to be as expected");
    }

    /// Asks for `/livez` until `is_so`, for a bounded number of times.
    pub(crate) async fn until_memory(&self, is_so: impl Fn(&rest::Memory) -> bool) {
        let mut connection = Connection::open(self.address).await;
        for _ in 0..100_000 {
            if is_so(&self.memory) {
                return;
            }
            assert_eq!(connection.ask(Ask::get("/livez")).await.status, 200);
        }
        panic!("the memory never came to be as expected: {:?}", self.memory);
    }

    /// Begins the shutdown.
    pub(crate) fn begin_shutdown(&mut self) {
        self.stop = None;
    }

    /// What the server ended with.
    pub(crate) async fn stopped(self) -> Result<(), rest::Error> {
        drop(self.stop);
        self.server.await.unwrap()
    }
}
