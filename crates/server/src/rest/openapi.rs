//! The table of routes as an OpenAPI 3.1 document.

use schemars::Schema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::RecursiveTransform;
use serde_json::{Map, Value, json};

use super::event_stream;
use super::problem::{Kind, kind};
use super::route::{Answer, Content, Document, Group, Parameter, ParameterLocation, Route, SchemaOf, of};
use super::routes::ROUTES;
use crate::wire::Problem;

/// The whole document.
pub(crate) fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    for route in ROUTES {
        let operation = operation(route, &mut schemas);
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        item[route.method.as_str().to_lowercase()] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Redrive",
            "summary": "A durable retry service.",
            "description": "Redrive accepts a request, stores it durably and retries it until it succeeds or its limits are reached. It \
                survives crashes, spaces retries out, never sends more often than allowed, and sends one idempotency key with every \
                attempt.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "MIT", "identifier": "MIT" },
        },
        "servers": [{ "url": "/" }],
        "tags": Group::ALL.map(|group| json!({ "name": group.name(), "description": group.description() })),
        "paths": paths,
        "components": { "schemas": schemas.into_components() },
    })
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let mut responses = Map::new();
    for answer in route.answers {
        responses.insert(answer.status.to_string(), response(answer, route, schemas));
    }
    let problems = route.all_problems();
    for kinds in problems.chunk_by(|one, other| one.status == other.status) {
        responses.insert(kinds[0].status.to_string(), refusal(kinds, schemas));
    }
    let mut operation = json!({
        "operationId": route.id,
        "tags": [route.group.name()],
        "summary": route.summary,
        "description": route.description,
        "responses": responses,
    });
    if !route.parameters.is_empty() {
        operation["parameters"] = route.parameters.iter().map(|each| parameter(each, schemas)).collect();
    }
    if let Some(document) = &route.request {
        operation["requestBody"] = request_body(document, schemas);
    }
    operation
}

fn parameter(parameter: &Parameter, schemas: &mut Schemas) -> Value {
    let location = match parameter.location {
        ParameterLocation::Path => "path",
        ParameterLocation::Query => "query",
        ParameterLocation::Header => "header",
    };
    json!({
        "name": parameter.name,
        "in": location,
        "required": parameter.location == ParameterLocation::Path,
        "description": parameter.description,
        "schema": schemas.input(parameter.schema),
    })
}

fn request_body(document: &Document, schemas: &mut Schemas) -> Value {
    let (schema, is_required, description, example) = match document {
        Document::Json { schema, is_required, description, example } => (schema, is_required, description, example),
        Document::Bytes { description, .. } => {
            // Empty values are refused.
            let content = json!({ "application/octet-stream": { "schema": { "type": "string", "minLength": 1 } } });
            return json!({ "required": true, "description": description, "content": content });
        }
    };
    let mut content = json!({ "schema": schemas.input(*schema) });
    if let Ok(example) = serde_json::from_str::<Value>(example) {
        content["example"] = example;
    }
    json!({
        "required": is_required,
        "description": description,
        "content": { "application/json": content },
    })
}

fn response(answer: &Answer, route: &Route, schemas: &mut Schemas) -> Value {
    let mut response = json!({ "description": answer.description });
    match answer.content {
        Content::Nothing => {}
        Content::Text => response["content"] = json!({ "text/plain": { "schema": { "type": "string" } } }),
        Content::Html => response["content"] = json!({ "text/html": { "schema": { "type": "string" } } }),
        Content::Events => {
            response["content"] = json!({ event_stream::CONTENT_TYPE: { "schema": { "type": "string" } } });
        }
        Content::Bytes => response["content"] = json!({ "application/octet-stream": {} }),
        Content::Json(schema) => {
            let mut content = json!({ "schema": schemas.output(schema) });
            let is_main = route.answers.first().is_some_and(|first| first.status == answer.status);
            if let (true, Ok(example)) = (is_main, serde_json::from_str::<Value>(route.example.answer)) {
                content["example"] = example;
            }
            response["content"] = json!({ "application/json": content });
        }
    }
    if !answer.headers.is_empty() {
        let header = |description| json!({ "description": description, "schema": { "type": "string" } });
        response["headers"] =
            answer.headers.iter().map(|each| (each.name.to_owned(), header(each.description))).collect();
    }
    response
}

