//! What became of a batch.

use schemars::JsonSchema;
use serde::Serialize;

use super::problem::Problem;
use super::task::Task;

/// What became of each task of a batch, in their order.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BatchAnswer<'a> {
    /// One result per task.
    pub results: Vec<BatchResult<'a>>,
}

/// What became of one task of a batch.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum BatchResult<'a> {
    /// It was accepted: 201, or 200 if it had been before.
    Accepted {
        /// What a single submission would have been answered with.
        status: u16,
        /// The task.
        task: Box<Task<'a>>,
    },
    /// It was refused.
    Refused {
        /// What a single submission would have been answered with.
        status: u16,
        /// Why.
        error: Box<Problem>,
    },
}
