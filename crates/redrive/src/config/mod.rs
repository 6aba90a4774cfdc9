//! The configuration of the service, and where each value came from.
//!
//! Every setting is one entry of [`SETTINGS`]: its key in the file, its variable, its flag, what it means and how it is
//! read. A flag wins over a variable, a variable over the file, the file over the default. Nothing is guessed: an
//! unknown key or an invalid value is a [`Problem`]. All problems are reported at once, and with a problem the service
//! does not start. Traces are configured by the standard variables of OpenTelemetry instead (`traces`).
//!
//! Not here: the flags of the client commands (`--server`); see `commands::connection`.

mod address;
mod alerts;
mod cross_check;
mod environment;
mod example;
mod file;
mod flags;
mod given;
mod guards;
mod idempotency;
mod load;
mod named;
mod open_files;
mod problem;
mod settings;
mod traces;
mod value;

pub use address::Address;
pub use environment::Environment;
pub use example::example;
pub use flags::Flags;
pub use guards::Guards;
pub use load::{Loaded, load};
pub use problem::{Origin, Problem};
pub use settings::{SETTINGS, Setting};

pub use redrive_core::duration::{duration_text, parse_duration};

use std::path::PathBuf;

use redrive_store::NodeId;

/// The configuration of the service.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where the API listens, as HOST:PORT; port 0 takes any free one.
    pub listen: String,
    /// The names that callers reach the API by, beside loopback and the address that it listens on.
    pub host_names: Vec<redrive_server::rest::HostName>,
    /// More parts of names of headers and URL parameters whose values are not shown.
    pub secret_names: Vec<String>,
    /// Where the embedded store keeps its files.
    pub data_dir: PathBuf,
    /// Which store.
    pub store: StoreKind,
    /// The name of this process among others over the same store; made at the start if not given.
    pub node: Option<NodeId>,
    /// How a PostgreSQL database is used.
    pub postgres: Postgres,
    /// A Redis that keeps the schedule; the store itself does if not given.
    pub schedule: Option<redrive_schedule_redis::Address>,
    /// What the names of its keys begin with.
    pub schedule_prefix: String,
    /// Where large bodies are kept, as a URL; beside the store's own files if not given.
    pub blobs: Option<String>,
    /// Threads that run the service; as many as there are cores if not given.
    pub worker_threads: Option<usize>,
    /// Which events are logged, as a filter.
    pub log_level: String,
    /// How an event is written.
    pub log_format: LogFormat,
    /// Whether events are counted for `/metrics`.
    pub metrics: bool,
    /// How many events are kept for `/events`; none if zero.
    pub events: usize,
    /// The engine's own settings; those of its guards are made from `guards`.
    pub engine: redrive_engine::Options,
    /// What holds a lane back to protect its dependency.
    pub guards: Guards,
    /// The transport's own settings.
    pub transport: redrive_transport::Options,
    /// How much a caller of the API may ask for.
    pub limits: redrive_server::Limits,
    /// The HTTP server's own settings.
    pub api: redrive_server::rest::Options,
    /// How long idempotency records are kept, and how long executions may take.
    pub idempotency: redrive_server::idempotency::Settings,
    /// When alerts fire, and who is told.
    pub alerts: redrive_server::alerts::Settings,
    /// Where spans are exported; nowhere if not given.
    pub traces: Option<redrive_traces::Settings>,
    /// What is done about policies that break the retry standard.
    pub standard: redrive_server::Standard,
}

impl Config {
    /// Where spans are exported, or `off`.
    pub fn traces_receiver(&self) -> String {
        self.traces.as_ref().map_or_else(|| "off".into(), |traces| traces.receiver.to_string())
    }

    /// How spans are exported, for programs; `null` if they are not. Of headers there are only the names.
    pub fn traces_to_json(&self) -> serde_json::Value {
        let Some(traces) = &self.traces else { return serde_json::Value::Null };
        let headers: Vec<&str> = traces.headers.0.keys().map(hyper::header::HeaderName::as_str).collect();
        serde_json::json!({
            "receiver": traces.receiver.to_string(),
            "headers": headers,
            "sampler": traces::sampler_name(&self.engine.traces.sampler),
            "resource": traces.resource.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        })
    }
}

/// Where tasks are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreKind {
    /// In a file of the data directory.
    Sqlite,
    /// In memory: lost when the process ends.
    Memory,
    /// In a PostgreSQL database, which other processes may use as well.
    Postgres(Address),
}

/// How a PostgreSQL database is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Postgres {
    /// The maximum number of connections, not counting the one for LISTEN.
    pub connections: usize,
    /// The connection pooler in front of the database.
    pub pooler: Pooler,
    /// An address that bypasses a pooler, for LISTEN.
    pub listen_url: Option<Address>,
    /// Whether to update the schema at the start.
    pub migrate: bool,
}

/// The connection pooler in front of PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooler {
    /// Nothing, or something that gives each connection a session of its own.
    None,
    /// A pooler that lends a session for one transaction at a time, such as PgBouncer.
    Transaction,
}

/// How a log event is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// A line for people.
    Text,
    /// A JSON object per line.
    Json,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            listen: "127.0.0.1:8620".into(),
            host_names: Vec::new(),
            secret_names: Vec::new(),
            data_dir: "./redrive-data".into(),
            store: StoreKind::Sqlite,
            node: None,
            schedule: None,
            schedule_prefix: redrive_schedule_redis::Options::default().prefix,
            postgres: Postgres { connections: 12, pooler: Pooler::None, listen_url: None, migrate: true },
            blobs: None,
            worker_threads: None,
            log_level: "info".into(),
            log_format: LogFormat::Text,
            metrics: true,
            events: redrive_server::live_events::DEFAULT_KEPT,
            engine: redrive_engine::Options::default(),
            guards: Guards::default(),
            transport: redrive_transport::Options::default(),
            limits: redrive_server::Limits::default(),
            api: redrive_server::rest::Options::default(),
            idempotency: redrive_server::idempotency::Settings::default(),
            alerts: redrive_server::alerts::Settings::default(),
            traces: None,
            standard: redrive_server::Standard::default(),
        }
    }
}
