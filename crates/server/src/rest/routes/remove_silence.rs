//! `DELETE /alerts/silences/{silenceId}`

use http::Method;

use super::parameters::SILENCE_ID;
use crate::operations::remove_silence;
use crate::rest::call::Call;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route};

pub(crate) static ROUTE: Route = Route {
    method: Method::DELETE,
    path: "/alerts/silences/{silenceId}",
    id: "removeSilence",
    group: Group::Alerts,
    summary: "End a silence",
    description: "Ends a silence on all nodes. Sinks are told of what it kept from them and still fires.",
    effect: Effect::Writes,
    access: Access::Operate,
    parameters: &[SILENCE_ID],
    request: None,
    answers: &[Answer { status: 204, description: "The silence has ended.", headers: &[], content: Content::Nothing }],
    problems: &[&kind::SILENCE_NOT_FOUND],
    example: Example { target: "/alerts/silences/6f1c3c1e-6c2a-4d55-9d0e-1f0a4c6d2b11", headers: &[], answer: "" },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    remove_silence(call.app(), call.caller(), call.parameter("silenceId")).await?;
    Ok(Reply::empty(204))
}
