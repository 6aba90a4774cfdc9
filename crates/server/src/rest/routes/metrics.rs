//! `GET /metrics`

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Method;
use redrive_core::{Lane, TenantId};
use redrive_store::Error;

use crate::app::App;
use crate::metrics::{Format, Readings, Snapshot, write};
use crate::operation_error::OperationError;
use crate::rest::call::Call;
use crate::rest::problem::Refusal;
use crate::rest::reply::Reply;
use crate::rest::route::{Access, Answer, Content, Effect, Example, Group, Route};

pub(crate) static ROUTE: Route = Route {
    method: Method::GET,
    path: "/metrics",
    id: "metrics",
    group: Group::Service,
    summary: "Metrics",
    description: "The metrics of this process in the text format of Prometheus, or in OpenMetrics if `Accept` prefers it. The 200 busiest \
        dependencies have series of their own, the others share one, `other`. `docs/metrics.md` has all metrics.",
    effect: Effect::Nothing,
    access: Access::Public,
    parameters: &[],
    request: None,
    answers: &[Answer { status: 200, description: "The metrics.", headers: &[], content: Content::Text }],
    problems: &[],
    example: Example { target: "/metrics", headers: &[], answer: "" },
    handler: |call| Box::pin(metrics(call)),
};

/// How long a scrape waits for the backlogs of its lanes. Later ones are shown by the next scrape.
const BACKLOG_WAIT: Duration = Duration::from_millis(500);

/// The most lanes that the engine knows and that get free places.
const MOST_KNOWN: usize = 200;

/// How many of them are read at once: claims and attempts wait meanwhile.
const AT_ONCE: usize = 64;

async fn metrics(call: Call) -> Result<Reply, Refusal> {
    let app = &call.context.app;
    let known = if app.metrics.has_free_places() { known_lanes(app, &call.caller().tenant) } else { Vec::new() };
    let snapshot = app.metrics.snapshot(&known, app.engine.now());
    count_backlogs(app, &snapshot).await;
    let readings = Readings::read(app, &snapshot, call.context.connections.load(Ordering::Relaxed));
    let format = Format::preferred(&call.parts.headers);
    let text = write(format, snapshot, readings);
    // Writing to memory does not fail.
    let text = text.map_err(|error| OperationError::from(Error::Unavailable(error.to_string())))?;
    Ok(Reply::text(format.content_type(), text))
}

/// The first lanes that the engine knows: after a restart those that wait have had no event yet.
fn known_lanes(app: &App, tenant: &TenantId) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    while lanes.len() < MOST_KNOWN {
        let read = app.engine.lane_reports(tenant, lanes.last().map(|lane| &lane.dependency), AT_ONCE);
        let is_end = read.len() < AT_ONCE;
        lanes.extend(read.into_iter().map(|report| report.lane));
        if is_end {
            break;
        }
    }
    lanes
}

/// Has the backlogs counted if the last count is old. The count goes on if the scraper leaves: otherwise a scraper with little
/// patience would have them counted again and again.
#[expect(clippy::disallowed_methods, reason = "the count outlives its request, and scrapes are not simulated")]
async fn count_backlogs(app: &Arc<App>, snapshot: &Snapshot) {
    if !app.metrics.backlogs().begin(app.engine.now()) {
        return;
    }
    let lanes = snapshot.named.iter().map(|(lane, _)| lane.clone()).collect();
    let counting = app.clone();
    let counted = tokio::spawn(async move { counting.metrics.backlogs().count(&counting, lanes).await });
    if tokio::time::timeout(BACKLOG_WAIT, counted).await.is_err() {
        tracing::debug!("the backlogs for metrics are not counted yet");
    }
}
