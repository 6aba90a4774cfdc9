//! What callers send about idempotency records.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::headers::HeaderFields;
use super::object;
use super::submission::present;
use super::text::Text;

/// A request to own a record. Exactly one of `requestHash` and `request` is given.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReserveInput<'a> {
    /// A hash of the request that the key stands for, made by the caller: 64 hexadecimal digits (SHA-256).
    #[serde(borrow, default)]
    #[schemars(extend("pattern" = "^[0-9A-Fa-f]{64}$"))]
    pub request_hash: Option<Text<'a>>,
    /// The request that the key stands for; it is hashed here and not stored.
    #[serde(borrow, default, deserialize_with = "object::optional")]
    pub request: Option<RequestInput<'a>>,
    /// How long no other execution may take over, from 1 s to 24 h. The setting `idempotency.lease` if left out.
    #[serde(default)]
    #[schemars(extend("minimum" = 1000, "maximum" = 86_400_000_u64))]
    pub lease_ms: Option<u64>,
    /// How long the record is kept after its end, from 1 s to 90 days. The setting of the operation if left out; of a
    /// financial operation no less than that.
    #[serde(default)]
    #[schemars(extend("minimum" = 1000, "maximum" = 7_776_000_000_u64))]
    pub retention_ms: Option<u64>,
    /// A UUID of this execution, made by the caller: then the call can be repeated if its answer was lost. One is generated
    /// if there is none.
    #[serde(borrow, default)]
    #[schemars(extend("format" = "uuid"))]
    pub execution_id: Option<Text<'a>>,
}

/// A request to own a record, in a batch. Exactly one of `requestHash` and `request` is given.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReserveItem<'a> {
    /// The operation.
    #[serde(borrow)]
    #[schemars(example = &"create-payment")]
    pub operation: Text<'a>,
    /// The idempotency key.
    #[serde(borrow)]
    #[schemars(example = &"order-1234", extend("minLength" = 1, "maxLength" = 64))]
    pub key: Text<'a>,
    /// As in a single reservation.
    #[serde(borrow, default)]
    #[schemars(extend("pattern" = "^[0-9A-Fa-f]{64}$"))]
    pub request_hash: Option<Text<'a>>,
    /// As in a single reservation.
    #[serde(borrow, default, deserialize_with = "object::optional")]
    pub request: Option<RequestInput<'a>>,
    /// As in a single reservation.
    #[serde(default)]
    #[schemars(extend("minimum" = 1000, "maximum" = 86_400_000_u64))]
    pub lease_ms: Option<u64>,
    /// As in a single reservation.
    #[serde(default)]
    #[schemars(extend("minimum" = 1000, "maximum" = 7_776_000_000_u64))]
    pub retention_ms: Option<u64>,
    /// As in a single reservation.
    #[serde(borrow, default)]
    #[schemars(extend("format" = "uuid"))]
    pub execution_id: Option<Text<'a>>,
}

impl<'a> ReserveItem<'a> {
    /// The operation, the key, and the rest as a single reservation has it.
    pub fn into_parts(self) -> (Text<'a>, Text<'a>, ReserveInput<'a>) {
        let ReserveItem { operation, key, request_hash, request, lease_ms, retention_ms, execution_id } = self;
        (operation, key, ReserveInput { request_hash, request, lease_ms, retention_ms, execution_id })
    }
}

/// Many records to reserve in one durable commit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReserveBatch<'a> {
    /// The records, at most 1,000. Each is judged by itself, in order: an invalid one does not affect the others.
    #[serde(borrow)]
    #[schemars(with = "Vec<ReserveItem<'a>>")]
    pub records: Vec<&'a RawValue>,
}

