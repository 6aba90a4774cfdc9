//! The nodes and the servers that they use: breaks and repairs each of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::process::Signal;

use super::addresses::Addresses;
use super::bad_rows::BadRows;
use super::bodies::Bodies;
use super::history::{FaultKind, Ledger, Pause};
use super::node::{Node, Plan, State};
use super::schedule::Schedule;
use super::servers::Servers;
use crate::clock::now_us;
use crate::process::Process;

/// The longest time until a node ends after its signal, also while PostgreSQL is suspended.
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// The longest time until all nodes serve again.
const UP_LIMIT: Duration = Duration::from_secs(90);
/// The error of the wrong clocks, in seconds.
const HOUR: i64 = 3_600;
/// The longest time until the last damaged rows are repaired, after PostgreSQL is back.
const ROWS_MENDED_WITHIN: Duration = Duration::from_secs(30);
/// The pause between two tries to repair rows.
const MEND_AGAIN_AFTER: Duration = Duration::from_millis(200);
/// The pause between two checks of nodes that start.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// What can be broken and has to be repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thing {
    /// A node.
    Node(usize),
    /// A node's connection to PostgreSQL.
    Link(usize),
    /// PostgreSQL.
    Server,
    /// PostgreSQL's settings.
    Settings,
    /// A node's clock.
    Clock(usize),
    /// Rows in the database.
    Rows,
    /// The directory of large bodies.
    Bodies,
    /// Redis.
    Schedule,
}

/// The servers and directories that the nodes use.
pub struct Ground {
    /// PostgreSQL and its standby.
    pub servers: Servers,
    /// The damaged rows in it.
    pub rows: BadRows,
    /// The directory of large bodies.
    pub bodies: Bodies,
    /// Redis, if the nodes use it.
    pub schedule: Option<Schedule>,
}

/// Everything that runs.
pub struct Cluster {
    ground: Ground,
    /// When to try to repair damaged rows, if that is pending.
    mend_rows_at: Option<Instant>,
    nodes: Vec<Node>,
    /// Whether each node is to be restarted once it is down.
    wanted: Vec<bool>,
    addresses: Arc<Addresses>,
    ledger: Arc<Ledger>,
}

impl Cluster {
    /// Starts nodes on these servers, and waits until they serve.
    pub fn start(
        ground: Ground,
        plan: &Plan,
        addresses: Arc<Addresses>,
        ledger: Arc<Ledger>,
        size: usize,
    ) -> Result<Self> {
        let server = ground.servers.address();
        // The first node's clock is right, the second one's 1 h ahead, the third one's 1 h behind. The previous release
        // only used its machine's clock.
        let wrong = if plan.old_redrive.is_some() { 0 } else { HOUR };
        let off = |number: usize| [0, wrong, -wrong][(number - 1) % 3];
        let node = |number| Node::new(format!("chaos-{number}"), server, plan, off(number));
        let nodes = (1..=size).map(node).collect::<Result<_>>()?;
        let mut cluster = Cluster { ground, mend_rows_at: None, nodes, wanted: vec![true; size], addresses, ledger };
        cluster.wait_until_all_serve()?;
        Ok(cluster)
    }

    /// How many nodes there are.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// The URL of the nodes' database on the current primary.
    pub fn database_url(&self) -> String {
        self.ground.servers.url()
    }

    /// Updates the state of every node: notes which serve and which have ended, and restarts nodes.
    pub fn tend(&mut self) -> Result<()> {
        self.look_for_deaths()?;
        self.ground.servers.tend()?;
        self.mend_rows();
        for at in 0..self.nodes.len() {
            if let State::Starting(process) = &self.nodes[at].state {
                if let Some(address) = Node::listens(process) {
                    self.addresses.set(at, Some(address));
                    self.change(at, State::Up);
                } else if process.ended()?.is_some() {
                    // It could not reach PostgreSQL, and its supervisor restarts it.
                    self.nodes[at].state = State::Down;
                }
            }
            if self.nodes[at].is_outdated()
                && let State::Up(process) = &self.nodes[at].state
                && process.signal(Signal::TERM)?
            {
                self.addresses.set(at, None);
                self.change(at, |process| State::Stopping(process, Instant::now()));
            }
            if self.wanted[at] && matches!(self.nodes[at].state, State::Down) {
                self.nodes[at].start()?;
            }
        }
        Ok(())
    }

