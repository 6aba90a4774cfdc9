//! The running service: starts store, engine, transport and server, and stops them.
//!
//! To stop: no new connections and no new claims; attempts in progress finish or go back to the store; the store is
//! closed. Everything is durable before that, so a second signal may end the process at any moment.

mod blob_identity;
mod blobs;
mod clock_record;
mod entropy;
mod greeting;
pub(crate) mod logging;
mod open_files;
mod signals;
mod store;
mod traces;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use redrive_blobs::Location;
use redrive_core::{PolicyId, TenantId, counted, policy};
use redrive_engine::bodies::Bodies;
use redrive_engine::clock::SystemClock;
use redrive_engine::events::Sink;
use redrive_engine::{AlertRelay, CommonClock, Handle, Parts, Presence};
use redrive_server::alerts::{self, Alerts};
use redrive_server::metrics::{Metrics, SpanCounter, SpanCounts};
use redrive_server::rest::HostName;
use redrive_server::wire::Secrets;
use redrive_server::{App, HealthWindows, LiveEvents, rest};
use redrive_store::{Expected, Store};
use redrive_traces::Traces;
use redrive_transport::HttpTransport;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::cli;
use crate::config::{Config, LogFormat, StoreKind};
use crate::exit::Exit;
use crate::host;
use crate::output::{NOTICES, Output, duration, notice};

pub(crate) use entropy::ThreadEntropy;
pub(crate) use signals::Signals;
pub(crate) use store::{cannot, postgres_options};

use traces::Export;

/// How often a stop reports what it waits for.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// How long attempts under way have when a part of the service has died.
const DIE_WITHIN: Duration = Duration::from_secs(5);

/// How long the sinks of alerts may take to be told of that.
const TELL_WITHIN: Duration = Duration::from_secs(3);

/// How long the store may take to close once it is not used any more.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// Runs the service until a signal stops it.
pub(crate) fn run(config: Config) -> anyhow::Result<Exit> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = config.worker_threads {
        builder.worker_threads(threads);
    }
    let runtime = builder.enable_all().thread_name("redrive").build().context("cannot start the runtime")?;
    let ended = runtime.block_on(serve(config));
    // Everything that matters has ended; a thread that is still busy with a file must not hold the exit up.
    runtime.shutdown_background();
    ended
}

async fn serve(config: Config) -> anyhow::Result<Exit> {
    let mut signals = Signals::install()?;
    let (mut service, mut server) = tokio::select! {
        started = Service::start(config) => started?,
        // Nothing has been accepted yet, so there is nothing to finish.
        signal = signals.next() => {
            notice(format!("{signal} while starting: ending at once"));
            return Ok(Exit::Interrupted);
        }
    };
    let engine = service.engine.clone();
    tokio::select! {
        signal = signals.next() => {
            signals.end_at_next();
            Ok(service.stop(signal, Some(server)).await)
        }
        dead = engine.died() => {
            signals.end_at_next();
            service.die(&dead).await;
            anyhow::bail!("{dead} has died: what was accepted is durable, start the service again")
        }
        // It never ends by itself: it has panicked.
        _ = &mut service.notifier => {
            signals.end_at_next();
            service.die("the notifier of alerts").await;
            anyhow::bail!("the notifier of alerts has died: what was accepted is durable, start the service again")
        }
        ended = &mut server => {
            service.stop("the server ended", None).await;
            ended.context("the server panicked")?.context("the server ended")?;
            anyhow::bail!("the server ended unexpectedly")
        }
    }
}

async fn bind(listen: &str) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(listen).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => anyhow!(
            "cannot listen on {listen}: the port is in use (by another redrive?); choose another address with --listen HOST:PORT"
        ),
        _ => anyhow!("cannot listen on {listen}: {error}"),
    })?;
    let address = listener.local_addr().context("cannot read the listener's address")?;
    Ok((listener, address))
}

/// Starts the clock that the service works on.
async fn start_clock(config: &Config, store: &dyn Store) -> anyhow::Result<Arc<CommonClock>> {
    let clock = SystemClock::start();
    if config.store == StoreKind::Sqlite {
        clock_record::check(
            &config.data_dir,
            &clock,
            store.upkeep().newest_task().await.context("cannot read the store")?,
        );
    }
    Ok(CommonClock::new(Arc::new(clock), store))
}

