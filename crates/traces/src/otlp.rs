//! The messages of OTLP 1.x (`opentelemetry/proto/collector/trace/v1`), as far as they are written and read here.
//!
//! Fields that are not used are left out. In protobuf that means the same as their defaults.

use bytes::Bytes;
use prost::Message as _;
use redrive_core::{ErrorType, Outcome, Reason};

use crate::record::{AttemptFacts, Record, What};

/// What is sent: spans of one resource and one scope.
#[derive(Clone, PartialEq, prost::Message)]
struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Span {
    #[prost(bytes = "bytes", tag = "1")]
    trace_id: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    span_id: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    parent_span_id: Bytes,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
    #[prost(fixed32, tag = "16")]
    flags: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 3")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Whole(i64),
}

/// What is answered.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ExportAnswer {
    #[prost(message, optional, tag = "1")]
    pub(crate) partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub(crate) rejected_spans: i64,
}

const KIND_CLIENT: i32 = 3;
const KIND_CONSUMER: i32 = 5;
const STATUS_ERROR: i32 = 2;
/// The flags of a span: sampled; the next ones say whether its parent is remote.
const FLAG_SAMPLED: u32 = 0x001;
const FLAG_HAS_IS_REMOTE: u32 = 0x100;
const FLAG_IS_REMOTE: u32 = 0x200;

/// Encodes batches of one process.
#[derive(Debug)]
pub(crate) struct Encoder {
    resource: Resource,
    scope: Scope,
}

impl Encoder {
    pub(crate) fn new(resource: Vec<(String, String)>) -> Self {
        let attributes = resource.into_iter().map(|(key, value)| key_value(key, Value::Text(value))).collect();
        let scope = Scope { name: "redrive".into(), version: env!("CARGO_PKG_VERSION").into() };
        Encoder { resource: Resource { attributes }, scope }
    }

    pub(crate) fn encode(&self, batch: Vec<Record>) -> Bytes {
        let spans = batch.iter().map(span).collect();
        let scope_spans = vec![ScopeSpans { scope: Some(self.scope.clone()), spans }];
        let resource_spans = vec![ResourceSpans { resource: Some(self.resource.clone()), scope_spans }];
        ExportRequest { resource_spans }.encode_to_vec().into()
    }
}

fn span(record: &Record) -> Span {
    let mut attributes = Attributes(Vec::with_capacity(18));
    attributes.text("redrive.task.id", record.task);
    attributes.text("redrive.tenant", &record.lane.tenant);
    attributes.text("redrive.dependency", &record.lane.dependency);
    attributes.text("redrive.policy", &record.policy);
    attributes.whole("redrive.run", record.run);
    if let Some(correlation) = &record.correlation {
        attributes.text("redrive.correlation_id", correlation);
    }
    let (name, kind, error) = match &record.what {
        What::Run { status, reason, attempts } => {
            attributes.text("redrive.status", status.as_str());
            attributes.whole("redrive.attempts", *attempts);
            if let Some(reason) = reason {
                attributes.text("redrive.reason", reason.as_str());
            }
            let name = if record.run <= 1 { "redrive task" } else { "redrive replay" };
            (name, KIND_CONSUMER, status.is_dead_letter().then(|| reason.map_or("", Reason::as_str)))
        }
        What::Attempt(facts) => {
            attributes.of_attempt(facts);
            // As HTTP clients name their spans.
            let name = if facts.method == "_OTHER" { "HTTP" } else { facts.method };
            (name, KIND_CLIENT, (facts.outcome != Outcome::Success).then_some(""))
        }
    };
    let is_remote = if record.is_parent_remote { FLAG_IS_REMOTE } else { 0 };
    Span {
        trace_id: Bytes::copy_from_slice(&record.trace.as_u128().to_be_bytes()),
        span_id: Bytes::copy_from_slice(&record.span.as_u64().to_be_bytes()),
        parent_span_id: record
            .parent
            .map_or_else(Bytes::new, |parent| Bytes::copy_from_slice(&parent.as_u64().to_be_bytes())),
        name: name.to_owned(),
        kind,
        start_time_unix_nano: record.start.0,
        end_time_unix_nano: record.end.0,
        attributes: attributes.0,
        status: error.map(|message| Status { message: message.to_owned(), code: STATUS_ERROR }),
        flags: FLAG_SAMPLED | FLAG_HAS_IS_REMOTE | is_remote,
    }
}

/// The attributes of a span, as they come together.
struct Attributes(Vec<KeyValue>);

impl Attributes {
    fn text(&mut self, key: &str, value: impl ToString) {
        self.0.push(key_value(key.to_owned(), Value::Text(value.to_string())));
    }

    fn whole(&mut self, key: &str, value: impl Into<i64>) {
        self.0.push(key_value(key.to_owned(), Value::Whole(value.into())));
    }

    fn of_attempt(&mut self, facts: &AttemptFacts) {
        self.text("http.request.method", facts.method);
        self.text("server.address", &facts.host);
        if let Some(port) = facts.port {
            self.whole("server.port", port);
        }
        if let Some(status) = facts.response_status {
            self.whole("http.response.status_code", status);
        }
        if facts.number_in_run > 1 {
            self.whole("http.request.resend_count", facts.number_in_run - 1);
        }
        match (facts.error, facts.response_status) {
            (Some(ErrorType::HttpStatus), Some(status)) => self.text("error.type", status),
            (Some(error), _) => self.text("error.type", error.as_str()),
            (None, _) => {}
        }
        self.whole("redrive.attempt", facts.number);
        self.whole("redrive.attempt_in_run", facts.number_in_run);
        self.text("redrive.outcome", facts.outcome.as_str());
        if let Some(backoff) = facts.backoff {
            self.whole("redrive.backoff_ms", i64::try_from(backoff.as_millis()).unwrap_or(i64::MAX));
        }
    }
}

fn key_value(key: String, value: Value) -> KeyValue {
    KeyValue { key, value: Some(AnyValue { value: Some(value) }) }
}
