//! The invariants, checked against the ledger. Pure: from a history to its violations.
//!
//! Not here: invariants 6 and 7, and most of 8, which cannot be checked from outside while the machine itself is slow;
//! the simulator checks them. Of 8, the retry budget of all nodes is checked (`budget`).

mod budget;
mod ends;
mod keys;
mod leases;
mod sends;
mod settling;

#[cfg(test)]
mod tests;

use std::fmt;

use super::history::History;

pub use budget::fullest_window;
pub use leases::held_up_by_a_pause;

/// An invariant, by its number in ARCHITECTURE.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// Acknowledged means durable.
    Durable = 1,
    /// Sends stay within the attempts allowed.
    WithinAttempts = 2,
    /// Every send is the same request.
    SameRequest = 3,
    /// Nothing is sent after the end.
    NothingAfterTheEnd = 4,
    /// A stale token changes nothing.
    Fenced = 5,
    /// The retry budget holds over all nodes.
    RetryBudget = 8,
    /// Dead letters, counts and alerts agree with the tasks.
    DeadLetters = 9,
    /// A key belongs to one task and one request.
    OneTaskPerKey = 10,
    /// The schedule is an index.
    ScheduleIsAnIndex = 11,
    /// Tenants are isolated.
    TenantsApart = 12,
    /// Everything settles by itself.
    Settles = 13,
}

impl Invariant {
    /// Every invariant that is judged.
    pub const ALL: [Invariant; 11] = [
        Invariant::Durable,
        Invariant::WithinAttempts,
        Invariant::SameRequest,
        Invariant::NothingAfterTheEnd,
        Invariant::Fenced,
        Invariant::RetryBudget,
        Invariant::DeadLetters,
        Invariant::OneTaskPerKey,
        Invariant::ScheduleIsAnIndex,
        Invariant::TenantsApart,
        Invariant::Settles,
    ];

    /// What is checked, in one sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Invariant::Durable => {
                "every acknowledged task is there and has ended once in each run; a success was answered 2xx"
            }
            Invariant::WithinAttempts => "no run of a task was sent more often than maxAttempts, no attempt twice",
            Invariant::SameRequest => "every send of a task carried the key, target and body that were acknowledged",
            Invariant::NothingAfterTheEnd => {
                "nothing was sent after the API said that a task had ended or was cancelled"
            }
            Invariant::Fenced => "tokens and attempt numbers only grow; nothing was sent or settled under a lost lease",
            Invariant::RetryBudget => "the retries of all nodes stay within one budget, counted at the dependency",
            Invariant::DeadLetters => "the dead letters are the FAILED and EXHAUSTED tasks, every node's counts agree",
            Invariant::OneTaskPerKey => "one key is one task, whichever node is asked; another request under it is 422",
            Invariant::ScheduleIsAnIndex => "no due task was forgotten, whichever schedule was lost",
            Invariant::TenantsApart => {
                "everything belongs to the one tenant that there is today (no more can be shown)"
            }
            Invariant::Settles => "once the faults had stopped all work settled, and no node ended by itself",
        }
    }
}

/// An invariant that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The invariant.
    pub invariant: Invariant,
    /// The task that broke it, if it was one.
    pub task: Option<String>,
    /// What shows it.
    pub evidence: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant {}: {}", self.invariant as u8, self.evidence)
    }
}

/// Checks every invariant.
pub fn check(history: &History) -> Vec<Violation> {
    let mut found = Found::default();
    ends::check(history, &mut found);
    budget::check(history, &mut found);
    sends::check(history, &mut found);
    leases::check(history, &mut found);
    keys::check(history, &mut found);
    settling::check(history, &mut found);
    found.0.sort_by_key(|violation| violation.invariant);
    found.0
}

#[derive(Default)]
struct Found(Vec<Violation>);

impl Found {
    /// Adds a violation by a task.
    fn about(&mut self, invariant: Invariant, task: &str, evidence: impl fmt::Display) {
        let evidence = format!("task {task}: {evidence}");
        self.0.push(Violation { invariant, task: Some(task.to_owned()), evidence });
    }

    /// Adds a violation by no task in particular.
    fn add(&mut self, invariant: Invariant, evidence: String) {
        self.0.push(Violation { invariant, task: None, evidence });
    }
}
