//! Reads one dependency.

use redrive_core::Dependency;
use redrive_engine::LaneReport;

use super::backlog::{BoundedBacklog, backlogs};
use super::dependency::{lane, report};
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// The most tasks of each kind that are counted for one dependency.
const BACKLOG_MOST: u32 = 100_000;

/// The state of a dependency's guards, as this node sees it, and what operators have set for it. With its backlog, if the
/// store answers.
pub async fn get_dependency(
    app: &App,
    caller: &Caller,
    dependency: Dependency,
) -> Result<(LaneReport, Option<BoundedBacklog>), OperationError> {
    let report = report(app, &lane(caller, dependency))?;
    let backlog = backlogs(app, std::slice::from_ref(&report), BACKLOG_MOST).await;
    Ok((report, backlog.into_iter().next().flatten()))
}
