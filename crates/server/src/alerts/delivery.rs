//! How a notification reaches its sink: as a durable task of Redrive itself, or directly.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::alerts::{Alert, Signal};
use redrive_core::policy::Spec;
use redrive_core::request::Fingerprinter;
use redrive_core::{Dependency, Lane, PolicyId, Request, Status, TaskId, TenantId, id};
use redrive_engine::ValidatedTask;
use redrive_engine::policies::Resolved;
use redrive_engine::transport::{AlwaysOpen, Outbound};
use redrive_store::{Expected, Submitted};

use super::settings::{SinkKind, SinkSettings};
use crate::app::App;

/// The path of Alertmanager's API.
const ALERTMANAGER_PATH: &str = "/api/v2/alerts";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a notification is tried: later, what it says has been told again.
const TRIED_FOR: Duration = Duration::from_secs(4 * 3_600);

/// The most attempts of a notification: one every five minutes, after a faster beginning.
const MOST_ATTEMPTS: u32 = 60;

/// A notification that was enqueued.
#[derive(Debug)]
pub(super) struct Sent {
    /// The tasks that deliver it.
    pub(super) tasks: Vec<TaskId>,
    /// What it says is over.
    pub(super) resolved: Vec<Alert>,
    /// Whether the sink is known to have received it.
    pub(super) is_delivered: bool,
}

/// What became of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The sink has received it.
    Delivered,
    /// It is on its way.
    Open,
    /// The store does not say.
    Unknown,
    /// The sink has not received all of it, and will not.
    Lost,
}

/// What became of a notification.
pub(super) async fn fate(app: &App, system: &TenantId, sent: &Sent) -> Fate {
    let mut fate = Fate::Delivered;
    let reads = app.engine.store().reads();
    for task in &sent.tasks {
        match reads.task(system.clone(), *task).await {
            Ok(Some(detail)) if detail.task.status == Status::Succeeded => {}
            Ok(Some(detail)) if detail.task.status.is_ended() => return Fate::Lost,
            Ok(Some(_)) if fate != Fate::Unknown => fate = Fate::Open,
            // Removed: its retention is over.
            Ok(None) => return Fate::Lost,
            _ => fate = Fate::Unknown,
        }
    }
    fate
}

/// Cancels the notification before, if it has not arrived: a sink that was away gets the newest one, not all of them, and none
/// of them late.
pub(super) async fn withdraw(app: &App, system: &TenantId, before: Option<&Sent>) {
    for task in before.iter().flat_map(|sent| &sent.tasks) {
        if let Err(error) = app.engine.cancel(system.clone(), *task).await {
            tracing::debug!(%error, %task, "an earlier notification could not be withdrawn");
        }
    }
}

/// Makes durable tasks of the documents of one notification.
pub(super) async fn enqueue(
    app: &App,
    system: &TenantId,
    sink: &SinkSettings,
    signal: Signal,
    documents: Vec<String>,
) -> Result<Vec<TaskId>, String> {
    let policy = policy(app, system).await?;
    let lane = lane(system, sink)?;
    let labels = [("sink", sink.name.as_str()), ("rule", signal.as_str())];
    let labels: BTreeMap<_, _> = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let task = |document: String| ValidatedTask {
        lane: lane.clone(),
        idempotency_key: id::make_key(app.engine.random_bits()),
        correlation_id: None,
        trace_parent: None,
        policy: policy.clone(),
        fingerprint: Fingerprinter::default().part(document.as_bytes()).finish(),
        request: Arc::new(request(sink, document, labels.clone())),
        not_before: None,
    };
    let submitted = app.engine.submit(documents.into_iter().map(task).collect()).await;
    let created = |submitted| match submitted {
        Submitted::Created(task, _) => Ok(task.id),
        _ => Err("the store did not accept it".to_owned()),
    };
    submitted.map_err(|error| error.to_string())?.into_iter().map(created).collect()
}

/// Sends a document once, past the store. Returns the status code of the answer.
pub(super) async fn send_directly(
    app: &App,
    system: &TenantId,
    sink: &SinkSettings,
    document: String,
) -> Result<u16, String> {
    let bits = app.engine.random_bits();
    let outbound = Outbound {
        lane: lane(system, sink)?,
        request: Arc::new(request(sink, document, BTreeMap::new())),
        idempotency_key: id::make_key(bits),
        // The id of no task: there is none.
        task: TaskId::from_parts(TaskId::first_sequence(app.engine.now()), bits as u64),
        attempt: 1,
        trace: None,
        connect_timeout: CONNECT_TIMEOUT,
        attempt_timeout: ATTEMPT_TIMEOUT,
        gate: Arc::new(AlwaysOpen),
    };
    let answer = app.engine.send_directly(outbound).await.map_err(|error| error.to_string())?;
    match answer.status {
        status @ 200..=299 => Ok(status),
        status => Err(format!("it answered {status}")),
    }
}

/// The dependency of a sink is its name: its URL may be a secret.
fn lane(system: &TenantId, sink: &SinkSettings) -> Result<Lane, String> {
    let dependency = Dependency::try_new(sink.name.as_str()).map_err(|invalid| invalid.to_string())?;
    Ok(Lane { tenant: system.clone(), dependency })
}

fn request(sink: &SinkSettings, document: String, labels: BTreeMap<String, String>) -> Request {
    let url = match sink.kind {
        SinkKind::Alertmanager => format!("{}{ALERTMANAGER_PATH}", sink.target.url.trim_end_matches('/')),
        SinkKind::Webhook | SinkKind::Slack => sink.target.url.clone(),
    };
    let authorization = sink.target.authorization.iter().map(|value| ("authorization".to_owned(), value.clone()));
    let content_type = ("content-type".to_owned(), "application/json".to_owned());
    Request {
        target_url: url,
        method: "POST".into(),
        headers: std::iter::once(content_type).chain(authorization).collect(),
        body: bytes::Bytes::from(document).into(),
        overrides: None,
        labels,
    }
}

/// The policy of notifications. It is stored when the first one is sent.
async fn policy(app: &App, system: &TenantId) -> Result<Arc<Resolved>, String> {
    let id = PolicyId::default_policy();
    let current = |found: Result<_, redrive_store::Error>| found.map_err(|error| error.to_string());
    if let Some(policy) = current(app.engine.policies().current(system, &id).await)? {
        return Ok(policy);
    }
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let spec = Spec {
        max_attempts: Some(MOST_ATTEMPTS),
        initial_delay_ms: Some(1_000),
        max_delay_ms: Some(5 * 60_000),
        total_budget_ms: Some(millis(TRIED_FOR)),
        attempt_timeout_ms: Some(millis(ATTEMPT_TIMEOUT)),
        connect_timeout_ms: Some(millis(CONNECT_TIMEOUT)),
        ..Spec::default()
    };
    // Another node may have stored it in the meantime: that it exists is all that matters.
    if let Err(error) = app.engine.policies().put(system.clone(), id.clone(), spec, Expected::Absent).await {
        tracing::debug!(%error, "the policy of notifications was not stored");
    }
    current(app.engine.policies().current(system, &id).await)?.ok_or_else(|| "its policy could not be stored".into())
}
