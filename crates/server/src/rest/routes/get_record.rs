//! `GET /idempotency-records/{operation}/{key}`

use http::Method;
use http::header::ETAG;

use super::parameters::{KEY, OPERATION, RECORD_ETAG};
use super::record_answer::UNDER_WAY;
use crate::operations::get_record;
use crate::rest::call::Call;
use crate::rest::problem::{Refusal, kind};
use crate::rest::record_tag;
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::ShownRecord;

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/idempotency-records/{operation}/{key}",
    id: "getRecord",
    group: Group::Records,
    summary: "Show a record",
    description: "A record with its state, its owner and, once it has ended, its result. Secrets in headers are shown as `***`; a reservation by \
        the same request gets them as they are. The operation `submit-task` shows the task that has the key.",
    effect: Effect::Reads,
    access: Access::Read,
    parameters: &[OPERATION, KEY],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "The record.",
        headers: &[RECORD_ETAG],
        content: Content::Json(of::<ShownRecord<'static>>),
    }],
    problems: &[&kind::INVALID_KEY, &kind::RECORD_NOT_FOUND],
    example: Example { target: "/idempotency-records/create-payment/order-1234", headers: &[], answer: UNDER_WAY },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let (operation, key) = call.record_key()?;
    let (key, record) = get_record(call.app(), call.caller(), operation, key).await?;
    let shown = ShownRecord::full(&key, &record, &call.app().secrets);
    Ok(Reply::json(200, &shown)?.with(ETAG, record_tag::of(&record)))
}
