//! `cargo xtask chaos`: several nodes over one PostgreSQL, all of it broken at random under load, and a proof from outside
//! that the nodes kept their promises.
//!
//! Callers, target and ledger live in this process and survive everything. The seed decides what is submitted, which
//! attempt meets which fault of the target, what is broken and for how long; how the processes are scheduled in between is
//! the machine's own, so a seed gives a run of the same kind rather than the same run.

mod addresses;
mod bad_rows;
mod bodies;
mod caller;
mod cluster;
mod collect;
mod history;
mod line;
mod node;
mod planter;
mod report;
mod rolling;
mod rules;
mod schedule;
mod servers;
mod sql;
mod story;
mod takeovers;
mod trouble;
mod wrong_clock;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::binaries::{self, Profile};
use crate::http::Server;
use crate::witness::{Alert, FaultyTarget, UnsentAttempts, Verdict, alerts};
use addresses::Addresses;
use bad_rows::{BadRows, Planted};
use bodies::Bodies;
use caller::Callers;
use cluster::{Cluster, Ground};
use history::{History, Ledger};
use rolling::Rolling;
use servers::Servers;
use takeovers::{LastTakeover, SlowTakeovers};
use trouble::{Breakable, Trouble};

/// How often nodes and faults are seen to.
const TICK: Duration = Duration::from_millis(10);
/// How often it is said how far the run is.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);
/// The most that a run may take beyond its time of trouble.
const REST: Duration = Duration::from_secs(600);
/// How long the last alerts may take: one that was in doubt is looked for every minute, and not before it is half a minute
/// old.
const ALERTS_WITHIN: Duration = Duration::from_secs(120);
/// Callers at once, unless it is said otherwise.
const CALLERS: usize = 24;

/// What the nodes find due work by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Schedule {
    /// A Redis server, which is emptied and killed too.
    Redis,
}

/// The options of `cargo xtask chaos`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// How many nodes there are
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=16))]
    nodes: u8,
    /// How long things go wrong
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// What the random numbers begin with [default: the time]
    #[arg(long)]
    seed: Option<u64>,
    /// Callers at once
    #[arg(long, default_value_t = CALLERS)]
    callers: usize,
    /// Break the dev build instead of the release build
    #[arg(long)]
    debug_binary: bool,
    /// What the nodes find due work by, besides their own memory
    #[arg(long)]
    schedule: Option<Schedule>,
    /// Begin with this program of the release before on all nodes, and replace one after the other
    #[arg(long, value_name = "FILE")]
    old_binary: Option<PathBuf>,
}

/// A chaos run.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many nodes there are.
    pub nodes: usize,
    /// How long things go wrong.
    pub trouble: Duration,
    /// What the random numbers begin with.
    pub seed: u64,
    /// Callers at once.
    pub callers: usize,
    /// What the nodes find due work by.
    pub schedule: Option<Schedule>,
    /// What the nodes are at first, if they are upgraded one after the other.
    pub old_binary: Option<PathBuf>,
    /// Whether to wait for the alerts of dead letters that were in doubt.
    pub wait_for_alerts: bool,
    /// Which build is broken.
    pub profile: Profile,
    /// The arguments of `cargo build` that make it.
    pub build: &'static [&'static str],
}

/// The run that is part of the tests. Its seed breaks everything that can be broken, within the time that it has.
pub const SHORT: Options = Options {
    nodes: 3,
    trouble: Duration::from_secs(20),
    seed: 293,
    callers: CALLERS,
    schedule: None,
    old_binary: None,
    // A minute and a half is too long; the crash run judges the alerts.
    wait_for_alerts: false,
    profile: Profile::Dev,
    // What the test step has built already: with another selection, cargo would build half of the tree again.
    build: &["--workspace", "--all-features", "--bins", "--tests"],
};

