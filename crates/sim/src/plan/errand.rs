//! An errand: what one client wants, and what it does about it afterwards.

use std::time::Duration;

use super::document::Item;
use crate::moment::Moment;

/// What one client wants.
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
    /// How often it asks again when it got no answer.
    pub tries: usize,
    /// What it does afterwards, each in its own time.
    pub follow_ups: Vec<FollowUp>,
}

/// What a client does about a task that it submitted.
#[derive(Debug, Clone)]
pub struct FollowUp {
    /// How long after the errand's beginning.
    pub after: Duration,
    /// Which item it is about.
    pub item: usize,
    /// What it does.
    pub step: Step,
}

/// What can be done about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Look at it.
    Look,
    /// Look at its attempts.
    LookAtAttempts,
    /// Wait for its end.
    Wait,
    /// Submit it again.
    Again,
    /// Submit something else under its key.
    OtherRequest,
    /// Take it back.
    Cancel,
    /// Have it tried now.
    BringForward,
    /// Put it back to work after it ended badly.
    Replay,
    /// Have another tenant try all of this with it.
    Meddle,
    /// Change or delete the policy that changes all the time.
    ShiftPolicy,
    /// List tasks.
    List,
}
