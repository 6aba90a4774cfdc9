//! Invariant 8, of several nodes: one retry budget bounds what all of them send to the frail dependency.
//!
//! Whenever a token is granted, the tokens of the 31 buckets of a second up to its own (and the reported probes) are at
//! most 10 + 20 % of the first attempts and refunded retries of the last 30. Seen from outside:
//!
//! - **A retry's token.** An attempt is claimed, takes a token, begins to be sent (its line in the log says when; for an
//!   attempt that was cut off, when it was claimed), and arrives. Just before its first byte it is checked that the claim
//!   is not older than half of the lease margin. The token's second began less than 2 s before the retry took it. So it
//!   lies between 2.5 s before the time in the log and the arrival, however long the process was suspended, or the machine
//!   busy, on the way. Only retries that began *and* arrived within the window count, and no delay has to be assumed.
//! - **The window.** Nodes' times differ by at most half a second (a node stops claiming when it cannot tell its time to
//!   a fifth of a second). 30 s minus 2.5 s for the token and twice the half second are 26.5 s: the retries that began
//!   within 26 s before the last of them arrived had all been charged when the last token was granted.
//! - **What earned them.** First attempts and refunded retries from 33 s before the latest beginning until the last
//!   arrival may have counted. It is not visible which retries were refunded: one that was answered and did not fail is not
//!   counted as a retry, and counts like a first attempt. A first attempt that is in the log and did not arrive may have
//!   counted, too.
//! - **Probes** of the breaker are charged and not held back. There are three in each round, and rounds are at least 12 s
//!   apart (the breaker is open for 15 s, less 20 %), so there are at most nine in 26 s.
//!
//! Not here: the breaker itself, and the budget of the other dependencies, whose tasks are cancelled and replayed.

use std::collections::BTreeMap;

use super::super::frail::FRAIL;
use super::super::history::History;
use super::{Found, Invariant};
use crate::witness::Arrival;

const SECOND_US: u64 = 1_000_000;
/// Retries that began and arrived within this time are judged together.
const WINDOW_US: u64 = 26 * SECOND_US;
/// How long before the latest beginning a first attempt may have been made that counted for it.
const EARNED_BEFORE_US: u64 = 33 * SECOND_US;
/// How long after the last arrival a first attempt may arrive that counted: another node's time may differ, and a first
/// attempt that a node gave back when it was stopped arrives later.
const EARNED_AFTER_US: u64 = 2 * SECOND_US;
/// How long after its beginning a first attempt may have been counted that never arrived: the longest suspension and more.
const NEVER_ARRIVED_US: u64 = 15 * SECOND_US;
/// Retries in 30 s that are allowed at any traffic.
const FLOOR: u64 = 10;
/// Further retries, in percent of the first attempts and refunded retries.
const PERCENT: u64 = 20;
/// The most probes of the breaker in a window.
const PROBES: u64 = 9;

/// The attempts of the lane, as the rule needs them.
#[derive(Debug, Default)]
struct Sends {
    /// Retries that failed: when they began, and when they arrived.
    retries: Vec<(u64, u64)>,
    /// First attempts, and retries that may have been refunded.
    earning: Vec<(u64, u64)>,
}

/// The window with the least room, or with the most retries beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullestWindow {
    /// Retries that were not refunded.
    pub retries: u64,
    /// First attempts and retries that may have been refunded.
    pub earning: u64,
    /// How many retries are allowed, in hundredths.
    allowed_hundredths: u64,
}

impl FullestWindow {
    /// How many retries are allowed.
    pub fn allowed(&self) -> u64 {
        self.allowed_hundredths / 100
    }

    fn is_exceeded(&self) -> bool {
        100 * self.retries > self.allowed_hundredths
    }
}

pub(super) fn check(history: &History, found: &mut Found) {
    if let Some(window) = fullest_window(history).filter(FullestWindow::is_exceeded) {
        let (retries, earning, allowed) = (window.retries, window.earning, window.allowed());
        found.add(
            Invariant::RetryBudget,
            format!(
                "{FRAIL} got {retries} retries within {} s that were not refunded, and {allowed} are allowed after {earning} first attempts and successes",
                WINDOW_US / SECOND_US
            ),
        );
    }
}

/// The window of the run in which the budget was used most; `None` without a retry.
pub fn fullest_window(history: &History) -> Option<FullestWindow> {
    let sends = Sends::of(history);
    let windows = sends.retries.iter().filter_map(|(_, end)| sends.window(*end));
    windows.max_by_key(|window| (100 * window.retries) as i64 - window.allowed_hundredths as i64)
}

impl Sends {
    fn of(history: &History) -> Self {
        let mut arrived: BTreeMap<(&str, u32), &Arrival> = BTreeMap::new();
        for arrival in &history.arrivals {
            // Attempts that arrived twice break invariant 2.
            arrived.insert((&arrival.task, arrival.attempt), arrival);
        }
        let is_frail = |key: &String| {
            history.requested.get(key).into_iter().flatten().any(|requested| requested.dependency == FRAIL)
        };
        let mut sends = Sends::default();
        for (id, kept) in history.end.kept.iter().filter(|(_, kept)| is_frail(&kept.task.idempotency_key)) {
            for attempt in &kept.attempts {
                let began = attempt.started_at * 1_000;
                let is_first = attempt.attempt_number == 1;
                match arrived.get(&(id.as_str(), attempt.attempt_number)) {
                    Some(arrival) if is_first || may_be_refunded(arrival) => sends.earning.push((began, arrival.at)),
                    Some(arrival) => sends.retries.push((began, arrival.at)),
                    None if is_first => sends.earning.push((began, began + NEVER_ARRIVED_US)),
                    None => {}
                }
            }
        }
        sends
    }

    /// The window up to `end`; `None` if no retry began and arrived in it.
    fn window(&self, end: u64) -> Option<FullestWindow> {
        let begin = end.saturating_sub(WINDOW_US);
        let judged = self.retries.iter().filter(|(began, arrived)| *began >= begin && *arrived <= end);
        let latest = judged.clone().map(|(began, _)| *began).max()?;
        let (from, until) = (latest.saturating_sub(EARNED_BEFORE_US), end + EARNED_AFTER_US);
        let earning = self.earning.iter().filter(|(began, arrived)| *began <= until && *arrived >= from);
        let earning = earning.count() as u64;
        let allowed_hundredths = 100 * (FLOOR + PROBES) + PERCENT * earning;
        Some(FullestWindow { retries: judged.count() as u64, earning, allowed_hundredths })
    }
}

/// Whether the answer is no failure of the dependency.
fn may_be_refunded(arrival: &Arrival) -> bool {
    arrival.answered.is_some_and(|status| status < 500 && status != 429)
}
