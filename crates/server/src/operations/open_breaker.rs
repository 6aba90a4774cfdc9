//! Opens the circuit breaker of a dependency by hand.

use std::time::Duration;

use redrive_core::guards::HeldOpen;
use redrive_core::{Dependency, Timestamp};
use redrive_engine::LaneReport;

use super::dependency::{check_room, lane, note, report};
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;
use crate::wire::OpenInput;

/// The longest that a breaker may be held open for, if an end is given.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3_600);

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
    let until = until(&input, app.engine.now())?;
    let (lane, note) = (lane(caller, dependency), note(app, caller, input.reason.as_deref())?);
    check_room(app, &lane)?;
    let open = HeldOpen { note, until };
    app.engine.change_controls(lane.clone(), move |controls| controls.open = Some(open.clone())).await?;
    report(app, &lane)
}

fn until(input: &OpenInput<'_>, now: Timestamp) -> Result<Option<Timestamp>, OperationError> {
    let latest = now.after(LONGEST);
    match (input.until_ms.map(Timestamp::from_millis), input.for_ms) {
        (Some(_), Some(_)) => Err(OperationError::invalid("forMs", "must not be given together with untilMs")),
        (Some(until), None) if until <= now => Err(OperationError::invalid("untilMs", "must be in the future")),
        (Some(until), None) if until > latest => {
            Err(OperationError::invalid("untilMs", "must be at most 30 days ahead"))
        }
        (Some(until), None) => Ok(Some(until)),
        (None, Some(millis)) if !(1..=LONGEST.as_millis()).contains(&u128::from(millis)) => {
            Err(OperationError::invalid("forMs", format!("must be from 1 to {} (30 days)", LONGEST.as_millis())))
        }
        (None, for_ms) => Ok(for_ms.map(|millis| now.after(Duration::from_millis(millis)))),
    }
}
