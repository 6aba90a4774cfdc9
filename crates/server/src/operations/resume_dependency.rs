//! Resumes a dependency that was paused.

use redrive_core::Dependency;
use redrive_engine::LaneReport;

use super::dependency::{lane, report};
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// Ends the pause of a dependency, on all nodes.
pub async fn resume_dependency(
    app: &App,
    caller: &Caller,
    dependency: Dependency,
) -> Result<LaneReport, OperationError> {
    let lane = lane(caller, dependency);
    app.engine.change_controls(lane.clone(), |controls| controls.pause = None).await?;
    report(app, &lane)
}