impl Options {
    /// What a person types for a run of the same kind.
    pub fn command(&self) -> String {
        let schedule = if self.schedule.is_some() { " --schedule redis" } else { "" };
        let binary = if self.profile == Profile::Dev { " --debug-binary" } else { "" };
        let old = self.old_binary.as_ref().map_or_else(String::new, |old| format!(" --old-binary {}", old.display()));
        let (nodes, seconds, seed) = (self.nodes, self.trouble.as_secs(), self.seed);
        format!("xtask chaos --nodes {nodes} --seconds {seconds} --seed {seed}{binary}{schedule}{old}")
    }

    fn breakable(&self) -> Breakable {
        let (has_schedule, has_old_nodes) = (self.schedule.is_some(), self.old_binary.is_some());
        Breakable { nodes: self.nodes, has_schedule, has_old_nodes }
    }
}

/// Runs with the arguments of the command line.
pub fn run_as_command(arguments: &Arguments) -> Result<()> {
    let options = Options {
        nodes: usize::from(arguments.nodes),
        trouble: Duration::from_secs(arguments.seconds),
        seed: arguments.seed.unwrap_or_else(crate::clock::now_us),
        callers: arguments.callers,
        schedule: arguments.schedule,
        old_binary: arguments.old_binary.clone(),
        wait_for_alerts: true,
        profile: if arguments.debug_binary { Profile::Dev } else { Profile::Release },
        build: &["-p", "redrive"],
    };
    run(&options)
}

/// Runs and reports; an error if a promise was broken or a goal missed.
pub fn run(options: &Options) -> Result<()> {
    crate::process::guard(options.trouble + REST)?;
    let redrive = binaries::build(options.profile, options.build)?.join("redrive");
    if options.schedule.is_some() {
        knows_schedules(&redrive)?;
    }
    let dir = binaries::scratch_dir(&format!("chaos/{}", std::process::id()))?;
    println!("chaos run: {} nodes, seed {}, logs in {}", options.nodes, options.seed, dir.display());
    let again = || format!("logs in {}; again with: cargo {}", dir.display(), options.command());
    let (violations, unsent) = break_and_judge(options, redrive, &dir).with_context(again)?;
    if violations > 0 {
        bail!("{violations} violations; {}", again());
    }
    if unsent.verdict() == Verdict::Missed {
        bail!("every invariant was kept, and a goal was missed: {unsent}; {}", again());
    }
    std::fs::remove_dir_all(&dir).with_context(|| format!("removing {}", dir.display()))
}

/// Whether this build can have its schedule in Redis.
fn knows_schedules(redrive: &Path) -> Result<()> {
    let help = Command::new(redrive).args(["serve", "--help"]).output().context("asking redrive for its options")?;
    if !String::from_utf8_lossy(&help.stdout).contains("--schedule") {
        bail!("this redrive has no `serve --schedule` yet: leave `--schedule redis` out");
    }
    Ok(())
}

