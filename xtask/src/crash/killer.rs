//! Killer: starts the service, kills it after a random time, and repeats that on the same directory and port.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fastrand::Rng;

use super::Options;
use super::history::Ledger;
use crate::binaries;
use crate::clock::now_us;
use crate::process::Process;
use crate::witness::alerts;

/// How long the service runs before it is killed; the shortest times end during its start.
const LIFE_MS: std::ops::Range<u64> = 50..1_500;

/// Starts and kills the service.
pub struct Killer {
    redrive: PathBuf,
    dir: PathBuf,
    address: SocketAddr,
    /// The sink of the service's alerts.
    sink: SocketAddr,
    lane_concurrency: usize,
    ledger: Arc<Ledger>,
    random: Rng,
}

impl Killer {
    /// A killer for services in `dir`, on a port that is free now and stays the same over all restarts.
    pub fn new(
        redrive: PathBuf,
        dir: PathBuf,
        ledger: Arc<Ledger>,
        sink: SocketAddr,
        options: &Options,
    ) -> Result<Self> {
        let probe = std::net::TcpListener::bind("127.0.0.1:0").context("looking for a free port")?;
        Ok(Killer {
            redrive,
            dir,
            address: probe.local_addr()?,
            sink,
            lane_concurrency: options.lane_concurrency,
            ledger,
            random: Rng::with_seed(options.seed),
        })
    }

    /// The address of the service, the same after every restart.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts the service and kills it (SIGKILL) at a random moment. Returns how long it ran.
    pub fn live_and_die(&mut self) -> Result<Duration> {
        let service = self.start()?;
        let life = Duration::from_millis(self.random.u64(LIFE_MS));
        let end = service.started() + life;
        std::thread::sleep(end.saturating_duration_since(Instant::now()));
        let was_running = service.kill()?;
        // Recorded once it is gone: everything that this kill interrupted began before that.
        self.ledger.write().kills.push(now_us());
        self.note_alerts(&service);
        if !was_running {
            bail!("the service ended by itself; it said:\n{}", service.log_tail());
        }
        Ok(life)
    }

    /// Starts the service and waits until it listens.
    pub fn start_for_good(&self) -> Result<Process> {
        let service = self.start()?;
        service.wait_for_address()?;
        Ok(service)
    }

    /// Records the alerts in the log of a service that has been killed: the next one begins a new log.
    pub fn note_alerts(&self, service: &Process) {
        self.ledger.write().alerts.extend(alerts(&service.log_text()).map(|alert| alert.task));
    }

    /// Fails if SQLite itself finds something wrong with the database.
    pub fn check_files(&self) -> Result<()> {
        let database = self.data_dir().join("redrive.db");
        let Ok(output) = Command::new("sqlite3").arg(&database).arg("PRAGMA integrity_check").output() else {
            println!("  no sqlite3 here: the database file was not checked");
            return Ok(());
        };
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() || said.trim() != "ok" {
            bail!("{} is damaged: {said}{}", database.display(), String::from_utf8_lossy(&output.stderr));
        }
        println!("  sound   SQLite finds nothing wrong with the database file");
        Ok(())
    }

    fn data_dir(&self) -> PathBuf {
        self.dir.join("data")
    }

    fn start(&self) -> Result<Process> {
        let mut command = binaries::redrive(&self.redrive);
        command.args(["serve", "--store", "sqlite", "--listen"]).arg(self.address.to_string());
        command.arg("--data-dir").arg(self.data_dir());
        command.args(["--lane-concurrency", &self.lane_concurrency.to_string()]);
        // At once, or a process that lives for a second would tell nothing.
        command.args(["--alert-sinks", &format!("people=alertmanager:http://{}", self.sink), "--alerts-wait", "0s"]);
        Process::spawn(command, &self.dir.join("service.log"))
    }
}
