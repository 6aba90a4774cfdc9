//! `GET /idempotency-records`

use std::time::Duration;

use http::Method;
use redrive_core::OperationName;
use redrive_core::idempotency::{SUBMIT_TASK, State};
use schemars::{Schema, SchemaGenerator, json_schema};

use super::parameters::{self, CURSOR, LIMIT};
use crate::operations::{RecordFilter, list_records};
use crate::rest::call::Call;
use crate::rest::page::Page;
use crate::rest::problem::Refusal;
use crate::rest::query::Query;
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Parameter, ParameterLocation, Route, of};
use crate::wire::{Cursor, RecordList, ShownRecord, schema};

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/idempotency-records",
    id: "listRecords",
    group: Group::Records,
    summary: "List records",
    description: "Records by operation, without the bodies of their responses. A page ends after `limit` records, or soon after 1 MiB. A short or \
        empty page may still have a `nextCursor`: continue until it is `null`. Events of inboxes and submissions of tasks are not \
        listed here.",
    effect: Effect::Reads,
    access: Access::Read,
    parameters: &[
        Parameter {
            name: "operation",
            location: ParameterLocation::Query,
            description: "Only records of this operation.",
            schema: parameters::name,
        },
        Parameter {
            name: "state",
            location: ParameterLocation::Query,
            description: "Only records in this state.",
            schema: of::<schema::RecordState>,
        },
        Parameter {
            name: "olderThanMs",
            location: ParameterLocation::Query,
            description: "Only records that last changed at least this many milliseconds ago.",
            schema: age,
        },
        CURSOR,
        LIMIT,
    ],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "A page of records.",
        headers: &[],
        content: Content::Json(of::<RecordList<'static>>),
    }],
    problems: &[],
    example: Example {
        target: "/idempotency-records?state=IN_PROGRESS&olderThanMs=600000",
        headers: &[],
        answer: r#"{ "records": [], "nextCursor": null }"#,
    },
    handler: |call| Box::pin(handle(call)),
};

fn age(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int64", "minimum": 0 })
}

/// How many records are read at once. The store reads no bodies for a list, but the header fields of responses.
const AT_ONCE: usize = 16;

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let limits = &call.app().limits;
    let mut filter = filter(&call.query, limits.page_most)?;
    let most = limits.page(filter.limit);
    let mut page = Page::new("records", usize::MAX);
    // It is never closed. A caller that waits here holds nothing but its request.
    let reading = call.app().pages.acquire().await.ok();
    let next = loop {
        let wanted = AT_ONCE.min(most - page.items());
        filter.limit = Some(wanted);
        // Counted before it is read.
        call.exchange.charge.hold(page.bytes().saturating_add(wanted.saturating_mul(limits.header_bytes)))?;
        let read = list_records(call.app(), call.caller(), filter.clone()).await?;
        for (key, record) in &read.records {
            page.add(&ShownRecord::summary(key, record, &call.app().secrets))?;
        }
        // Only the store knows a place between two records, so a page ends with what was read at once.
        let is_full = page.items() >= most || page.bytes() >= limits.page_bytes;
        if read.next.is_none() || read.records.len() < wanted || is_full {
            break read.next;
        }
        filter.after = read.next;
    };
    drop(reading);
    call.exchange.charge.hold(page.bytes())?;
    page.end(next.map(|next| next.to_cursor()))?;
    Ok(page.into_reply())
}

fn filter(query: &Query, most: usize) -> Result<RecordFilter, Refusal> {
    Ok(RecordFilter {
        operation: query.read("operation", operation)?,
        state: query.read("state", |name| {
            let names = || State::ALL.map(State::name).join(", ");
            State::from_name(name).ok_or_else(|| format!("must be one of {}", names()))
        })?,
        older_than: query.read("olderThanMs", |text| match text.parse() {
            Ok(millis) => Ok(Duration::from_millis(millis)),
            Err(_) => Err("must be a whole number of milliseconds".into()),
        })?,
        after: query.cursor()?,
        limit: query.limit(most)?,
    })
}

fn operation(text: &str) -> Result<OperationName, String> {
    match text {
        SUBMIT_TASK => Err(format!("must not be {SUBMIT_TASK}: list tasks with GET /retry-tasks")),
        name => OperationName::try_new(name).map_err(|invalid| invalid.to_string()),
    }
}
