//! The breaker that all processes share.
//!
//! Each process judges its own calls; the first one whose breaker opens opens it for all. When the time is over, *one*
//! process sends the probes: it holds the right to probe for a short time and renews it. If it dies, another takes over.
//! Every change has a number, the *epoch*, so that a process which looks later learns what it missed, and a process that
//! was stopped for long cannot undo what the others have decided since.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Exchange;
use crate::guards::breaker::OpenedBy;
use crate::time::Timestamp;

/// For how long a process holds the right to probe, unless it renews it.
pub(crate) const PROBE_RIGHT: Duration = Duration::from_secs(15);

/// The breaker of a lane, for all processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SharedBreaker {
    /// The number of changes.
    pub epoch: u64,
    /// The state.
    pub state: SharedBreakerState,
}

/// The state of a shared breaker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum SharedBreakerState {
    /// Calls are made.
    #[default]
    Closed,
    /// Nothing is sent.
    Open {
        /// When the probes begin.
        until: Timestamp,
        /// In milliseconds for how long it was opened.
        pause_ms: u64,
        /// How often it has opened since it was last closed.
        opened: u32,
        /// Why it opened.
        why: String,
    },
    /// One process sends the probes.
    Probing {
        /// That process.
        by: String,
        /// When another may take over.
        until: Timestamp,
        /// How many probes have succeeded, of all processes.
        #[serde(default)]
        succeeded: u32,
        /// How often it has opened since it was last closed.
        opened: u32,
        /// Why it had opened.
        why: String,
    },
}

/// What happened to the breaker of one process, or what it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerChange {
    /// It opened.
    Opened {
        /// When the probes begin.
        until: Timestamp,
        /// For how long it was opened.
        pause: Duration,
        /// How often it has opened since it was last closed.
        opened: u32,
        /// Why it opened.
        why: OpenedBy,
    },
    /// Its probes succeeded.
    Closed,
    /// An operator closed it.
    ClosedByHand,
    /// Its time is over, and the process has work to probe with; or it renews its right to, or reports a probe that
    /// succeeded.
    Probe {
        /// How many probes have succeeded.
        succeeded: u32,
    },
}

impl SharedBreaker {
    /// When the present state ends by itself; `None` if it is closed.
    pub(super) fn ends_at(&self) -> Option<Timestamp> {
        match &self.state {
            SharedBreakerState::Closed => None,
            SharedBreakerState::Open { until, .. } | SharedBreakerState::Probing { until, .. } => Some(*until),
        }
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.state == SharedBreakerState::Closed
    }

    /// Applies what a process reports.
    pub(super) fn apply(&mut self, exchange: &Exchange, node: &str, now: Timestamp) {
        let next = match exchange.breaker {
            None => None,
            Some(BreakerChange::Opened { until, pause, opened, why }) => {
                let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
                let open = SharedBreakerState::Open { until, pause_ms, opened, why: why.as_str().to_owned() };
                self.may_open(until, why, exchange.epoch, node).then_some(open)
            }
            Some(BreakerChange::Closed) => {
                let is_its_own = self.is_probed_by(node) && self.epoch == exchange.epoch;
                is_its_own.then_some(SharedBreakerState::Closed)
            }
            Some(BreakerChange::ClosedByHand) => (!self.is_closed()).then_some(SharedBreakerState::Closed),
            Some(BreakerChange::Probe { succeeded }) => self.probing(node, succeeded, now),
        };
        if let Some(next) = next {
            // The others do not have to know at once that a right was renewed.
            let is_news = !(self.is_probed_by(node) && matches!(next, SharedBreakerState::Probing { .. }));
            self.state = next;
            self.epoch += u64::from(is_news);
        }
    }

    fn may_open(&self, new_until: Timestamp, why: OpenedBy, epoch: u64, node: &str) -> bool {
        match &self.state {
            _ if why == OpenedBy::Operator => true,
            // Calls of this process failed, whatever it has not seen: also if it was opened and closed meanwhile.
            SharedBreakerState::Closed => why != OpenedBy::FailedProbe || self.epoch == epoch,
            // A longer Retry-After extends it.
            SharedBreakerState::Open { until, .. } => new_until > *until,
            // Calls that failed before the probes began say nothing new.
            SharedBreakerState::Probing { by, .. } => by == node && self.epoch == epoch,
        }
    }

    fn probing(&self, node: &str, reported: u32, now: Timestamp) -> Option<SharedBreakerState> {
        let right = |succeeded: u32, opened: u32, why: &str| SharedBreakerState::Probing {
            by: node.to_owned(),
            until: now.after(PROBE_RIGHT),
            succeeded,
            opened,
            why: why.to_owned(),
        };
        match &self.state {
            SharedBreakerState::Open { until, opened, why, .. } if now >= *until => Some(right(0, *opened, why)),
            SharedBreakerState::Probing { by, succeeded, opened, why, .. } if by == node => {
                Some(right(reported.max(*succeeded), *opened, why))
            }
            SharedBreakerState::Probing { until, succeeded, opened, why, .. } if now >= *until => {
                Some(right(*succeeded, *opened, why))
            }
            _ => None,
        }
    }

    fn is_probed_by(&self, node: &str) -> bool {
        matches!(&self.state, SharedBreakerState::Probing { by, .. } if by == node)
    }
}
