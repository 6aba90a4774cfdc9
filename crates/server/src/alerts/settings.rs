//! Rules, sinks and times of alerts.

use std::fmt;

use redrive_core::alerts::{Alert, Rules, Severity, Signal, Timing};
use redrive_core::health::Thresholds;

use super::readings;

/// The settings of alerts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// When each signal fires.
    pub rules: Rules,
    /// Who is told.
    pub sinks: Vec<SinkSettings>,
    /// When they are told.
    pub timing: Timing,
}

/// Who is told of alerts.
#[derive(Debug, Clone, PartialEq)]
pub struct SinkSettings {
    /// Its name.
    pub name: SinkName,
    /// What it understands.
    pub kind: SinkKind,
    /// Where it is.
    pub target: Target,
    /// The signals that it is told of; all if empty.
    pub signals: Vec<Signal>,
    /// It is told of alerts of this severity or a higher one.
    pub least_severity: Severity,
}

/// The name of a sink: 1 to 32 lower-case letters, digits and `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SinkName(String);

/// What a sink understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkKind {
    /// The API of Prometheus' Alertmanager, version 2. The target is its base URL.
    Alertmanager,
    /// A document of Redrive's own.
    Webhook,
    /// An incoming webhook of Slack, or of what is compatible with it.
    Slack,
}

/// Where a sink is. Its path may be a secret, so it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// An absolute URL.
    pub url: String,
    /// The value of the header `Authorization`, if one is sent.
    pub authorization: Option<String>,
}

impl Settings {
    /// What the figures of the health report mean: red is what an alert fires at, green what it clears at.
    pub fn thresholds(&self) -> Thresholds {
        readings::thresholds(&self.rules)
    }

    /// Whether a sink is told of dead letters.
    pub fn tells_of_dead_letters(&self) -> bool {
        let rule = self.rules.of(Signal::DeadLetter);
        rule.is_enabled && self.sinks.iter().any(|sink| sink.selects(Signal::DeadLetter, rule.severity))
    }
}

impl SinkSettings {
    /// Whether the sink is told of this alert.
    pub(super) fn is_told_of(&self, alert: &Alert) -> bool {
        self.selects(alert.signal, alert.severity)
    }

    fn selects(&self, signal: Signal, severity: Severity) -> bool {
        !signal.is_local()
            && severity >= self.least_severity
            && (self.signals.is_empty() || self.signals.contains(&signal))
    }
}

impl SinkName {
    const MOST_CHARS: usize = 32;

    /// A name, if it is valid.
    pub fn try_new(name: &str) -> Option<Self> {
        let is_valid = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
        let is_name = !name.is_empty() && name.len() <= Self::MOST_CHARS && name.chars().all(is_valid);
        is_name.then(|| SinkName(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl SinkKind {
    /// Every kind.
    pub const ALL: [SinkKind; 3] = [SinkKind::Alertmanager, SinkKind::Webhook, SinkKind::Slack];

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        SinkKind::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Its name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            SinkKind::Alertmanager => "alertmanager",
            SinkKind::Webhook => "webhook",
            SinkKind::Slack => "slack",
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