    /// Notes every node that has ended. One that ended by itself after it had served violates invariant 13.
    pub fn look_for_deaths(&mut self) -> Result<()> {
        for (at, node) in self.nodes.iter_mut().enumerate() {
            let name = &node.name;
            match &node.state {
                State::Up(process) => {
                    let Some(status) = process.ended()? else { continue };
                    let death = format!("{name} ended by itself ({status}); it said:\n{}", process.log_tail());
                    self.ledger.write().deaths.push(death);
                    self.addresses.set(at, None);
                }
                State::Stopping(process, since) => {
                    if process.ended()?.is_none() {
                        if since.elapsed() > STOP_LIMIT {
                            bail!("{name} did not stop within {STOP_LIMIT:?}; it said:\n{}", process.log_tail());
                        }
                        continue;
                    }
                }
                State::Down | State::Starting(_) | State::Paused(..) => continue,
            }
            node.state = State::Down;
        }
        Ok(())
    }

    /// Ends the time of faults: everything is repaired, and all nodes serve.
    pub fn mend_all(&mut self) -> Result<()> {
        self.mend(Thing::Server)?;
        self.mend(Thing::Settings)?;
        self.ground.servers.wait_for_standby()?;
        self.mend(Thing::Bodies)?;
        self.mend(Thing::Schedule)?;
        self.mend(Thing::Rows)?;
        let begin = Instant::now();
        while self.mend_rows_at.is_some() {
            if begin.elapsed() > ROWS_MENDED_WITHIN {
                bail!("damaged rows could not be mended within {ROWS_MENDED_WITHIN:?}");
            }
            std::thread::sleep(LOOK_AGAIN_AFTER);
            self.mend_rows();
        }
        for at in 0..self.nodes.len() {
            self.mend(Thing::Link(at))?;
            self.mend(Thing::Node(at))?;
        }
        self.wait_until_all_serve()
    }

    fn wait_until_all_serve(&mut self) -> Result<()> {
        let begin = Instant::now();
        loop {
            self.tend()?;
            let Some(waiting) = self.nodes.iter().find(|node| !matches!(node.state, State::Up(_))) else {
                return Ok(());
            };
            if begin.elapsed() > UP_LIMIT {
                bail!("{} does not serve {UP_LIMIT:?} after everything it needs was there", waiting.name);
            }
            std::thread::sleep(LOOK_AGAIN_AFTER);
        }
    }

    /// Repairs what a fault broke; does nothing otherwise.
    pub fn mend(&mut self, thing: Thing) -> Result<()> {
        match thing {
            Thing::Node(at) => {
                self.wanted[at] = true;
                if let State::Paused(process, from) = &self.nodes[at].state {
                    let from = *from;
                    process.signal(Signal::CONT)?;
                    let node = self.nodes[at].name.clone();
                    self.ledger.write().pauses.push(Pause { node, from, until: now_us() });
                    self.change(at, State::Up);
                }
            }
            Thing::Link(at) => {
                let proxy = &self.nodes[at].proxy;
                proxy.cut_all();
                proxy.restore();
            }
            Thing::Server => self.ground.servers.mend(),
            Thing::Settings => self.ground.servers.reset(),
            // A clock that was set stays as it is.
            Thing::Clock(_) => {}
            // Now if PostgreSQL answers, or else as soon as it does.
            Thing::Rows => self.mend_rows_at = Some(Instant::now()),
            Thing::Bodies => self.ground.bodies.mount()?,
            Thing::Schedule => {
                if let Some(schedule) = &mut self.ground.schedule {
                    schedule.mend();
                }
            }
        }
        Ok(())
    }

