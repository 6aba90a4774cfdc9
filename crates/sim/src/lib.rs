//! Simulator: a seeded world that tries to break Redrive, and a model that detects when it has.
//!
//! The real engine, the real `core` and the real server operations run on one thread and on simulated time. Everything
//! around them is simulated: store failures, the network, the dependencies, the clients, the clocks, the crashes. One
//! seed decides all of it, so every failure can be replayed.
//!
//! | module | its job |
//! | --- | --- |
//! | [`plan`] | what will be done to Redrive, drawn from the seed |
//! | [`world`] | runs a plan |
//! | [`model`] | checks what is visible from outside against the invariants of ARCHITECTURE.md |
//! | [`executor`] | one thread, simulated time, a seed that decides which task runs next |
//! | [`hunt`], [`shrink`] | runs many seeds, and makes a failure small |
//! | [`trace`], [`tally`] | hashes and counts what happened |
//! | [`planted`] | switches a known bug on, and measures how soon it is found |
//! | [`blocking`] | a real store in a simulated world |
//! | [`disk`] | a disk that loses and tears what was not synced, for the SQLite store |
//!
//! Not here: anything that ships.

#![forbid(unsafe_code)]

pub mod blocking;
pub mod disk;
pub mod executor;
pub mod hunt;
pub mod model;
pub mod moment;
pub mod plan;
pub mod planted;
pub mod random;
pub mod shrink;
pub mod tally;
pub mod trace;
pub mod world;
