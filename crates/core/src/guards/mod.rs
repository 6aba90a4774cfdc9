//! Guards: what may hold a lane back to protect its dependency.
//!
//! | file | the question that it answers |
//! | --- | --- |
//! | `budget` | may one more *retry* be sent? |
//! | `breaker` | may *anything* be sent, or does the dependency keep failing? |
//! | `health` | what does one outcome say about the dependency? |
//! | `window` | counts over a rolling window, for both |
//!
//! All of them are values: time, outcomes and random draws are arguments. Not here: who asks (`redrive-engine`), what is
//! kept of them (`redrive-store`).

pub mod breaker;
pub mod budget;
pub mod health;
mod window;

pub use breaker::Breaker;
pub use budget::Budget;
pub use health::Health;
