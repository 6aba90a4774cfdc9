//! `GET /retry-tasks`

use std::collections::BTreeMap;

use http::Method;
use redrive_core::{Dependency, PolicyId, Status};

use super::parameters::{CURSOR, LIMIT};
use crate::operations::{TaskFilter, list_tasks};
use crate::rest::call::Call;
use crate::rest::problem::Refusal;
use crate::rest::query::Query;
use crate::rest::reply::Reply;
use crate::rest::route::{Answer, Content, Effect, Example, Group, Parameter, Place, Route, TEXT, of};
use crate::wire::{Cursor, Moment, StatusCounts, Task, TaskList, schema};

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/retry-tasks",
    id: "listTasks",
    group: Group::Tasks,
    summary: "List tasks",
    description: "Tasks, newest first, with how many there are in each status (of all tasks, whatever the filters). \
        A page may be short, even empty, and still have a `nextCursor`: go on until it is `null`.",
    effect: Effect::Reads,
    parameters: &[
        Parameter {
            name: "status",
            place: Place::Query,
            description: "Only tasks in this status. May be repeated or a list with commas.",
            schema: of::<Vec<schema::TaskStatus>>,
        },
        Parameter {
            name: "dependency",
            place: Place::Query,
            description: "Only tasks for this dependency.",
            schema: TEXT,
        },
        Parameter {
            name: "policyId",
            place: Place::Query,
            description: "Only tasks with this policy, whatever its version.",
            schema: TEXT,
        },
        Parameter {
            name: "label",
            place: Place::Query,
            description: "Only tasks with this label, written `name:value`. May be repeated: then all must match.",
            schema: of::<Vec<String>>,
        },
        Parameter {
            name: "createdAfter",
            place: Place::Query,
            description: "Only tasks accepted at or after this moment.",
            schema: of::<Moment>,
        },
        Parameter {
            name: "createdBefore",
            place: Place::Query,
            description: "Only tasks accepted before this moment.",
            schema: of::<Moment>,
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

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let filter = filter(&call.query, call.app().limits.page_most)?;
    let listing = list_tasks(call.app(), call.tenant(), filter).await?;
    let list = TaskList {
        tasks: listing.page.tasks.iter().map(|task| Task::summary(task, &call.app().secrets)).collect(),
        next_cursor: listing.page.next.map(|next| next.to_cursor()),
        counts: StatusCounts::from(&listing.counts),
    };
    Reply::json(200, &list)
}

fn filter(query: &Query, most: usize) -> Result<TaskFilter, Refusal> {
    Ok(TaskFilter {
        statuses: statuses(query)?,
        dependency: query.read("dependency", |text| Dependency::try_new(text).map_err(|e| e.to_string()))?,
        policy: query.read("policyId", |text| PolicyId::try_new(text).map_err(|e| e.to_string()))?,
        labels: labels(query)?,
        created_after: query.parsed::<Moment>("createdAfter")?.map(|moment| moment.0),
        created_before: query.parsed::<Moment>("createdBefore")?.map(|moment| moment.0),
        below: query.cursor()?,
        limit: query.limit(most)?,
    })
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
