//! The health report.

use redrive_core::Dependency;
use redrive_core::health::{Assessment, Window};
use schemars::JsonSchema;
use serde::Serialize;

use crate::operations::{HealthReport, JudgedHealth};

/// The health of deliveries in the last hour.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "HealthReport")]
pub struct ShownHealthReport<'a> {
    /// The node that reports: it counts the tasks that it has ended since it started.
    pub node: &'a str,
    /// The moment of the report, in milliseconds since the epoch.
    pub at: u64,
    /// The beginning of the hour that it covers, in milliseconds since the epoch.
    pub since: u64,
    /// The length of that time in milliseconds.
    pub window_ms: u64,
    /// `red` if a figure calls for action, `yellow` if one is unusual, `green` if all are usual, `silent` if too few tasks ended.
    pub health: &'static str,
    /// The figures over all dependencies.
    pub figures: Vec<ShownFigure<'a>>,
    /// Dependencies, the worst first, as many as were asked for.
    pub dependencies: Vec<DependencyHealth<'a>>,
    /// How many dependencies there are to show.
    pub dependency_count: usize,
}

/// The health of one dependency.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependencyHealth<'a> {
    /// The dependency.
    pub dependency: &'a str,
    /// As for the whole report.
    pub health: &'static str,
    /// Its figures.
    pub figures: Vec<ShownFigure<'a>>,
}

/// A figure of health.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "HealthFigure")]
pub struct ShownFigure<'a> {
    /// `retryRate`, `deadLetterRate` and `secondAttemptSuccess` are shares from 0 to 1, `attemptsToSuccess` is a mean, `longInRetry` is
    /// the number of tasks that have been retried for more than 24 hours.
    pub figure: &'static str,
    /// Its value; `null` if there is none.
    pub value: Option<f64>,
    /// How many tasks the value was computed from; `null` for a number of tasks.
    pub sample: Option<u32>,
    /// What the value means: `silent`, `green`, `yellow` or `red`.
    pub health: &'static str,
    /// The reason, in words.
    pub why: &'a str,
}

impl<'a> ShownHealthReport<'a> {
    /// The report as the API shows it, with at most `most` dependencies.
    pub fn new(report: &'a HealthReport, node: &'a str, most: usize) -> Self {
        ShownHealthReport {
            node,
            at: report.at.as_millis(),
            since: report.since.as_millis(),
            window_ms: u64::try_from(Window::LONGEST.as_millis()).unwrap_or(u64::MAX),
            health: report.overall_health().as_str(),
            figures: figures(&report.overall),
            dependencies: report.dependencies.iter().take(most).map(DependencyHealth::new).collect(),
            dependency_count: report.dependencies.len(),
        }
    }
}

impl<'a> DependencyHealth<'a> {
    fn new((dependency, judged): &'a (Dependency, JudgedHealth)) -> Self {
        DependencyHealth { dependency: dependency.as_str(), health: judged.health.as_str(), figures: figures(judged) }
    }
}

fn figures<'a>(judged: &'a JudgedHealth) -> Vec<ShownFigure<'a>> {
    let shown = |assessment: &'a Assessment| {
        let Assessment { figure, value, sample, health, why } = assessment;
        ShownFigure { figure: figure.as_str(), value: *value, sample: *sample, health: health.as_str(), why }
    };
    judged.figures.iter().map(shown).collect()
}
