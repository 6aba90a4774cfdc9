//! The settings of alerts: when they fire, and who is told.
//!
//! Rules and sinks are sections of the file, or words:
//!
//! ```toml
//! [alerts.rules.retry-rate]
//! fire = 0.2
//! clear = 0.1
//!
//! [alerts.sinks.on-call]
//! kind = "slack"
//! url = "https://hooks.slack.com/services/…"
//! severity = "warning"
//! ```
//!
//! As words these are `retry-rate=0.2:0.1` and `on-call=slack:https://hooks.slack.com/services/…`.

mod rules;
mod sinks;

use std::ops::RangeInclusive;
use std::time::Duration;

use redrive_core::alerts::Severity;
use redrive_server::alerts::Settings;

use super::given::{Expected, Given};
use super::value::duration;
use super::{Config, Setting, duration_text};

const DAY: Duration = Duration::from_secs(86_400);
const TIMES: RangeInclusive<Duration> = Duration::ZERO..=DAY;
const REPEATS: RangeInclusive<Duration> = Duration::from_secs(60)..=Duration::from_secs(30 * 86_400);

pub(super) const WAIT: Setting = Setting {
    key: "alerts.wait",
    variable: "REDRIVE_ALERTS_WAIT",
    flag: "alerts-wait",
    value_name: "DURATION",
    meaning: "how long the first notification about a rule waits for more alerts of the same rule (for dead letters at most 15s)",
    repeats: false,
    read: |config, given| given.duration(TIMES).map(|wait| config.alerts.timing.wait = wait),
    show: |config| duration(config.alerts.timing.wait),
};

pub(super) const INTERVAL: Setting = Setting {
    key: "alerts.interval",
    variable: "REDRIVE_ALERTS_INTERVAL",
    flag: "alerts-interval",
    value_name: "DURATION",
    meaning: "the time between two notifications about a rule while its alerts change (for dead letters at most 15s)",
    repeats: false,
    read: |config, given| given.duration(TIMES).map(|interval| config.alerts.timing.interval = interval),
    show: |config| duration(config.alerts.timing.interval),
};

pub(super) const REPEAT: Setting = Setting {
    key: "alerts.repeat",
    variable: "REDRIVE_ALERTS_REPEAT",
    flag: "alerts-repeat",
    value_name: "DURATION",
    meaning: "the time after which sinks are told again of what still fires (an Alertmanager every 5m at the latest)",
    repeats: false,
    read: |config, given| given.duration(REPEATS).map(|repeat| config.alerts.timing.repeat = repeat),
    show: |config| duration(config.alerts.timing.repeat),
};

pub(super) const RULES: Setting = Setting {
    key: "alerts.rules",
    variable: "REDRIVE_ALERTS_RULES",
    flag: "alert-rules",
    value_name: "NAME=off|FIRE:CLEAR",
    meaning: "rules of alerts that differ from their defaults: NAME=off, NAME=FIRE or NAME=FIRE:CLEAR (in the variable: \
        separated by ','); in the file a section for each, [alerts.rules.NAME] with enabled, fire, clear, window, wait, keep \
        and severity; docs/alerts.md lists the rules",
    repeats: true,
    read: |config, given| rules::read(given).map(|rules| config.alerts.rules = rules),
    show: |config| rules::show(&config.alerts.rules),
};

pub(super) const SINKS: Setting = Setting {
    key: "alerts.sinks",
    variable: "REDRIVE_ALERTS_SINKS",
    flag: "alert-sinks",
    value_name: "NAME=KIND:URL",
    meaning: "who is told of alerts: NAME=alertmanager:URL, NAME=webhook:URL or NAME=slack:URL (in the variable: separated by \
        ','); in the file a section for each, [alerts.sinks.NAME] with kind, url, authorization, rules and severity",
    repeats: true,
    read: |config, given| sinks::read(given).map(|sinks| config.alerts.sinks = sinks),
    show: |config| sinks::show(&config.alerts.sinks),
};

fn severity(given: &Given) -> Result<Severity, Expected> {
    given.one_of(&Severity::ALL.map(|severity| (severity.as_str(), severity)))
}

/// What is wrong with the settings of alerts as a whole: each with its key.
pub(super) fn problems(config: &Config) -> Vec<(&'static str, String)> {
    let Settings { timing, .. } = &config.alerts;
    let wrong = format!("must be at least alerts.interval ({})", duration_text(timing.interval));
    (timing.repeat < timing.interval).then_some((REPEAT.key, wrong)).into_iter().collect()
}

#[cfg(test)]
mod tests;