/// A request to hash. Its header fields do not count, so a renewed token does not make another request.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "HashedRequest")]
pub struct RequestInput<'a> {
    /// The method.
    #[serde(borrow)]
    #[schemars(example = &"POST")]
    pub method: Text<'a>,
    /// Path and query.
    #[serde(borrow)]
    #[schemars(example = &"/payments")]
    pub path: Text<'a>,
    /// The content type; case and parameters do not count.
    #[serde(borrow, default)]
    pub content_type: Option<Text<'a>>,
    /// The body as text.
    #[serde(borrow, default)]
    pub body_text: Option<Text<'a>>,
    /// The body as any JSON, hashed as it is written here.
    #[serde(borrow, default, deserialize_with = "present")]
    #[schemars(with = "serde_json::Value")]
    pub body_json: Option<&'a RawValue>,
    /// The body as base64.
    #[serde(borrow, default)]
    #[schemars(extend("contentEncoding" = "base64"))]
    pub body_base64: Option<Text<'a>>,
    /// `bytes`: bodies are compared byte by byte. `json`: white space and the order of names do not count. `bytes` if left
    /// out.
    #[serde(borrow, default)]
    #[schemars(extend("enum" = ["bytes", "json"]))]
    pub comparison: Option<Text<'a>>,
}

/// The owner of a record.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OwnerInput<'a> {
    /// The `executionId` of the reservation.
    #[serde(borrow)]
    #[schemars(extend("format" = "uuid"))]
    pub execution_id: Text<'a>,
    /// The `epoch` of the reservation.
    pub epoch: u64,
}

/// The end of an operation that took place.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CompleteInput<'a> {
    /// The `executionId` of the reservation.
    #[serde(borrow)]
    #[schemars(extend("format" = "uuid"))]
    pub execution_id: Text<'a>,
    /// The `epoch` of the reservation.
    pub epoch: u64,
    /// The response that duplicates get.
    #[serde(borrow, default, deserialize_with = "object::optional")]
    pub response: Option<ResponseInput<'a>>,
    /// The type of the object that the operation made, together with `resourceId`.
    #[serde(borrow, default)]
    #[schemars(example = &"payment", extend("minLength" = 1, "maxLength" = 100))]
    pub resource_type: Option<Text<'a>>,
    /// Its id, together with `resourceType`.
    #[serde(borrow, default)]
    #[schemars(example = &"pay_123", extend("minLength" = 1, "maxLength" = 500))]
    pub resource_id: Option<Text<'a>>,
}

/// The end of an execution that failed.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FailInput<'a> {
    /// The `executionId` of the reservation.
    #[serde(borrow)]
    #[schemars(extend("format" = "uuid"))]
    pub execution_id: Text<'a>,
    /// The `epoch` of the reservation.
    pub epoch: u64,
    /// `true`: the next caller may execute the operation again. `false`: the operation failed for good, and duplicates get
    /// this result.
    pub retryable: bool,
    /// The response that duplicates get; only if it is not retryable.
    #[serde(borrow, default, deserialize_with = "object::optional")]
    pub response: Option<ResponseInput<'a>>,
    /// The type of an object that describes the failure, together with `resourceId`; only if it is not retryable.
    #[serde(borrow, default)]
    #[schemars(extend("minLength" = 1, "maxLength" = 100))]
    pub resource_type: Option<Text<'a>>,
    /// Its id, together with `resourceType`.
    #[serde(borrow, default)]
    #[schemars(extend("minLength" = 1, "maxLength" = 500))]
    pub resource_id: Option<Text<'a>>,
}

/// More time for an execution.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RenewInput<'a> {
    /// The `executionId` of the reservation.
    #[serde(borrow)]
    #[schemars(extend("format" = "uuid"))]
    pub execution_id: Text<'a>,
    /// The `epoch` of the reservation.
    pub epoch: u64,
    /// The lease ends this long from now, from 1 s to 24 h. The setting `idempotency.lease` if left out.
    #[serde(default)]
    #[schemars(extend("minimum" = 1000, "maximum" = 86_400_000_u64))]
    pub lease_ms: Option<u64>,
}

/// A response that duplicates get.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResponseInput<'a> {
    /// The status code.
    #[schemars(extend("minimum" = 100, "maximum" = 599))]
    pub status: u16,
    /// The header fields to keep, at most 100 and 32 KiB.
    #[serde(borrow, default)]
    pub headers: Option<HeaderFields<'a>>,
    /// The body as text.
    #[serde(borrow, default)]
    pub body_text: Option<Text<'a>>,
    /// The body as any JSON, kept as it is written here.
    #[serde(borrow, default, deserialize_with = "present")]
    #[schemars(with = "serde_json::Value")]
    pub body_json: Option<&'a RawValue>,
    /// The body as base64.
    #[serde(borrow, default)]
    #[schemars(extend("contentEncoding" = "base64"))]
    pub body_base64: Option<Text<'a>>,
}
