//! Resets the guards of a dependency.

use redrive_core::Dependency;
use redrive_engine::LaneReport;

use super::dependency::{lane, report};
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// Forgets what the guards of a dependency have counted, on all nodes, and closes the circuit breaker. A pause and limits
/// stay.
pub async fn reset_guards(app: &App, caller: &Caller, dependency: Dependency) -> Result<LaneReport, OperationError> {
    let lane = lane(caller, dependency);
    // A breaker that is held open would be open again on the other nodes, and here after a restart.
    app.engine.change_controls(lane.clone(), |controls| controls.open = None).await?;
    report(app, &lane)?;
    app.engine.reset_guards(&lane);
    report(app, &lane)
}
