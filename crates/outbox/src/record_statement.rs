//! The statements for records of both drivers, their arguments and their answers.

use std::time::{Duration, SystemTime};

use redrive_core::idempotency::ExecutionId;

use crate::record::{Completion, Ended, Failure, PreviousState, Reservation, Reserve, Reserved, Resource, Response};

/// Its types are ones that every driver supports without further features.
pub(crate) const RESERVE: &str = "
SELECT outcome, execution_id::text, epoch, floor(extract(epoch FROM lease_until) * 1000)::bigint, previous_state,
       response_status, response_headers::text, response_body, resource_type, resource_id
FROM redrive.reserve(
    operation => $1::text, key => $2::text, request_hash => $3::bytea, lease => $4::bigint * interval '1 millisecond',
    retention => $5::bigint * interval '1 millisecond', tenant => $6::text,
    execution_id => coalesce($7::text::uuid, gen_random_uuid())
)";

/// Completes a record, or fails it if `$11` is given.
pub(crate) const COMPLETE: &str = "
SELECT CASE WHEN $11::boolean IS NULL THEN redrive.complete(
    operation => $1::text, key => $2::text, execution_id => $3::text::uuid, epoch => $4::bigint, tenant => $5::text,
    response_status => $6::int, response_headers => $7::text::jsonb, response_body => $8::bytea,
    resource_type => $9::text, resource_id => $10::text
)::text ELSE redrive.fail(
    operation => $1::text, key => $2::text, execution_id => $3::text::uuid, epoch => $4::bigint, tenant => $5::text,
    response_status => $6::int, response_headers => $7::text::jsonb, response_body => $8::bytea,
    resource_type => $9::text, resource_id => $10::text, retryable => $11::boolean
)::text END";

pub(crate) const RELEASE: &str = "
SELECT redrive.release(
    operation => $1::text, key => $2::text, execution_id => $3::text::uuid, epoch => $4::bigint, tenant => $5::text
)::text";

pub(crate) const SEEN: &str = "
SELECT redrive.seen(
    consumer => $1::text, event_id => $2::text, retention => $3::bigint * interval '1 millisecond', tenant => $4::text
)";

/// Whole milliseconds, rounded up. A duration that is too long for PostgreSQL is too long for Redrive as well.
pub(crate) fn whole_millis(duration: Duration) -> i64 {
    let millis = duration.as_nanos().div_ceil(1_000_000);
    i64::try_from(millis).unwrap_or(i64::MAX).min(i64::from(i32::MAX) * 1_000)
}

/// A result as arguments.
#[derive(Default)]
pub(crate) struct WrittenCompletion<'a> {
    pub(crate) status: Option<i32>,
    pub(crate) headers: Option<String>,
    pub(crate) body: Option<&'a [u8]>,
    pub(crate) resource_type: Option<&'a str>,
    pub(crate) resource_id: Option<&'a str>,
    pub(crate) retryable: Option<bool>,
}

impl<'a> WrittenCompletion<'a> {
    pub(crate) fn of(Completion { response, resource }: &'a Completion) -> Self {
        let fields = |response: &Response| {
            // A list and not an object: PostgreSQL sorts an object's names.
            let fields = response.headers.iter().map(|(name, value)| [&**name, &**value]);
            serde_json::Value::from_iter(fields).to_string()
        };
        WrittenCompletion {
            status: response.as_ref().map(|response| response.status.into()),
            headers: response.as_ref().map(fields),
            body: response.as_ref().map(|response| &*response.body),
            resource_type: resource.as_ref().map(|resource| &*resource.kind),
            resource_id: resource.as_ref().map(|resource| &*resource.id),
            retryable: None,
        }
    }

    pub(crate) fn of_failure(failure: &'a Failure) -> Self {
        match failure {
            Failure::Retryable => WrittenCompletion { retryable: Some(true), ..WrittenCompletion::default() },
            Failure::Final(completion) => {
                WrittenCompletion { retryable: Some(false), ..WrittenCompletion::of(completion) }
            }
        }
    }
}

/// The row of [`RESERVE`].
pub(crate) struct Answer {
    pub(crate) outcome: String,
    pub(crate) execution_id: Option<String>,
    pub(crate) epoch: Option<i64>,
    pub(crate) lease_until_ms: Option<i64>,
    pub(crate) previous_state: Option<String>,
    pub(crate) response_status: Option<i32>,
    pub(crate) response_headers: Option<String>,
    pub(crate) response_body: Option<Vec<u8>>,
    pub(crate) resource_type: Option<String>,
    pub(crate) resource_id: Option<String>,
}

impl Answer {
    /// The answer as a type. `Err` is a description of what is not understood.
    pub(crate) fn read(self, reserve: &Reserve) -> Result<Reserved, String> {
        match self.outcome.as_str() {
            "reserved" => self.reservation(reserve).map(Reserved::Owner),
            "replay" => self.ended().map(Reserved::Replay),
            "failed" => self.ended().map(Reserved::Failed),
            "in_progress" => Ok(Reserved::InProgress { lease_until: self.lease_until()? }),
            "other_request" => Ok(Reserved::OtherRequest),
            other => Err(format!("the outcome {other:?}")),
        }
    }

    fn reservation(self, reserve: &Reserve) -> Result<Reservation, String> {
        let execution_id: Option<ExecutionId> = self.execution_id.as_deref().and_then(|text| text.parse().ok());
        Ok(Reservation {
            operation: reserve.operation.clone(),
            key: reserve.key.clone(),
            tenant: reserve.tenant.clone(),
            execution_id: execution_id.ok_or("a reservation without an execution")?,
            epoch: self.epoch.ok_or("a reservation without an epoch")?,
            lease_until: self.lease_until()?,
            previous: match self.previous_state.as_deref() {
                None => None,
                Some("IN_PROGRESS") => Some(PreviousState::InProgress),
                Some("FAILED_RETRYABLE") => Some(PreviousState::FailedRetryable),
                Some(other) => return Err(format!("the previous state {other:?}")),
            },
        })
    }

    fn lease_until(&self) -> Result<SystemTime, String> {
        let millis = self.lease_until_ms.and_then(|millis| u64::try_from(millis).ok());
        let since_epoch = millis.map(Duration::from_millis).ok_or("a lease without an end")?;
        Ok(SystemTime::UNIX_EPOCH + since_epoch)
    }

    fn ended(self) -> Result<Ended, String> {
        let headers = match &self.response_headers {
            Some(text) => serde_json::from_str(text).map_err(|error| format!("the response's headers: {error}"))?,
            None => Vec::new(),
        };
        let status = self.response_status.map(u16::try_from).transpose();
        let status = status.map_err(|_| "a response status out of range".to_owned())?;
        let is_body_elsewhere = status.is_some() && self.response_body.is_none();
        let body = self.response_body.unwrap_or_default();
        let resource = self.resource_type.zip(self.resource_id).map(|(kind, id)| Resource { kind, id });
        let response = status.map(|status| Response { status, headers, body });
        Ok(Ended { completion: Completion { response, resource }, is_body_elsewhere })
    }
}
