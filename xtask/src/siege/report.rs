//! The report of a siege.

use std::time::Duration;

use super::outcome::Outcome;
use super::steps::Step;
use crate::stats::Latency;
use crate::table::Table;

/// Prints the steps and what each does.
pub fn list(steps: &[Step]) {
    let width = steps.iter().map(|step| step.name.len()).max().unwrap_or(0);
    for step in steps {
        println!("  {:<width$}   {}", step.name, step.what);
    }
}

/// Prints the outcome of one step.
pub fn progress(outcome: &Outcome, took: Duration) {
    if let Some(why) = outcome.skipped {
        println!("  SKIPPED: {why}");
        return;
    }
    for what in &outcome.done {
        println!("  did     {what}");
    }
    for what in outcome.held() {
        println!("  held    {what}");
    }
    for what in outcome.broken() {
        println!("  BROKEN  {what}");
    }
    println!("  took    {:.1} s", took.as_secs_f64());
}

/// Prints all steps.
pub fn summary(outcomes: &[(&str, Outcome)], took: Duration) {
    let mut table =
        Table::new(&["step", "peak RSS MiB", "submits", "p99 ms", "refused", "/livez", "p99 ms", "refused", ""]);
    for (name, outcome) in outcomes {
        table.row(row(name, outcome));
    }
    println!();
    table.print();
    println!("  the siege took {:.1} s", took.as_secs_f64());
    for (name, outcome) in outcomes {
        for what in outcome.broken() {
            println!("  BROKEN  {name}: {what}");
        }
    }
}

fn row(name: &str, outcome: &Outcome) -> Vec<String> {
    if outcome.skipped.is_some() {
        let blanks = std::iter::repeat_n("–".to_owned(), 7);
        return std::iter::once(name.to_owned()).chain(blanks).chain(["skipped".to_owned()]).collect();
    }
    let mut cells = vec![name.to_owned(), (outcome.peak_rss / 1024 / 1024).to_string()];
    for calls in [&outcome.submits, &outcome.health] {
        let Latency { p99_us, samples, .. } = calls.latency();
        let refused: usize = calls.refused.values().sum();
        cells.extend([samples.to_string(), format!("{:.1}", p99_us as f64 / 1_000.0), refused.to_string()]);
    }
    cells.push(if outcome.broken().is_empty() { "held".to_owned() } else { "BROKEN".to_owned() });
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_figures_of_both_kinds_of_calls_and_the_verdict() {
        let mut outcome = Outcome { peak_rss: 300 * 1024 * 1024, ..Outcome::default() };
        outcome.submits.add(Duration::from_millis(7), Ok(()));
        outcome.health.add(Duration::ZERO, Err("503".to_owned()));
        outcome.checks.push((true, "all is well".to_owned()));
        assert_eq!(row("a", &outcome), ["a", "300", "1", "7.0", "0", "0", "0.0", "1", "held"]);
        outcome.checks.push((false, "not all".to_owned()));
        assert_eq!(row("a", &outcome).last().map(String::as_str), Some("BROKEN"));
        assert_eq!(row("b", &Outcome::skipped("no room")).last().map(String::as_str), Some("skipped"));
    }
}
