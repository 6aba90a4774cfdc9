//! A seeded world that tries to break Redrive, and a model that says when it succeeded.
//!
//! The real engine, the real `core` and the real server operations run on one thread and on simulated time; everything
//! around them is simulated: the store's troubles, the network, the dependencies, the clients, the clocks, the crashes.
//! One seed decides all of it, so every failure can be replayed.
//!
//! | module | its job |
//! | --- | --- |
//! | [`plan`] | what will be done to Redrive, drawn from the seed |
//! | [`world`] | doing it |
//! | [`model`] | judging what can be seen from outside by the invariants of ARCHITECTURE.md |
//! | [`executor`] | one thread, simulated time, the seed says who goes on |
//! | [`hunt`], [`shrink`] | many seeds, and one failure made small |
//! | [`trace`], [`tally`] | what happened, hashed and counted |
//! | [`planted`] | a known bug switched on, and how soon it is found |
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
