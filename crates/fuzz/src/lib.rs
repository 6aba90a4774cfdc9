//! Fuzzer: feeds malformed bytes to everything that takes bytes from outside.
//!
//! Each [`Target`] is one function over bytes that panics when a property is broken. That nothing else panics is the
//! weakest property. Others: what parses is within its bounds, an error names a location, what was written is read back
//! unchanged, two parsers of the same format agree.
//!
//! | module | its job |
//! | --- | --- |
//! | `targets` | one file per target: its samples, its words and its properties |
//! | `world` | the engine and the operations, in one process, without a socket and without time |
//! | `mutate` | makes unusual inputs from samples and words |
//! | `catch` | runs a target once and returns whether anything panicked, on any thread |
//! | `shrink` | makes an input that breaks a property smaller |
//! | `hunt` | runs a target repeatedly, and saves an input that broke it |
//!
//! The driver here needs no nightly compiler and uses no coverage: an input is a function of a seed and a number.
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
