//! What came of judging files: findings with their places, problems, and their number.

use std::collections::HashMap;
use std::fmt;

use crate::rules::{Finding, Gate};
use sha2::{Digest, Sha256};

use crate::files::problem::Problem;
use crate::files::source::Spot;

/// A finding with the place that it was found at.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// What was found.
    pub finding: Finding,
    /// Where.
    pub spot: Spot,
    /// Whose it is.
    pub subject: Subject,
    /// What it is known by, also when lines move: the check, the file's path and the names on the way to it.
    pub fingerprint: String,
}

/// What was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The policy with this name.
    Policy(String),
    /// The service with this name, or what it does with one of its dependencies.
    Service {
        /// The service's name.
        name: String,
        /// The dependency's name.
        dependency: Option<String>,
    },
}

/// What came of judging some files.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The rules that are broken, in the order of the files.
    pub findings: Vec<Found>,
    /// What could not be read, and so was not judged.
    pub problems: Vec<Problem>,
    /// How many files were given.
    pub files: usize,
    /// How many policies are in them.
    pub policies: usize,
    /// How many services are in them.
    pub services: usize,
}

/// The findings that nobody has approved, by the gate that stops them, and those that somebody has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Must not be merged.
    pub merge: usize,
    /// Must not be deployed.
    pub deploy: usize,
    /// Need an approval.
    pub approval: usize,
    /// Are advice.
    pub advice: usize,
    /// Have been approved.
    pub approved: usize,
}

impl Verdict {
    /// Whether a finding that nobody has approved is stopped at `gate` or a stricter one.
    pub fn is_stopped_at(&self, gate: Gate) -> bool {
        self.findings.iter().any(|found| !found.finding.is_permitted() && found.finding.check.gate >= gate)
    }

    /// The findings, counted.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for found in &self.findings {
            *match found.finding.check.gate {
                _ if found.finding.is_permitted() => &mut tally.approved,
                Gate::Merge => &mut tally.merge,
                Gate::Deploy => &mut tally.deploy,
                Gate::Approval => &mut tally.approval,
                Gate::Advice => &mut tally.advice,
            } += 1;
        }
        tally
    }
}

impl Tally {
    /// How many findings nobody has approved.
    pub fn open(&self) -> usize {
        self.merge + self.deploy + self.approval + self.advice
    }
}

impl Subject {
    /// What kind of thing it is, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Subject::Policy(_) => "policy",
            Subject::Service { .. } => "service",
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Subject::Policy(name) | Subject::Service { name, .. } => name,
        }
    }
}

/// `policy webhooks`, `service checkout, dependency billing`.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.name())?;
        match self {
            Subject::Service { dependency: Some(dependency), .. } => write!(f, ", dependency {dependency}"),
            _ => Ok(()),
        }
    }
}

/// Makes fingerprints; findings that would have the same one are counted.
#[derive(Debug, Default)]
pub(crate) struct Fingerprints {
    seen: HashMap<String, usize>,
}

impl Fingerprints {
    pub(crate) fn of(&mut self, check: &str, file: &str, lasting_path: &str) -> String {
        let digest = Sha256::digest(format!("{check}\n{file}\n{lasting_path}"));
        let name: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        let count = self.seen.entry(name.clone()).or_default();
        *count += 1;
        format!("{name}:{count}")
    }
}
