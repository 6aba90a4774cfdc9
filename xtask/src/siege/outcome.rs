//! The outcome of a step: what it did, and its measurements and checks.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::stats::Latency;

/// The limit of the service's resident memory, in bytes.
pub const RSS_LIMIT: u64 = 512 * 1024 * 1024;
/// The limit of the 99th percentile of small submissions and health checks.
pub const P99_LIMIT: Duration = Duration::from_secs(1);

/// Calls of one kind.
#[derive(Debug, Clone, Default)]
pub struct Calls {
    /// The durations of calls with the right answer, in microseconds.
    pub took_us: Vec<i64>,
    /// The other calls: the error, and how often.
    pub refused: BTreeMap<String, usize>,
}

impl Calls {
    /// Adds one call with its error, if it failed.
    pub fn add(&mut self, took: Duration, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.took_us.push(i64::try_from(took.as_micros()).unwrap_or(i64::MAX)),
            Err(instead) => *self.refused.entry(instead).or_default() += 1,
        }
    }

    /// The latency of the calls that were answered.
    pub fn latency(&self) -> Latency {
        Latency::of(self.took_us.clone())
    }

    /// The problems of these calls: none answered, too slow, or refused for another reason than the expected ones.
    pub fn faults(&self, name: &str, expected: &[&str]) -> Vec<String> {
        let mut faults = Vec::new();
        let Latency { p99_us, samples, .. } = self.latency();
        if samples == 0 {
            faults.push(format!("no {name} was answered"));
        }
        if u128::try_from(p99_us).is_ok_and(|p99| p99 > P99_LIMIT.as_micros()) {
            faults.push(format!("p99 of {name} was {} ms", p99_us / 1_000));
        }
        let unexpected = self.refused.iter().filter(|(why, _)| !expected.iter().any(|start| why.starts_with(start)));
        faults.extend(unexpected.map(|(why, count)| format!("{count} × {name}: {why}")));
        faults
    }
}

/// The outcome of a step.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Why it was not run, if it was not.
    pub skipped: Option<&'static str>,
    /// What was done, and how often.
    pub done: Vec<String>,
    /// The service's peak of resident memory, in bytes.
    pub peak_rss: u64,
    /// The client's submissions.
    pub submits: Calls,
    /// The client's calls of `/livez`.
    pub health: Calls,
    /// The checks, and whether each held.
    pub checks: Vec<(bool, String)>,
}

impl Outcome {
    /// A step that cannot be run here.
    pub fn skipped(why: &'static str) -> Self {
        Outcome { skipped: Some(why), ..Outcome::default() }
    }

    /// The checks that held.
    pub fn held(&self) -> Vec<&str> {
        self.checks.iter().filter(|(holds, _)| *holds).map(|(_, what)| what.as_str()).collect()
    }

    /// The checks that failed.
    pub fn broken(&self) -> Vec<&str> {
        self.checks.iter().filter(|(holds, _)| !*holds).map(|(_, what)| what.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_faults_unless_they_were_expected() {
        let mut calls = Calls::default();
        calls.add(Duration::from_millis(2), Ok(()));
        calls.add(Duration::ZERO, Err("507 No space left".to_owned()));
        calls.add(Duration::ZERO, Err("507 No space left".to_owned()));
        assert_eq!(calls.faults("submit", &["507"]), Vec::<String>::new());
        assert_eq!(calls.faults("submit", &["503"]), ["2 × submit: 507 No space left"]);
    }

    #[test]
    fn slow_calls_are_a_fault_and_so_is_no_answer_at_all() {
        let mut calls = Calls::default();
        assert_eq!(calls.faults("submit", &[]), ["no submit was answered"]);
        for millis in 901..=1_000 {
            calls.add(Duration::from_millis(millis), Ok(()));
        }
        assert_eq!(calls.faults("submit", &[]), Vec::<String>::new(), "p99 is 999 ms");
        for _ in 0..2 {
            calls.add(Duration::from_millis(1_200), Ok(()));
        }
        assert_eq!(calls.faults("submit", &[]), ["p99 of submit was 1200 ms"]);
    }
}
