//! The result of a batch.

use schemars::JsonSchema;
use serde::Serialize;

use super::problem::Problem;
use super::task::Task;

/// The result of each task of a batch, in their order.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BatchAnswer<'a> {
    /// One result per task.
    pub results: Vec<BatchResult<'a>>,
}

/// The result of one task of a batch.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum BatchResult<'a> {
    /// The task was accepted: 201, or 200 if it was accepted before.
    Accepted {
        /// The status code that a single submission would have been answered with.
        status: u16,
        /// The task.
        task: Box<Task<'a>>,
    },
    /// The task was refused.
    Refused {
        /// The status code that a single submission would have been answered with.
        status: u16,
        /// Why it was refused.
        error: Box<Problem>,
    },
}
