//! The embedded store with millions of tasks.
//!
//! A store is filled through its own API, which takes minutes, so the result is kept under target/bench/ until the
//! schema changes. Not here: anything that depends on the format of the store's files.

#[cfg(feature = "preload")]
mod cache;
#[cfg(feature = "preload")]
mod fill;
#[cfg(feature = "preload")]
mod life_cycles;
#[cfg(feature = "preload")]
mod measure;
#[cfg(feature = "preload")]
mod tasks;

#[cfg(feature = "preload")]
pub use measure::{measure_ended, measure_pending};
#[cfg(not(feature = "preload"))]
pub use without::{measure_ended, measure_pending};

use serde::Serialize;

use crate::stats::Spread;

/// A store with ended tasks, compared with an empty one.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ended {
    /// The tasks in it.
    pub tasks: u64,
    /// The size of its directory.
    pub disk_bytes: u64,
    /// Life cycles per second of the empty store, without any HTTP.
    pub store_empty: Spread,
    /// Life cycles per second of the full store, without any HTTP.
    pub store_full: Spread,
    /// The full store's rate divided by the empty one's, per round.
    pub store_ratio: Spread,
    /// Tasks per second through the whole service on an empty store.
    pub pipeline_empty: Spread,
    /// Tasks per second through the whole service on the full store.
    pub pipeline_full: Spread,
    /// The full store's rate divided by the empty one's, per round.
    pub pipeline_ratio: Spread,
}

/// A service started on a store with pending tasks in it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    /// The tasks in it.
    pub tasks: u64,
    /// The lanes that they are in.
    pub lanes: usize,
    /// The size of its directory.
    pub disk_bytes: u64,
    /// The time from the start of the process until it listened.
    pub listen_seconds: f64,
    /// The time from the start of the process to the arrival of the one task that was due before it started.
    pub first_send_seconds: f64,
    /// Memory resident afterwards.
    pub rss_bytes: u64,
    /// The most memory that was resident.
    pub peak_rss_bytes: u64,
}

#[cfg(not(feature = "preload"))]
mod without {
    use anyhow::{Result, bail};

    use super::super::pipeline::Load;
    use super::super::world::World;
    use super::{Ended, Pending};

    pub fn measure_ended(_: &World, _: &Load, _: usize, _: u64) -> Result<Ended> {
        bail!("this build cannot fill stores; run it as `cargo xtask bench --preload …`")
    }

    pub fn measure_pending(_: &World, _: &Load, _: u64) -> Result<Pending> {
        bail!("this build cannot fill stores; run it as `cargo xtask bench --preload …`")
    }
}
