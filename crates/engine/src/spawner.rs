//! Concurrency (injected): the engine's only way to start concurrent work.
//!
//! A simulator that spawns can also kill: it drops the work of one process at any await and lets another process
//! continue.

use std::future::Future;
use std::pin::Pin;

/// Work that runs concurrently.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs work concurrently with its caller.
pub trait Spawner: Send + Sync + 'static {
    /// Starts `work`. It runs to its end even if the caller ends first.
    fn spawn(&self, work: Work);
}

/// Runs work on the tokio runtime of the caller.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokioSpawner;

impl Spawner for TokioSpawner {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts work on tokio")]
    fn spawn(&self, work: Work) {
        tokio::spawn(work);
    }
}
