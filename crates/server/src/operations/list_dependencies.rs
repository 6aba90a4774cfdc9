//! Lists dependencies, by name.

use redrive_core::Dependency;
use redrive_engine::LaneReport;

use super::backlog::{BoundedBacklog, backlogs};
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// How many are read at once: claims and attempts wait meanwhile.
const AT_ONCE: usize = 64;

/// The most tasks of each kind that are counted for each dependency of a page.
const BACKLOG_MOST: u32 = 1_000;

/// A page of dependencies.
#[derive(Debug, Clone)]
pub struct DependencyPage {
    /// Their states, each with its backlog if the store answers.
    pub dependencies: Vec<(LaneReport, Option<BoundedBacklog>)>,
    /// The last one of this page, if more follow.
    pub next: Option<Dependency>,
}

/// The dependencies that this node knows after `after`, by name.
pub async fn list_dependencies(
    app: &App,
    caller: &Caller,
    after: Option<Dependency>,
    limit: Option<usize>,
) -> Result<DependencyPage, OperationError> {
    let most = app.limits.page(limit);
    // One more shows whether there is a next page.
    let mut dependencies: Vec<LaneReport> = Vec::new();
    while dependencies.len() <= most {
        let last = dependencies.last().map(|report| &report.lane.dependency).or(after.as_ref());
        let wanted = AT_ONCE.min(most + 1 - dependencies.len());
        let read = app.engine.lane_reports(&caller.tenant, last, wanted);
        let is_end = read.len() < wanted;
        dependencies.extend(read);
        if is_end {
            break;
        }
    }
    let is_last = dependencies.len() <= most;
    dependencies.truncate(most);
    let last = dependencies.last().map(|report| report.lane.dependency.clone());
    let backlogs = backlogs(app, &dependencies, BACKLOG_MOST).await;
    Ok(DependencyPage {
        next: last.filter(|_| !is_last),
        dependencies: dependencies.into_iter().zip(backlogs).collect(),
    })
}
