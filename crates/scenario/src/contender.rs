//! A contender: one way of retrying, compared with others.

use std::time::Duration;

use redrive_core::guards::{self, breaker, budget, concurrency};
use redrive_core::policy::{Context, Policy};

/// One way of retrying.
#[derive(Debug, Clone, PartialEq)]
pub struct Contender {
    /// Its name.
    pub name: String,
    /// The rules that each of its requests follows.
    pub policy: Policy,
    /// The guards that may hold its requests back: one set for all of them, as for a lane of the service.
    pub guards: Guards,
}

/// The guards that may hold requests back.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Guards {
    /// Bounds the retries.
    pub budget: Option<budget::Settings>,
    /// Stops calls to a dependency that keeps failing.
    pub breaker: Option<breaker::Settings>,
    /// Bounds the attempts at once.
    pub concurrency: Option<concurrency::Settings>,
}

impl Guards {
    /// Whether there is any guard.
    pub const fn any(&self) -> bool {
        self.budget.is_some() || self.breaker.is_some() || self.concurrency.is_some()
    }

    /// The most attempts at once if that is a fixed number.
    pub fn fixed_limit(&self) -> Option<u32> {
        self.concurrency.filter(|limit| !limit.is_adaptive).map(|limit| limit.most)
    }

    /// How long retries wait for the budget before the breaker opens.
    pub(crate) fn spent_opens_after(&self) -> Duration {
        self.settings().spent_opens_after
    }

    /// The settings of a lane with these guards. A guard that is absent holds nothing back.
    pub(crate) fn settings(&self) -> guards::Settings {
        guards::Settings {
            budget: self.budget,
            breaker: self.breaker,
            concurrency: self.concurrency.unwrap_or_else(|| fixed_concurrency(u32::MAX)),
            ..guards::Settings::default()
        }
    }
}

/// A fixed limit of attempts at once.
pub fn fixed_concurrency(attempts: u32) -> concurrency::Settings {
    concurrency::Settings { is_adaptive: false, most: attempts, ..concurrency::Settings::default() }
}

impl Contender {
    /// The most contenders of one run.
    pub const MOST: usize = 8;

    /// A contender without guards.
    pub fn new(name: impl Into<String>, policy: Policy) -> Self {
        Contender { name: name.into(), policy, guards: Guards::default() }
    }

    /// Whether a caller waits for the answer: then a request that the budget or the breaker holds back ends at once
    /// with its last error, instead of waiting.
    pub fn gives_up_when_held(&self) -> bool {
        self.policy.context.is_some_and(Context::is_waited_for)
    }
}
