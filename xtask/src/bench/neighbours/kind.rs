//! The kinds of bad dependencies.

use std::time::Duration;

use bytes::Bytes;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};

use crate::http::{Reply, Request, Respond};

/// How long a slow dependency takes to answer.
const SLOW: Duration = Duration::from_secs(4);
/// The time between two bytes of a trickling answer.
const TRICKLE_EVERY: Duration = Duration::from_millis(100);

const OK: Bytes = Bytes::from_static(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
const LONG: Bytes = Bytes::from_static(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n");

/// The behaviour of a bad dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Answers 200 after 4 s
    Slow,
    /// Accepts and never answers
    Silent,
    /// Nothing listens on its port
    Refuse,
    /// Accepts, reads and resets
    Reset,
    /// Answers one byte of a long body every 100 ms
    Trickle,
    /// Has a name whose DNS server never answers
    Dns,
}

impl Kind {
    /// Every kind, in the order of the report.
    pub const ALL: [Kind; 6] = [Kind::Slow, Kind::Silent, Kind::Refuse, Kind::Reset, Kind::Trickle, Kind::Dns];

    /// Its name in reports, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Slow => "slow",
            Kind::Silent => "silent",
            Kind::Refuse => "refuse",
            Kind::Reset => "reset",
            Kind::Trickle => "trickle",
            Kind::Dns => "dns",
        }
    }

    /// The numbers of bad dependencies, one measurement for each.
    pub fn counts(self) -> &'static [usize] {
        match self {
            Kind::Slow | Kind::Silent | Kind::Dns => &[40, 300, 1_000],
            Kind::Refuse | Kind::Reset | Kind::Trickle => &[40],
        }
    }

    /// Whether an attempt fails within microseconds.
    ///
    /// Such attempts are spread over time. With all of them due at once they would compete for the CPU with the healthy
    /// lanes as any other work does, and the ratio would only show the size of the machine.
    pub fn fails_at_once(self) -> bool {
        matches!(self, Kind::Refuse | Kind::Reset)
    }

    /// The policy of a task for such a dependency: with attempts every `spread` if they fail at once.
    pub fn policy(self, spread: Duration) -> Option<Value> {
        (self.fails_at_once() && !spread.is_zero()).then(|| {
            let delay = spread.as_millis() as u64;
            json!({ "backoff": "fixed", "jitterType": "NONE", "initialDelayMs": delay, "maxDelayMs": delay })
        })
    }
}

impl Respond for Kind {
    fn respond(&self, _request: &Request<'_>) -> Reply {
        match self {
            Kind::Slow => Reply::After(SLOW, OK),
            Kind::Trickle => Reply::Endless { head: LONG, part: Bytes::from_static(b"."), every: TRICKLE_EVERY },
            Kind::Reset => Reply::Reset,
            // No request reaches the last two.
            Kind::Silent | Kind::Refuse | Kind::Dns => Reply::Never,
        }
    }
}
