//! What sinks were told, kept in the store: a process that starts tells them what is over, and withdraws what they have not received.
//! A list is written before a notification is sent, with what that is about to say, and after it. So a process that dies in between
//! forgets nothing: the one after it tells what fires, whether or not the sink knows.
//!
//! For each sink there are two idempotency records of the tenant of notifications, whose responses are the last list and the one
//! before. They are written in turn: a process that dies while it writes one leaves the other. Over a shared store each node has
//! its own. A node that never returns does not tell its sinks that its alerts are over.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use redrive_core::alerts::{Alert, Severity, Signal, Subject};
use redrive_core::idempotency::{
    Change, Changed, Completion, ExecutionId, Operation, Owner, RecordKey, RequestHash, Reserve, Reserved, Response,
};
use redrive_core::{Body, Dependency, Lane, OperationName, RecordName, TaskId, TenantId, Timestamp};
use redrive_store::{Error, RecordChanged};
use serde::{Deserialize, Serialize};

use super::delivery::Sent;
use super::settings::SinkName;
use crate::app::App;

/// The operation of the records.
const OPERATION: &str = "alerts-told";

/// How long writing one may take.
const LEASE: Duration = Duration::from_secs(30);

/// How long a list is kept that is not written again. What fires longer is told again before, and so is the list.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The most bytes of a list, which is written twice for each notification: a few thousand alerts, or about a thousand with the
/// longest names and reasons. Of alerts that do not fit, a process that starts does not know that a sink was told of them.
const MAX_BYTES: usize = 1024 * 1024;

/// What a sink was told.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Grows with every list. Its lowest bit says which of the two records holds the list.
    pub(super) sequence: u64,
    /// What fires.
    pub(super) firing: Vec<Alert>,
    /// Whether the sink was told all of it. A list is written before a notification, and after it.
    pub(super) is_certain: bool,
    /// The last notification of each signal.
    pub(super) sent: BTreeMap<Signal, Sent>,
}

/// The list of a record.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToldList {
    sequence: u64,
    firing: Vec<ToldAlert>,
    is_certain: bool,
    sent: Vec<SentNotification>,
}

impl ToldList {
    /// The list, within `MAX_BYTES`: first the alerts that fire, then those that are over, each the newest first.
    fn new<'a>(
        (sequence, is_certain): (u64, bool),
        firing: impl Iterator<Item = &'a Alert>,
        sent: &BTreeMap<Signal, Sent>,
    ) -> Result<Self, serde_json::Error> {
        let without_alerts = sent.iter().map(SentNotification::without_alerts).collect();
        let mut list = ToldList { sequence, firing: Vec::new(), is_certain, sent: without_alerts };
        let mut room = MAX_BYTES.saturating_sub(serde_json::to_vec(&list)?.len());
        let mut takes = |alert: &ToldAlert| -> Result<bool, serde_json::Error> {
            // With the comma behind it.
            let rest = room.checked_sub(serde_json::to_vec(alert)?.len() + 1);
            room = rest.unwrap_or(0);
            Ok(rest.is_some())
        };
        let mut firing: Vec<&Alert> = firing.collect();
        firing.sort_by_key(|alert| Reverse(alert.fired_at));
        for alert in firing.into_iter().map(ToldAlert::of) {
            if !takes(&alert)? {
                break;
            }
            list.firing.push(alert);
        }
        let mut over: Vec<(usize, &Alert)> = sent
            .values()
            .enumerate()
            .flat_map(|(at, sent)| sent.resolved.iter().map(move |alert| (at, alert)))
            .collect();
        over.sort_by_key(|(_, alert)| Reverse(alert.resolved_at));
        for (at, alert) in over {
            let alert = ToldAlert::of(alert);
            if !takes(&alert)? {
                break;
            }
            if let Some(sent) = list.sent.get_mut(at) {
                sent.resolved.push(alert);
            }
        }
        Ok(list)
    }
}

/// A notification in a list.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SentNotification {
    rule: String,
    tasks: Vec<String>,
    resolved: Vec<ToldAlert>,
}

impl SentNotification {
    fn without_alerts((signal, sent): (&Signal, &Sent)) -> Self {
        SentNotification {
            rule: signal.as_str().to_owned(),
            tasks: sent.tasks.iter().map(TaskId::to_string).collect(),
            resolved: Vec::new(),
        }
    }

    /// The notification; `None` if it is of a rule of another version.
    fn into_sent(self) -> Option<(Signal, Sent)> {
        let tasks = self.tasks.iter().filter_map(|task| task.parse().ok()).collect();
        let resolved = self.resolved.into_iter().filter_map(ToldAlert::into_alert).collect();
        Some((Signal::from_name(&self.rule)?, Sent { tasks, resolved, is_delivered: false }))
    }
}

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
    resolved_at: Option<u64>,
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
            resolved_at: alert.resolved_at.map(Timestamp::as_millis),
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
            resolved_at: self.resolved_at.map(Timestamp::from_millis),
        })
    }
}

