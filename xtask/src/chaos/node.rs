//! One node: `redrive serve` over the shared PostgreSQL, with a name and a connection to the database of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use redrive_testbed::Proxy;

use super::frail;
use super::wrong_clock::WrongClock;
use crate::binaries;
use crate::process::Process;
use crate::witness::DEPENDENCIES;

/// The shortest margin that the service allows, so that takeovers happen within seconds.
pub const LEASE_MARGIN_MS: u64 = 1_000;
/// Few slots, so that claims wait for them: such claims must not be sent when their lease has expired meanwhile.
const LANE_CONCURRENCY: usize = 2;
/// The most attempts of one node on the wire; the frail dependency is a lane, too.
pub const SLOTS: usize = LANE_CONCURRENCY * (DEPENDENCIES.len() + 1);
/// Less than a lease, so that a stop also interrupts attempts.
const SHUTDOWN_GRACE: &str = "500ms";
/// The text before the address in the service's log.
const GREETING: &str = "listens on http://";

/// How nodes are started.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The binary.
    pub redrive: PathBuf,
    /// The binary of the previous release, which every node runs at first.
    pub old_redrive: Option<PathBuf>,
    /// The directory of the logs.
    pub dir: PathBuf,
    /// The user and the database in PostgreSQL's URL.
    pub database: String,
    /// The URL of the directory of large bodies.
    pub bodies: String,
    /// The URL of the Redis with the schedule.
    pub schedule: Option<String>,
    /// The library that makes clocks wrong.
    pub wrong_clock: PathBuf,
    /// Further arguments.
    pub serve_arguments: Vec<String>,
}

/// The state of a node.
pub enum State {
    /// The node was killed or has stopped.
    Down,
    /// The node has been started and does not listen yet.
    Starting(Process),
    /// The node serves.
    Up(Process),
    /// The node is suspended since this time, in microseconds since the epoch.
    Paused(Process, u64),
    /// The node was told to stop, at that time.
    Stopping(Process, Instant),
}

/// A node, over all restarts.
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its connection to PostgreSQL.
    pub proxy: Proxy,
    /// Its state.
    pub state: State,
    /// Its machine's clock.
    pub clock: WrongClock,
    plan: Plan,
    lives: u32,
    /// Whether it was started with the old program.
    is_old: bool,
    /// Whether it runs the new program from its next start on.
    becomes_new: bool,
}

impl Node {
    /// A node that has not been started yet, whose machine's clock is off by this many seconds.
    pub fn new(name: String, postgres: SocketAddr, plan: &Plan, off_seconds: i64) -> Result<Self> {
        let clock = WrongClock::new(&plan.wrong_clock, plan.dir.join(format!("{name}.clock")), off_seconds)?;
        let (proxy, plan, becomes_new) = (Proxy::start(postgres), plan.clone(), plan.old_redrive.is_none());
        Ok(Node { name, proxy, state: State::Down, clock, plan, lives: 0, is_old: false, becomes_new })
    }

    /// Makes it run the new program from its next start on.
    pub fn become_new(&mut self) {
        self.becomes_new = true;
    }

    /// Whether it runs the old program and is to run the new one.
    pub fn is_outdated(&self) -> bool {
        self.is_old && self.becomes_new
    }

    /// Starts it, with a new log file.
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
        if self.plan.old_redrive.is_none() {
            command.args(frail::SERVE_ARGUMENTS);
        }
        command.args(&self.plan.serve_arguments);
        if let Some(url) = &self.plan.schedule {
            command.args(["--schedule", url]);
        }
        self.clock.apply_to(&mut command);
        self.state = State::Starting(Process::spawn(command, &self.log_of(self.lives))?);
        Ok(())
    }

    /// The address that it listens on, if it does yet.
    pub fn listens(process: &Process) -> Option<SocketAddr> {
        process.address_behind(GREETING)
    }

    fn log_of(&self, life: u32) -> PathBuf {
        self.plan.dir.join(format!("{}.{life:03}.log", self.name))
    }
}

/// Every log of every node below `dir`, over all restarts, by file name.
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
