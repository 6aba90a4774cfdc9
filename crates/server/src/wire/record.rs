//! Idempotency records as they are shown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use redrive_core::Timestamp;
use redrive_core::idempotency::{self, ExecutionId, Previous, RecordKey};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::headers::{ExactHeaders, ShownHeaders};
use super::problem::Problem;
use super::schema;
use super::secret::Secrets;

/// A reservation that was granted: the caller executes the operation and reports its result.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReservedRecord {
    /// `reserved`.
    #[schemars(extend("enum" = ["reserved"]))]
    pub outcome: &'static str,
    /// The execution that owns the record.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "schema::Uuid")]
    pub execution_id: ExecutionId,
    /// Its fencing number: larger than that of every owner before.
    pub epoch: u64,
    /// When another execution may take over, in epoch milliseconds.
    pub lease_until: u64,
    /// The execution before this one, whose outcome is unknown: its effect may have taken place. Left out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<PreviousExecution>,
}

/// An execution that did not report a final result.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviousExecution {
    /// The execution.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "schema::Uuid")]
    pub execution_id: ExecutionId,
    /// Its fencing number.
    pub epoch: u64,
    /// IN_PROGRESS if its lease ended without a report, FAILED_RETRYABLE if it reported a failure.
    #[schemars(with = "schema::RecordState")]
    pub state: &'static str,
    /// `unknown`: whether its effect took place is not known here.
    #[schemars(extend("enum" = ["unknown"]))]
    pub outcome: &'static str,
}

impl From<&Previous> for PreviousExecution {
    fn from(previous: &Previous) -> Self {
        PreviousExecution {
            execution_id: previous.owner.execution,
            epoch: previous.owner.epoch.0,
            state: previous.state.name(),
            outcome: "unknown",
        }
    }
}

/// The stored result of an operation that has ended: the caller does not execute it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayedRecord<'a> {
    /// `replay`.
    #[schemars(extend("enum" = ["replay"]))]
    pub outcome: &'static str,
    /// SUCCEEDED or FAILED_FINAL.
    #[schemars(with = "schema::RecordState")]
    pub state: &'static str,
    /// The response that the owner stored; left out if it stored none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<ReplayedResponse<'a>>,
    /// The type of the object that the operation made; left out if the owner named none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_type: Option<&'a str>,
    /// The id of the object that the operation made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<&'a str>,
    /// When the owner reported the result, in epoch milliseconds.
    pub completed_at: u64,
}

/// A stored response, exactly as the owner gave it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayedResponse<'a> {
    /// The status code.
    pub status: u16,
    /// The header fields, also those that carry secrets.
    pub headers: ExactHeaders<'a>,
    /// The body as base64; left out if `bodyRef` is there instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("contentEncoding" = "base64"))]
    pub body_base64: Option<String>,
    /// Where the body can be read if it is too large to be shown here: `GET /blobs/{bodyRef}`. Otherwise left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_ref: Option<String>,
    /// `true` in a batch whose answers together are too large: ask for this record by itself. Otherwise left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub body_left_out: bool,
    /// The size of the body in bytes.
    pub body_bytes: u64,
}

/// Which part of a stored body a replay shows.
#[derive(Debug, Clone, Copy)]
pub enum ShownBody<'a> {
    /// The bytes that were read from storage, or those of the record.
    Bytes(&'a Bytes),
    /// Its reference.
    Reference,
    /// Nothing.
    LeftOut,
}

impl<'a> ReplayedRecord<'a> {
    /// The result of a record that has ended.
    pub fn new(record: &'a idempotency::Record, body: ShownBody<'_>) -> Self {
        let idempotency::Completion { response, resource } = &record.completion;
        ReplayedRecord {
            outcome: "replay",
            state: record.state.name(),
            response: response.as_ref().map(|response| ReplayedResponse {
                status: response.status,
                headers: ExactHeaders(&response.headers),
                body_base64: match body {
                    ShownBody::Bytes(bytes) => Some(STANDARD.encode(bytes)),
                    ShownBody::Reference | ShownBody::LeftOut => None,
                },
                body_ref: match body {
                    ShownBody::Reference => response.body.stored().map(|body| body.hash.to_string()),
                    ShownBody::Bytes(_) | ShownBody::LeftOut => None,
                },
                body_left_out: matches!(body, ShownBody::LeftOut),
                body_bytes: response.body.length(),
            }),
            resource_type: resource.as_ref().map(idempotency::Resource::kind),
            resource_id: resource.as_ref().map(idempotency::Resource::id),
            completed_at: record.updated_at.as_millis(),
        }
    }
}

