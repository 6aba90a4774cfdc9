//! Silences: alerts that sinks are not told of for a time.
//!
//! A silence is an idempotency record of the tenant of notifications, which is durable, the same on all nodes, and gone when
//! its time is over. Its fields are the header fields of the record's response, because lists of records have those.

use std::time::Duration;

use redrive_core::alerts::{Alert, Signal, Subject};
use redrive_core::guards::Note;
use redrive_core::id::InvalidId;
use redrive_core::idempotency::{
    Change, Changed, Completion, ExecutionId, Operation, Owner, Record, RecordKey, RequestHash, Reserve, Reserved,
    Response, State,
};
use redrive_core::{Body, Dependency, OperationName, RecordName, TenantId, Timestamp};
use redrive_store::{DeletedRecord, Error, OperationFilter, RecordChanged, RecordQuery};

use crate::app::App;

/// The most silences at a time.
pub(crate) const MOST: usize = 100;

/// The operation of the records.
const OPERATION: &str = "alert-silence";

/// How long making one may take.
const LEASE: Duration = Duration::from_secs(30);

/// The pages that are read at the most.
const MOST_PAGES: usize = 20;

/// Alerts that sinks are not told of for a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silence {
    /// Its id.
    pub id: ExecutionId,
    /// Whose alerts.
    pub tenant: TenantId,
    /// The signal; all if not given.
    pub signal: Option<Signal>,
    /// The dependency; all, and the service itself, if not given.
    pub dependency: Option<Dependency>,
    /// Who set it, when and why.
    pub note: Note,
    /// When it ends.
    pub until: Timestamp,
}

impl Silence {
    /// Whether a sink is not told of this alert now.
    pub fn covers(&self, alert: &Alert, now: Timestamp) -> bool {
        let is_about = |dependency: &Dependency| match &alert.subject {
            Subject::Lane(lane) => lane.tenant == self.tenant && lane.dependency == *dependency,
            Subject::Service => false,
        };
        now < self.until
            && self.signal.is_none_or(|signal| signal == alert.signal)
            && self.dependency.as_ref().is_none_or(is_about)
    }

    fn fields(&self) -> Vec<(String, String)> {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let given = [
            ("rule", self.signal.map(Signal::as_str)),
            ("dependency", self.dependency.as_ref().map(Dependency::as_str)),
            ("reason", self.note.reason.as_deref()),
        ];
        [field("tenant", self.tenant.as_str()), field("by", &self.note.by)]
            .into_iter()
            .chain(given.into_iter().filter_map(|(name, value)| Some(field(name, value?))))
            .collect()
    }

    /// The silence that a record stands for; `None` if it is one of another version.
    fn of(key: &RecordKey, record: &Record) -> Option<Self> {
        let fields = &record.completion.response.as_ref()?.headers;
        let field = |name: &str| fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str());
        Some(Silence {
            id: key.name.as_str().parse().ok()?,
            tenant: TenantId::try_new(field("tenant")?).ok()?,
            // One that cannot be understood must not silence everything.
            signal: field("rule").map(|rule| Signal::from_name(rule).ok_or(())).transpose().ok()?,
            dependency: field("dependency").map(Dependency::try_new).transpose().ok()?,
            note: Note {
                at: record.started_at,
                by: field("by")?.to_owned(),
                reason: field("reason").map(str::to_owned),
            },
            until: record.expires_at,
        })
    }
}

/// Stores a silence. It ends when it says, or a moment later.
pub(crate) async fn add(app: &App, silence: Silence) -> Result<Silence, Error> {
    let (records, now) = (app.engine.store().records(), app.engine.now());
    let key = key(app, silence.id).map_err(corrupt)?;
    let ask = Reserve {
        request_hash: RequestHash([0; 32]),
        execution: silence.id,
        lease: LEASE,
        retention: silence.until.since(now),
        is_complete: false,
    };
    let Reserved::Granted { epoch, .. } = records.reserve_one(key.clone(), ask, now).await? else {
        return Err(corrupt("the id of a new silence is taken"));
    };
    let response = Response { status: 200, headers: silence.fields(), body: Body::default() };
    let complete = Change::Complete(Completion { response: Some(response), resource: None });
    let owner = Owner { execution: silence.id, epoch };
    match records.change_one(key, owner, complete, app.engine.now()).await? {
        RecordChanged::Decided(Changed::Done(record)) => Ok(Silence { until: record.expires_at, ..silence }),
        _ => Err(corrupt("a new silence was changed by another process")),
    }
}

/// Ends a silence. Returns whether there was one.
pub(crate) async fn remove(app: &App, id: ExecutionId) -> Result<bool, Error> {
    let key = key(app, id).map_err(corrupt)?;
    let deleted = app.engine.store().records().delete(key, None, app.engine.now()).await?;
    Ok(matches!(deleted, DeletedRecord::Done(_)))
}

