//! `cargo xtask crash`: kills the real binary under load at random moments, restarts it, and checks from outside that
//! it kept its guarantees.
//!
//! Callers, target and ledger are in this process and survive every kill. The seed decides what is submitted, which
//! attempt meets which fault and when the service is killed. The scheduling of the processes is up to the machine, so a
//! seed gives a run of the same kind rather than the same run.

mod caller;
mod collect;
mod history;
mod killer;
mod only_attempts;
mod report;
mod rules;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::binaries::{self, Profile};
use crate::http::Server;
use crate::witness::{AlertReceiver, FaultyTarget, UnsentAttempts, Verdict};
use caller::Callers;
use history::Ledger;
use killer::Killer;
use only_attempts::OnlyAttempts;

/// The default slots of a lane: the service's own default.
pub const LANE_SLOTS: usize = 128;

/// The options of `cargo xtask crash`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// How often the service is killed
    #[arg(long, default_value_t = 50)]
    kills: u32,
    /// The seed of the random numbers [default: the time]
    #[arg(long)]
    seed: Option<u64>,
    /// Callers at once
    #[arg(long, default_value_t = 24)]
    callers: usize,
    /// The slots of a lane; with few slots and many tasks, all are taken when the service is killed
    #[arg(long, default_value_t = LANE_SLOTS, value_name = "SLOTS")]
    lane_concurrency: usize,
    /// Kill the dev build instead of the release build
    #[arg(long)]
    debug_binary: bool,
}

/// A crash run.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How often the service is killed.
    pub kills: u32,
    /// The seed of the random numbers.
    pub seed: u64,
    /// Concurrent callers.
    pub callers: usize,
    /// The slots of a lane.
    pub lane_concurrency: usize,
    /// The build that is killed.
    pub profile: Profile,
    /// The arguments of `cargo build` for it.
    pub build: &'static [&'static str],
}

/// Runs with the arguments of the command line.
pub fn run_as_command(arguments: &Arguments) -> Result<()> {
    crate::process::guard(Duration::from_secs(300 + 10 * u64::from(arguments.kills)))?;
    run(&Options {
        kills: arguments.kills,
        seed: arguments.seed.unwrap_or_else(crate::clock::now_us),
        callers: arguments.callers,
        lane_concurrency: arguments.lane_concurrency,
        profile: if arguments.debug_binary { Profile::Dev } else { Profile::Release },
        build: &["-p", "redrive"],
    })
}

/// Runs and reports; an error if a guarantee was broken or a goal missed.
pub fn run(options: &Options) -> Result<()> {
    let redrive = binaries::build(options.profile, options.build)?.join("redrive");
    let dir = binaries::scratch_dir(&format!("crash/{}", std::process::id()))?;
    println!("crash run: {} kills, seed {}, {}", options.kills, options.seed, dir.display());
    let begin = Instant::now();

    let ledger = Arc::new(Ledger::default());
    let noting = Arc::clone(&ledger);
    let faults = Arc::new(FaultyTarget::new(options.seed, move |arrival| noting.write().arrivals.push(arrival)));
    let target = Server::start("target", Arc::clone(&faults))?;
    let noting = Arc::clone(&ledger);
    let sink = AlertReceiver::new(move |dependency| noting.write().told.extend([dependency]));
    let sink = Server::start("sink", Arc::new(sink))?;
    let mut killer = Killer::new(redrive, dir.clone(), Arc::clone(&ledger), sink.address(), options)?;
    let callers = Arc::new(Callers {
        service: killer.address(),
        target: target.address(),
        ledger: Arc::clone(&ledger),
        seed: options.seed,
        stop: AtomicBool::new(false),
        next: AtomicU64::new(0),
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let calling = runtime.spawn(caller::run(Arc::clone(&callers), options.callers));

    for kill in 1..=options.kills {
        let lived = killer.live_and_die()?;
        if kill % 5 == 0 || kill == options.kills {
            report::progress(kill, options.kills, lived, &ledger);
        }
        if calling.is_finished() {
            break;
        }
    }
    let service = killer.start_for_good()?;
    faults.heal();
    callers.stop.store(true, Ordering::Release);
    let mut history = runtime
        .block_on(async {
            calling.await.context("the callers panicked")??;
            let drained = collect::drain(callers.service).await?;
            println!("faults off: all work had ended after {:.1} s", drained.as_secs_f64());
            let mut history = std::mem::take(&mut *ledger.write());
            collect::collect(callers.service, &mut history).await?;
            collect::told(&ledger, &mut history).await;
            anyhow::Ok(history)
        })
        .with_context(|| format!("seed {}; the service said:\n{}", options.seed, service.log_tail()))?;
    service.kill()?;
    killer.note_alerts(&service);
    history.alerts.append(&mut ledger.write().alerts);
    history.kills.sort_unstable();

    let violations = rules::check(&history);
    report::summary(&history, &violations, begin.elapsed());
    let logs = history.kept.iter().map(|(id, kept)| (id.as_str(), kept.attempts.as_slice()));
    let unsent = UnsentAttempts::of(logs, &history.arrivals);
    let only = OnlyAttempts::of(&history, options.lane_concurrency);
    report::goals(unsent, only);
    if !violations.is_empty() {
        bail!("{} violations; seed {}, data in {}", violations.len(), options.seed, dir.display());
    }
    killer.check_files().with_context(|| format!("seed {}, data in {}", options.seed, dir.display()))?;
    if [unsent.verdict(), only.verdict()].contains(&Verdict::Missed) {
        bail!(
            "every promise was kept, and a goal was missed (see above); seed {}, data in {}",
            options.seed,
            dir.display()
        );
    }
    std::fs::remove_dir_all(&dir).with_context(|| format!("removing {}", dir.display()))
}
