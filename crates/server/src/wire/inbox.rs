//! Events of consumers: what callers send, and what they get.

use redrive_core::idempotency::{self, ExecutionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::record::{PreviousExecution, as_text};
use super::schema;
use super::text::Text;

/// How an event is recorded.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventInput<'a> {
    /// `record`: the event counts as seen from now on. `begin`: it counts as seen once its processing is confirmed.
    /// `record` if left out.
    #[serde(borrow, default)]
    #[schemars(extend("enum" = ["record", "begin"]))]
    pub mode: Option<Text<'a>>,
    /// With `begin`: how long no other execution may begin, from 1 s to 24 h. The setting `idempotency.lease` if left out.
    #[serde(default)]
    #[schemars(extend("minimum" = 1000, "maximum" = 86_400_000_u64))]
    pub lease_ms: Option<u64>,
    /// How long the event's id is kept, from 1 s to 90 days. The setting of the consumer if left out.
    #[serde(default)]
    #[schemars(extend("minimum" = 1000, "maximum" = 7_776_000_000_u64))]
    pub window_ms: Option<u64>,
    /// A UUID of this execution, made by the caller: then the call can be repeated if its answer was lost. The event is `new`
    /// for this execution again, and a duplicate for every other one.
    #[serde(borrow, default)]
    #[schemars(extend("format" = "uuid"))]
    pub execution_id: Option<Text<'a>>,
}

/// Many events to record in one durable commit.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventBatch<'a> {
    /// As for a single event; it applies to all.
    #[serde(borrow, default)]
    #[schemars(extend("enum" = ["record", "begin"]))]
    pub mode: Option<Text<'a>>,
    /// As for a single event; it applies to all.
    #[serde(default)]
    #[schemars(extend("minimum" = 1000, "maximum" = 86_400_000_u64))]
    pub lease_ms: Option<u64>,
    /// As for a single event; it applies to all.
    #[serde(default)]
    #[schemars(extend("minimum" = 1000, "maximum" = 7_776_000_000_u64))]
    pub window_ms: Option<u64>,
    /// A UUID of this call, made by the caller: then the call can be repeated with the same events in the same order if its
    /// answer was lost. Each event has an execution of its own, whose id is made from this one and the event's position.
    #[serde(borrow, default)]
    #[schemars(extend("format" = "uuid"))]
    pub execution_id: Option<Text<'a>>,
    /// The ids of the events, at most 1,000, each 1 to 200 visible ASCII characters.
    #[serde(borrow)]
    pub events: Vec<Text<'a>>,
}

/// An event that was not seen before: the caller processes it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewEvent {
    /// `new`.
    #[schemars(extend("enum" = ["new"]))]
    pub outcome: &'static str,
    /// The execution, to confirm or release it with.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "schema::Uuid")]
    pub execution_id: ExecutionId,
    /// Its fencing number.
    pub epoch: u64,
    /// With `begin`: when another execution may begin, in epoch milliseconds. Left out with `record`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<u64>,
    /// The execution before this one, whose outcome is unknown: it may have processed the event. Left out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<PreviousExecution>,
}

/// An event that was seen before: the caller skips it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DuplicateEvent {
    /// `duplicate`.
    #[schemars(extend("enum" = ["duplicate"]))]
    pub outcome: &'static str,
}

/// An event that was confirmed or released. Times are epoch milliseconds.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "InboxEvent")]
pub struct ShownEvent<'a> {
    /// The consumer.
    pub consumer: &'a str,
    /// The event's id.
    pub event_id: &'a str,
    /// SUCCEEDED: it was processed. RELEASED: it counts as not seen.
    #[schemars(with = "schema::RecordState")]
    pub state: &'static str,
    /// The execution.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "schema::Uuid")]
    pub execution_id: ExecutionId,
    /// Its fencing number.
    pub epoch: u64,
    /// When it last changed.
    pub updated_at: u64,
    /// From when on the event is not known any more.
    pub expires_at: u64,
}

impl<'a> ShownEvent<'a> {
    /// The event that this record is about.
    pub fn new(consumer: &'a str, event_id: &'a str, record: &idempotency::Record) -> Self {
        ShownEvent {
            consumer,
            event_id,
            state: record.state.name(),
            execution_id: record.owner.execution,
            epoch: record.owner.epoch.0,
            updated_at: record.updated_at.as_millis(),
            expires_at: record.expires_at.as_millis(),
        }
    }
}

/// The result of each event of a batch, in their order.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EventBatchAnswer<'a> {
    /// One result per event.
    pub results: Vec<EventResult<'a>>,
}

/// The result of one event of a batch.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum EventResult<'a> {
    /// The event was not seen before: 201.
    New {
        /// The event's id.
        #[serde(rename = "eventId")]
        event_id: &'a str,
        /// The status code that a single call would have been answered with.
        status: u16,
        /// How to process it.
        event: Box<NewEvent>,
    },
    /// The event was seen before: 200.
    Duplicate {
        /// The event's id.
        #[serde(rename = "eventId")]
        event_id: &'a str,
        /// The status code that a single call would have been answered with.
        status: u16,
        /// That it is a duplicate.
        event: DuplicateEvent,
    },
    /// The event was refused.
    Refused {
        /// The event's id, as it was given.
        #[serde(rename = "eventId")]
        event_id: &'a str,
        /// The status code that a single call would have been answered with.
        status: u16,
        /// Why it was refused.
        error: Box<Problem>,
    },
}
