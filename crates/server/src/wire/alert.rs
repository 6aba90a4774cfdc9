//! Alerts, silences and tests of sinks.

use redrive_core::Timestamp;
use redrive_core::alerts::{Alert, Subject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::Text;
use crate::alerts::{Silence, SinkSettings};
use crate::operations::AlertList;

/// What fires, what has fired, and what is silenced.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AlertList")]
pub struct ShownAlertList<'a> {
    /// The node that reports: each node compares what it sees with the rules.
    pub node: &'a str,
    /// What fires: the most severe first, then the newest. At most as many as were asked for.
    pub firing: Vec<ShownAlert<'a>>,
    /// How many alerts fire.
    pub firing_count: usize,
    /// What is over, the newest first: the last 500 at most since this node started, at most as many as were asked for.
    pub past: Vec<ShownAlert<'a>>,
    /// Silences of all nodes that have not ended; `null` if the store does not answer at the moment.
    pub silences: Option<Vec<ShownSilence<'a>>>,
    /// The sinks that this node tells.
    pub sinks: Vec<ShownSink<'a>>,
}

/// An alert that fires or has fired.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Alert")]
pub struct ShownAlert<'a> {
    /// The name of its rule.
    pub rule: &'static str,
    /// `critical`: look now; `warning`: look during the day; `info`.
    #[schemars(extend("enum" = ["info", "warning", "critical"]))]
    pub severity: &'static str,
    /// The dependency that it is about, or the sink; `null` if it is about the service.
    pub dependency: Option<&'a str>,
    /// The last value while it fired.
    pub value: f64,
    /// What that value means.
    pub why: &'a str,
    /// When it began to fire, in milliseconds since the epoch.
    pub fired_at: u64,
    /// When it was over; `null` while it fires.
    pub resolved_at: Option<u64>,
    /// Whether a silence keeps it from the sinks now; `null` if the store does not answer at the moment.
    pub silenced: Option<bool>,
}

/// A silence: alerts that sinks are not told of for a time.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Silence")]
pub struct ShownSilence<'a> {
    /// Its id.
    pub silence_id: String,
    /// The rule; `null` for all.
    pub rule: Option<&'static str>,
    /// The dependency; `null` for all, and for the service itself.
    pub dependency: Option<&'a str>,
    /// The reason that was given.
    pub reason: Option<&'a str>,
    /// Who set it.
    pub by: &'a str,
    /// When it was set, in milliseconds since the epoch.
    pub at: u64,
    /// When it ends.
    pub until: u64,
}

/// A sink of alerts. Its URL may be a secret and is not shown.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Sink")]
pub struct ShownSink<'a> {
    /// Its name.
    pub sink: &'a str,
    /// What it understands.
    #[schemars(extend("enum" = ["alertmanager", "webhook", "slack"]))]
    pub kind: &'static str,
}

/// What to silence, and for how long.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SilenceInput<'a> {
    /// The name of a rule; all rules if not given.
    #[serde(borrow, default)]
    pub rule: Option<Text<'a>>,
    /// The dependency; all, and the service itself, if not given.
    #[serde(borrow, default)]
    pub dependency: Option<Text<'a>>,
    /// How long it lasts, in milliseconds: at most 30 days. Either this or `untilMs` is required.
    #[serde(default)]
    #[schemars(extend("minimum" = 1, "maximum" = 2_592_000_000_u64))]
    pub for_ms: Option<u64>,
    /// When it ends, in milliseconds since the epoch.
    #[serde(default)]
    pub until_ms: Option<u64>,
    /// The reason, for people: at most 300 characters.
    #[serde(borrow, default)]
    #[schemars(extend("maxLength" = 300))]
    pub reason: Option<Text<'a>>,
}

/// What became of a test of a sink.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SinkTest")]
pub struct ShownSinkTest<'a> {
    /// The sink.
    pub sink: &'a str,
    /// Whether it took the notification.
    pub received: bool,
    /// The status code that it answered; `null` if it did not take the notification.
    pub status: Option<u16>,
    /// Why it did not take it; `null` if it did.
    pub error: Option<&'a str>,
}

impl<'a> ShownAlertList<'a> {
    /// At most `most` alerts of each kind.
    pub fn new(list: &'a AlertList, sinks: &'a [SinkSettings], node: &'a str, now: Timestamp, most: usize) -> Self {
        let shown = |alert: &'a Alert| {
            let silences = list.silences.as_ref();
            let silenced = silences.map(|silences| silences.iter().any(|silence| silence.covers(alert, now)));
            ShownAlert::new(alert, silenced)
        };
        ShownAlertList {
            node,
            firing: list.firing.iter().take(most).map(shown).collect(),
            firing_count: list.firing.len(),
            past: list.past.iter().take(most).map(|alert| ShownAlert::new(alert, Some(false))).collect(),
            silences: list.silences.as_ref().map(|silences| silences.iter().map(ShownSilence::new).collect()),
            sinks: sinks.iter().map(|sink| ShownSink { sink: sink.name.as_str(), kind: sink.kind.as_str() }).collect(),
        }
    }
}

impl<'a> ShownAlert<'a> {
    fn new(alert: &'a Alert, silenced: Option<bool>) -> Self {
        ShownAlert {
            rule: alert.signal.as_str(),
            severity: alert.severity.as_str(),
            dependency: match &alert.subject {
                Subject::Lane(lane) => Some(lane.dependency.as_str()),
                Subject::Service => None,
            },
            value: alert.value,
            why: &alert.why,
            fired_at: alert.fired_at.as_millis(),
            resolved_at: alert.resolved_at.map(Timestamp::as_millis),
            silenced,
        }
    }
}

impl<'a> ShownSilence<'a> {
    /// The silence as the API shows it.
    pub fn new(silence: &'a Silence) -> Self {
        ShownSilence {
            silence_id: silence.id.to_string(),
            rule: silence.signal.map(redrive_core::alerts::Signal::as_str),
            dependency: silence.dependency.as_ref().map(redrive_core::Dependency::as_str),
            reason: silence.note.reason.as_deref(),
            by: &silence.note.by,
            at: silence.note.at.as_millis(),
            until: silence.until.as_millis(),
        }
    }
}

impl<'a> ShownSinkTest<'a> {
    /// The result as the API shows it.
    pub fn new(sink: &'a str, result: &'a Result<u16, String>) -> Self {
        ShownSinkTest {
            sink,
            received: result.is_ok(),
            status: result.as_ref().ok().copied(),
            error: result.as_ref().err().map(String::as_str),
        }
    }
}