async fn start_engine(
    config: &Config,
    clock: Arc<CommonClock>,
    store: Arc<dyn Store>,
    transport: HttpTransport,
    observers: &Observers,
) -> anyhow::Result<Handle> {
    let entropy = Arc::new(ThreadEntropy);
    let known = redrive_blobs::Parts { store: store.clone(), clock: clock.clone(), entropy: entropy.clone() };
    let storage = blobs::open(config, known)?;
    blob_identity::check(storage.as_ref(), &*store).await?;
    let blobs = storage.map(|storage| storage.blobs);
    let parts = Parts {
        clock,
        entropy,
        spawner: Arc::new(redrive_engine::spawner::TokioSpawner),
        store,
        transport: Arc::new(match &blobs {
            Some(blobs) => transport.with_bodies(blobs.clone()),
            None => transport,
        }),
        bodies: blobs.map(|blobs| blobs as Arc<dyn Bodies>),
        sinks: observers.sinks(config),
        alert_relay: observers.alerts.relays().then(|| observers.alerts.clone() as Arc<dyn AlertRelay>),
    };
    let engine = redrive_engine::start(parts, config.engine.clone()).await.context("cannot start the engine")?;
    // An existing policy stays as it is: it may have been changed.
    let (tenant, id) = (TenantId::default_tenant(), PolicyId::default_policy());
    let put = engine.policies().put(tenant, id, policy::Spec::default(), Expected::Absent).await;
    put.context("cannot store the default policy")?;
    let stored = engine.policies().store_built_ins(&TenantId::default_tenant()).await;
    stored.context("cannot store the built-in policies")?;
    Ok(engine)
}

/// What hears of the engine's events and is read by the server.
struct Observers {
    metrics: Arc<Metrics>,
    health: Arc<HealthWindows>,
    alerts: Arc<Alerts>,
    live_events: Arc<LiveEvents>,
    traces: Option<Arc<Traces>>,
}

impl Observers {
    fn new(config: &Config, clock: &Arc<CommonClock>, traces: Option<Arc<Traces>>) -> Self {
        let alerts = Alerts::new(config.alerts.clone());
        let live_events = match config.events {
            0 => LiveEvents::off(),
            kept => LiveEvents::new(kept, clock.clone(), &ThreadEntropy),
        };
        Observers { metrics: Arc::default(), health: Arc::default(), alerts, live_events, traces }
    }

    fn sinks(&self, config: &Config) -> Vec<Arc<dyn Sink>> {
        let metrics = config.metrics.then(|| self.metrics.clone() as Arc<dyn Sink>);
        let traces = self.traces.clone().map(|traces| traces as Arc<dyn Sink>);
        let live_events = self.live_events.is_on().then(|| self.live_events.clone() as Arc<dyn Sink>);
        let others: [Arc<dyn Sink>; 2] = [self.health.clone(), self.alerts.clone()];
        metrics.into_iter().chain(traces).chain(live_events).chain(others).collect()
    }
}

type Server = JoinHandle<Result<(), rest::Error>>;

/// The names that the API answers to: those that were given, the host in `listen`, and the machine's own name where the
/// API listens on all addresses, because that is where `redrive nodes` sends people.
fn host_names(config: &Config, address: SocketAddr) -> Vec<HostName> {
    let listens_on_all = address.ip().is_unspecified();
    let listen = config.listen.rsplit_once(':').map(|(host, _)| host.to_owned()).filter(|_| !listens_on_all);
    let machine = listens_on_all.then(host::name);
    // A machine may be called something that is no name of a host.
    let more = listen.into_iter().chain(machine).filter_map(|name| name.parse().ok());
    config.host_names.iter().cloned().chain(more).collect()
}

/// What the operations work on.
fn app(config: &Config, engine: Handle, observers: Observers) -> Arc<App> {
    Arc::new(App {
        limits: config.limits.clone(),
        standard: config.standard,
        idempotency: config.idempotency.clone(),
        secrets: Secrets::and(config.secret_names.iter().cloned()),
        metrics: observers.metrics,
        health: observers.health,
        thresholds: config.alerts.thresholds(),
        alerts: observers.alerts,
        live_events: observers.live_events,
        node: config.node.as_ref().map(ToString::to_string).unwrap_or_default(),
        propagators: config.engine.traces.propagators,
        span_counts: observers.traces.map(span_counter),
        ..App::new(engine)
    })
}

/// Reads how many spans were exported, for the metrics.
fn span_counter(traces: Arc<Traces>) -> SpanCounter {
    Arc::new(move || {
        let counts = traces.counts();
        SpanCounts { exported: counts.exported, dropped: counts.dropped }
    })
}

fn start_server(
    config: &Config,
    (listener, address): (TcpListener, SocketAddr),
    app: Arc<App>,
) -> (oneshot::Sender<()>, Server) {
    let (stop, stopped) = oneshot::channel();
    let options = rest::Options {
        drain_timeout: config.engine.shutdown_grace,
        host_names: host_names(config, address),
        ..config.api.clone()
    };
    // A sender that is gone says the same as one that sends.
    let shutdown = async move { stopped.await.unwrap_or_default() };
    (stop, tokio::spawn(rest::serve(listener, app, options, shutdown)))
}

fn greet(config: &Config, location: Option<&Location>, address: SocketAddr) {
    if let Some(warning) = greeting::exposure(address) {
        notice(warning);
    }
    if config.log_format == LogFormat::Json {
        // Programs read the log: there is no greeting for people.
        tracing::info!(target: NOTICES, url = greeting::url(address), "listening");
        return;
    }
    // The service runs on if its output is not read.
    if let Err(error) = Output::standard().text(&greeting::greeting(&cli::program(), config, location, address)) {
        tracing::debug!(%error, "writing to standard output");
    }
}

