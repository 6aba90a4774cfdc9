//! `DELETE /idempotency-records/{operation}/{key}`

use http::Method;

use super::parameters::{KEY, OPERATION, RECORD_IF_MATCH};
use crate::operations::delete_record;
use crate::rest::call::Call;
use crate::rest::problem::{Refusal, kind};
use crate::rest::record_tag;
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route};

pub(crate) static ROUTE: Route = Route {
    method: Method::DELETE,
    path: "/idempotency-records/{operation}/{key}",
    id: "deleteRecord",
    group: Group::Records,
    summary: "Delete a record",
    description: "Deletes a record, so that its operation can be executed again with the same key. An owner that is still at work is fenced; whether \
        its effect takes place is not known here. `If-Match` is required.",
    effect: Effect::Writes,
    access: Access::Operate,
    parameters: &[OPERATION, KEY, RECORD_IF_MATCH],
    request: None,
    answers: &[Answer { status: 204, description: "The record was deleted.", headers: &[], content: Content::Nothing }],
    problems: &[
        &kind::INVALID_KEY,
        &kind::RECORD_NOT_FOUND,
        &kind::RECORD_CHANGED,
        &kind::INVALID_VALUE,
        &kind::PRECONDITION_REQUIRED,
    ],
    example: Example {
        target: "/idempotency-records/create-payment/order-1234",
        headers: &["If-Match: \"1-IN_PROGRESS-1731600060000-1731600120000\""],
        answer: "",
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let (operation, key) = call.record_key()?;
    let precondition = record_tag::required(&call.parts.headers)?;
    delete_record(call.app(), call.caller(), operation, &key, precondition).await?;
    Ok(Reply::empty(204))
}
