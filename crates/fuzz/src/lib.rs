//! Feeds everything that takes bytes from outside with bytes that make no sense.
//!
//! Each [`Target`] is one function over bytes that panics when a property is broken. That nothing panics is the least of
//! them: what parses is within its bounds, an error names a place, what was written is read back as it was, two parsers of
//! the same thing agree.
//!
//! | module | its job |
//! | --- | --- |
//! | `targets` | one file per target: its samples, its words and its properties |
//! | `world` | the engine and the operations, in one process, without a socket and without time |
//! | `mutate` | from samples and words to unusual inputs |
//! | `catch` | runs a target once and tells whether anything panicked, on any thread |
//! | `shrink` | makes an input that breaks a property smaller |
//! | `hunt` | runs a target again and again, and saves what broke it |
//!
//! The driver here needs no nightly compiler and knows nothing of coverage: an input is a function of a seed and a number.
//! The directory `fuzz/` has the same targets for `cargo-fuzz`. Not here: faults over time (`redrive-sim`).

#![forbid(unsafe_code)]

mod catch;
mod hunt;
mod mutate;
mod shrink;
mod target;
mod targets;
mod world;

pub use catch::{Broken, run};
pub use hunt::{Hunt, Outcome, hunt};
pub use target::{TARGETS, Target, find};
