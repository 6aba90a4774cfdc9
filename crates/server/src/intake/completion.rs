//! Checks the result of an execution, and its owner.

use redrive_core::Body;
use redrive_core::idempotency::{Completion, Epoch, Owner, Resource, ResourceError, Response};

use super::body::{self, GivenBody};
use super::faults::Faults;
use super::headers;
use crate::app::{App, Limits};
use crate::operation_error::OperationError;
use crate::wire::{ResponseInput, Text};

/// The status codes of responses.
const STATUSES: std::ops::RangeInclusive<u16> = 100..=599;

/// The owner that a caller says it is.
pub(crate) fn owner(execution_id: &str, epoch: u64) -> Result<Owner, OperationError> {
    let execution = execution_id.parse();
    let execution = execution.map_err(|rule| OperationError::invalid("executionId", format!("{rule}")))?;
    if epoch == 0 {
        return Err(OperationError::invalid("epoch", "must be at least 1"));
    }
    Ok(Owner { execution, epoch: Epoch(epoch) })
}

/// The result that a caller reports. A large body is still in it.
pub(crate) fn check(
    app: &App,
    response: Option<ResponseInput<'_>>,
    resource_type: Option<&Text<'_>>,
    resource_id: Option<&Text<'_>>,
) -> Result<Completion, OperationError> {
    let mut faults = Faults::default();
    let response = match response {
        Some(response) => Some(check_response(response, &app.limits, &mut faults)?),
        None => None,
    };
    let resource = match (resource_type, resource_id) {
        (Some(kind), Some(id)) => match Resource::try_new(&**kind, &**id) {
            Ok(resource) => Some(resource),
            Err(rule) => {
                let field = if rule == ResourceError::Kind { "resourceType" } else { "resourceId" };
                faults.add(field, rule.to_string());
                None
            }
        },
        (Some(_), None) => {
            faults.add("resourceId", "must be given together with resourceType");
            None
        }
        (None, Some(_)) => {
            faults.add("resourceType", "must be given together with resourceId");
            None
        }
        (None, None) => None,
    };
    match faults.into_failure_if_any() {
        Some(failure) => Err(failure),
        None => Ok(Completion { response, resource }),
    }
}

fn check_response(input: ResponseInput<'_>, limits: &Limits, faults: &mut Faults) -> Result<Response, OperationError> {
    if !STATUSES.contains(&input.status) {
        faults.add("response.status", format!("must be from {} to {}", STATUSES.start(), STATUSES.end()));
    }
    let given =
        GivenBody { text: input.body_text.as_deref(), json: input.body_json, base64: input.body_base64.as_deref() };
    let body = Body::Inline(body::bytes(given, "response", limits.body_bytes, faults)?);
    let headers = headers::check_stored(input.headers, "response.headers", limits, faults);
    Ok(Response { status: input.status, headers, body })
}
