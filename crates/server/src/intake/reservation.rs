//! Checks a reservation of an idempotency record.

use std::ops::RangeInclusive;
use std::time::Duration;

use redrive_core::duration::duration_text;
use redrive_core::idempotency::request_hash::{Comparison, HashedRequest};
use redrive_core::idempotency::{ExecutionId, Operation, RecordKey, RequestHash, Reserve, SUBMIT_TASK};
use redrive_core::{IdempotencyKey, OperationName, RecordName, TenantId};
use redrive_store::Reservation;

use super::body::{self, GivenBody};
use super::faults::Faults;
use crate::app::App;
use crate::idempotency::Settings;
use crate::operation_error::OperationError;
use crate::standard::Kept;
use crate::wire::{RequestInput, ReserveInput};

/// The key of the record of an operation. The operation that is Redrive's own has no records that callers could change.
pub(crate) fn key(
    tenant: &TenantId,
    operation: OperationName,
    key: &IdempotencyKey,
) -> Result<RecordKey, OperationError> {
    if is_submission(&operation) {
        let message = format!(
            "must not be {SUBMIT_TASK}: it stands for submissions to Redrive itself; submit with POST /retry-tasks and an idempotencyKey"
        );
        return Err(OperationError::invalid("operation", message));
    }
    Ok(RecordKey { tenant: tenant.clone(), operation: Operation::Named(operation), name: RecordName::from(key) })
}

/// Whether the records of this operation are tasks.
pub(crate) fn is_submission(operation: &OperationName) -> bool {
    operation.as_str() == SUBMIT_TASK
}

/// Checks a reservation.
pub(crate) fn check(
    app: &App,
    tenant: &TenantId,
    operation: OperationName,
    idempotency_key: &IdempotencyKey,
    input: &ReserveInput<'_>,
) -> Result<Reservation, OperationError> {
    let mut faults = Faults::default();
    let settings = &app.idempotency;
    let request_hash = request_hash(input, app.limits.body_bytes, &mut faults)?;
    let lease = millis("leaseMs", input.lease_ms, settings.lease, Settings::LEASES, &mut faults);
    let setting = settings.retention_of(&operation);
    let retention = millis("retentionMs", input.retention_ms, setting, Settings::RETENTIONS, &mut faults);
    if settings.is_financial(&operation) && retention < setting {
        let least = setting.as_millis();
        faults.add(
            "retentionMs",
            format!("must be at least {least}: {operation} is financial, and kept for {}", duration_text(setting)),
        );
    }
    let execution = execution(app, input.execution_id.as_deref(), &mut faults);
    let key = key(tenant, operation, idempotency_key)?;
    let (Some(request_hash), true) = (request_hash, faults.is_empty()) else { return Err(faults.into_failure()) };
    if input.retention_ms.is_some() {
        app.standard.judge_retention(Kept::Keys, "retentionMs", retention)?;
    }
    Ok(Reservation { key, ask: Reserve { request_hash, execution, lease, retention, is_complete: false } })
}

/// The duration that was given at `field` in milliseconds, or else `default`.
pub(super) fn millis(
    field: &str,
    given: Option<u64>,
    default: Duration,
    allowed: RangeInclusive<Duration>,
    faults: &mut Faults,
) -> Duration {
    let Some(given) = given.map(Duration::from_millis) else { return default };
    if !allowed.contains(&given) {
        let (least, most) = (allowed.start().as_millis(), allowed.end().as_millis());
        faults.add(field, format!("must be from {least} to {most}, got {}", given.as_millis()));
    }
    given
}

/// The execution that was given, or a new one.
pub(super) fn execution(app: &App, given: Option<&str>, faults: &mut Faults) -> ExecutionId {
    given
        .and_then(|id| faults.keep("executionId", id.parse()))
        .unwrap_or_else(|| ExecutionId::from_random(app.engine.random_bits()))
}

fn request_hash(
    input: &ReserveInput<'_>,
    limit: usize,
    faults: &mut Faults,
) -> Result<Option<RequestHash>, OperationError> {
    match (&input.request_hash, &input.request) {
        (Some(hash), None) => Ok(faults.keep("requestHash", hash.parse())),
        (None, Some(request)) => hash_of(request, limit, faults).map(Some),
        (Some(_), Some(_)) => {
            faults.add("requestHash", "must not be given together with request");
            Ok(None)
        }
        (None, None) => {
            faults.add("requestHash", "must be given, or request: what the key stands for");
            Ok(None)
        }
    }
}

fn hash_of(request: &RequestInput<'_>, limit: usize, faults: &mut Faults) -> Result<RequestHash, OperationError> {
    for (field, text) in [("request.method", &request.method), ("request.path", &request.path)] {
        if text.is_empty() {
            faults.add(field, "must not be empty");
        }
    }
    let comparison = match request.comparison.as_deref() {
        None | Some("bytes") => Comparison::Bytes,
        Some("json") => Comparison::Json,
        Some(_) => {
            faults.add("request.comparison", "must be bytes or json");
            Comparison::Bytes
        }
    };
    let given = GivenBody {
        text: request.body_text.as_deref(),
        json: request.body_json,
        base64: request.body_base64.as_deref(),
    };
    let body = body::bytes(given, "request", limit, faults)?;
    Ok(RequestHash::of(&HashedRequest {
        method: &request.method,
        path: &request.path,
        content_type: request.content_type.as_deref().unwrap_or_default(),
        body: &body,
        comparison,
    }))
}
