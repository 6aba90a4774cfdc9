//! The report of a chaos run: progress, figures, and which invariant was broken by what.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::history::{FaultKind, History, Ledger, Said};
use super::rules::{Invariant, Violation, fullest_window, held_up_by_a_pause};
use super::{node, story};
use crate::table::Table;
use crate::witness::UnsentAttempts;

/// The most violations of one invariant that are shown.
const SHOWN: usize = 10;
/// The most tasks whose whole history is printed.
const STORIES: usize = 3;

/// The log message for a row that a node cannot read, once after each of its starts.
const SET_ASIDE: &str = "set aside what this program cannot understand";

/// Prints one line of progress.
pub fn progress(elapsed: Duration, ledger: &Ledger) {
    let history = ledger.write();
    println!(
        "{:>4} s: {} faults, {} acknowledged, {} arrivals",
        elapsed.as_secs(),
        history.faults.len(),
        history.acknowledged_tasks().len(),
        history.arrivals.len()
    );
}

/// How often each kind of fault was injected, and what came of it.
fn fault_counts(history: &History, logs: &[(String, String)]) -> Vec<(&'static str, usize)> {
    vec![
        ("nodes killed", history.count(FaultKind::Kill)),
        ("nodes paused", history.count(FaultKind::Pause)),
        ("nodes stopped", history.count(FaultKind::Stop)),
        ("PostgreSQL killed or stopped at once", history.count(FaultKind::ServerRestart)),
        ("PostgreSQL paused", history.count(FaultKind::ServerPause)),
        ("PostgreSQL read-only", history.count(FaultKind::ReadOnly)),
        ("PostgreSQL without its synchronous standby", history.count(FaultKind::StandbyLost)),
        ("PostgreSQL failed over to its standby", history.count(FaultKind::Failover)),
        ("rows damaged", history.count(FaultKind::BadRow)),
        ("rows that a node set aside", count_of(logs, SET_ASIDE)),
        ("directories of large bodies unmounted", history.count(FaultKind::Unmount)),
        ("submissions of a large body answered 503", history.large_refused as usize),
        ("clocks of nodes set", history.count(FaultKind::Clock)),
        ("connections of a node cut", history.count(FaultKind::Cut)),
        ("the same after answers or requests were lost", history.count(FaultKind::Loss)),
        ("schedules in Redis lost", history.count(FaultKind::ScheduleLost)),
        ("times that Redis was slow", history.count(FaultKind::ScheduleSlow)),
        ("nodes upgraded", history.count(FaultKind::Upgrade)),
    ]
}

