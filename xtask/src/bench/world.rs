//! The environment of every measurement: the binaries, the target, and services that are started on fresh directories.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::runtime::Runtime;

use redrive_testbed::postgres::Options as PostgresOptions;
use redrive_testbed::{Database, Postgres, Redis};

use super::deliveries::Deliveries;
use super::options::{Schedule, Store};
use crate::api::Api;
use crate::binaries::scratch_dir;
use crate::http::Server;
use crate::process::Process;
use crate::procfs::Usage;

/// How long tasks may take to be delivered and settled after the load has stopped.
const DRAIN_LIMIT: Duration = Duration::from_secs(120);

/// Usual settings for a database under load; everything else is PostgreSQL's default, commits synced.
const SETTINGS: [(&str, &str); 4] =
    [("shared_buffers", "1GB"), ("max_wal_size", "8GB"), ("checkpoint_timeout", "15min"), ("max_connections", "200")];

/// A program to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// The forwarder without a store.
    Ceiling,
    /// Redrive with the memory store.
    Memory,
    /// Redrive with the embedded store.
    Sqlite,
    /// This many nodes of Redrive over one PostgreSQL.
    Postgres(usize),
}

impl Variant {
    /// Its name in reports.
    pub fn name(self) -> String {
        match self {
            Variant::Ceiling => "ceiling".to_owned(),
            Variant::Memory => "memory".to_owned(),
            Variant::Sqlite => "sqlite".to_owned(),
            Variant::Postgres(1) => "postgres".to_owned(),
            Variant::Postgres(nodes) => format!("postgres ×{nodes}"),
        }
    }
}

/// The setup that the services of a run have in common.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The store to measure.
    pub store: Store,
    /// The index of due work, if it is not in the store.
    pub schedule: Option<Schedule>,
    /// Further arguments for `redrive serve`.
    pub serve_arguments: Vec<String>,
}

/// The binaries and the target.
pub struct World {
    /// The binary of the service.
    pub redrive: PathBuf,
    /// Another program, which it is compared with.
    pub other_binary: Option<PathBuf>,
    /// Further arguments for `redrive serve`.
    pub serve_arguments: Vec<String>,
    /// Environment variables for it.
    pub variables: Vec<(String, String)>,
    /// The directory for data directories and logs.
    pub dir: PathBuf,
    /// The arrivals at the target.
    pub deliveries: Arc<Deliveries>,
    /// The target.
    pub target: Server,
    /// The database of the shared store, if it is measured.
    pub postgres: Option<Postgres>,
    /// The schedule in Redis, if there is one.
    pub redis: Option<Redis>,
}

impl World {
    /// Starts a target beside the given binary.
    pub fn new(redrive: PathBuf, setup: Setup) -> Result<Self> {
        let has_postgres = setup.store == Store::Postgres;
        if setup.schedule.is_some() && !has_postgres {
            bail!("--schedule redis stands in front of --store postgres");
        }
        let deliveries = Arc::new(Deliveries::default());
        let target = Server::start("target", Arc::clone(&deliveries))?;
        let dir = scratch_dir("bench/run")?;
        let postgres = has_postgres
            .then(|| Postgres::start_with(PostgresOptions { fsync: true, settings: &SETTINGS, files: &[] }));
        let redis = setup.schedule.map(|_| Redis::start());
        let (serve_arguments, variables) = (setup.serve_arguments, Vec::new());
        Ok(World { redrive, other_binary: None, serve_arguments, variables, dir, deliveries, target, postgres, redis })
    }

    /// The CPU time that the database has used so far, if `variant` has one.
    pub fn database_cpu(&self, variant: Variant) -> Duration {
        match (variant, &self.postgres) {
            (Variant::Postgres(_), Some(postgres)) => postgres.cpu_time(),
            _ => Duration::ZERO,
        }
    }

    /// A new, empty database.
    pub fn fresh_database(&self) -> Result<Database> {
        Ok(self.postgres.as_ref().context("PostgreSQL was not asked for")?.fresh_database())
    }

    /// Starts `variant` on an empty data directory.
    pub fn start(&self, variant: Variant) -> Result<Service> {
        if variant == Variant::Ceiling {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("ceiling").arg("--target").arg(self.target.address().to_string());
            return Service::start(command, &self.dir.join("ceiling.log"), None);
        }
        if let Variant::Postgres(nodes) = variant {
            return self.start_over(self.fresh_database()?, nodes);
        }
        let data = scratch_dir(&format!("bench/run/{}", variant.name()))?;
        self.start_on(variant, &data, Some(data.clone()))
    }

