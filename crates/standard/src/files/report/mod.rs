//! The same verdict in four forms, one file each.
//!
//! Not here: where it is written to, and with which code the program ends.

mod github;
mod json;
mod people;
mod sarif;

pub use github::github;
pub use json::json;
pub use people::people;
pub use sarif::sarif;

use crate::rules::{Finding, Gate};

/// How bad something is, in the three words that SARIF and GitHub have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// It stops a merge or a deploy.
    Error,
    /// An approval is needed.
    Warning,
    /// It is advice.
    Note,
}

impl Level {
    fn of(gate: Gate) -> Self {
        match gate {
            Gate::Merge | Gate::Deploy => Level::Error,
            Gate::Approval => Level::Warning,
            Gate::Advice => Level::Note,
        }
    }
}

/// What is wrong, why, and the fix, in one paragraph that goes on behind a colon. It may begin with a name, which is
/// written as its owner writes it.
fn in_short(finding: &Finding) -> String {
    format!("{}. {} Fix: {}.", finding.wrong, finding.check.why, finding.fix)
}

/// The text with a capital letter at its beginning, as a sentence has.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
