//! Closes the circuit breaker of a dependency by hand.

use redrive_core::Dependency;
use redrive_engine::LaneReport;

use super::dependency::{lane, report};
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// Closes the circuit breaker of a dependency on all nodes, whether it was opened by hand or opened by itself.
pub async fn close_breaker(app: &App, caller: &Caller, dependency: Dependency) -> Result<LaneReport, OperationError> {
    let lane = lane(caller, dependency);
    app.engine.change_controls(lane.clone(), |controls| controls.open = None).await?;
    report(app, &lane)?;
    app.engine.close_breaker(&lane);
    report(app, &lane)
}
