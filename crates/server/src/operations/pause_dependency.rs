//! Pauses a dependency.

use redrive_core::Dependency;
use redrive_engine::LaneReport;

use super::dependency::{check_room, lane, note, report};
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// Pauses a dependency on all nodes: its tasks wait without losing attempts. It may have no task yet.
pub async fn pause_dependency(
    app: &App,
    caller: &Caller,
    dependency: Dependency,
    reason: Option<&str>,
) -> Result<LaneReport, OperationError> {
    let (lane, note) = (lane(caller, dependency), note(app, caller, reason)?);
    check_room(app, &lane)?;
    app.engine.change_controls(lane.clone(), move |controls| controls.pause = Some(note.clone())).await?;
    app.alerts.look_soon();
    report(app, &lane)
}