/// All silences that have not ended, at most [`MOST`].
pub(crate) async fn read(app: &App) -> Result<Vec<Silence>, Error> {
    let mut silences: Vec<Silence> = Vec::new();
    let mut after = None;
    for _ in 0..MOST_PAGES {
        let query = RecordQuery {
            tenant: app.alerts.system.clone(),
            operations: OperationFilter::One(operation().map_err(corrupt)?),
            state: Some(State::Succeeded),
            updated_before: None,
            after,
            limit: MOST,
            now: app.engine.now(),
        };
        let page = app.engine.store().records().list(query).await?;
        silences.extend(page.records.iter().filter_map(|(key, record)| Silence::of(key, record)));
        after = page.next;
        if after.is_none() || silences.len() >= MOST {
            break;
        }
    }
    silences.truncate(MOST);
    silences.sort_by_key(|silence| (silence.until, silence.id));
    Ok(silences)
}

fn operation() -> Result<Operation, InvalidId> {
    Ok(Operation::Named(OperationName::try_new(OPERATION)?))
}

fn key(app: &App, id: ExecutionId) -> Result<RecordKey, InvalidId> {
    let name = RecordName::try_new(id.to_string())?;
    Ok(RecordKey { tenant: app.alerts.system.clone(), operation: operation()?, name })
}

fn corrupt(why: impl ToString) -> Error {
    Error::Corrupt(why.to_string())
}

#[cfg(test)]
mod tests {
    use redrive_core::Lane;
    use redrive_core::alerts::Severity;
    use redrive_core::idempotency::Epoch;

    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + seconds * 1_000)
    }

    fn silence(signal: Option<Signal>, dependency: Option<&str>) -> Silence {
        Silence {
            id: ExecutionId::from_u128(7),
            tenant: TenantId::default_tenant(),
            signal,
            dependency: dependency.map(|name| Dependency::try_new(name).unwrap()),
            note: Note { at: at(0), by: "local".into(), reason: Some("maintenance".into()) },
            until: at(100),
        }
    }

    fn alert(signal: Signal, dependency: Option<&str>) -> Alert {
        let lane =
            |name: &str| Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new(name).unwrap() };
        Alert {
            signal,
            subject: dependency.map_or(Subject::Service, |name| Subject::Lane(lane(name))),
            severity: Severity::Warning,
            value: 1.0,
            why: String::new(),
            fired_at: at(0),
            resolved_at: None,
        }
    }

    #[test]
    fn a_silence_covers_what_it_names_until_it_ends() {
        use Signal::{BreakerOpen, RetryRate};
        for (of_signal, of_dependency, signal, dependency, second, covers) in [
            (None, None, RetryRate, Some("a"), 99, true),
            (None, None, RetryRate, None, 99, true),
            (None, None, RetryRate, Some("a"), 100, false),
            (Some(RetryRate), None, RetryRate, Some("a"), 0, true),
            (Some(RetryRate), None, BreakerOpen, Some("a"), 0, false),
            (None, Some("a"), BreakerOpen, Some("a"), 0, true),
            (None, Some("a"), BreakerOpen, Some("b"), 0, false),
            (None, Some("a"), BreakerOpen, None, 0, false),
            (Some(RetryRate), Some("a"), RetryRate, Some("a"), 0, true),
        ] {
            let said = silence(of_signal, of_dependency).covers(&alert(signal, dependency), at(second));
            assert_eq!(said, covers, "{of_signal:?} {of_dependency:?} of {signal:?} {dependency:?} at {second}");
        }
        let others = Silence { tenant: TenantId::try_new("other").unwrap(), ..silence(None, Some("a")) };
        assert!(!others.covers(&alert(RetryRate, Some("a")), at(0)));
    }

    #[test]
    fn a_record_is_the_silence_that_it_was_made_of_and_one_of_another_version_is_none() {
        let key = |silence: &Silence| RecordKey {
            tenant: TenantId::default_tenant(),
            operation: operation().unwrap(),
            name: RecordName::try_new(silence.id.to_string()).unwrap(),
        };
        let record = |headers| Record {
            request_hash: RequestHash([0; 32]),
            state: State::Succeeded,
            owner: Owner { execution: ExecutionId::from_u128(7), epoch: Epoch::FIRST },
            lease_until: at(30),
            retention: Duration::from_secs(100),
            started_at: at(0),
            updated_at: at(0),
            expires_at: at(100),
            completion: Completion {
                response: Some(Response { status: 200, headers, body: Body::default() }),
                resource: None,
            },
        };
        for silence in [
            silence(None, None),
            silence(Some(Signal::RetryRate), Some("https://a.test")),
            Silence { note: Note { reason: None, ..silence(None, None).note }, ..silence(None, Some("a")) },
        ] {
            assert_eq!(Silence::of(&key(&silence), &record(silence.fields())), Some(silence));
        }
        let mut fields = silence(Some(Signal::RetryRate), None).fields();
        let rule = fields.iter_mut().find(|(name, _)| name == "rule").unwrap();
        rule.1 = "a-rule-of-the-future".into();
        assert_eq!(Silence::of(&key(&silence(None, None)), &record(fields)), None);
    }
}