/// Prints the figures of the whole run.
pub fn figures(history: &History, logs: &[(String, String)], settled: Duration, took: Duration) {
    let attempts = || history.end.kept.values().flat_map(|kept| &kept.attempts);
    let unknown = attempts().filter(|attempt| attempt.outcome == "unknown").count();
    let sent: BTreeSet<(&str, u32)> =
        history.arrivals.iter().map(|arrival| (arrival.task.as_str(), arrival.attempt)).collect();
    let unsent = history.end.kept.iter().flat_map(|(id, kept)| kept.attempts.iter().map(move |attempt| (id, attempt)));
    let unsent = unsent.filter(|(id, attempt)| !sent.contains(&(id.as_str(), attempt.attempt_number))).count();
    let by_task = history.arrivals_by_task();
    let never_sent = history
        .end
        .kept
        .iter()
        .filter(|(id, kept)| kept.task.status == "EXHAUSTED" && !by_task.contains_key(id.as_str()));
    let takeovers = history.end.kept.values().flat_map(|kept| kept.attempts.windows(2));
    let takeovers = takeovers.filter(|pair| pair[0].outcome == "unknown").count();
    let replays = history.end.kept.values().map(|kept| kept.task.run as usize - 1).sum();
    let acknowledged = history.acknowledged_tasks().len();
    let refused = history.answers.iter().filter(|answer| matches!(answer.said, Said::Reused(_))).count();
    let mut table = Table::new(&["", "count"]);
    for (what, count) in fault_counts(history, logs) {
        table.row(vec![what.to_owned(), count.to_string()]);
    }
    for (what, count) in [
        ("tasks acknowledged", acknowledged),
        ("acknowledgements of a repeated submission", history.answers.len() - refused - acknowledged),
        ("other requests under a key refused", refused),
        ("arrivals at the target", history.arrivals.len()),
        ("attempts logged", attempts().count()),
        ("attempts cut off (unknown)", unknown),
        ("attempts logged that never arrived", unsent),
        ("tasks EXHAUSTED that never arrived", never_sent.count()),
        ("takeovers after one", takeovers),
        ("sends that a pause held up beyond their lease", held_up_by_a_pause(history)),
        ("replays", replays),
        ("things the API said on the way", history.sightings.len()),
    ] {
        table.row(vec![what.to_owned(), count.to_string()]);
    }
    println!();
    table.print();
    let mut statuses: BTreeMap<&str, u64> = BTreeMap::new();
    for kept in history.end.kept.values() {
        *statuses.entry(&kept.task.status).or_default() += 1;
    }
    let statuses: Vec<String> = statuses.iter().map(|(status, count)| format!("{count} {status}")).collect();
    let (settled, took) = (settled.as_secs_f64(), took.as_secs_f64());
    println!("  ended: {}", statuses.join(", "));
    if let Some(window) = fullest_window(history) {
        let (retries, allowed, earning) = (window.retries, window.allowed(), window.earning);
        println!(
            "  retry budget of the frail dependency: at most {retries} of {allowed} allowed retries, beside {earning} first attempts and successes"
        );
    }
    if let Some((gap_us, since)) = longest_silence(history) {
        println!(
            "  the longest time without an acknowledgement: {:.1} s; what was broken from a second before it on:",
            gap_us as f64 / 1e6
        );
        let from = since.saturating_sub(1_000_000);
        for fault in history.faults.iter().filter(|fault| (from..=since + gap_us).contains(&fault.at)) {
            println!("    {:>5.1} s  {}", (fault.at as f64 - since as f64) / 1e6, fault.what);
        }
    }
    println!("  all work had settled {settled:.1} s after the faults stopped; the run took {took:.1} s\n");
}

/// The longest time in which no submission was acknowledged, in microseconds, and when it began.
fn longest_silence(history: &History) -> Option<(u64, u64)> {
    let acknowledged = history.answers.iter().filter(|answer| answer.said.acknowledged().is_some());
    let mut times: Vec<u64> = acknowledged.map(|answer| answer.at).collect();
    times.sort_unstable();
    times.windows(2).map(|pair| (pair[1] - pair[0], pair[0])).max()
}

/// How many lines of all logs contain these words.
fn count_of(logs: &[(String, String)], words: &str) -> usize {
    logs.iter().flat_map(|(_, log)| log.lines()).filter(|line| line.contains(words)).count()
}

/// Prints which invariants were kept, and what broke the others.
pub fn verdicts(history: &History, violations: &[Violation], unsent: UnsentAttempts, dir: &Path) -> Result<()> {
    for invariant in Invariant::ALL {
        let broken: Vec<&Violation> = violations.iter().filter(|violation| violation.invariant == invariant).collect();
        let verdict = if broken.is_empty() { "kept  " } else { "BROKEN" };
        println!("  {verdict}  {:>2}. {}", invariant as u8, invariant.sentence());
        for violation in broken.iter().take(SHOWN) {
            println!("              {}", violation.evidence);
        }
        if broken.len() > SHOWN {
            println!("              … and {} more", broken.len() - SHOWN);
        }
    }
    if history.alerts.is_none() {
        println!("  (the alerts of 9 were not judged: one that was in doubt may take a minute and a half)");
    }
    println!("  {}: {unsent}", unsent.verdict());
    if violations.is_empty() {
        return Ok(());
    }
    let logs = node::logs(dir)?;
    let mut tasks: Vec<&str> = violations.iter().filter_map(|violation| violation.task.as_deref()).collect();
    tasks.dedup();
    for id in tasks.into_iter().take(STORIES) {
        println!("\n  task {id}:");
        for line in story::of_task(history, id, &logs) {
            println!("  {line}");
        }
    }
    Ok(())
}
