//! Opens the circuit breaker of a dependency by hand.

use redrive_core::Dependency;
use redrive_core::guards::HeldOpen;
use redrive_engine::LaneReport;

use super::dependency::{check_room, lane, note, report};
use super::end_time;
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;
use crate::wire::OpenInput;

/// Opens the circuit breaker of a dependency on all nodes, until a time or until it is closed. The dependency may have
/// no task yet.
pub async fn open_breaker(
    app: &App,
    caller: &Caller,
    dependency: Dependency,
    input: OpenInput<'_>,
) -> Result<LaneReport, OperationError> {
    if app.engine.guard_settings().breaker.is_none() {
        return Err(OperationError::BreakerOff);
    }
    let until = end_time::check(input.for_ms, input.until_ms, app.engine.now())?;
    let (lane, note) = (lane(caller, dependency), note(app, caller, input.reason.as_deref())?);
    check_room(app, &lane)?;
    let open = HeldOpen { note, until };
    app.engine.change_controls(lane.clone(), move |controls| controls.open = Some(open.clone())).await?;
    report(app, &lane)
}
