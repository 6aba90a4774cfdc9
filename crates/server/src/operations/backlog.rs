//! Counting the pending tasks of dependencies.

use redrive_engine::LaneReport;
use redrive_store::Backlog;

use crate::app::App;

/// How many pending tasks a dependency has, each number counted up to a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundedBacklog {
    /// The numbers.
    pub backlog: Backlog,
    /// The bound: a number that is equal to it may be larger.
    pub counted_up_to: u32,
}

/// The backlogs of these lanes, in order. All are `None` if the store does not answer at the moment: what the guards say
/// does not depend on the store.
pub(super) async fn backlogs(app: &App, reports: &[LaneReport], most: u32) -> Vec<Option<BoundedBacklog>> {
    let lanes = reports.iter().map(|report| report.lane.clone()).collect();
    match app.engine.backlogs(lanes, most).await {
        Some(all) => all.into_iter().map(|backlog| Some(BoundedBacklog { backlog, counted_up_to: most })).collect(),
        None => vec![None; reports.len()],
    }
}
