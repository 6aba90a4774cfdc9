//! `cargo xtask chaos`: several nodes over one PostgreSQL, with random faults under load, and a check from outside that
//! the invariants hold.
//!
//! Callers, target and ledger are in this process and survive everything. The seed decides what is submitted, which
//! attempt meets which fault of the target, what is broken and for how long. The scheduling of the processes is up to
//! the machine, so a seed gives a run of the same kind rather than the same run.

mod addresses;
mod bad_rows;
mod bodies;
mod caller;
mod cluster;
mod collect;
mod frail;
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
use frail::Frail;
use history::{History, Ledger};
use rolling::Rolling;
use servers::Servers;
use takeovers::{LastTakeover, SlowTakeovers};
use trouble::{Breakable, Trouble};

/// How often nodes and faults are updated.
const TICK: Duration = Duration::from_millis(10);
/// How often progress is printed.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);
/// The most time that a run may take beyond its time of faults.
const REST: Duration = Duration::from_secs(600);
/// The longest wait for the last alerts: one in doubt is looked for every minute, and not before it is 30 s old.
const ALERTS_WITHIN: Duration = Duration::from_secs(120);
/// The default number of concurrent callers.
const CALLERS: usize = 24;

/// The index of due work.
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
    /// How long faults occur
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// The seed of the random numbers [default: the time]
    #[arg(long)]
    seed: Option<u64>,
    /// Callers at once
    #[arg(long, default_value_t = CALLERS)]
    callers: usize,
    /// Break the dev build instead of the release build
    #[arg(long)]
    debug_binary: bool,
    /// The index of due work, beside the nodes' own memory
    #[arg(long)]
    schedule: Option<Schedule>,
    /// Start all nodes with this program of the previous release, and replace one after the other
    #[arg(long, value_name = "FILE")]
    old_binary: Option<PathBuf>,
    /// A further argument for `redrive serve`, to see what a setting breaks (repeatable)
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    serve_argument: Vec<String>,
}

/// A chaos run.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many nodes there are.
    pub nodes: usize,
    /// How long faults occur.
    pub trouble: Duration,
    /// The seed of the random numbers.
    pub seed: u64,
    /// Concurrent callers.
    pub callers: usize,
    /// The index of due work.
    pub schedule: Option<Schedule>,
    /// The program that the nodes run at first, if they are upgraded one after the other.
    pub old_binary: Option<PathBuf>,
    /// Further arguments for `redrive serve`.
    pub serve_arguments: Vec<String>,
    /// Whether to wait for the alerts of dead letters that were in doubt.
    pub wait_for_alerts: bool,
    /// The build that is tested.
    pub profile: Profile,
    /// The arguments of `cargo build` for it.
    pub build: &'static [&'static str],
}

/// The run that is part of the tests. Its seed includes every kind of fault within its time.
pub const SHORT: Options = Options {
    nodes: 3,
    trouble: Duration::from_secs(20),
    seed: 293,
    callers: CALLERS,
    schedule: None,
    old_binary: None,
    serve_arguments: Vec::new(),
    // 90 s are too long; the crash run judges the alerts.
    wait_for_alerts: false,
    profile: Profile::Dev,
    // The test step has already built this selection: with another one, cargo would build half of the tree again.
    build: &["--workspace", "--all-features", "--bins", "--tests"],
};

impl Options {
    /// The command line for a run of the same kind.
    pub fn command(&self) -> String {
        let schedule = if self.schedule.is_some() { " --schedule redis" } else { "" };
        let binary = if self.profile == Profile::Dev { " --debug-binary" } else { "" };
        let old = self.old_binary.as_ref().map_or_else(String::new, |old| format!(" --old-binary {}", old.display()));
        let (nodes, seconds, seed) = (self.nodes, self.trouble.as_secs(), self.seed);
        let arguments: String =
            self.serve_arguments.iter().map(|argument| format!(" --serve-argument {argument}")).collect();
        format!("xtask chaos --nodes {nodes} --seconds {seconds} --seed {seed}{binary}{schedule}{old}{arguments}")
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
        serve_arguments: arguments.serve_argument.clone(),
        wait_for_alerts: true,
        profile: if arguments.debug_binary { Profile::Dev } else { Profile::Release },
        build: &["-p", "redrive"],
    };
    run(&options)
}

/// Runs and reports; an error if an invariant was broken or a goal missed.
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

/// Fails if this build cannot have its schedule in Redis.
fn knows_schedules(redrive: &Path) -> Result<()> {
    let help = Command::new(redrive).args(["serve", "--help"]).output().context("asking redrive for its options")?;
    if !String::from_utf8_lossy(&help.stdout).contains("--schedule") {
        bail!("this redrive has no `serve --schedule` yet: leave `--schedule redis` out");
    }
    Ok(())
}

/// Does the run. Returns the number of violations, and the attempts that were counted and not sent.
fn break_and_judge(options: &Options, redrive: PathBuf, dir: &Path) -> Result<(usize, UnsentAttempts)> {
    let begin = Instant::now();
    let ledger = Arc::new(Ledger::default());
    ledger.write().lease_margin_ms = node::LEASE_MARGIN_MS;
    let noting = Arc::clone(&ledger);
    let faults = Arc::new(FaultyTarget::new(options.seed, move |arrival| noting.write().arrivals.push(arrival)));
    let last_takeover = Arc::new(LastTakeover::default());
    let slow = SlowTakeovers::new(Arc::clone(&faults), Arc::clone(&last_takeover));
    let target = Server::start("target", Arc::new(slow))?;
    let frail = Arc::new(Frail::new(options.seed, Arc::clone(&ledger)));
    let frail_target = Server::start("frail target", Arc::clone(&frail))?;

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
    // Nodes of the previous release do not share a budget.
    let for_frail = options.old_binary.is_none().then(|| frail::run(Arc::clone(&callers), frail_target.address()));
    let for_frail = async { if let Some(run) = for_frail { run.await } else { Ok(()) } };
    let calling = runtime.spawn(async { tokio::try_join!(calling, planting, for_frail).map(drop) });

    let trouble = Trouble::new(options.seed, last_takeover, options.breakable());
    make_trouble(options, trouble, &mut cluster, &ledger, || calling.is_finished())?;
    faults.heal();
    frail.heal();
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
        serve_arguments: options.serve_arguments.clone(),
    };
    Cluster::start(ground, &plan, Arc::clone(nodes), Arc::clone(ledger), options.nodes)
}

/// Makes faults for the requested time, then repairs everything.
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
