//! `GET /docs`, and `/`, which leads there.

use http::Method;
use http::header::HOST;

use crate::rest::call::Call;
use crate::rest::docs;
use crate::rest::problem::Refusal;
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, AnswerHeader, Content, Effect, Example, Group, Route};

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/docs",
    id: "docs",
    group: Group::Service,
    summary: "This reference",
    description: "The API reference as a page. It loads nothing from elsewhere.",
    effect: Effect::Nothing,
    access: Access::Public,
    parameters: &[],
    request: None,
    answers: &[Answer { status: 200, description: "The page.", headers: &[], content: Content::Html }],
    problems: &[],
    example: Example { target: "/docs", headers: &[], answer: "" },
    handler: |call| Box::pin(handle(call)),
};

pub(crate) static ROOT: Route = Route {
    method: Method::GET,
    path: "/",
    id: "root",
    group: Group::Service,
    summary: "Redirect to the reference",
    description: "Redirects to `/docs`.",
    effect: Effect::Nothing,
    access: Access::Public,
    parameters: &[],
    request: None,
    answers: &[Answer {
        status: 307,
        description: "Redirect to `/docs`.",
        headers: &[AnswerHeader { name: "Location", description: "`/docs`" }],
        content: Content::Html,
    }],
    problems: &[],
    example: Example { target: "/", headers: &[], answer: "" },
    handler: |_| Box::pin(async { Ok(Reply::redirect("/docs")) }),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    // HTTP/2 names the host in the URI.
    let host = call.parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| call.parts.uri.authority().map(|authority| authority.as_str()));
    Ok(Reply::html(docs::reference_page(host)))
}
