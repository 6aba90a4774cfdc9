//! One node: `redrive serve` over the shared PostgreSQL, with a name and a way to the database of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use redrive_testbed::Proxy;

use super::wrong_clock::WrongClock;
use crate::binaries;
use crate::process::Process;
use crate::witness::DEPENDENCIES;

/// The shortest margin that the service allows, so that takeovers happen within seconds.
pub const LEASE_MARGIN_MS: u64 = 1_000;
/// Few, so that claims wait for their slots: those must not go out when a lease has run out in the meantime.
const LANE_CONCURRENCY: usize = 2;
/// How many attempts of one node are on the wire at most.
pub const SLOTS: usize = LANE_CONCURRENCY * DEPENDENCIES.len();
/// Less than a lease, so that a stop also cuts attempts off.
const SHUTDOWN_GRACE: &str = "500ms";
/// Behind these words the service says where it listens.
const GREETING: &str = "listens on http://";

/// How nodes are started.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The binary.
    pub redrive: PathBuf,
    /// The binary of the release before, which every node is at first.
    pub old_redrive: Option<PathBuf>,
    /// Where the logs go.
    pub dir: PathBuf,
    /// The user and the database in PostgreSQL's URL.
    pub database: String,
    /// The URL of the directory of large bodies.
    pub bodies: String,
    /// The URL of a Redis that has the schedule.
    pub schedule: Option<String>,
    /// The library that makes clocks wrong.
    pub wrong_clock: PathBuf,
}

/// What a node is doing.
pub enum State {
    /// Nothing: it was killed or has stopped.
    Down,
    /// It has been started and does not listen yet.
    Starting(Process),
    /// It serves.
    Up(Process),
    /// It stands still since then, in microseconds since the epoch.
    Paused(Process, u64),
    /// It was asked to stop, at that time.
    Stopping(Process, Instant),
}

/// A node, through all of its lives.
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its way to PostgreSQL.
    pub proxy: Proxy,
    /// What it is doing.
    pub state: State,
    /// Its machine's clock.
    pub clock: WrongClock,
    plan: Plan,
    lives: u32,
    /// Whether it was started as the old program.
    is_old: bool,
    /// Whether it is to be the new one from its next start on.
    becomes_new: bool,
}

impl Node {
    /// A node that has not been started yet, whose machine's clock is off by this many seconds.
    pub fn new(name: String, postgres: SocketAddr, plan: &Plan, off_seconds: i64) -> Result<Self> {
        let clock = WrongClock::new(&plan.wrong_clock, plan.dir.join(format!("{name}.clock")), off_seconds)?;
        let (proxy, plan, becomes_new) = (Proxy::start(postgres), plan.clone(), plan.old_redrive.is_none());
        Ok(Node { name, proxy, state: State::Down, clock, plan, lives: 0, is_old: false, becomes_new })
    }

    /// From its next start on it is the new program.
    pub fn become_new(&mut self) {
        self.becomes_new = true;
    }

    /// Whether it is the old program and is to be the new one.
    pub fn is_outdated(&self) -> bool {
        self.is_old && self.becomes_new
    }

    /// Starts it, with a log of its own for this life.
    pub fn start(&mut self) -> Result<()> {
        self.lives += 1;
        let old = self.plan.old_redrive.as_ref().filter(|_| !self.becomes_new);
        self.is_old = old.is_some();
        let mut command = binaries::redrive(old.unwrap_or(&self.plan.redrive));
        command.arg("serve").args(["--listen", "127.0.0.1:0", "--node", &self.name]);
        command.args(["--store", &format!("postgres://redrive@{}/{}", self.proxy.address(), self.plan.database)]);
        command.args(["--lease-margin", &format!("{LEASE_MARGIN_MS}ms"), "--shutdown-grace", SHUTDOWN_GRACE]);
        command.args(["--lane-concurrency", &LANE_CONCURRENCY.to_string()]);
        command.args(["--blobs", &self.plan.bodies]);
        if let Some(url) = &self.plan.schedule {
            command.args(["--schedule", url]);
        }
        self.clock.apply_to(&mut command);
        self.state = State::Starting(Process::spawn(command, &self.log_of(self.lives))?);
        Ok(())
    }

    /// Where it listens, if it has come so far.
    pub fn listens(process: &Process) -> Option<SocketAddr> {
        process.address_behind(GREETING)
    }

    fn log_of(&self, life: u32) -> PathBuf {
        self.plan.dir.join(format!("{}.{life:03}.log", self.name))
    }
}

/// Every log of every life of every node below `dir`, by file name.
pub fn logs(dir: &Path) -> Result<Vec<(String, String)>> {
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.path().extension().is_none_or(|extension| extension != "log") {
            continue;
        }
        let text = String::from_utf8_lossy(&std::fs::read(entry.path())?).into_owned();
        logs.push((entry.file_name().to_string_lossy().into_owned(), text));
    }
    logs.sort();
    Ok(logs)
}
