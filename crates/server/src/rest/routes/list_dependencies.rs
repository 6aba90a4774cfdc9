//! `GET /dependencies`

use http::Method;
use redrive_core::Dependency;

use super::parameters::{CURSOR, LIMIT};
use crate::operations::list_dependencies;
use crate::rest::call::Call;
use crate::rest::page::{Addition, Page};
use crate::rest::problem::Refusal;
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route, of};
use crate::wire::{Cursor, DependencyList, ShownDependency};

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/dependencies",
    id: "listDependencies",
    group: Group::Dependencies,
    summary: "List dependencies",
    description: "The dependencies that this node knows, by name: those with tasks that have not ended, those that were called \
        lately, and those that operators have set something for. How many of their tasks are pending is counted up to 1,000 for each. A page ends after `limit` dependencies or 1 MiB.",
    effect: Effect::Reads,
    access: Access::Read,
    parameters: &[CURSOR, LIMIT],
    request: None,
    answers: &[Answer {
        status: 200,
        description: "A page of dependencies.",
        headers: &[],
        content: Content::Json(of::<DependencyList<'static>>),
    }],
    problems: &[],
    example: Example {
        target: "/dependencies",
        headers: &[],
        answer: r#"{
  "dependencies": [
    {
      "dependency": "https://api.example.com",
      "state": "ok",
      "why": "Nothing is held back.",
      "waitingFor": null,
      "waitingUntil": null,
      "breaker": { "state": "closed", "openUntil": null, "reason": null },
      "budget": {
        "firstAttempts": 1200,
        "retries": 3,
        "refunded": 9,
        "left": 248,
        "utilization": 0.012,
        "windowMs": 30000
      },
      "healthy": true,
      "recentOutcomes": { "count": 50, "failures": 0 },
      "concurrency": { "limit": 34, "inFlight": 12 },
      "totals": { "attempts": 90211, "failures": 117 },
      "latencyMs": { "p50": 41.2, "p95": 88.0, "p99": 131.5, "calls": 3120 },
      "firstAttemptDueAt": null,
      "retryDueAt": 1731600003120,
      "failingSince": 1731599988040,
      "backlog": { "due": 0, "waiting": 3, "countedUpTo": 1000 },
      "controls": { "pause": null, "open": null, "limits": null }
    }
  ],
  "nextCursor": null
}"#,
    },
    handler: |call| Box::pin(handle(call)),
};

async fn handle(call: Call) -> Result<Reply, Refusal> {
    let app = call.app();
    let limit = call.query.limit(app.limits.page_most)?;
    let mut after: Option<Dependency> = call.query.cursor()?;
    let read = list_dependencies(app, call.caller(), after.clone(), limit).await?;
    let (settings, now) = (app.engine.guard_settings(), app.engine.now());
    let mut page = Page::new("dependencies", app.limits.page_bytes);
    let mut next = read.next;
    for (report, backlog) in &read.dependencies {
        let shown = ShownDependency::new(report, settings, now).with_backlog(*backlog);
        if let Addition::PageFull = page.add(&shown)? {
            next = after;
            break;
        }
        after = Some(report.lane.dependency.clone());
    }
    call.exchange.charge.hold(page.bytes())?;
    page.end(next.map(|last| last.to_cursor()))?;
    Ok(page.into_reply())
}
