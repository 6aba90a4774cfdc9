//! Guards: what may hold a lane back to protect its dependency.
//!
//! | file | the question that it answers |
//! | --- | --- |
//! | `lane` | what may this lane claim and send now? Asks the guards below |
//! | `budget` | may one more *retry* be sent? |
//! | `breaker` | may *anything* be sent, or does the dependency keep failing? |
//! | `concurrency` | how many attempts may be in flight? |
//! | `controls` | what have operators set for the lane? |
//! | `floor` | how many retries do all lanes of one origin have together while they fail? |
//! | `gone` | does the dependency seem to be gone for good? |
//! | `health` | what does one outcome say about the dependency? |
//! | `node_share` | what does one of several processes hold of the guards that they share? |
//! | `recent` | do the latest outcomes show a healthy dependency? |
//! | `shared` | what do several processes over one store share of a lane's guards? |
//! | `snapshot` | what is kept of a lane's guards across a restart? |
//! | `window` | counts over a rolling window, for both |
//!
//! All of them are values: time, outcomes and random draws are arguments. Not here: who asks (`redrive-engine`), what is
//! kept of them (`redrive-store`).

pub mod breaker;
pub mod budget;
pub mod concurrency;
mod controls;
mod floor;
pub mod gone;
pub mod health;
mod lane;
mod node_share;
mod recent;
pub mod shared;
mod snapshot;
mod window;

pub use breaker::Breaker;
pub use budget::Budget;
pub use concurrency::Concurrency;
pub use controls::{Controls, HeldOpen, Limits, Note};
pub use floor::SharedFloor;
pub use gone::{Gone, GoneSign, GoneWatch, Presence};
pub use health::Health;
pub use lane::{BudgetState, Held, LaneGuards, Outcome, Permit, Room, Settings};
pub use node_share::LaneWork;
pub use recent::RecentOutcomes;
pub use snapshot::Snapshot;
