//! `POST /blobs`

use std::future::ready;

use futures_util::{StreamExt as _, TryStreamExt as _};
use http::Method;
use http_body::Body as _;

use crate::operations::keep_body;
use crate::rest::call::Call;
use crate::rest::problem::{Refusal, kind};
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Document, Effect, Example, Group, Route, of};
use crate::rest::upload;
use crate::wire::StoredBody;

pub(crate) static ROUTE: Route = Route {
    method: Method::POST,
    path: "/blobs",
    id: "keepBody",
    group: Group::Bodies,
    summary: "Upload a body",
    description: "Stores a body of 1 byte to 64 MiB under its SHA-256 hash: for bodies that are too large for a JSON document. \
        Use the `bodyRef` of the answer in a submission within a day: a body that no task refers to is deleted after that. \
        Uploading the same bytes again is safe; they are stored once.",
    effect: Effect::Writes,
    access: Access::Submit,
    parameters: &[],
    request: Some(Document::Bytes {
        description: "The body, byte for byte as it is sent to the target.",
        example: "@picture.png",
    }),
    answers: &[Answer {
        status: 201,
        description: "The body is stored durably.",
        headers: &[],
        content: Content::Json(of::<StoredBody>),
    }],
    problems: &[&kind::BROKEN_BODY, &kind::NO_BODY_STORAGE],
    example: Example {
        target: "/blobs",
        headers: &[],
        answer: r#"{
  "bodyRef": "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  "bytes": 16777216
}"#,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let Call { context, caller, exchange, body, .. } = call;
    let most = context.app.limits.stored_body_bytes;
    // What is announced too large is not asked for by a `100 Continue`.
    if body.size_hint().lower() > most {
        return Err(Refusal::TooLarge { limit_bytes: usize::try_from(most).unwrap_or(usize::MAX) });
    }
    // Pieces without bytes say nothing: HTTP/2 may have some before the end.
    let pieces = upload::pieces(body, context.body_read_timeout, exchange);
    let mut pieces = Box::pin(pieces.try_filter(|piece| ready(!piece.is_empty())).peekable());
    // Where bodies cannot be stored, none is asked for.
    if context.app.engine.bodies().is_some() && pieces.as_mut().peek().await.is_none() {
        return Err(Refusal::parameter("body", "must not be empty: a task without a body needs no bodyRef"));
    }
    let kept = keep_body(&context.app, &caller, pieces).await?;
    Reply::json(201, &StoredBody::from(&kept))
}
