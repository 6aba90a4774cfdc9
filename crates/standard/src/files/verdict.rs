//! The result of linting files: findings with their locations, problems, and counts.

use std::collections::HashMap;
use std::fmt;

use sha2::{Digest, Sha256};

use crate::files::problem::Problem;
use crate::files::source::Location;
use crate::rules::{Finding, Gate};

/// A finding with its location.
#[derive(Debug, Clone, PartialEq)]
pub struct LocatedFinding {
    /// The finding.
    pub finding: Finding,
    /// Its location in the file.
    pub location: Location,
    /// The policy or the service that it is about.
    pub subject: Subject,
    /// An id that stays the same when lines move: a hash of the check, the file's path and the names on the way to it.
    pub fingerprint: String,
}

/// The subject of a finding.
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

/// The result of linting some files.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The rules that are broken, in the order of the files.
    pub findings: Vec<LocatedFinding>,
    /// Parts that could not be read, and so were not checked.
    pub problems: Vec<Problem>,
    /// How many files were given.
    pub files: usize,
    /// How many policies are in them.
    pub policies: usize,
    /// How many services are in them.
    pub services: usize,
}

/// The number of findings by gate; approved ones are counted separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FindingCounts {
    /// Findings that block the merge.
    pub merge: usize,
    /// Findings that block the deploy.
    pub deploy: usize,
    /// Findings that need an approval.
    pub approval: usize,
    /// Findings that are advice.
    pub advice: usize,
    /// Findings with an approval.
    pub approved: usize,
}

impl Verdict {
    /// Whether there is a finding without an approval at `gate` or a stricter one.
    pub fn is_stopped_at(&self, gate: Gate) -> bool {
        self.findings.iter().any(|found| !found.finding.is_permitted() && found.finding.check.gate >= gate)
    }

    /// The findings, counted.
    pub fn counts(&self) -> FindingCounts {
        let mut counts = FindingCounts::default();
        for found in &self.findings {
            *match found.finding.check.gate {
                _ if found.finding.is_permitted() => &mut counts.approved,
                Gate::Merge => &mut counts.merge,
                Gate::Deploy => &mut counts.deploy,
                Gate::Approval => &mut counts.approval,
                Gate::Advice => &mut counts.advice,
            } += 1;
        }
        counts
    }
}

impl FindingCounts {
    /// The findings without an approval.
    pub fn open(&self) -> usize {
        self.merge + self.deploy + self.approval + self.advice
    }
}

impl Subject {
    /// `policy` or `service`.
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
