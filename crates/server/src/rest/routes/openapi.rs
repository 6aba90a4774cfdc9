//! `GET /openapi.json`

use std::sync::LazyLock;

use bytes::Bytes;
use http::Method;
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::rest::openapi;
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route};

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/openapi.json",
    id: "openapi",
    group: Group::Service,
    summary: "This API as an OpenAPI document",
    description: "The OpenAPI 3.1 description of this API, made from the same table that serves it.",
    effect: Effect::Nothing,
    access: Access::Public,
    parameters: &[],
    request: None,
    answers: &[Answer { status: 200, description: "The document.", headers: &[], content: Content::Json(any_object) }],
    problems: &[],
    example: Example { target: "/openapi.json", headers: &[], answer: "" },
    handler: |_| Box::pin(async { Ok(Reply::written_json(DOCUMENT.clone())) }),
};

static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(format!("{:#}\n", openapi::document())));

fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}
