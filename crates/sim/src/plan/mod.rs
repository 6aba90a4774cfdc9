//! A plan: everything that will be done to Redrive in one world, drawn from the seed before anything happens.
//!
//! A plan is data, so that a failure can be made smaller: errands and faults are taken out, and what is left is run
//! again (`shrink`). Each errand and each fault carries a seed of its own for what it draws while it runs.
//!
//! Not here: running it (`world`), judging what happens (`model`).

mod crowd;
mod document;
mod draw;
mod errand;
mod family;
mod fault;
mod keep;
mod policies;
mod shape;

pub use document::{Document, Item, OTHER};
pub use draw::draw;
pub use errand::{Errand, FollowUp, Step};
pub use family::{Families, Family, UnknownFamily};
pub use fault::{Fault, Kind, Mood, Trouble};
pub use keep::{Keep, Part, UnknownPart};
pub use policies::{NAMED, SHIFTING, base, spec};
pub use shape::{Ask, Shape};

use redrive_planted::Bug;

/// What will be done to Redrive.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What everything was drawn from.
    pub seed: u64,
    /// What chance does while it runs; another value is another course of the same events.
    pub luck: u64,
    /// The bug that is planted, if there is one.
    pub bug: Option<&'static Bug>,
    /// The world that it happens in.
    pub shape: Shape,
    /// What the clients do.
    pub errands: Vec<Errand>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}
