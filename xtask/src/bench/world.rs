//! What every measurement stands in: the binaries, the target, and services that are started on fresh directories.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::runtime::Runtime;

use super::deliveries::Deliveries;
use crate::api::Api;
use crate::binaries::scratch_dir;
use crate::http::Server;
use crate::process::Process;

/// How long tasks may take to be delivered and settled after the load has stopped.
const DRAIN_LIMIT: Duration = Duration::from_secs(120);

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// The forwarder without a store.
    Ceiling,
    /// Redrive with the store that forgets.
    Memory,
    /// Redrive with the embedded store.
    Sqlite,
}

impl Variant {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Ceiling => "ceiling",
            Variant::Memory => "memory",
            Variant::Sqlite => "sqlite",
        }
    }
}

/// The binaries and the target.
pub struct World {
    /// The binary of the service.
    pub redrive: PathBuf,
    /// Further arguments for `redrive serve`.
    pub serve_arguments: Vec<String>,
    /// Where data directories and logs are made.
    pub dir: PathBuf,
    /// What has arrived at the target.
    pub deliveries: Arc<Deliveries>,
    /// The target.
    pub target: Server,
}

impl World {
    /// Starts a target beside the given binary.
    pub fn new(redrive: PathBuf, serve_arguments: Vec<String>) -> Result<Self> {
        let deliveries = Arc::new(Deliveries::default());
        let target = Server::start("target", Arc::clone(&deliveries))?;
        Ok(World { redrive, serve_arguments, dir: scratch_dir("bench/run")?, deliveries, target })
    }

    /// Starts `variant` on an empty data directory.
    pub fn start(&self, variant: Variant) -> Result<Service> {
        if variant == Variant::Ceiling {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("ceiling").arg("--target").arg(self.target.address().to_string());
            return Service::start(command, &self.dir.join("ceiling.log"), None);
        }
        let data = scratch_dir(&format!("bench/run/{}", variant.name()))?;
        self.start_on(variant, &data, Some(data.clone()))
    }

    /// Starts Redrive on an existing data directory, which is removed afterwards if it is `scratch`.
    pub fn start_on(&self, variant: Variant, data: &Path, scratch: Option<PathBuf>) -> Result<Service> {
        let mut command = Command::new(&self.redrive);
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", variant.name(), "--data-dir"]);
        command.arg(data).args(&self.serve_arguments);
        let name = data.file_name().map_or_else(|| variant.name().into(), |name| name.to_string_lossy());
        Service::start(command, &self.dir.join(format!("{name}.log")), scratch)
    }
}

/// A running service.
pub struct Service {
    /// The process.
    pub process: Process,
    /// Where it listens.
    pub address: SocketAddr,
    runtime: Runtime,
    scratch: Option<PathBuf>,
}

impl Service {
    fn start(mut command: Command, log: &Path, scratch: Option<PathBuf>) -> Result<Self> {
        // What happens to be set in this shell must not decide what is measured.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("REDRIVE_")) {
            command.env_remove(name);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let process = Process::spawn(command, log)?;
        let address = process.wait_for_address()?;
        Ok(Service { process, address, runtime, scratch })
    }

    /// Asks the API something.
    pub fn ask<T>(&self, question: impl AsyncFnOnce(&mut Api) -> Result<T>) -> Result<T> {
        self.runtime.block_on(async { question(&mut Api::connect(self.address).await?).await })
    }

    /// Waits until `expected` tasks have arrived at the target and, for Redrive, the API says so of all of them.
    /// `before` is the number of tasks that had succeeded before the measurement.
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
            bail!("a failed run: after {DRAIN_LIMIT:?} {}\n{}", state(), self.process.log_tail());
        }
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let removed = self.process.kill().and_then(|_| match &self.scratch {
            Some(dir) => std::fs::remove_dir_all(dir).with_context(|| format!("removing {}", dir.display())),
            None => Ok(()),
        });
        if let Err(error) = removed {
            eprintln!("cleaning up after a service: {error:#}");
        }
    }
}
