//! What the operations on dependencies have in common.

use redrive_core::guards::Note;
use redrive_core::{Dependency, Lane};
use redrive_engine::LaneReport;

use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// The most characters of a reason.
const REASON_CHARS: usize = 300;

/// The most dependencies that something may be set for.
const MOST_CONTROLLED: usize = 10_000;

/// The caller's lane for a dependency.
pub(super) fn lane(caller: &Caller, dependency: Dependency) -> Lane {
    Lane { tenant: caller.tenant.clone(), dependency }
}

/// The state of a lane that this node knows.
pub(super) fn report(app: &App, lane: &Lane) -> Result<LaneReport, OperationError> {
    let report = app.engine.lane_report(lane);
    report.ok_or_else(|| OperationError::NoSuchDependency(lane.dependency.to_string()))
}

/// Refuses to set something for one more lane if there are very many already: all of them are held in memory.
pub(super) fn check_room(app: &App, lane: &Lane) -> Result<(), OperationError> {
    let has_controls = || app.engine.lane_report(lane).is_some_and(|report| !report.controls.is_empty());
    match app.engine.controlled_lanes() >= MOST_CONTROLLED && !has_controls() {
        true => Err(OperationError::TooManyControls { most: MOST_CONTROLLED }),
        false => Ok(()),
    }
}

/// A note that the caller sets something now, for this reason.
pub(super) fn note(app: &App, caller: &Caller, reason: Option<&str>) -> Result<Note, OperationError> {
    let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
    if let Some(reason) = reason {
        if reason.chars().count() > REASON_CHARS {
            return Err(OperationError::invalid("reason", format!("must be at most {REASON_CHARS} characters")));
        }
        if reason.chars().any(char::is_control) {
            return Err(OperationError::invalid("reason", "must not contain line breaks or other control characters"));
        }
    }
    Ok(Note { at: app.engine.now(), by: caller.name.to_string(), reason: reason.map(str::to_owned) })
}