    /// Kills a node (SIGKILL), if it runs.
    pub fn kill(&mut self, at: usize) -> Result<bool> {
        let (State::Starting(process) | State::Up(process)) = &self.nodes[at].state else { return Ok(false) };
        if !process.kill()? {
            return Ok(false);
        }
        self.broke(FaultKind::Kill, at, "was killed");
        self.addresses.set(at, None);
        self.wanted[at] = false;
        self.nodes[at].state = State::Down;
        Ok(true)
    }

    /// Stops a node gracefully (SIGTERM), if it serves.
    pub fn stop(&mut self, at: usize) -> Result<bool> {
        let State::Up(process) = &self.nodes[at].state else { return Ok(false) };
        if !process.signal(Signal::TERM)? {
            return Ok(false);
        }
        self.broke(FaultKind::Stop, at, "was asked to stop");
        self.addresses.set(at, None);
        self.wanted[at] = false;
        self.change(at, |process| State::Stopping(process, Instant::now()));
        Ok(true)
    }

    /// Suspends a node (SIGSTOP), if it serves.
    pub fn pause(&mut self, at: usize) -> Result<bool> {
        let State::Up(process) = &self.nodes[at].state else { return Ok(false) };
        if !process.signal(Signal::STOP)? {
            return Ok(false);
        }
        let from = now_us();
        self.broke(FaultKind::Pause, at, "stands still");
        // Its address stays: callers that use it get a timeout and try another node.
        self.change(at, |process| State::Paused(process, from));
        Ok(true)
    }

    /// Kills PostgreSQL as if its machine were lost.
    pub fn kill_server(&mut self) -> bool {
        let is_done = self.ground.servers.kill();
        self.broke_if(is_done, FaultKind::ServerRestart, "PostgreSQL was killed")
    }

    /// Stops PostgreSQL immediately.
    pub fn stop_server(&mut self) -> bool {
        let is_done = self.ground.servers.stop();
        self.broke_if(is_done, FaultKind::ServerRestart, "PostgreSQL was stopped at once")
    }

    /// Suspends PostgreSQL.
    pub fn pause_server(&mut self) -> bool {
        let is_done = self.ground.servers.pause();
        self.broke_if(is_done, FaultKind::ServerPause, "PostgreSQL stands still")
    }

    /// Kills PostgreSQL for good and connects the nodes to its standby, which takes no writes until it is promoted.
    pub fn fail_over(&mut self) -> bool {
        let Some(standby) = self.ground.servers.fail_over() else { return false };
        for node in &self.nodes {
            node.proxy.lead_to(standby);
            node.proxy.cut_all();
        }
        self.broke_if(true, FaultKind::Failover, "PostgreSQL was killed for good, and its standby takes its place")
    }

    /// Makes PostgreSQL refuse writes, like a standby that has not been promoted yet.
    pub fn make_read_only(&mut self) -> bool {
        self.ground.servers.make_read_only();
        self.broke_if(true, FaultKind::ReadOnly, "PostgreSQL takes no writes")
    }

    /// Makes PostgreSQL's commits wait for a standby that does not exist.
    pub fn lose_standby(&mut self) -> bool {
        self.ground.servers.lose_standby();
        self.broke_if(true, FaultKind::StandbyLost, "PostgreSQL's commits wait for a standby")
    }

    /// Damages rows of tasks that were planted for it, if PostgreSQL answers.
    pub fn damage_rows(&mut self, seed: u64) -> bool {
        let Ground { servers, rows, .. } = &mut self.ground;
        if !servers.is_up() || !rows.is_empty() {
            return false;
        }
        match rows.damage(&servers.url(), seed) {
            Ok(done) => done.into_iter().for_each(|what| self.ledger.broke(FaultKind::BadRow, what)),
            // PostgreSQL did not answer: whatever was damaged is repaired.
            Err(error) => eprintln!("rows could not be damaged: {error:#}"),
        }
        !self.ground.rows.is_empty()
    }

    /// Replaces the directory of large bodies by an empty one.
    pub fn unmount_bodies(&mut self) -> Result<bool> {
        self.ground.bodies.unmount()?;
        Ok(self.broke_if(true, FaultKind::Unmount, "the directory of large bodies is an empty one"))
    }