/// The run itself; says how many violations there were, and how many attempts were counted and not sent.
fn break_and_judge(options: &Options, redrive: PathBuf, dir: &Path) -> Result<(usize, UnsentAttempts)> {
    let begin = Instant::now();
    let ledger = Arc::new(Ledger::default());
    ledger.write().lease_margin_ms = node::LEASE_MARGIN_MS;
    let noting = Arc::clone(&ledger);
    let faults = Arc::new(FaultyTarget::new(options.seed, move |arrival| noting.write().arrivals.push(arrival)));
    let last_takeover = Arc::new(LastTakeover::default());
    let slow = SlowTakeovers::new(Arc::clone(&faults), Arc::clone(&last_takeover));
    let target = Server::start("target", Arc::new(slow))?;

    let (planted, nodes) = (Arc::new(Planted::default()), Arc::new(Addresses::new(options.nodes)));
    let mut cluster = start(options, redrive, dir, &planted, &nodes, &ledger)?;
    let callers = Arc::new(Callers {
        nodes: Arc::clone(&nodes),
        target: target.address(),
        ledger: Arc::clone(&ledger),
        seed: options.seed,
        stop: AtomicBool::new(false),
        next: AtomicU64::new(0),
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (calling, planting) =
        (caller::run(Arc::clone(&callers), options.callers), planter::run(Arc::clone(&callers), planted));
    let calling = runtime.spawn(async { tokio::try_join!(calling, planting).map(drop) });

    let trouble = Trouble::new(options.seed, last_takeover, options.breakable());
    make_trouble(options, trouble, &mut cluster, &ledger, || calling.is_finished())?;
    faults.heal();
    callers.stop.store(true, Ordering::Release);
    let (mut history, settled) = runtime.block_on(async {
        calling.await.context("the callers panicked")??;
        let all = nodes.all();
        let settled = collect::settle(*all.first().context("no node listens")?).await?;
        let mut history = std::mem::take(&mut *ledger.write());
        history.end = collect::collect(&all, &cluster.database_url(), &history).await?;
        anyhow::Ok((history, settled))
    })?;
    if options.wait_for_alerts {
        history.alerts = Some(wait_for_alerts(&history, dir)?);
    }
    cluster.look_for_deaths()?;
    history.deaths.append(&mut ledger.write().deaths);

    let violations = rules::check(&history);
    report::figures(&history, &node::logs(dir)?, settled, begin.elapsed());
    let logs = history.end.kept.iter().map(|(id, kept)| (id.as_str(), kept.attempts.as_slice()));
    let unsent = UnsentAttempts::of(logs, &history.arrivals);
    report::verdicts(&history, &violations, unsent, dir)?;
    Ok((violations.len(), unsent))
}

/// Starts everything that can be broken.
fn start(
    options: &Options,
    redrive: PathBuf,
    dir: &Path,
    planted: &Arc<Planted>,
    nodes: &Arc<Addresses>,
    ledger: &Arc<Ledger>,
) -> Result<Cluster> {
    let ground = Ground {
        servers: Servers::start(),
        rows: BadRows::new(Arc::clone(planted)),
        bodies: Bodies::new(dir)?,
        schedule: options.schedule.map(|Schedule::Redis| schedule::Schedule::start()),
    };
    let plan = node::Plan {
        redrive,
        old_redrive: options.old_binary.clone(),
        dir: dir.to_owned(),
        database: ground.servers.database().to_owned(),
        bodies: ground.bodies.url(),
        schedule: ground.schedule.as_ref().map(schedule::Schedule::url),
        wrong_clock: wrong_clock::compile(dir)?,
    };
    Cluster::start(ground, &plan, Arc::clone(nodes), Arc::clone(ledger), options.nodes)
}

/// Breaks things for as long as it was asked for, then mends everything.
fn make_trouble(
    options: &Options,
    mut trouble: Trouble,
    cluster: &mut Cluster,
    ledger: &Ledger,
    is_over: impl Fn() -> bool,
) -> Result<()> {
    let mut rolling = options.old_binary.as_ref().map(|_| Rolling::start(cluster, options.trouble)).transpose()?;
    let begin = Instant::now();
    let mut said = begin;
    while begin.elapsed() < options.trouble && !is_over() {
        cluster.tend()?;
        trouble.tick(cluster)?;
        if let Some(rolling) = &mut rolling {
            rolling.tick(cluster);
        }
        if said.elapsed() >= PROGRESS_EVERY {
            said = Instant::now();
            report::progress(begin.elapsed(), ledger);
        }
        std::thread::sleep(TICK);
    }
    cluster.mend_all()?;
    rolling.map_or(Ok(()), |rolling| rolling.finish(cluster))
}

/// The alerts in all logs, once every dead letter has one or the time for that is over.
fn wait_for_alerts(history: &History, dir: &Path) -> Result<BTreeSet<Alert>> {
    let dead = history.end.kept.values().filter(|kept| matches!(kept.task.status.as_str(), "FAILED" | "EXHAUSTED"));
    let wanted: BTreeSet<Alert> =
        dead.map(|kept| Alert { task: kept.task.task_id.clone(), run: kept.task.run }).collect();
    let begin = Instant::now();
    loop {
        let raised: BTreeSet<Alert> = node::logs(dir)?.iter().flat_map(|(_, log)| alerts(log)).collect();
        if raised.is_superset(&wanted) || begin.elapsed() > ALERTS_WITHIN {
            return Ok(raised);
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}
