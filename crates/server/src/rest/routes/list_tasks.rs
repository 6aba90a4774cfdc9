//! `GET /retry-tasks`

use std::collections::BTreeMap;

use http::Method;
use redrive_core::{Body, Dependency, PolicyId, Status, TaskId};
use redrive_store::TaskDetail;
use schemars::{Schema, SchemaGenerator, json_schema};

use super::parameters::{self, CURSOR, LIMIT};
use super::task_answer;
use crate::app::App;
use crate::operations::{TaskFilter, count_tasks, find_tasks};
use crate::rest::call::Call;
use crate::rest::memory::SMALL;
use crate::rest::page::{Addition, Page};
use crate::rest::problem::Refusal;
use crate::rest::query::Query;
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Parameter, ParameterLocation, Route, of};
use crate::wire::{Cursor, Moment, StatusCounts, TaskList, schema};

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/retry-tasks",
    id: "listTasks",
    group: Group::Tasks,
    summary: "List tasks",
    description: "Tasks, newest first, with the number of tasks in each status (of all tasks, not only of those that match the filters). \
        A page ends after `limit` tasks or 1 MiB. A short or empty page may still have a `nextCursor`: continue until it \
        is `null`.",
    effect: Effect::Reads,
    access: Access::Read,
    parameters: &[
        Parameter {
            name: "status",
            location: ParameterLocation::Query,
            description: "Only tasks in this status. May be repeated, or a list separated by commas.",
            schema: of::<Vec<schema::TaskStatus>>,
        },
        Parameter {
            name: "dependency",
            location: ParameterLocation::Query,
            description: "Only tasks for this dependency.",
            schema: parameters::dependency,
        },
        Parameter {
            name: "policyId",
            location: ParameterLocation::Query,
            description: "Only tasks with this policy, in any version.",
            schema: parameters::policy_id,
        },
        Parameter {
            name: "label",
            location: ParameterLocation::Query,
            description: "Only tasks with this label, written `name:value`. May be repeated: then all must match.",
            schema: parameters::labels,
        },
        Parameter {
            name: "createdAfter",
            location: ParameterLocation::Query,
            description: "Only tasks accepted at or after this moment.",
            schema: of::<Moment>,
        },
        Parameter {
            name: "createdBefore",
            location: ParameterLocation::Query,
            description: "Only tasks accepted before this moment.",
            schema: of::<Moment>,
        },
        Parameter {
            name: "idPrefix",
            location: ParameterLocation::Query,
            description: "Only tasks whose id begins so, such as `01a1e0fa-0fc2`.",
            schema: id_prefix,
        },
        CURSOR,
        LIMIT,
    ],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "A page of tasks.",
        headers: &[],
        content: Content::Json(of::<TaskList<'static>>),
    }],
    problems: &[],
    example: Example {
        target: "/retry-tasks?status=FAILED,EXHAUSTED&label=team:billing&limit=20",
        headers: &[],
        answer: r#"{
  "tasks": [],
  "nextCursor": null,
  "counts": { "PENDING": 12, "IN_FLIGHT": 3, "SUCCEEDED": 40122, "FAILED": 0, "EXHAUSTED": 0, "CANCELLED": 1 }
}"#,
    },
    handler: |call| Box::pin(handle(call)),
};

/// How many tasks are read at once before it is known how large they are.
const FIRST_READ: usize = 16;
/// The most tasks that are read at once.
const MOST_READ: usize = 128;
/// What a task is counted as before it is known how large it is. A page of one task still counts as a small answer.
const UNREAD_TASK: usize = SMALL - 1_024;
/// The bytes of tasks, with the bodies that they carry, that one read should bring into memory.
const READ_BYTES: usize = 1024 * 1024;

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let limits = &call.app().limits;
    let mut filter = filter(&call.query, limits.page_most)?;
    let most = limits.page(filter.limit);
    // It is never closed. A caller that waits here holds nothing but its request.
    let reading = call.app().pages.acquire().await.ok();
    let mut page = Page::new("tasks", limits.page_bytes);
    let (mut at_once, mut task_bytes) = (FIRST_READ, UNREAD_TASK);
    let next = loop {
        let wanted = at_once.min(most - page.items());
        filter.limit = Some(wanted);
        // Counted before it is read: thousands of callers that ask at once must not fill the memory, nor take all the
        // time.
        call.exchange.charge.hold(page.bytes().saturating_add(wanted.saturating_mul(task_bytes)))?;
        let read = find_tasks(call.app(), call.caller(), filter.clone()).await?;
        let is_short = read.tasks.len() < wanted;
        if let Addition::PageFull = add(&mut page, &read.tasks, call.app(), &mut filter.below)? {
            break filter.below;
        }
        // A store looks at a bounded number of tasks in one read: what is asked for is one such read, not many.
        if read.next.is_none() || is_short || page.items() >= most {
            break read.next;
        }
        filter.below = read.next;
        task_bytes = average_bytes(&read.tasks);
        at_once = (READ_BYTES / task_bytes).clamp(1, MOST_READ);
    };
    drop(reading);
    call.exchange.charge.hold(page.bytes())?;
    let counts = count_tasks(call.app(), call.caller()).await?;
    page.end(next.map(|next| next.to_cursor()))?;
    page.member("counts", &StatusCounts::from(&counts))?;
    Ok(page.into_reply())
}

