//! The writer's memory of tasks in flight.
//!
//! Nearly every settlement is a success of a task that this process claimed a moment ago. This memory tells whether its
//! lease is still held, so the row is not read again. No other process writes, so the memory is correct. An entry may
//! be forgotten at any time: then the row is read.

use std::collections::HashMap;

use redrive_core::TaskId;
use redrive_store::Token;

/// The most claims that are remembered. There are rarely more in flight.
const LIMIT: usize = 65_536;

/// The claim under which a task is in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    pub(crate) tenant: i64,
    pub(crate) token: Token,
    /// The policy version that the task is counted under.
    pub(crate) version: i64,
}

/// Claims by task.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    claims: HashMap<TaskId, Claim>,
}

impl InFlight {
    pub(crate) fn remember(&mut self, task: TaskId, claim: Claim) {
        if self.claims.len() >= LIMIT {
            self.claims.clear();
        }
        self.claims.insert(task, claim);
    }

    /// Removes and returns the claim, if the task is in flight under this token.
    pub(crate) fn take(&mut self, task: TaskId, tenant: i64, token: Token) -> Option<Claim> {
        let claim = self.claims.get(&task)?;
        if claim.tenant != tenant || claim.token != token {
            return None;
        }
        self.claims.remove(&task)
    }

    /// Forgets everything, because claims and settlements may have been rolled back.
    pub(crate) fn rolled_back(&mut self) {
        self.claims.clear();
    }
}
