//! Simulates what retry policies do to a dependency in an outage.
//!
//! A seeded model of many clients that each make one request of one dependency, which has a capacity, a queue, a
//! latency and outages. The policies, the verdicts, the decisions and the guards are those of `redrive-core`: nothing of
//! them is implemented twice. The service runs the same code.
//!
//! [`run()`] plays a [`World`] once for each [`Contender`] and records their [`Story`]; [`occ`] is the classic model of
//! clients that contend for one row; [`report`] makes a page of either.
//!
//! The same seed gives the same numbers on every machine, and all contenders of a run get the same random draws.
//!
//! Not here: a clock, randomness from outside, files or a terminal (`redrive simulate` has those), and the engine with
//! its store, leases and crashes (`redrive-sim` tests those).

#![forbid(unsafe_code)]

mod calendar;
mod chance;
mod contender;
mod dependency;
mod elementary;
mod lane;
mod latency;
pub mod occ;
mod permits;
mod play;
mod remark;
pub mod report;
mod run;
mod story;
mod tally;
mod timeline;
mod world;

pub use contender::{Contender, Guards, fixed_concurrency};
pub use latency::Latencies;
pub use run::{Progress, run};
pub use story::{Bucket, Comparison, Completion, Peak, Story, Totals};
pub use world::{Invalid, Outage, OutageKind, World};
