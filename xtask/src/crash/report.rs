//! The report of a crash run: progress, figures, and which guarantee was broken.

use std::collections::BTreeMap;
use std::time::Duration;

use super::history::{History, Ledger};
use super::only_attempts::OnlyAttempts;
use super::rules::{Rule, Violation};
use crate::table::Table;
use crate::witness::UnsentAttempts;

/// The most violations of one rule that are shown.
const SHOWN: usize = 10;

/// Prints one line of progress.
pub fn progress(kill: u32, kills: u32, lived: Duration, ledger: &Ledger) {
    let history = ledger.write();
    println!(
        "kill {kill:>3}/{kills} after {:>4} ms: {} acknowledged, {} arrivals",
        lived.as_millis(),
        history.acknowledged_tasks().len(),
        history.arrivals.len()
    );
}

/// Prints the figures of the whole run.
pub fn summary(history: &History, violations: &[Violation], took: Duration) {
    let attempts = || history.kept.values().flat_map(|kept| &kept.attempts);
    let unknown = attempts().filter(|attempt| attempt.outcome == "unknown").count();
    // A takeover is an attempt made after one that a kill had interrupted.
    let takeovers = history.kept.values().flat_map(|kept| kept.attempts.windows(2));
    let takeovers = takeovers.filter(|pair| pair[0].outcome == "unknown").count();
    let mut statuses: BTreeMap<&str, u64> = BTreeMap::new();
    for kept in history.kept.values() {
        *statuses.entry(&kept.task.status).or_default() += 1;
    }
    let statuses: Vec<String> = statuses.iter().map(|(status, count)| format!("{count} {status}")).collect();
    let cancels = history.sightings.iter().filter(|sighting| sighting.cancelled).count();
    let acknowledged = history.acknowledged_tasks().len();

    let mut table = Table::new(&["", "count"]);
    for (what, count) in [
        ("kills", history.kills.len()),
        ("tasks acknowledged", acknowledged),
        ("acknowledgements of a repeated submission", history.acknowledged.len().saturating_sub(acknowledged)),
        ("arrivals at the target", history.arrivals.len()),
        ("attempts logged", attempts().count()),
        ("attempts cut off (unknown)", unknown),
        ("takeovers after one", takeovers),
        ("cancels accepted", cancels),
        ("things the API said on the way", history.sightings.len()),
    ] {
        table.row(vec![what.to_owned(), count.to_string()]);
    }
    println!();
    table.print();
    println!("  ended: {}; the run took {:.1} s\n", statuses.join(", "), took.as_secs_f64());
    for rule in Rule::ALL {
        let broken: Vec<&Violation> = violations.iter().filter(|violation| violation.rule == rule).collect();
        let verdict = if broken.is_empty() { "kept  " } else { "BROKEN" };
        println!("  {verdict}  {}. {}", rule as u8, rule.sentence());
        for violation in broken.iter().take(SHOWN) {
            println!("          {}", violation.evidence);
        }
        if broken.len() > SHOWN {
            println!("          … and {} more", broken.len() - SHOWN);
        }
    }
}

/// Prints the goals: what breaks no guarantee and should still not happen.
pub fn goals(unsent: UnsentAttempts, only: OnlyAttempts) {
    println!("  {}: {unsent}", unsent.verdict());
    println!("  {}: {only}", only.verdict());
}