    /// Starts nodes over a database, which is dropped with them.
    pub fn start_over(&self, database: Database, nodes: usize) -> Result<Service> {
        let mut service: Option<Service> = None;
        for number in 1..=nodes.max(1) {
            let mut command = Command::new(&self.redrive);
            command.args(["serve", "--listen", "127.0.0.1:0", "--store", database.url(), "--node"]);
            command.arg(format!("bench-{number}")).args(&self.serve_arguments);
            command.envs(self.variables.iter().cloned());
            if let Some(redis) = &self.redis {
                command.args(["--schedule", &redis.url(), "--schedule-prefix", database.name()]);
            }
            let mut node = Service::start(command, &self.dir.join(format!("node-{number}.log")), None)?;
            match &mut service {
                Some(service) => service.nodes.append(&mut node.nodes),
                None => service = Some(node),
            }
        }
        let mut service = service.context("no node was asked for")?;
        service.database = Some(database);
        Ok(service)
    }

    /// Starts Redrive on an existing data directory, which is removed afterwards if it is `scratch`.
    pub fn start_on(&self, variant: Variant, data: &Path, scratch: Option<PathBuf>) -> Result<Service> {
        let mut command = Command::new(&self.redrive);
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", &variant.name(), "--data-dir"]);
        command.arg(data).args(&self.serve_arguments).envs(self.variables.iter().cloned());
        let name = data.file_name().map_or_else(|| variant.name(), |name| name.to_string_lossy().into_owned());
        Service::start(command, &self.dir.join(format!("{name}.log")), scratch)
    }
}

/// A running service: one process, or several over one database.
pub struct Service {
    nodes: Vec<Node>,
    /// The database, if it is a shared store; dropped after the nodes.
    pub database: Option<Database>,
    runtime: Runtime,
    scratch: Option<PathBuf>,
}

struct Node {
    process: Process,
    address: SocketAddr,
}

impl Service {
    fn start(mut command: Command, log: &Path, scratch: Option<PathBuf>) -> Result<Self> {
        // Variables of this shell must not change what is measured.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("REDRIVE_")) {
            command.env_remove(name);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let process = Process::spawn(command, log)?;
        let address = process.wait_for_address()?;
        Ok(Service { nodes: vec![Node { process, address }], database: None, runtime, scratch })
    }

    /// The addresses of its nodes.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(|node| node.address).collect()
    }

    /// The usage of all of its nodes together.
    pub fn usage(&self) -> Result<Usage> {
        self.nodes.iter().try_fold(Usage::default(), |sum, node| Ok(sum + node.process.usage()?))
    }

    /// The last lines of its nodes' logs.
    pub fn log_tail(&self) -> String {
        self.nodes.iter().map(|node| node.process.log_tail()).collect()
    }

    /// Calls the API.
    pub fn ask<T>(&self, question: impl AsyncFnOnce(&mut Api) -> Result<T>) -> Result<T> {
        self.runtime.block_on(async { question(&mut Api::connect(self.nodes[0].address).await?).await })
    }

    /// Waits until `expected` tasks have arrived at the target and, for Redrive, all of them have succeeded according
    /// to the API. `before` is the number of tasks that had succeeded before the measurement.
    pub fn wait_until_settled(&self, variant: Variant, world: &World, expected: u64, before: u64) -> Result<()> {
        let begin = Instant::now();
        while world.deliveries.count() < expected {
            self.check_drain(begin, || format!("{} of {expected} tasks have arrived", world.deliveries.count()))?;
            std::thread::sleep(Duration::from_millis(1));
        }
        if variant == Variant::Ceiling {
            return Ok(());
        }
        self.ask(async |api| {
            loop {
                let counts = api.counts().await?;
                if counts.get("SUCCEEDED").copied().unwrap_or(0) >= expected + before {
                    return Ok(());
                }
                self.check_drain(begin, || format!("{expected} tasks have arrived, and the API counts {counts:?}"))?;
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        })
    }

    fn check_drain(&self, begin: Instant, state: impl FnOnce() -> String) -> Result<()> {
        if begin.elapsed() > DRAIN_LIMIT {
            bail!("a failed run: after {DRAIN_LIMIT:?} {}\n{}", state(), self.log_tail());
        }
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let killed = self.nodes.iter_mut().try_for_each(|node| node.process.kill().map(drop));
        let removed = killed.and_then(|()| match &self.scratch {
            Some(dir) => std::fs::remove_dir_all(dir).with_context(|| format!("removing {}", dir.display())),
            None => Ok(()),
        });
        if let Err(error) = removed {
            eprintln!("cleaning up after a service: {error:#}");
        }
    }
}
