//! Keeps the table of counts small: its rows are added up a while after somebody added some, and never while nobody does.
//! Then the planner is told of what has outgrown its knowledge, too.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::ops::{analyze, counts};
use crate::pool::{Pool, call};

/// How long rows come together.
const ADD_UP_AFTER: Duration = Duration::from_secs(10);

/// Says that rows were added.
#[derive(Clone, Default)]
pub(crate) struct AddingUp {
    ring: Arc<Notify>,
}

impl AddingUp {
    pub(crate) fn added(&self) {
        self.ring.notify_one();
    }

    /// Runs for as long as it is let.
    pub(crate) async fn run(self, pool: Pool) {
        loop {
            self.ring.notified().await;
            tokio::time::sleep(ADD_UP_AFTER).await;
            if let Err(failure) = call!(pool, |connection| counts::add_up(connection)) {
                tracing::debug!(%failure, "adding up the counts");
            }
            if let Err(failure) = call!(pool, |connection| analyze::analyze_outgrown(connection)) {
                tracing::debug!(%failure, "having tables looked at");
            }
        }
    }
}