/// An idempotency record. Times are epoch milliseconds.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "IdempotencyRecord")]
pub struct ShownRecord<'a> {
    /// The operation.
    pub operation: String,
    /// The idempotency key.
    pub key: &'a str,
    /// Its state.
    #[schemars(with = "schema::RecordState")]
    pub state: &'static str,
    /// The hash of the request that the key stands for.
    pub request_hash: String,
    /// The execution that owns the record, or owned it last.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "schema::Uuid")]
    pub execution_id: ExecutionId,
    /// Its fencing number.
    pub epoch: u64,
    /// When another execution may take over; once it has ended, when that was.
    pub lease_until: u64,
    /// When the owner reserved it.
    pub started_at: u64,
    /// When it last changed.
    pub updated_at: u64,
    /// From when on it does not exist any more; `null` for a submission, which exists as long as its task.
    pub expires_at: Option<u64>,
    /// The response that duplicates get; left out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<ShownRecordResponse<'a>>,
    /// The type of the object that the operation made; left out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_type: Option<&'a str>,
    /// The id of the object that the operation made; left out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<&'a str>,
}

/// A stored response, with its secrets masked.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RecordResponse")]
pub struct ShownRecordResponse<'a> {
    /// The status code.
    pub status: u16,
    /// The header fields.
    pub headers: ShownHeaders<'a>,
    /// The body as base64. Left out in lists, in the answer to a change, and if it is stored apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("contentEncoding" = "base64"))]
    pub body_base64: Option<String>,
    /// Where the body can be read if it is stored apart: `GET /blobs/{bodyRef}`. Otherwise left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_ref: Option<String>,
    /// The size of the body in bytes.
    pub body_bytes: u64,
}

impl<'a> ShownRecord<'a> {
    /// A record as a list shows it: without the body of its response.
    pub fn summary(key: &'a RecordKey, record: &'a idempotency::Record, secrets: &'a Secrets) -> Self {
        let idempotency::Completion { response, resource } = &record.completion;
        ShownRecord {
            operation: key.operation.to_string(),
            key: key.name.as_str(),
            state: record.state.name(),
            request_hash: record.request_hash.to_string(),
            execution_id: record.owner.execution,
            epoch: record.owner.epoch.0,
            lease_until: record.lease_until.as_millis(),
            started_at: record.started_at.as_millis(),
            updated_at: record.updated_at.as_millis(),
            expires_at: (record.expires_at != Timestamp::MAX).then(|| record.expires_at.as_millis()),
            response: response.as_ref().map(|response| ShownRecordResponse {
                status: response.status,
                headers: ShownHeaders { fields: &response.headers, secrets },
                body_base64: None,
                body_ref: response.body.stored().map(|body| body.hash.to_string()),
                body_bytes: response.body.length(),
            }),
            resource_type: resource.as_ref().map(idempotency::Resource::kind),
            resource_id: resource.as_ref().map(idempotency::Resource::id),
        }
    }

    /// A record with the body of its response, unless that is stored apart.
    pub fn full(key: &'a RecordKey, record: &'a idempotency::Record, secrets: &'a Secrets) -> Self {
        let mut shown = ShownRecord::summary(key, record, secrets);
        let body = record.completion.response.as_ref().and_then(|response| response.body.inline());
        if let (Some(response), Some(bytes)) = (&mut shown.response, body) {
            response.body_base64 = Some(STANDARD.encode(bytes));
        }
        shown
    }
}

/// A page of records, by operation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordList<'a> {
    /// The records. A short or empty page may still have a next one.
    pub records: Vec<ShownRecord<'a>>,
    /// Where the next page begins; `null` on the last one.
    pub next_cursor: Option<String>,
}

/// The result of each reservation of a batch, in their order.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReserveBatchAnswer<'a> {
    /// One result per record.
    pub results: Vec<ReserveBatchResult<'a>>,
}

/// The result of one reservation of a batch.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ReserveBatchResult<'a> {
    /// The reservation was granted: 201.
    Reserved {
        /// The status code that a single reservation would have been answered with.
        status: u16,
        /// The reservation.
        record: Box<ReservedRecord>,
    },
    /// The operation has ended: 200.
    Replayed {
        /// The status code that a single reservation would have been answered with.
        status: u16,
        /// The stored result.
        record: Box<ReplayedRecord<'a>>,
    },
    /// The reservation was refused.
    Refused {
        /// The status code that a single reservation would have been answered with.
        status: u16,
        /// Why it was refused.
        error: Box<Problem>,
    },
}

/// An execution's id as text.
pub(super) fn as_text<S: Serializer>(id: &ExecutionId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}
