//! `GET /idempotency-records/stats`

use http::Method;

use super::parameters::{CURSOR, LIMIT};
use crate::operations::count_records;
use crate::rest::call::Call;
use crate::rest::problem::Refusal;
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::{Cursor, OperationStats, RecordStats, RecordTotals};

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/idempotency-records/stats",
    id: "recordStats",
    group: Group::Records,
    summary: "Count records",
    description: "How many records each operation has in each state, by operation, each number counted up to `countedUpTo`; and what this node has \
        answered since it started. A short or empty page may still have a `nextCursor`.",
    effect: Effect::Reads,
    access: Access::Read,
    parameters: &[CURSOR, LIMIT],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "The numbers.",
        headers: &[],
        content: Content::Json(of::<RecordStats>),
    }],
    problems: &[],
    example: Example {
        target: "/idempotency-records/stats",
        headers: &[],
        answer: r#"{
  "operations": [
    { "operation": "create-payment", "inProgress": 3, "succeeded": 10000, "failedRetryable": 1, "failedFinal": 12 }
  ],
  "nextCursor": null,
  "countedUpTo": 10000,
  "totals": {
    "reservations": 48211,
    "replays": 930,
    "inProgress": 41,
    "mismatches": 2,
    "takeovers": 5,
    "completions": 48199,
    "fenced": 1,
    "released": 4,
    "inboxes": { "new": 120400, "duplicates": 771, "inProgress": 0 },
    "submissions": { "replays": 310, "mismatches": 1 }
  }
}"#,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let app = call.app();
    let limit = call.query.limit(app.limits.page_most)?;
    let page = count_records(app, call.caller(), call.query.cursor()?, limit).await?;
    Reply::json(
        200,
        &RecordStats {
            operations: page.counts.iter().map(OperationStats::from).collect(),
            next_cursor: page.next.map(|next| next.to_cursor()),
            counted_up_to: page.counted_up_to,
            totals: RecordTotals::from(&app.totals.snapshot()),
        },
    )
}
