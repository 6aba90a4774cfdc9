//! `GET /livez` and `GET /readyz`

use http::Method;

use crate::operations::check_ready;
use crate::rest::call::Call;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::Health;

const OK: Health = Health { status: "ok" };

pub(crate) static LIVE: Route = Route {
    method: Method::GET,
    path: "/livez",
    id: "live",
    group: Group::Service,
    summary: "Whether the process lives",
    description: "Answers as long as the process serves requests at all.",
    effect: Effect::Nothing,
    parameters: &[],
    request: None,
    answers: &[Answer { status: 200, description: "It lives.", headers: &[], content: Content::Json(of::<Health>) }],
    problems: &[],
    example: Example { target: "/livez", headers: &[], answer: r#"{ "status": "ok" }"# },
    handler: |_| Box::pin(async { Reply::json(200, &OK) }),
};

pub(crate) static READY: Route = Route {
    method: Method::GET,
    path: "/readyz",
    id: "ready",
    group: Group::Service,
    summary: "Whether the service can take work",
    description: "Whether the store can be written to and the service is not about to stop.",
    effect: Effect::Nothing,
    parameters: &[],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "It can take work.",
        headers: &[],
        content: Content::Json(of::<Health>),
    }],
    problems: &[&kind::UNAVAILABLE, &kind::STORAGE_FULL],
    example: Example { target: "/readyz", headers: &[], answer: r#"{ "status": "ok" }"# },
    handler: |call| Box::pin(ready(call)),
};

async fn ready(call: Call) -> Result<Reply, Refusal> {
    check_ready(call.app()).await?;
    Reply::json(200, &OK)
}
