//! Plan: everything that will be done to Redrive in one world, drawn from the seed before it runs.
//!
//! A plan is data, so that a failure can be shrunk: errands and faults are left out, and the rest is run again
//! (`shrink`). Each errand and each fault has a seed of its own for what it draws while it runs.
//!
//! Not here: running it (`world`), checking what happens (`model`).

mod alerting;
mod crowd;
mod document;
mod draw;
mod errand;
mod family;
mod fault;
mod guarded;
mod keep;
mod policies;
mod records;
mod shape;

pub use alerting::Alerting;
pub use document::{Document, Item, OTHER};
pub use draw::draw;
pub use errand::{Errand, FollowUp, Step};
pub use family::{Families, Family, UnknownFamily};
pub use fault::{Fault, Kind, Mood, Trouble};
pub use keep::{Keep, Part, UnknownPart};
pub use policies::{NAMED, SHIFTING, base, spec};
pub use records::{Execution, RecordAct, RecordErrand, RecordStep, RecordWork};
pub use shape::{Ask, Shape};

use redrive_planted::Bug;

/// What will be done to Redrive.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The seed from which everything was drawn.
    pub seed: u64,
    /// The seed of the random choices while it runs; another value is another course of the same events.
    pub luck: u64,
    /// The bug that is planted, if there is one.
    pub bug: Option<&'static Bug>,
    /// The world in which it runs.
    pub shape: Shape,
    /// What the clients do.
    pub errands: Vec<Errand>,
    /// What the clients do with idempotency records.
    pub records: Vec<RecordErrand>,
    /// The faults.
    pub faults: Vec<Fault>,
}
