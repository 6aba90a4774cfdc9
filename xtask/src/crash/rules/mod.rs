//! The guarantees, checked against the ledger. Pure: from a history to its violations.

mod attempts;
mod sends;
mod tasks;

#[cfg(test)]
mod tests;

use std::fmt;

use super::history::History;

/// A guarantee, by its number in the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Acknowledged tasks exist and end once.
    EndsOnce = 1,
    /// Sends stay within the attempts allowed.
    WithinAttempts,
    /// Every send is the same request.
    SameRequest,
    /// Attempt numbers only increase.
    NumbersGrow,
    /// A key belongs to one task.
    OneTaskPerKey,
    /// A success was really answered with success.
    TrueSuccess,
    /// Nothing is sent after the end.
    NothingAfterTheEnd,
    /// Dead letters and counts agree with the tasks.
    DeadLettersAndCounts,
    /// The attempt log is complete and true.
    AttemptLog,
    /// Dead letters raise their alert.
    Alerts,
    /// People are told of dead letters.
    Told,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Rule; 11] = [
        Rule::EndsOnce,
        Rule::WithinAttempts,
        Rule::SameRequest,
        Rule::NumbersGrow,
        Rule::OneTaskPerKey,
        Rule::TrueSuccess,
        Rule::NothingAfterTheEnd,
        Rule::DeadLettersAndCounts,
        Rule::AttemptLog,
        Rule::Alerts,
        Rule::Told,
    ];

    /// The guarantee in one sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Rule::EndsOnce => "every acknowledged task exists and has ended exactly once",
            Rule::WithinAttempts => "no task was sent more often than its maxAttempts",
            Rule::SameRequest => "every send of a task carried the same key, target and body",
            Rule::NumbersGrow => "the attempt numbers of a task strictly grow from send to send",
            Rule::OneTaskPerKey => "one key is one task, ever",
            Rule::TrueSuccess => "a task that SUCCEEDED had a send that was answered 2xx",
            Rule::NothingAfterTheEnd => "nothing was sent after the API said that a task had ended or was cancelled",
            Rule::DeadLettersAndCounts => "the dead letters are the FAILED and EXHAUSTED tasks, and the counts agree",
            Rule::AttemptLog => {
                "the attempt log is 1..n, true to what arrived, and unknown only where a kill cut it off"
            }
            Rule::Alerts => "every dead letter raised its alert, at least once",
            Rule::Told => "the sink was told of the dead letters of every dependency",
        }
    }
}

/// A guarantee that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The guarantee.
    pub rule: Rule,
    /// What shows it.
    pub evidence: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} ({}): {}", self.rule as u8, self.rule.sentence(), self.evidence)
    }
}

/// Checks every rule.
pub fn check(history: &History) -> Vec<Violation> {
    let mut found = Found::default();
    tasks::check(history, &mut found);
    sends::check(history, &mut found);
    attempts::check(history, &mut found);
    found.0.sort_by_key(|violation| violation.rule);
    found.0
}

#[derive(Default)]
struct Found(Vec<Violation>);

impl Found {
    fn add(&mut self, rule: Rule, evidence: String) {
        self.0.push(Violation { rule, evidence });
    }
}
