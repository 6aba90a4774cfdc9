//! What has to be done now and then, a while after somebody wrote something, and never while nobody does: the rows of the
//! table of counts are added up, and tables that have outgrown what the planner knows of them are looked at.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::ops::{analyze, counts};
use crate::pool::{Pool, call};

/// Says that something was written.
#[derive(Clone, Default)]
pub(crate) struct Upkeep {
    ring: Arc<Notify>,
}

impl Upkeep {
    pub(crate) fn written(&self) {
        self.ring.notify_one();
    }

    /// Runs for as long as it is let: so long after the first write, each time.
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
