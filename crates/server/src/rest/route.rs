//! A route: everything that the router, `/openapi.json` and the reference page need to know of it.

use std::future::Future;
use std::pin::Pin;

use http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::call::Call;
use super::gate;
use super::problem::{Kind, Refusal, kind};
use super::reply::Reply;

/// One operation at one path.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) method: Method,
    /// A segment in braces is a parameter: `/retry-tasks/{taskId}/attempts`.
    pub(crate) path: &'static str,
    /// The operation's name, for generated clients.
    pub(crate) id: &'static str,
    pub(crate) group: Group,
    pub(crate) summary: &'static str,
    pub(crate) description: &'static str,
    pub(crate) effect: Effect,
    pub(crate) access: Access,
    pub(crate) parameters: &'static [Parameter],
    pub(crate) request: Option<Document>,
    pub(crate) answers: &'static [Answer],
    /// The kinds of problem that are specific to this route; `all_problems` adds the common ones.
    pub(crate) problems: &'static [&'static Kind],
    pub(crate) example: Example,
    pub(crate) handler: Handler,
}

/// The function that answers a request.
pub(crate) type Handler = fn(Call) -> AnswerFuture;

/// The future of an answer.
pub(crate) type AnswerFuture = Pin<Box<dyn Future<Output = Result<Reply, Refusal>> + Send>>;

/// The section of the reference that a route is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Tasks,
    Bodies,
    Policies,
    Dependencies,
    Records,
    Inboxes,
    Alerts,
    Service,
}

/// What a route does to stored data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It does not touch stored data.
    Nothing,
    /// It reads stored data.
    Reads,
    /// It changes stored data.
    Writes,
}

/// What a caller must be allowed to do in order to use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nothing: the route answers without authentication.
    Public,
    /// Read the tenant's tasks, attempts, bodies, policies, dependencies and idempotency records.
    Read,
    /// Submit tasks and upload their bodies; own idempotency records and record events.
    Submit,
    /// Change tasks that exist (cancel, retry now, replay) and what holds a dependency's tasks back (pause, limits); delete
    /// idempotency records.
    Operate,
    /// Change policies, and read what belongs to no tenant, such as the nodes.
    Administer,
}

/// A parameter in the path, the query or a header.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) location: ParameterLocation,
    pub(crate) description: &'static str,
    pub(crate) schema: SchemaOf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterLocation {
    Path,
    Query,
    Header,
}

/// A document that a route takes.
#[derive(Debug)]
pub(crate) enum Document {
    Json {
        schema: SchemaOf,
        /// Whether the request must have it.
        is_required: bool,
        description: &'static str,
        /// A valid example, in JSON.
        example: &'static str,
    },
    /// Any bytes.
    Bytes {
        description: &'static str,
        /// The argument of curl that sends them.
        example: &'static str,
    },
}

/// A successful answer of a route.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) description: &'static str,
    pub(crate) headers: &'static [AnswerHeader],
    pub(crate) content: Content,
}

#[derive(Debug)]
pub(crate) struct AnswerHeader {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
}

#[derive(Debug)]
pub(crate) enum Content {
    Nothing,
    Json(SchemaOf),
    Text,
    Html,
    Bytes,
    /// Server-sent events.
    Events,
}

/// How the reference page shows the route being called, and what comes back.
#[derive(Debug)]
pub(crate) struct Example {
    /// The path with its query.
    pub(crate) target: &'static str,
    /// Header fields beyond the content type, as `name: value`.
    pub(crate) headers: &'static [&'static str],
    /// The document that comes back, in JSON; empty if none does.
    pub(crate) answer: &'static str,
}

/// Makes a schema, and adds the schemas that it refers to to the components.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The schema of a type.
pub(crate) fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The schema of any text.
pub(crate) const TEXT: SchemaOf = of::<String>;

impl Route {
    /// Whether it is a health check: those are answered even if memory and connections are used up.
    pub(crate) fn is_health(&self) -> bool {
        matches!(self.path, "/livez" | "/readyz")
    }

    /// Every kind of problem that this route can answer with, by status code.
    pub(crate) fn all_problems(&self) -> Vec<&'static Kind> {
        let mut kinds = self.problems.to_vec();
        kinds.extend([&kind::INTERNAL, &kind::INVALID_PARAMETER]);
        if !gate::is_probe(self.path) {
            kinds.extend([&kind::CROSS_SITE, &kind::UNKNOWN_HOST]);
        }
        match self.request {
            Some(Document::Json { .. }) => kinds.extend([
                &kind::MALFORMED_JSON,
                &kind::INVALID_DOCUMENT,
                &kind::REQUEST_TIMEOUT,
                &kind::TOO_LARGE,
                &kind::NOT_JSON,
            ]),
            Some(Document::Bytes { .. }) => kinds.push(&kind::TOO_LARGE),
            None => {}
        }
        if !self.is_health() {
            kinds.push(&kind::UNAVAILABLE);
        }
        if self.effect == Effect::Writes {
            kinds.push(&kind::STORAGE_FULL);
        }
        kinds.sort_by_key(|kind| (kind.status, kind.name));
        kinds.dedup();
        kinds
    }

    /// Whether the reference declares this answer of the route.
    pub(crate) fn declares(&self, reply: &Reply) -> bool {
        match reply.kind {
            Some(kind) => self.all_problems().contains(&kind),
            None => self.answers.iter().any(|answer| answer.status == reply.status_code()),
        }
    }
}
