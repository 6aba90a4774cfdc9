//! What sinks were told that it fires, kept in the store: a process that starts tells them what is over.
//!
//! For each sink there is an idempotency record of the tenant of notifications, whose response is the list. Over a shared store
//! each node has its own. A node that never returns does not tell its sinks that its alerts are over.

use std::time::Duration;

use redrive_core::alerts::{Alert, Severity, Signal, Subject};
use redrive_core::idempotency::{
    Change, Changed, Completion, ExecutionId, Operation, Owner, RecordKey, RequestHash, Reserve, Reserved, Response,
};
use redrive_core::{Body, Dependency, Lane, OperationName, RecordName, TenantId, Timestamp};
use redrive_store::{Error, RecordChanged};
use serde::{Deserialize, Serialize};

use super::settings::SinkName;
use crate::app::App;

/// The operation of the records.
const OPERATION: &str = "alerts-told";

/// How long writing one may take.
const LEASE: Duration = Duration::from_secs(30);

/// How long a list is kept that is not written again. What fires longer is told again before, and so is the list.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The most alerts of a list: its body is stored with its record.
const MOST: usize = 200;

/// An alert in a list.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToldAlert {
    rule: String,
    tenant: Option<String>,
    dependency: Option<String>,
    severity: String,
    value: f64,
    why: String,
    fired_at: u64,
}

impl ToldAlert {
    fn of(alert: &Alert) -> Self {
        let lane = match &alert.subject {
            Subject::Lane(lane) => Some(lane),
            Subject::Service => None,
        };
        ToldAlert {
            rule: alert.signal.as_str().to_owned(),
            tenant: lane.map(|lane| lane.tenant.to_string()),
            dependency: lane.map(|lane| lane.dependency.to_string()),
            severity: alert.severity.as_str().to_owned(),
            value: alert.value,
            why: alert.why.clone(),
            fired_at: alert.fired_at.as_millis(),
        }
    }

    /// The alert; `None` if it is of a rule or a kind of another version.
    fn into_alert(self) -> Option<Alert> {
        let subject = match (self.tenant, self.dependency) {
            (Some(tenant), Some(dependency)) => {
                let dependency = Dependency::try_new(dependency).ok()?;
                Subject::Lane(Lane { tenant: TenantId::try_new(tenant).ok()?, dependency })
            }
            _ => Subject::Service,
        };
        Some(Alert {
            signal: Signal::from_name(&self.rule)?,
            subject,
            severity: Severity::from_name(&self.severity)?,
            value: self.value,
            why: self.why,
            fired_at: Timestamp::from_millis(self.fired_at),
            resolved_at: None,
        })
    }
}

/// What the process before told this sink that it fires.
pub(super) async fn read(app: &App, sink: &SinkName) -> Result<Vec<Alert>, Error> {
    let record = app.engine.store().records().read(key(app, sink)?, app.engine.now()).await?;
    let body = record.and_then(|record| record.completion.response).map(|response| response.body);
    let Some(bytes) = body.as_ref().and_then(Body::inline) else { return Ok(Vec::new()) };
    // A list of another version is as good as none: what fires is told again.
    let told: Vec<ToldAlert> = serde_json::from_slice(bytes).unwrap_or_default();
    Ok(told.into_iter().filter_map(ToldAlert::into_alert).collect())
}

/// Replaces the list. If the process dies meanwhile, there is none, and what fires is told again.
pub(super) async fn write<'a>(app: &App, sink: &SinkName, told: impl Iterator<Item = &'a Alert>) -> Result<(), Error> {
    let (records, key) = (app.engine.store().records(), key(app, sink)?);
    let told: Vec<ToldAlert> = told.take(MOST).map(ToldAlert::of).collect();
    records.delete(key.clone(), None, app.engine.now()).await?;
    if told.is_empty() {
        return Ok(());
    }
    let execution = ExecutionId::from_u128(app.engine.random_bits());
    let ask = Reserve {
        request_hash: RequestHash([0; 32]),
        execution,
        lease: LEASE,
        retention: KEPT_FOR,
        is_complete: false,
    };
    let Reserved::Granted { epoch, .. } = records.reserve_one(key.clone(), ask, app.engine.now()).await? else {
        return Err(Error::Unavailable("another process of this name writes what sinks were told".into()));
    };
    let body = serde_json::to_vec(&told).map_err(|error| Error::Corrupt(error.to_string()))?;
    let response = Response { status: 200, headers: Vec::new(), body: bytes::Bytes::from(body).into() };
    let complete = Change::Complete(Completion { response: Some(response), resource: None });
    match records.change_one(key, Owner { execution, epoch }, complete, app.engine.now()).await? {
        RecordChanged::Decided(Changed::Done(_)) => Ok(()),
        _ => Err(Error::Unavailable("what a sink was told was changed by another process".into())),
    }
}

/// On a store of one process the name of the node does not matter: it may have changed.
fn key(app: &App, sink: &SinkName) -> Result<RecordKey, Error> {
    let invalid = |error: redrive_core::id::InvalidId| Error::Corrupt(error.to_string());
    let name = match app.engine.store().is_exclusive() {
        true => sink.to_string(),
        false => format!("{sink}/{}", app.node),
    };
    Ok(RecordKey {
        tenant: app.alerts.system.clone(),
        operation: Operation::Named(OperationName::try_new(OPERATION).map_err(invalid)?),
        name: RecordName::try_new(name).map_err(invalid)?,
    })
}
