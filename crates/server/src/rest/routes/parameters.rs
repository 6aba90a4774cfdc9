//! Parameters that several routes have.

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::app::Limits;
use crate::rest::route::{AnswerHeader, Parameter, ParameterLocation, TEXT, of};
use crate::wire::schema;

pub(crate) const TASK_ID: Parameter = Parameter {
    name: "taskId",
    location: ParameterLocation::Path,
    description: "The task's id.",
    schema: of::<schema::Uuid>,
};

pub(crate) const POLICY_ID: Parameter =
    Parameter { name: "policyId", location: ParameterLocation::Path, description: "The policy's name.", schema: TEXT };

pub(crate) const DEPENDENCY: Parameter = Parameter {
    name: "dependency",
    location: ParameterLocation::Path,
    description: "The dependency's name, percent-encoded: `https%3A%2F%2Fapi.example.com`.",
    schema: dependency,
};

pub(crate) const SILENCE_ID: Parameter = Parameter {
    name: "silenceId",
    location: ParameterLocation::Path,
    description: "The silence's id.",
    schema: of::<schema::Uuid>,
};

pub(crate) const SINK: Parameter = Parameter {
    name: "sink",
    location: ParameterLocation::Path,
    description: "The sink's name in the configuration.",
    schema: TEXT,
};

pub(crate) const CURSOR: Parameter = Parameter {
    name: "cursor",
    location: ParameterLocation::Query,
    description: "The `nextCursor` of the page before.",
    schema: cursor,
};

pub(crate) const LIMIT: Parameter = Parameter {
    name: "limit",
    location: ParameterLocation::Query,
    description: "The most items of the page.",
    schema: page_size,
};

fn cursor(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9_-]+$" })
}

/// `*`, or a list of `ETag`s (RFC 9110, section 13.1.1).
fn entity_tags(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": r#"^(\*|(W/)?"[!#-~]*"( *, *(W/)?"[!#-~]*")*)$"# })
}

/// A dependency's name.
pub(crate) fn dependency(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[!-~]{1,300}$" })
}

/// A policy's name.
pub(crate) fn policy_id(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": schema::POLICY_ID })
}

/// `name:value`.
pub(crate) fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string", "pattern": "^[^:]+:" } })
}

/// A key of 1 to 64 visible characters, bare or in quotes.
pub(crate) fn idempotency_key(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": r#"^([!#-~][!-~]{0,63}|"([!#-\[\]-~]|\\["\\]){1,64}")$"# })
}

/// `*` and nothing else.
pub(crate) fn asterisk(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["*"] })
}

fn page_size(_: &mut SchemaGenerator) -> Schema {
    let limits = Limits::default();
    json_schema!({ "type": "integer", "minimum": 1, "maximum": limits.page_most, "default": limits.page_default })
}

pub(crate) const PREFER: Parameter = Parameter {
    name: "Prefer",
    location: ParameterLocation::Header,
    description: "`wait=N` (RFC 7240): wait up to N seconds, at most 30, for the task to end.",
    schema: TEXT,
};

pub(crate) const TRACEPARENT: Parameter = Parameter {
    name: "traceparent",
    location: ParameterLocation::Header,
    description: "The trace that the task belongs to (W3C Trace Context), unless a header of the document names one. A value \
        that is not valid is ignored.",
    schema: TEXT,
};

pub(crate) const TRACESTATE: Parameter = Parameter {
    name: "tracestate",
    location: ParameterLocation::Header,
    description: "Sent on with every attempt, if `traceparent` is used.",
    schema: TEXT,
};

pub(crate) const BAGGAGE: Parameter = Parameter {
    name: "baggage",
    location: ParameterLocation::Header,
    description: "Sent on with every attempt, up to 8192 bytes, unless a header of the document belongs to a trace.",
    schema: TEXT,
};

pub(crate) const IF_MATCH: Parameter = Parameter {
    name: "If-Match",
    location: ParameterLocation::Header,
    description: "Only if the policy's current version is this `ETag`, such as `\"3\"`; `*`: only if there is such a policy.",
    schema: entity_tags,
};

pub(crate) const PREFERENCE_APPLIED: AnswerHeader =
    AnswerHeader { name: "Preference-Applied", description: "`wait=N`, if a wait was asked for." };

pub(crate) const ETAG: AnswerHeader =
    AnswerHeader { name: "ETag", description: "The policy's current version, in quotes." };

pub(crate) const OPERATION: Parameter = Parameter {
    name: "operation",
    location: ParameterLocation::Path,
    description: "The operation, such as `create-payment`: 1 to 100 letters, digits, `.`, `_`, `-` and `:`.",
    schema: name,
};

pub(crate) const KEY: Parameter = Parameter {
    name: "key",
    location: ParameterLocation::Path,
    description: "The idempotency key, percent-encoded: 1 to 64 visible ASCII characters.",
    schema: bare_key,
};

pub(crate) const CONSUMER: Parameter = Parameter {
    name: "consumer",
    location: ParameterLocation::Path,
    description: "The consumer's name: 1 to 100 letters, digits, `.`, `_`, `-` and `:`.",
    schema: name,
};

pub(crate) const EVENT_ID: Parameter = Parameter {
    name: "eventId",
    location: ParameterLocation::Path,
    description: "The event's id, percent-encoded: 1 to 200 visible ASCII characters.",
    schema: event_id,
};

/// The name of an operation or a consumer.
pub(crate) fn name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": schema::POLICY_ID })
}

fn bare_key(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[!-~]{1,64}$" })
}

fn event_id(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[!-~]{1,200}$" })
}

pub(crate) const RECORD_IF_MATCH: Parameter = Parameter {
    name: "If-Match",
    location: ParameterLocation::Header,
    description: "Required: the `ETag` of the record that you have seen; `*` deletes whatever is there.",
    schema: entity_tags,
};

pub(crate) const RECORD_ETAG: AnswerHeader =
    AnswerHeader { name: "ETag", description: "The record's version, in quotes: another one whenever it has changed." };
