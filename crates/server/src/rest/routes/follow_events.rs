//! `GET /events`

use http::{HeaderName, Method};
use redrive_core::{Dependency, TaskId};
use schemars::{Schema, SchemaGenerator, json_schema};

use super::parameters;
use crate::live_events::{EventFilter, EventId, Kind, StartAt};
use crate::operations::{EventQuery, follow_events};
use crate::rest::call::Call;
use crate::rest::event_stream;
use crate::rest::problem::{Refusal, kind};
use crate::rest::query::Query;
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Parameter, ParameterLocation, Route};

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/events",
    id: "followEvents",
    group: Group::Service,
    summary: "Follow events",
    description: "What happens on this node, as server-sent events: accepted tasks, attempts, retries, ends, dead letters, circuit breakers, alerts. \
        Each is a JSON object in one `data` line, and its kind is the `event`. The stream begins with the next event and goes on until either \
        side closes it. The last 10,000 events are kept in memory (`--events`): give the id of the last one that was seen as \
        `Last-Event-ID` or `after` and the stream resumes behind it. If events are missing, because they were too many, or because the process \
        was restarted, the event `gap` says why and, if it is known, how many. A comment is sent when there was nothing for 15 s. Events of other \
        nodes are not shown. Counts of `attempt`, `ended` and `dead-letter` events are those of `/metrics`. At most 64 readers at a time.",
    effect: Effect::Reads,
    access: Access::Read,
    parameters: &[
        Parameter {
            name: "dependency",
            location: ParameterLocation::Query,
            description: "Only events of this dependency and of its tasks.",
            schema: parameters::dependency,
        },
        Parameter {
            name: "taskId",
            location: ParameterLocation::Query,
            description: "Only events of this task.",
            schema: task_id_schema,
        },
        Parameter {
            name: "kind",
            location: ParameterLocation::Query,
            description: "Only events of this kind. May be repeated, or a list separated by commas. Gaps are always told.",
            schema: kinds_schema,
        },
        Parameter {
            name: "past",
            location: ParameterLocation::Query,
            description: "`true`: begin with the oldest event that is kept, unless an id says where to resume.",
            schema: flag_schema,
        },
        Parameter {
            name: "follow",
            location: ParameterLocation::Query,
            description: "`false`: end with the newest event that there is.",
            schema: flag_schema,
        },
        Parameter {
            name: AFTER,
            location: ParameterLocation::Query,
            description: "Resume after the event with this id, like the header `Last-Event-ID`, which is the one that counts if both are given.",
            schema: event_id_schema,
        },
        Parameter {
            name: LAST_EVENT_ID,
            location: ParameterLocation::Header,
            description: "Resume after the event with this id. Browsers send it when they reconnect.",
            schema: event_id_schema,
        },
    ],
    request: None,
    answers: &[Answer { status: 200, description: "The events.", headers: &[], content: Content::Events }],
    problems: &[&kind::EVENTS_OFF, &kind::TOO_MANY_READERS],
    example: Example { target: "/events?past=true&follow=false&kind=attempt", headers: &[], answer: "" },
    handler: |call| Box::pin(handle(call)),
};

const LAST_EVENT_ID: &str = "Last-Event-ID";
const AFTER: &str = "after";

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let query = event_query(&call)?;
    let reader = follow_events(call.app(), call.caller(), query)?;
    if call.parts.method == Method::HEAD {
        return Ok(Reply::events(Box::pin(futures_util::stream::empty())));
    }
    Ok(Reply::events(event_stream::pieces(reader, &call.app().node, call.context.shutdown.clone())))
}

fn event_query(call: &Call) -> Result<EventQuery, Refusal> {
    let query = &call.query;
    let after = match last_event_id(call)? {
        Some(id) => Some(id),
        None => query.parsed::<EventId>(AFTER)?,
    };
    let start = match (after, flag(query, "past")?.unwrap_or(false)) {
        (Some(id), _) => StartAt::After(id),
        (None, true) => StartAt::Past,
        (None, false) => StartAt::Now,
    };
    let filter = EventFilter {
        dependency: query.read("dependency", |text| Dependency::try_new(text).map_err(|e| e.to_string()))?,
        task: query.parsed::<TaskId>("taskId")?,
        kinds: kinds(query)?,
    };
    Ok(EventQuery { filter, start, follows: flag(query, "follow")?.unwrap_or(true) })
}

/// The id in the header. An empty one says that the reader has seen no event.
fn last_event_id(call: &Call) -> Result<Option<EventId>, Refusal> {
    let mut given = call.parts.headers.get_all(HeaderName::from_static("last-event-id")).iter();
    let refused = |message: String| Refusal::parameter(LAST_EVENT_ID, message);
    match (given.next(), given.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(refused("must be given only once".into())),
        (Some(value), None) if value.is_empty() => Ok(None),
        (Some(value), None) => {
            let id = value.to_str().unwrap_or_default().parse::<EventId>();
            id.map(Some).map_err(|error| refused(error.to_string()))
        }
    }
}

fn kinds(query: &Query) -> Result<Vec<Kind>, Refusal> {
    let mut kinds = Vec::new();
    for name in query.all("kind").flat_map(|list| list.split(',')).map(str::trim).filter(|name| !name.is_empty()) {
        let kind = Kind::from_name(name).ok_or_else(|| {
            let names = Kind::ALL.map(Kind::as_str).join(", ");
            Refusal::parameter("kind", format!("must be one of {names}"))
        })?;
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    Ok(kinds)
}

fn flag(query: &Query, name: &str) -> Result<Option<bool>, Refusal> {
    query.read(name, |text| text.parse().map_err(|_| "must be true or false".to_owned()))
}

fn kinds_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string", "enum": Kind::ALL.map(Kind::as_str) } })
}

/// A task's id. An empty one is refused.
fn task_id_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "uuid", "minLength": 36 })
}

fn flag_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "boolean" })
}

fn event_id_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[0-9a-f]{16}-(0|[1-9][0-9]{0,18})$" })
}
