//! What the writer remembers of the tasks that it handed out.
//!
//! Nearly every settlement is a success of a task that this process claimed a moment ago. Whether its lease holds is
//! known from here, and the row is not read a second time. Nobody else writes, so what is remembered is true;
//! forgetting is harmless: then the row is read.

use std::collections::HashMap;

use redrive_core::TaskId;
use redrive_store::Token;

/// The most claims that are remembered. More are rarely in flight, and forgetting is harmless.
const LIMIT: usize = 65_536;

/// The claim that a task is in flight under.
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

    /// The claim, if the task is known to be in flight under this very token; it is not remembered any longer.
    pub(crate) fn take(&mut self, task: TaskId, tenant: i64, token: Token) -> Option<Claim> {
        let claim = self.claims.get(&task)?;
        if claim.tenant != tenant || claim.token != token {
            return None;
        }
        self.claims.remove(&task)
    }

    /// What was claimed or settled may not have been.
    pub(crate) fn rolled_back(&mut self) {
        self.claims.clear();
    }
}
