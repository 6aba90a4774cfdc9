//! The nodes and what they stand on: breaking each of it, and mending it again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use redrive_testbed::{Postgres, Redis};
use rustix::process::Signal;

use super::addresses::Addresses;
use super::history::{FaultKind, Ledger, Pause};
use super::node::{Node, Plan, State};
use crate::clock::now_us;
use crate::process::Process;

/// How long a node may take to end once it was asked to, PostgreSQL standing still in the meantime.
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// How long it may take until all nodes serve again.
const UP_LIMIT: Duration = Duration::from_secs(90);
/// By how much clocks are wrong, in seconds.
const HOUR: i64 = 3_600;
/// The pause between two looks at that.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// What can be broken and has to be mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thing {
    /// A node.
    Node(usize),
    /// A node's way to PostgreSQL.
    Link(usize),
    /// PostgreSQL.
    Server,
    /// PostgreSQL's settings.
    Settings,
    /// A node's clock.
    Clock(usize),
    /// Redis.
    Schedule,
}

/// What PostgreSQL, or Redis, is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Up,
    Down,
    Paused,
}

/// Everything that runs.
pub struct Cluster {
    postgres: Postgres,
    server: Standing,
    redis: Option<Redis>,
    schedule: Standing,
    nodes: Vec<Node>,
    /// Whether each node is to be started again once it is down.
    wanted: Vec<bool>,
    addresses: Arc<Addresses>,
    ledger: Arc<Ledger>,
}

impl Cluster {
    /// Nodes over these servers, started and serving.
    pub fn start(
        postgres: Postgres,
        redis: Option<Redis>,
        plan: &Plan,
        addresses: Arc<Addresses>,
        ledger: Arc<Ledger>,
        size: usize,
    ) -> Result<Self> {
        let server = SocketAddr::from(([127, 0, 0, 1], postgres.port()));
        // The first one's clock is right, the second one's an hour ahead, the third one's an hour behind.
        let off = |number: usize| [0, HOUR, -HOUR][(number - 1) % 3];
        let node = |number| Node::new(format!("chaos-{number}"), server, plan, off(number));
        let nodes = (1..=size).map(node).collect::<Result<_>>()?;
        let mut cluster = Cluster {
            postgres,
            server: Standing::Up,
            redis,
            schedule: Standing::Up,
            nodes,
            wanted: vec![true; size],
            addresses,
            ledger,
        };
        cluster.wait_until_all_serve()?;
        Ok(cluster)
    }

    /// How many nodes there are.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is a Redis to break.
    pub fn has_schedule(&self) -> bool {
        self.redis.is_some()
    }

    /// Looks after every node: what has come up, ended, or has to be started again.
    pub fn tend(&mut self) -> Result<()> {
        self.look_for_deaths()?;
        for at in 0..self.nodes.len() {
            if let State::Starting(process) = &self.nodes[at].state {
                if let Some(address) = Node::listens(process) {
                    self.addresses.set(at, Some(address));
                    self.change(at, State::Up);
                } else if process.ended()?.is_some() {
                    // It could not reach PostgreSQL, and whoever looks after processes starts it again.
                    self.nodes[at].state = State::Down;
                }
            }
            if self.wanted[at] && matches!(self.nodes[at].state, State::Down) {
                self.nodes[at].start()?;
            }
        }
        Ok(())
    }

    /// Notes every node that has ended. One that did so by itself, once it had served, broke a promise (13).
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