/// What the process before told this sink.
pub(super) async fn read(app: &App, sink: &SinkName) -> Result<Told, Error> {
    let mut newest: Option<ToldList> = None;
    for place in [0, 1] {
        let record = app.engine.store().records().read(key(app, sink, place)?, app.engine.now()).await?;
        let body = record.and_then(|record| record.completion.response).map(|response| response.body);
        // A list of another version is as good as none: what fires is told again.
        let list =
            body.as_ref().and_then(Body::inline).and_then(|bytes| serde_json::from_slice::<ToldList>(bytes).ok());
        newest = list.into_iter().chain(newest).max_by_key(|list| list.sequence);
    }
    let Some(list) = newest else { return Ok(Told::default()) };
    Ok(Told {
        sequence: list.sequence,
        is_certain: list.is_certain,
        firing: list.firing.into_iter().filter_map(ToldAlert::into_alert).collect(),
        sent: list.sent.into_iter().filter_map(SentNotification::into_sent).collect(),
    })
}

/// Writes the list with this sequence. Until it has succeeded, the one before is there.
pub(super) async fn write<'a>(
    app: &App,
    sink: &SinkName,
    (sequence, is_certain): (u64, bool),
    firing: impl Iterator<Item = &'a Alert>,
    sent: &BTreeMap<Signal, Sent>,
) -> Result<(), Error> {
    let (records, key) = (app.engine.store().records(), key(app, sink, sequence % 2)?);
    let list = ToldList::new((sequence, is_certain), firing, sent);
    let body = list.and_then(|list| serde_json::to_vec(&list)).map_err(|error| Error::Corrupt(error.to_string()))?;
    records.delete(key.clone(), None, app.engine.now()).await?;
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
    let response = Response { status: 200, headers: Vec::new(), body: bytes::Bytes::from(body).into() };
    let complete = Change::Complete(Completion { response: Some(response), resource: None });
    match records.change_one(key, Owner { execution, epoch }, complete, app.engine.now()).await? {
        RecordChanged::Decided(Changed::Done(_)) => Ok(()),
        _ => Err(Error::Unavailable("what a sink was told was changed by another process".into())),
    }
}

/// The record of a list. On a store of one process the name of the node does not matter: it may have changed.
fn key(app: &App, sink: &SinkName, place: u64) -> Result<RecordKey, Error> {
    let invalid = |error: redrive_core::id::InvalidId| Error::Corrupt(error.to_string());
    let name = match app.engine.store().is_exclusive() {
        true => format!("{sink}/{place}"),
        false => format!("{sink}/{place}/{}", app.node),
    };
    Ok(RecordKey {
        tenant: app.alerts.system.clone(),
        operation: Operation::Named(OperationName::try_new(OPERATION).map_err(invalid)?),
        name: RecordName::try_new(name).map_err(invalid)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An alert with the longest name; of two, the one with the higher number is newer.
    fn alert(signal: Signal, number: u64) -> Alert {
        let dependency = Dependency::try_new(format!("{number:\"<300}")).unwrap();
        let subject = Subject::Lane(Lane { tenant: TenantId::default_tenant(), dependency });
        let severity = redrive_core::alerts::Rule::default_of(signal).severity;
        let fired_at = Timestamp::from_millis(number);
        Alert { signal, subject, severity, value: 1.0, why: "w".repeat(200), fired_at, resolved_at: None }
    }

    fn over(signal: Signal, number: u64) -> Alert {
        Alert { resolved_at: Some(Timestamp::from_millis(number)), ..alert(signal, number) }
    }

    fn list(firing: u64, resolved: u64) -> ToldList {
        let firing: Vec<Alert> = (0..firing).map(|number| alert(Signal::DependencyPaused, number)).collect();
        let sent = |signal| {
            let resolved = (0..resolved).map(|number| over(signal, number)).collect();
            (signal, Sent { tasks: vec![TaskId::from_parts(1, 2)], resolved, is_delivered: false })
        };
        let sent = [Signal::DeadLetter, Signal::DependencyPaused].map(sent).into();
        let list = ToldList::new((7, true), firing.iter(), &sent).unwrap();
        let bytes = serde_json::to_vec(&list).unwrap().len();
        assert!(bytes <= MAX_BYTES, "{bytes} bytes");
        let is_all =
            list.firing.len() == firing.len() && list.sent.iter().all(|sent| sent.resolved.len() as u64 == resolved);
        assert!(is_all || bytes > MAX_BYTES - 2_000, "{bytes} bytes, and more would have fitted");
        list
    }

    #[test]
    fn a_list_of_the_longest_names_has_at_most_a_mebibyte_and_leaves_out_the_oldest() {
        let newest_first = |alerts: &[ToldAlert], newest: u64| {
            let numbers: Vec<u64> = alerts.iter().map(|alert| alert.fired_at).collect();
            assert_eq!(numbers, (0..numbers.len() as u64).map(|at| newest - at).collect::<Vec<_>>());
        };
        // What is over has the room that what fires leaves, whatever its signal.
        let mixed = list(500, 2_000);
        assert_eq!(mixed.firing.len(), 500);
        let [one, other] = mixed.sent.as_slice() else { panic!("two signals") };
        assert!(one.resolved.len() > 100 && one.resolved.len().abs_diff(other.resolved.len()) <= 1);
        newest_first(&one.resolved, 1_999);
        newest_first(&other.resolved, 1_999);

        let full = list(5_000, 2_000);
        assert!(full.firing.len() > 700, "{}", full.firing.len());
        newest_first(&full.firing, 4_999);
        assert!(full.sent.iter().all(|sent| sent.resolved.is_empty() && sent.tasks.len() == 1));

        let small = list(3, 2);
        assert_eq!((small.firing.len(), small.sent[0].resolved.len(), small.sent[1].resolved.len()), (3, 2, 2));
    }
}
