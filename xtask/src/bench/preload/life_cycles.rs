//! Life cycles of the store alone: tasks are submitted as claimed, then settled, without any HTTP.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use redrive_store::Store;
use redrive_store_sqlite::SqliteStore;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::fill::{keep, open};
use super::tasks::{Maker, now};

/// A store under load from this process.
pub(super) struct Loaded {
    runtime: Runtime,
    store: Arc<SqliteStore>,
    maker: Arc<Mutex<Maker>>,
}

impl Loaded {
    /// Opens the store in `dir`.
    pub(super) fn open(dir: &Path, body: usize) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let store = Arc::new(runtime.block_on(open(dir))?);
        let maker = Maker::new(SocketAddr::from(([127, 0, 0, 1], 9)), 1, body, now())?;
        Ok(Loaded { runtime, store, maker: Arc::new(Mutex::new(maker)) })
    }

    /// Life cycles per second, with `callers` of them at once.
    pub(super) fn rate(&self, callers: usize, duration: Duration) -> Result<f64> {
        let done = Arc::new(AtomicU64::new(0));
        let begin = Instant::now();
        self.runtime.block_on(async {
            let mut running = JoinSet::new();
            for _ in 0..callers {
                let (store, maker, done) = (Arc::clone(&self.store), Arc::clone(&self.maker), Arc::clone(&done));
                running.spawn(async move {
                    while begin.elapsed() < duration {
                        let task = maker.lock().await.claimed(now());
                        keep(&store, vec![task]).await?;
                        done.fetch_add(1, Ordering::AcqRel);
                    }
                    anyhow::Ok(())
                });
            }
            while let Some(ended) = running.join_next().await {
                ended.context("a caller of the store panicked")??;
            }
            anyhow::Ok(())
        })?;
        Ok(done.load(Ordering::Acquire) as f64 / begin.elapsed().as_secs_f64())
    }

    /// Closes the store, so that a service can open it.
    pub(super) fn close(self) {
        self.runtime.block_on(self.store.close());
    }
}
