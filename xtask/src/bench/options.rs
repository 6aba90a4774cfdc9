//! The options of `cargo xtask bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::feature_cost::Feature;
use super::pipeline::Load;
use super::template::Shape;
use super::world::{Setup, Variant};
use super::{idempotency, neighbours};

/// The options of `cargo xtask bench`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Options {
    /// A measurement with options of its own
    #[command(subcommand)]
    pub case: Option<Case>,
    /// Rounds; in each, every variant is measured once
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// How long the callers submit in a round
    #[arg(long, default_value_t = 8.0, value_name = "SECONDS")]
    pub seconds: f64,
    /// How long they submit before that, without measuring
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS")]
    pub warm_up: f64,
    /// Callers at once, each with one kept connection
    #[arg(long, default_value_t = 256)]
    pub callers: usize,
    /// The size of a task's body, in bytes
    #[arg(long, default_value_t = 512, value_name = "BYTES")]
    pub body: usize,
    /// Give each task a random idempotency key (otherwise the service generates one)
    #[arg(long)]
    pub keys: bool,
    /// The store to measure, beside the ceiling, the memory store and the embedded store, which are always measured
    #[arg(long, value_enum, default_value_t = Store::Sqlite)]
    pub store: Store,
    /// With --store postgres: keep the schedule in Redis; a Redis server is started for it
    #[arg(long, value_enum)]
    pub schedule: Option<Schedule>,
    /// With --store postgres: how many nodes share the database, one measurement for each number
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3], value_name = "N,…")]
    pub nodes: Vec<usize>,
    /// Measure due-to-wire at this rate instead of half the top rate of delayed tasks
    #[arg(long, value_name = "TASKS_PER_SECOND")]
    pub rate: Option<f64>,
    /// Of the pipelines, measure only due-to-wire
    #[arg(long, conflicts_with = "skip_pipeline")]
    pub only_due_to_wire: bool,
    /// Of the pipelines, measure only the one of the chosen store, with all guards on and with all of them off
    #[arg(long, conflicts_with_all = ["skip_pipeline", "only_due_to_wire"])]
    pub compare_guards: bool,
    /// Of the pipelines, measure only the one of the chosen store, with metrics, events and log on and with all of them off
    #[arg(long, conflicts_with_all = ["skip_pipeline", "only_due_to_wire", "compare_guards"])]
    pub compare_metrics: bool,
    /// Of the pipelines, measure only the one of the chosen store, with traces exported to a receiver on loopback and without
    #[arg(long, conflicts_with_all = ["skip_pipeline", "only_due_to_wire", "compare_guards", "compare_metrics"])]
    pub compare_traces: bool,
    /// Of the pipelines, measure only the one of the chosen store, with metrics scraped every second and not scraped
    #[arg(long, conflicts_with_all = ["skip_pipeline", "only_due_to_wire", "compare_guards", "compare_metrics", "compare_traces"])]
    pub compare_scrapes: bool,
    /// Of the pipelines, measure only the one of the chosen store, with this build and with another `redrive`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["skip_pipeline", "only_due_to_wire", "compare_guards", "compare_metrics", "compare_traces", "compare_scrapes"])]
    pub compare_binary: Option<PathBuf>,
    /// Skip the ceiling, the pipelines and due-to-wire
    #[arg(long)]
    pub skip_pipeline: bool,
    /// Also measure the embedded store with this many tasks in it (kept under target/bench/ for the next run)
    #[arg(long, value_name = "TASKS")]
    pub preload: Option<u64>,
    /// The kind of the preloaded tasks
    #[arg(long, value_enum, default_value_t = PreloadKind::Ended)]
    pub preload_kind: PreloadKind,
    /// Also measure the other lanes beside a dead one with this many due tasks
    #[arg(long, value_name = "TASKS")]
    pub dead_lane: Option<u64>,
    /// Also measure scrapes of /metrics after deliveries to this many dependencies
    #[arg(long, value_name = "DEPENDENCIES")]
    pub scrape: Option<u64>,
    /// Also measure a service with nothing to do
    #[arg(long)]
    pub idle: bool,
    /// The number of lanes in which a task waits meanwhile
    #[arg(long, default_value_t = 1, value_name = "LANES")]
    pub idle_lanes: u64,
    /// How long the idle service is measured
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS")]
    pub idle_seconds: f64,
    /// Measure everything that has a goal in docs/benchmarks.md: also idle, a dead lane with 1 million tasks, 5 million
    /// ended and 10 million pending tasks (filling the stores takes some minutes the first time, and 20 GB of disk)
    #[arg(long)]
    pub all: bool,
    /// A further argument for `redrive serve`, to test a setting (repeatable)
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub serve_argument: Vec<String>,
    /// Print one JSON document on standard output; progress goes to standard error
    #[arg(long)]
    pub json: bool,
}