/// Adds tasks for as long as there is room; `last` is the last one that was added.
fn add(page: &mut Page, tasks: &[TaskDetail], app: &App, last: &mut Option<TaskId>) -> Result<Addition, Refusal> {
    for detail in tasks {
        if let Addition::PageFull = page.add(&task_answer::summary(app, detail))? {
            return Ok(Addition::PageFull);
        }
        *last = Some(detail.task.id);
    }
    Ok(Addition::Added)
}

/// The bytes that a task takes in memory, about.
fn average_bytes(tasks: &[TaskDetail]) -> usize {
    let inline = |body: &Body| body.inline().map_or(0, |bytes| bytes.len());
    let bytes_of = |detail: &TaskDetail| {
        let TaskDetail { request, answer, .. } = detail;
        let headers: usize = request.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        let answer = answer.as_ref().map_or(0, |answer| inline(&answer.body));
        1_024 + request.target_url.len() + headers + inline(&request.body) + answer
    };
    tasks.iter().map(bytes_of).sum::<usize>() / tasks.len().max(1) + 1
}

fn filter(query: &Query, most: usize) -> Result<TaskFilter, Refusal> {
    Ok(TaskFilter {
        statuses: statuses(query)?,
        dependency: query.read("dependency", |text| Dependency::try_new(text).map_err(|e| e.to_string()))?,
        policy: query.read("policyId", |text| PolicyId::try_new(text).map_err(|e| e.to_string()))?,
        labels: labels(query)?,
        created_after: query.parsed::<Moment>("createdAfter")?.map(|moment| moment.0),
        created_before: query.parsed::<Moment>("createdBefore")?.map(|moment| moment.0),
        id_prefix: query.parsed("idPrefix")?,
        below: query.cursor()?,
        limit: query.limit(most)?,
    })
}

/// The beginning of a version 7 UUID.
fn id_prefix(_: &mut SchemaGenerator) -> Schema {
    let hex = "[0-9A-Fa-f]";
    let lengths = [
        format!("{hex}{{1,8}}"),
        format!("{hex}{{8}}-{hex}{{0,4}}"),
        format!("{hex}{{8}}-{hex}{{4}}-(7{hex}{{0,3}})?"),
        format!("{hex}{{8}}-{hex}{{4}}-7{hex}{{3}}-([89ABab]{hex}{{0,3}})?"),
        format!("{hex}{{8}}-{hex}{{4}}-7{hex}{{3}}-[89ABab]{hex}{{3}}-{hex}{{0,12}}"),
    ];
    json_schema!({ "type": "string", "pattern": format!("^({})$", lengths.join("|")) })
}

fn statuses(query: &Query) -> Result<Vec<Status>, Refusal> {
    let mut statuses = Vec::new();
    for name in query.all("status").flat_map(|list| list.split(',')).map(str::trim).filter(|name| !name.is_empty()) {
        let status = Status::from_name(name).ok_or_else(|| {
            let names = Status::ALL.map(Status::as_str).join(", ");
            Refusal::parameter("status", format!("must be one of {names}"))
        })?;
        if !statuses.contains(&status) {
            statuses.push(status);
        }
    }
    Ok(statuses)
}

fn labels(query: &Query) -> Result<BTreeMap<String, String>, Refusal> {
    let mut labels = BTreeMap::new();
    for label in query.all("label") {
        let (name, value) =
            label.split_once(':').ok_or_else(|| Refusal::parameter("label", "must be written name:value"))?;
        if labels.insert(name.to_owned(), value.to_owned()).is_some_and(|other| other != value) {
            return Err(Refusal::parameter("label", format!("must not ask for two values of {name}")));
        }
    }
    Ok(labels)
}
