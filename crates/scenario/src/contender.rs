//! A contender: one way of retrying, to be put beside others.

use redrive_core::policy::{Context, Policy};
use redrive_core::{breaker, budget};

/// One way of retrying.
#[derive(Debug, Clone, PartialEq)]
pub struct Contender {
    /// What it is called.
    pub name: String,
    /// The rules that each of its requests follows.
    pub policy: Policy,
    /// What may hold its requests back; one set of guards for all of them, as a lane of the service has.
    pub guards: Guards,
}

/// What may hold requests back.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Guards {
    /// How many retries the dependency has to bear.
    pub budget: Option<budget::Settings>,
    /// When the dependency is left alone altogether.
    pub breaker: Option<breaker::Settings>,
    /// The most attempts at once.
    pub concurrency: Option<u32>,
}

impl Guards {
    /// Whether there is any.
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

    /// Whether somebody waits for the answer: then a request that the budget or the breaker holds back ends at once with
    /// the error that it had, instead of waiting for its turn.
    pub fn gives_up_when_held(&self) -> bool {
        self.policy.context.is_some_and(Context::is_waited_for)
    }
}
