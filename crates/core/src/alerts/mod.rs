//! Alerts: when something fires, when it is over, and when people are told.
//!
//! A [`Rule`] says from which value on a [`Signal`] fires and when it is over. The [`Board`] compares readings with the rules
//! and remembers what fires. [`Groups`] decides when a sink is told: alerts of one signal are one notification, and changes
//! that follow each other quickly are told together.
//!
//! All of it is pure: readings and `now` come from the caller. Not here: where readings come from and how notifications are
//! delivered (`redrive-server`).

mod board;
mod group;
mod rule;
mod signal;

pub use board::{Alert, Board, Change, Reading, Subject, Transition};
pub use group::{Groups, Notification, Timing};
pub use rule::{InvalidRule, Rule, Rules};
pub use signal::{Severity, Signal};