    /// Ends the time of trouble: everything is mended, and all nodes serve.
    pub fn mend_all(&mut self) -> Result<()> {
        self.mend(Thing::Server)?;
        self.mend(Thing::Settings)?;
        self.mend(Thing::Schedule)?;
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

    /// Mends what a fault broke; nothing happens to what is well.
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
            Thing::Server => {
                match self.server {
                    Standing::Up => {}
                    Standing::Down => self.postgres.start_again(),
                    Standing::Paused => self.postgres.resume(),
                }
                self.server = Standing::Up;
            }
            Thing::Settings => self.postgres.set(&[]),
            // A clock that was set stays as it is.
            Thing::Clock(_) => {}
            Thing::Schedule => {
                if let (Some(redis), Standing::Down) = (&self.redis, self.schedule) {
                    redis.start_again();
                }
                self.schedule = Standing::Up;
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

    /// Asks a node to stop (SIGTERM), if it serves.
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

    /// Makes a node stand still (SIGSTOP), if it serves.
    pub fn pause(&mut self, at: usize) -> Result<bool> {
        let State::Up(process) = &self.nodes[at].state else { return Ok(false) };
        if !process.signal(Signal::STOP)? {
            return Ok(false);
        }
        let from = now_us();
        self.broke(FaultKind::Pause, at, "stands still");
        // Its address stays: callers that meet it wait in vain and go elsewhere.
        self.change(at, |process| State::Paused(process, from));
        Ok(true)
    }

    /// Kills PostgreSQL as if its machine were lost.
    pub fn kill_server(&mut self) -> bool {
        self.postgres.kill();
        self.ledger.broke(FaultKind::ServerRestart, "PostgreSQL was killed".to_owned());
        self.server = Standing::Down;
        true
    }

    /// Stops PostgreSQL at once.
    pub fn stop_server(&mut self) -> bool {
        self.postgres.stop_immediate();
        self.ledger.broke(FaultKind::ServerRestart, "PostgreSQL was stopped at once".to_owned());
        self.server = Standing::Down;
        true
    }

    /// Makes PostgreSQL stand still.
    pub fn pause_server(&mut self) -> bool {
        self.postgres.pause();
        self.ledger.broke(FaultKind::ServerPause, "PostgreSQL stands still".to_owned());
        self.server = Standing::Paused;
        true
    }

    /// Has PostgreSQL refuse writes, as a standby does that has not been promoted yet.
    pub fn make_read_only(&mut self) -> bool {
        self.postgres.set(&[("default_transaction_read_only", "on")]);
        self.ledger.broke(FaultKind::ReadOnly, "PostgreSQL takes no writes".to_owned());
        true
    }

    /// Has PostgreSQL's commits wait for a standby that is not there.
    pub fn lose_standby(&mut self) -> bool {
        self.postgres.set(&[("synchronous_standby_names", "gone")]);
        self.ledger.broke(FaultKind::StandbyLost, "PostgreSQL's commits wait for a standby".to_owned());
        true
    }

    /// Sets a node's clock, also while it runs.
    pub fn set_clock(&mut self, at: usize, off_seconds: i64) -> Result<bool> {
        self.nodes[at].clock.set(off_seconds)?;
        self.broke(FaultKind::Clock, at, &format!("has a clock that is {off_seconds} s off"));
        Ok(true)
    }

    /// Cuts a node's connections to PostgreSQL.
    pub fn cut(&mut self, at: usize) -> bool {
        self.nodes[at].proxy.cut_all();
        self.broke(FaultKind::Cut, at, "lost its connections");
        true
    }

    /// Loses PostgreSQL's answers to a node, until its connections are cut.
    pub fn lose_answers(&mut self, at: usize) -> bool {
        self.nodes[at].proxy.lose_answers();
        self.broke(FaultKind::Loss, at, "gets no answers from PostgreSQL");
        true
    }

    /// Loses a node's requests to PostgreSQL, until its connections are cut.
    pub fn lose_requests(&mut self, at: usize) -> bool {
        self.nodes[at].proxy.lose_requests();
        self.broke(FaultKind::Loss, at, "reaches PostgreSQL with nothing");
        true
    }

    /// Cuts a node's connections and refuses new ones.
    pub fn refuse(&mut self, at: usize) -> bool {
        self.nodes[at].proxy.refuse(true);
        self.nodes[at].proxy.cut_all();
        self.broke(FaultKind::Cut, at, "lost its connections and gets no new ones");
        true
    }

    /// Empties Redis.
    pub fn flush_schedule(&mut self) -> bool {
        let Some(redis) = &self.redis else { return false };
        redis.call(&["FLUSHALL"]);
        self.ledger.broke(FaultKind::ScheduleLost, "Redis was emptied".to_owned());
        true
    }

    /// Kills Redis, which has nothing when it comes back.
    pub fn kill_schedule(&mut self) -> bool {
        let Some(redis) = &self.redis else { return false };
        redis.kill();
        self.ledger.broke(FaultKind::ScheduleLost, "Redis was killed".to_owned());
        self.schedule = Standing::Down;
        true
    }

    fn broke(&self, kind: FaultKind, at: usize, what: &str) {
        self.ledger.broke(kind, format!("{} {what}", self.nodes[at].name));
    }

    /// Moves a node's process into another state.
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