/// The parts of the running service.
struct Service {
    config: Config,
    store: Arc<dyn Store>,
    engine: Handle,
    app: Arc<App>,
    /// The loop that tells the sinks of alerts.
    notifier: JoinHandle<()>,
    stop_server: oneshot::Sender<()>,
    export: Option<Export>,
}

impl Service {
    async fn start(mut config: Config) -> anyhow::Result<(Self, Server)> {
        open_files::raise_limit();
        let (listener, address) = bind(&config.listen).await?;
        let transport = HttpTransport::new(config.transport.clone()).context("cannot set up the transport")?;
        if config.node.is_none() {
            config.node = Some(store::node_name(&config.store)?);
        }
        let store = store::open(&config).await?;
        config.engine.presence =
            Presence { version: env!("CARGO_PKG_VERSION").into(), address: host::reachable(address) };
        let export = Export::start(&config)?;
        let clock = start_clock(&config, &*store).await?;
        let observers = Observers::new(&config, &clock, export.as_ref().map(|export| export.traces.clone()));
        let engine = start_engine(&config, clock, store.clone(), transport, &observers).await?;
        let app = app(&config, engine.clone(), observers);
        let notifier = tokio::spawn(alerts::run(app.clone()));
        let (stop_server, server) = start_server(&config, (listener, address), app.clone());
        greet(&config, blobs::location(&config)?.as_ref(), address);
        Ok((Service { config, store, engine, app, notifier, stop_server, export }, server))
    }

    /// Exits soon, because a part of the service has failed: attempts in progress get a moment to finish.
    async fn die(self, dead: &str) {
        tracing::error!(dead, "a part of the service has failed; exiting so that the supervisor restarts the process");
        // While the engine still can; the sinks may be slow, and attempts in progress come first.
        let told = tokio::time::timeout(TELL_WITHIN, alerts::tell_of_failure(&self.app, dead)).await;
        if told.is_err() {
            tracing::warn!("the sinks of alerts could not be told in time");
        }
        self.engine.drain();
        let ending = async {
            self.engine.stop().await;
            drop(self.stop_server);
            tokio::join!(self.store.close(), flush(self.export));
        };
        if tokio::time::timeout(DIE_WITHIN, ending).await.is_err() {
            tracing::warn!("attempts in progress are interrupted; their outcome is unknown");
        }
    }

    /// Stops all parts; `server` is there unless it has ended by itself.
    async fn stop(self, why: &str, server: Option<Server>) -> Exit {
        let attempts = self.engine.in_flight();
        tracing::info!(why, attempts, "stopping");
        // From here on /readyz answers 503; other requests are still answered.
        self.engine.drain();
        if attempts > 0 {
            let (what, grace) = (under_way(attempts), duration(self.config.engine.shutdown_grace));
            notice(format!("stopping: {what} may take {grace} to finish; a second signal stops it at once"));
        }
        let everything = async {
            self.engine.stop().await;
            drop(self.stop_server);
            ended(server).await;
        };
        tokio::select! {
            () = everything => {}
            () = keep_saying_what_is_waited_for(&self.engine) => {}
        }
        // The files may not be where they were.
        let checked = tokio::time::timeout(CLOSE_WITHIN, self.store.health().check_location()).await.unwrap_or(Ok(()));
        let closing = tokio::time::timeout(CLOSE_WITHIN, self.store.close());
        let (closed, ()) = tokio::join!(closing, flush(self.export));
        if let Err(error) = checked {
            notice(format!("stopped, but {error}"));
            return Exit::Failed;
        }
        notice(match (&self.config.store, closed) {
            (StoreKind::Memory, _) => "stopped; the tasks in memory are lost",
            (_, Ok(())) => "stopped; nothing was lost",
            (_, Err(_)) => "stopped; the store did not close in time, but all accepted tasks are durable",
        });
        Exit::Done
    }
}

/// Exports the last spans.
async fn flush(export: Option<Export>) {
    if let Some(export) = export {
        export.stop().await;
    }
}

/// Waits until all requests are answered.
async fn ended(server: Option<Server>) {
    let Some(server) = server else { return };
    match server.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "the server failed while it stopped"),
        Err(error) => tracing::error!(%error, "the server failed while it stopped"),
    }
}

async fn keep_saying_what_is_waited_for(engine: &Handle) {
    let mut ticks = tokio::time::interval(REPORT_EVERY);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let what = match engine.in_flight() {
            0 => "requests of the API".to_owned(),
            attempts => under_way(attempts),
        };
        notice(format!("still waiting for {what}"));
    }
}

fn under_way(attempts: usize) -> String {
    format!("{} in progress", counted(attempts, "attempt"))
}
