//! Reads one dependency.

use redrive_core::Dependency;
use redrive_engine::LaneReport;

use super::dependency::{lane, report};
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// The state of a dependency's guards, as this node sees it, and what operators have set for it.
pub async fn get_dependency(app: &App, caller: &Caller, dependency: Dependency) -> Result<LaneReport, OperationError> {
    report(app, &lane(caller, dependency))
}
