//! `GET /inboxes`

use http::Method;

use super::parameters::{CURSOR, LIMIT};
use crate::operations::count_events;
use crate::rest::call::Call;
use crate::rest::problem::Refusal;
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::{Cursor, InboxList, InboxStats, InboxTotals};

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/inboxes",
    id: "listInboxes",
    group: Group::Inboxes,
    summary: "List inboxes",
    description: "The consumers that have recorded events, with the number of their events, each counted up to `countedUpTo`; and what this node has \
        answered since it started. A short or empty page may still have a `nextCursor`.",
    effect: Effect::Reads,
    access: Access::Read,
    parameters: &[CURSOR, LIMIT],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "A page of inboxes.",
        headers: &[],
        content: Content::Json(of::<InboxList>),
    }],
    problems: &[],
    example: Example {
        target: "/inboxes",
        headers: &[],
        answer: r#"{
  "inboxes": [{ "consumer": "billing", "seen": 4210, "inProgress": 2 }],
  "nextCursor": null,
  "countedUpTo": 10000,
  "totals": { "new": 4212, "duplicates": 37, "inProgress": 0 }
}"#,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let app = call.app();
    let limit = call.query.limit(app.limits.page_most)?;
    let page = count_events(app, call.caller(), call.query.cursor()?, limit).await?;
    Reply::json(
        200,
        &InboxList {
            inboxes: page.counts.iter().filter_map(InboxStats::of).collect(),
            next_cursor: page.next.map(|next| next.to_cursor()),
            counted_up_to: page.counted_up_to,
            totals: InboxTotals::from(&app.totals.snapshot()),
        },
    )
}
