//! `GET /blobs/{bodyRef}`

use http::Method;

use crate::operations::read_body;
use crate::rest::call::Call;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Parameter, ParameterLocation, Route, TEXT};

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/blobs/{bodyRef}",
    id: "readBody",
    group: Group::Bodies,
    summary: "Read a stored body",
    description: "The bytes of a stored body: the body that a task with this `bodyRef` sends, or the body of its dependency's answer. \
        They are checked against the hash while they are sent: an answer that breaks off is not the whole body.",
    effect: Effect::Reads,
    access: Access::Read,
    parameters: &[Parameter {
        name: "bodyRef",
        location: ParameterLocation::Path,
        description: "The `bodyRef` of a task, an answer or an upload.",
        schema: TEXT,
    }],
    request: None,
    answers: &[Answer { status: 200, description: "The body.", headers: &[], content: Content::Bytes }],
    problems: &[&kind::BODY_NOT_FOUND, &kind::NO_BODY_STORAGE],
    example: Example {
        target: "/blobs/sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        headers: &[],
        answer: "",
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let (body, pieces) = read_body(call.app(), call.caller(), call.parameter("bodyRef")).await?;
    Ok(Reply::pieces(pieces, body.length))
}
