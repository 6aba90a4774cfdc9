//! Sets the limits of attempts in flight for a dependency.

use redrive_core::Dependency;
use redrive_core::guards::Limits;
use redrive_engine::LaneReport;

use super::dependency::{check_room, lane, note, report};
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;
use crate::wire::{FieldFault, LimitsInput};

/// The most attempts in flight that a limit may name; the server's own limit applies beside it.
const MOST: u32 = 100_000;

/// Sets the limits of attempts in flight for a dependency, on all nodes; without any, the limits of the server apply
/// again. The dependency may have no task yet.
pub async fn put_limits(
    app: &App,
    caller: &Caller,
    dependency: Dependency,
    input: LimitsInput<'_>,
) -> Result<LaneReport, OperationError> {
    let limits = limits(&input)?;
    let (lane, note) = (lane(caller, dependency), note(app, caller, input.reason.as_deref())?);
    if limits.is_some() {
        check_room(app, &lane)?;
    }
    let change = app.engine.change_controls(lane.clone(), move |controls| {
        controls.limits = limits;
        controls.limits_note = limits.map(|_| note.clone());
    });
    change.await?;
    report(app, &lane)
}

fn limits(input: &LimitsInput<'_>) -> Result<Option<Limits>, OperationError> {
    let LimitsInput { concurrency, min_concurrency, max_concurrency, .. } = *input;
    let mut faults = Vec::new();
    let mut refuse = |field: &str, message: String| faults.push(FieldFault { field: field.into(), message });
    for (field, limit) in
        [("concurrency", concurrency), ("minConcurrency", min_concurrency), ("maxConcurrency", max_concurrency)]
    {
        if limit.is_some_and(|limit| !(1..=MOST).contains(&limit)) {
            refuse(field, format!("must be from 1 to {MOST}"));
        }
    }
    if concurrency.is_some() && (min_concurrency.is_some() || max_concurrency.is_some()) {
        refuse("concurrency", "must not be given together with minConcurrency or maxConcurrency".into());
    }
    if let (Some(min), Some(max)) = (min_concurrency, max_concurrency)
        && min > max
    {
        refuse("minConcurrency", format!("must be at most maxConcurrency ({max})"));
    }
    if !faults.is_empty() {
        return Err(OperationError::Invalid(faults));
    }
    let limits = Limits { concurrency, min_concurrency, max_concurrency };
    Ok((limits != Limits::default()).then_some(limits))
}
