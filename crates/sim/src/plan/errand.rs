//! Errand: what one client submits, and what it does with the tasks afterwards.

use std::time::Duration;

use super::document::Item;
use crate::moment::Moment;

/// What one client submits, and its further calls.
#[derive(Debug, Clone)]
pub struct Errand {
    /// Its number; what it draws while it runs depends on this and on the plan's seed.
    pub number: usize,
    /// When it begins.
    pub at: Moment,
    /// What to submit: one task, or several in one batch.
    pub items: Vec<Item>,
    /// How long the client waits for an answer.
    pub patience: Duration,
    /// How often it retries without an answer.
    pub tries: usize,
    /// What it does afterwards, each at its own time.
    pub follow_ups: Vec<FollowUp>,
}

/// A call of a client about a task that it submitted.
#[derive(Debug, Clone)]
pub struct FollowUp {
    /// How long after the errand's beginning.
    pub after: Duration,
    /// The item that it is about.
    pub item: usize,
    /// The kind of call.
    pub step: Step,
}

/// What a client can do with a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Read the task.
    Look,
    /// Read its attempts.
    LookAtAttempts,
    /// Wait for its end.
    Wait,
    /// Submit it again.
    Again,
    /// Submit something else under its key.
    OtherRequest,
    /// Cancel it.
    Cancel,
    /// Make it due now.
    BringForward,
    /// Replay it after it ended as a dead letter.
    Replay,
    /// Try all of these as another tenant.
    Meddle,
    /// Change or delete the policy that changes all the time.
    ShiftPolicy,
    /// List tasks.
    List,
}
