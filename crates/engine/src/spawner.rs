//! Running things beside one another, injected: the engine starts work through this and nothing else.
//!
//! A simulator that spawns can also kill: it drops what one process was doing, in the middle, and lets another go on.

use std::future::Future;
use std::pin::Pin;

/// Work that runs by itself.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs work beside whoever started it.
pub trait Spawner: Send + Sync + 'static {
    /// Starts `work`; it runs to its end, whatever becomes of the caller.
    fn spawn(&self, work: Work);
}

/// Work runs on the tokio runtime of whoever starts it.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokioSpawner;

impl Spawner for TokioSpawner {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts work on tokio")]
    fn spawn(&self, work: Work) {
        tokio::spawn(work);
    }
}
