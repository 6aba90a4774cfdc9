//! What operators set for one lane: a pause, a breaker that is held open, other limits. Durable, and the same on all
//! nodes.

use serde::{Deserialize, Serialize};

use crate::guards::concurrency;
use crate::time::Timestamp;

/// What operators have set for a lane.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Controls {
    /// The lane is paused: nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<Note>,
    /// The breaker is held open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<HeldOpen>,
    /// Limits of attempts in flight that replace the server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Who set the limits, when and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits_note: Option<Note>,
}

/// Who set something, when and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    /// When.
    pub at: Timestamp,
    /// The caller's name.
    pub by: String,
    /// The reason that was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A breaker that is held open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldOpen {
    /// Who opened it, when and why.
    pub note: Note,
    /// When it begins to probe; `None` until it is closed by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// Limits of attempts in flight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    /// A fixed limit, which does not adapt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// The least that an adaptive limit goes down to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_concurrency: Option<u32>,
    /// The most that an adaptive limit goes up to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
}

impl Controls {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Controls::default()
    }
}

impl Limits {
    /// The server's settings with these limits applied, never above the server's own most.
    pub fn apply(&self, settings: concurrency::Settings) -> concurrency::Settings {
        let server_most = settings.most;
        match self.concurrency {
            Some(fixed) => concurrency::Settings { is_adaptive: false, most: fixed.min(server_most), ..settings },
            None => {
                let most = self.max_concurrency.unwrap_or(server_most).min(server_most);
                let least = self.min_concurrency.unwrap_or(settings.least).min(most);
                concurrency::Settings { least, most, ..settings }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_replace_the_servers_and_stay_below_its_most() {
        let server = concurrency::Settings { is_adaptive: true, least: 1, most: 128, ..Default::default() };
        let applied = |concurrency, min_concurrency, max_concurrency| {
            let limits = Limits { concurrency, min_concurrency, max_concurrency };
            let settings = limits.apply(server);
            (settings.is_adaptive, settings.least, settings.most)
        };
        assert_eq!(applied(None, None, None), (true, 1, 128));
        assert_eq!(applied(Some(5), None, None), (false, 1, 5));
        assert_eq!(applied(Some(500), None, None), (false, 1, 128));
        assert_eq!(applied(None, Some(4), Some(60)), (true, 4, 60));
        assert_eq!(applied(None, None, Some(900)), (true, 1, 128));
        assert_eq!(applied(None, Some(500), None), (true, 128, 128));
    }

    #[test]
    fn what_is_not_set_is_not_written() {
        assert_eq!(serde_json::to_string(&Controls::default()).unwrap(), "{}");
        assert!(serde_json::from_str::<Controls>("{}").unwrap().is_empty());
        let note = Note { at: Timestamp::from_millis(5), by: "local".into(), reason: None };
        let paused = Controls { pause: Some(note), ..Controls::default() };
        let text = serde_json::to_string(&paused).unwrap();
        assert_eq!(text, r#"{"pause":{"at":5,"by":"local"}}"#);
        assert_eq!(serde_json::from_str::<Controls>(&text).unwrap(), paused);
    }
}
