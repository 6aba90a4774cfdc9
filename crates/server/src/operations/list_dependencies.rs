//! Lists dependencies, by name.

use redrive_core::Dependency;
use redrive_engine::LaneReport;

use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// A page of dependencies.
#[derive(Debug, Clone)]
pub struct DependencyPage {
    /// Their states.
    pub dependencies: Vec<LaneReport>,
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
    let mut dependencies = app.engine.lane_reports(&caller.tenant, after.as_ref(), most + 1);
    let is_last = dependencies.len() <= most;
    dependencies.truncate(most);
    let last = dependencies.last().map(|report| report.lane.dependency.clone());
    Ok(DependencyPage { next: last.filter(|_| !is_last), dependencies })
}
