//! Periodic upkeep of the tables, a while after a write and never without one: merges the rows of the table of counts,
//! and analyses tables that have outgrown their statistics.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::ops::{analyze, counts};
use crate::pool::{Pool, call};

/// A handle that reports writes.
#[derive(Clone, Default)]
pub(crate) struct Upkeep {
    ring: Arc<Notify>,
}

impl Upkeep {
    pub(crate) fn written(&self) {
        self.ring.notify_one();
    }

    /// Runs until it is dropped: each time, `after` the first write.
    pub(crate) async fn run(self, pool: Pool, after: Duration) {
        loop {
            self.ring.notified().await;
            tokio::time::sleep(after).await;
            if let Err(failure) = call!(pool, |connection| counts::add_up(connection)) {
                tracing::debug!(%failure, "adding up the counts");
            }
            if let Err(failure) = call!(pool, |connection| analyze::analyze_outgrown(connection)) {
                tracing::debug!(%failure, "having tables looked at");
            }
        }
    }
}