/// A measurement with options of its own.
#[derive(Debug, Subcommand)]
pub enum Case {
    /// Measure the effect of bad dependencies on healthy ones
    ///
    /// Healthy lanes are measured alone and beside bad dependencies with a backlog of 40,000 tasks, in
    /// turns: deliveries/s with a constant backlog, and from submission to the wire at half of that rate.
    /// Without --kind, --count and --burst everything is measured, which takes about 25 minutes.
    ///
    /// Examples:
    ///   cargo xtask bench neighbours
    ///   cargo xtask bench neighbours --store postgres
    ///   cargo xtask bench neighbours --kind slow --count 40 --rounds 1 --seconds 2
    ///   cargo xtask bench neighbours --burst
    ///   cargo xtask bench neighbours --compare-guards --count 40
    #[command(verbatim_doc_comment)]
    Neighbours(neighbours::Options),
    /// Measure idempotency records: pairs of reserve and complete per second
    ///
    /// Through the HTTP API, on an empty store and on one with 5 million live records, in turns; with
    /// --store postgres also a plain program on the same server that does INSERT … ON CONFLICT and UPDATE.
    ///
    /// Examples:
    ///   cargo xtask bench idempotency
    ///   cargo xtask bench idempotency --store postgres --preload 1000000
    #[command(verbatim_doc_comment)]
    Idempotency(idempotency::Options),
}

/// The store to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Store {
    /// The embedded store
    Sqlite,
    /// PostgreSQL: a server is started for it, which syncs its commits
    Postgres,
}

impl Store {
    /// One node over this store.
    pub fn variant(self) -> Variant {
        match self {
            Store::Sqlite => Variant::Sqlite,
            Store::Postgres => Variant::Postgres(1),
        }
    }
}

/// The index of due work, if it is not in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Schedule {
    /// In Redis
    Redis,
}

/// The kind of preloaded tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PreloadKind {
    /// Delivered long ago: measures life cycles against the empty store's
    Ended,
    /// Due far in the future: measures the start and the memory
    Pending,
}

impl Options {
    /// The variants to measure, with the chosen store last.
    pub fn variants(&self) -> Vec<Variant> {
        let mut variants = vec![Variant::Ceiling, Variant::Memory, Variant::Sqlite];
        if self.store == Store::Postgres {
            variants.extend(self.nodes.iter().map(|nodes| Variant::Postgres((*nodes).max(1))));
        }
        variants
    }

    /// The feature that is measured on and off instead of the pipelines.
    pub fn compared_feature(&self) -> Option<Feature> {
        let metrics = self.compare_metrics.then_some(Feature::Observability);
        let traces = self.compare_traces.then_some(Feature::Traces);
        let scrapes = self.compare_scrapes.then_some(Feature::Scrapes);
        let build = self.compare_binary.is_some().then_some(Feature::Build);
        self.compare_guards.then_some(Feature::Guards).or(metrics).or(traces).or(scrapes).or(build)
    }

    /// One node over the chosen store.
    pub fn variant(&self) -> Variant {
        self.store.variant()
    }

    /// The setup that the services of the run have in common.
    pub fn setup(&self) -> Setup {
        Setup { store: self.store, schedule: self.schedule, serve_arguments: self.serve_argument.clone() }
    }

    /// The load of these options.
    pub fn load(&self) -> Load {
        Load {
            callers: self.callers.max(1),
            duration: Duration::from_secs_f64(self.seconds.max(0.1)),
            warm_up: Duration::from_secs_f64(self.warm_up.max(0.1)),
            shape: Shape { body: self.body, keys: self.keys, delays: false, lanes: 1 },
        }
    }

    /// The stores to measure with preloaded tasks.
    pub fn preloads(&self) -> Vec<(PreloadKind, u64)> {
        match self.preload {
            Some(tasks) => vec![(self.preload_kind, tasks)],
            None if self.all => vec![(PreloadKind::Ended, 5_000_000), (PreloadKind::Pending, 10_000_000)],
            None => Vec::new(),
        }
    }

    /// The size of the dead lane to measure.
    pub fn dead_lane(&self) -> Option<u64> {
        self.dead_lane.or(self.all.then_some(1_000_000))
    }

    /// Longer than the whole run should take.
    pub fn time_limit(&self) -> Duration {
        let rounds = self.rounds as f64 * (self.seconds + self.warm_up + 10.0) * (self.variants().len() + 1) as f64;
        let tasks = self.preloads().iter().map(|(_, tasks)| tasks).sum::<u64>() + self.dead_lane().unwrap_or(0);
        Duration::from_secs_f64(600.0 + rounds * 3.0 + self.idle_seconds + (tasks + self.idle_lanes) as f64 / 2_000.0)
    }
}