    /// Sets a node's clock, also while it runs.
    pub fn set_clock(&mut self, at: usize, off_seconds: i64) -> Result<bool> {
        self.nodes[at].clock.set(off_seconds)?;
        self.broke(FaultKind::Clock, at, &format!("has a clock that is {off_seconds} s off"));
        Ok(true)
    }

    /// Closes a node's connections to PostgreSQL.
    pub fn cut(&mut self, at: usize) -> bool {
        self.nodes[at].proxy.cut_all();
        self.broke(FaultKind::Cut, at, "lost its connections");
        true
    }

    /// Drops PostgreSQL's answers to a node, until its connections are closed.
    pub fn lose_answers(&mut self, at: usize) -> bool {
        self.nodes[at].proxy.lose_answers();
        self.broke(FaultKind::Loss, at, "gets no answers from PostgreSQL");
        true
    }

    /// Drops a node's requests to PostgreSQL, until its connections are closed.
    pub fn lose_requests(&mut self, at: usize) -> bool {
        self.nodes[at].proxy.lose_requests();
        self.broke(FaultKind::Loss, at, "reaches PostgreSQL with nothing");
        true
    }

    /// Closes a node's connections and refuses new ones.
    pub fn refuse(&mut self, at: usize) -> bool {
        self.nodes[at].proxy.refuse(true);
        self.nodes[at].proxy.cut_all();
        self.broke(FaultKind::Cut, at, "lost its connections and gets no new ones");
        true
    }

    /// Empties Redis.
    pub fn flush_schedule(&mut self) -> bool {
        let Some(schedule) = &self.ground.schedule else { return false };
        schedule.flush();
        self.broke_if(true, FaultKind::ScheduleLost, "Redis was emptied")
    }

    /// Kills Redis, which is empty when it is restarted.
    pub fn kill_schedule(&mut self) -> bool {
        let Some(schedule) = &mut self.ground.schedule else { return false };
        schedule.kill();
        self.broke_if(true, FaultKind::ScheduleLost, "Redis was killed")
    }

    /// Delays each of Redis's answers by this time.
    pub fn slow_schedule(&mut self, delay: Duration) -> bool {
        let Some(schedule) = &self.ground.schedule else { return false };
        schedule.slow_down(delay);
        self.broke_if(true, FaultKind::ScheduleSlow, &format!("Redis answers {delay:?} late"))
    }

    /// Makes a node run the new program from its next start on, as soon as it has stopped.
    pub fn replace(&mut self, at: usize) {
        self.nodes[at].become_new();
        self.broke(FaultKind::Upgrade, at, "is replaced by the new program");
    }

    /// Repairs damaged rows if that is pending and PostgreSQL answers.
    fn mend_rows(&mut self) {
        let Ground { servers, rows, .. } = &mut self.ground;
        if self.mend_rows_at.is_some_and(|at| at <= Instant::now()) && servers.is_up() {
            let is_mended = rows.mend(&servers.url());
            self.mend_rows_at = (!is_mended).then(|| Instant::now() + MEND_AGAIN_AFTER);
        }
    }

    /// Records a fault of what all nodes share, if it took effect. Returns whether it did.
    fn broke_if(&self, is_done: bool, kind: FaultKind, what: &str) -> bool {
        if is_done {
            self.ledger.broke(kind, what.to_owned());
        }
        is_done
    }

    fn broke(&self, kind: FaultKind, at: usize, what: &str) {
        self.ledger.broke(kind, format!("{} {what}", self.nodes[at].name));
    }

    /// Changes the state of a node, keeping its process.
    fn change(&mut self, at: usize, into: impl FnOnce(Process) -> State) {
        let state = std::mem::replace(&mut self.nodes[at].state, State::Down);
        self.nodes[at].state = match state {
            State::Starting(process) | State::Up(process) | State::Paused(process, _) | State::Stopping(process, _) => {
                into(process)
            }
            State::Down => State::Down,
        };
    }
}