/// The problems of one status code, as one response.
fn refusal(kinds: &[&Kind], schemas: &mut Schemas) -> Value {
    let each: Vec<String> = kinds.iter().map(|kind| format!("`{}`: {}.", kind.uri(), kind.title)).collect();
    let mut response = json!({
        "description": each.join(" "),
        "content": { "application/problem+json": { "schema": schemas.output(of::<Problem>) } },
        "x-problem-types": kinds.iter().map(|kind| kind.uri()).collect::<Vec<_>>(),
    });
    let come_again = [&kind::UNAVAILABLE, &kind::IN_PROGRESS, &kind::TOO_MANY_READERS];
    if come_again.iter().any(|kind| kinds.contains(kind)) {
        let header = json!({ "description": "Seconds to wait before trying again.", "schema": { "type": "string" } });
        response["headers"] = json!({ "Retry-After": header });
    }
    response
}

/// The schemas of requests and of answers. A field that is optional in a request may always be present in an answer, so
/// each has its own generator; the components are those of both.
pub(crate) struct Schemas {
    input: SchemaGenerator,
    output: SchemaGenerator,
}

impl Schemas {
    pub(crate) fn new() -> Self {
        let settings = || {
            let settings = SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            });
            settings.with_transform(RecursiveTransform(tidy))
        };
        Schemas {
            input: settings().for_deserialize().into_generator(),
            output: settings().for_serialize().into_generator(),
        }
    }

    pub(crate) fn input(&mut self, schema: SchemaOf) -> Value {
        schema(&mut self.input).to_value()
    }

    pub(crate) fn output(&mut self, schema: SchemaOf) -> Value {
        schema(&mut self.output).to_value()
    }

    pub(crate) fn into_components(mut self) -> Map<String, Value> {
        let mut components = self.input.take_definitions(true);
        for (name, schema) in self.output.take_definitions(true) {
            debug_assert!(components.get(&name).is_none_or(|other| *other == schema), "{name} is two things");
            components.insert(name, schema);
        }
        components
    }
}

/// Optional fields are not nullable, and descriptions have no line breaks.
fn tidy(schema: &mut Schema) {
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
}

impl Group {
    pub(crate) const ALL: [Group; 8] = [
        Group::Tasks,
        Group::Bodies,
        Group::Policies,
        Group::Dependencies,
        Group::Records,
        Group::Inboxes,
        Group::Alerts,
        Group::Service,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Group::Tasks => "Tasks",
            Group::Bodies => "Stored bodies",
            Group::Policies => "Policies",
            Group::Dependencies => "Dependencies",
            Group::Records => "Idempotency records",
            Group::Inboxes => "Inboxes",
            Group::Alerts => "Alerts",
            Group::Service => "Service",
        }
    }

    pub(crate) fn description(self) -> &'static str {
        match self {
            Group::Tasks => "Requests that Redrive sends and retries.",
            Group::Bodies => "Bodies that are too large for a JSON document: upload them first, then refer to them.",
            Group::Policies => "Named, versioned rules for how tasks are retried.",
            Group::Dependencies => {
                "What tasks call, and what holds their attempts back: retry budget, circuit breaker, limits, pauses."
            }
            Group::Records => {
                "Let one of several callers execute an operation, and give the others its result: for services that make their own \
                 operations idempotent."
            }
            Group::Inboxes => "The events that consumers have seen, so that each is processed once.",
            Group::Alerts => {
                "What the service tells people about by itself, and what it does not tell them for a time."
            }
            Group::Service => "Health, nodes and this reference.",
        }
    }
}
