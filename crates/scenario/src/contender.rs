//! A contender: one way of retrying, compared with others.

use redrive_core::guards::{breaker, budget};
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
    /// The most attempts at once.
    pub concurrency: Option<u32>,
}

impl Guards {
    /// Whether there is any guard.
    pub const fn any(&self) -> bool {
        self.budget.is_some() || self.breaker.is_some() || self.concurrency.is_some()
    }
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
