//! What happened, as it is shown to those who follow it.

use std::time::Duration;

use redrive_core::guards::Gone;
use redrive_core::{Dependency, TaskId};
use serde::{Serialize, Serializer};

use crate::live_events::{AttemptFacts, AttemptNumbers, EndFacts, EventId, Gap, Happening, LiveEvent, TaskOfEvent};

/// One event. The fields of its kind follow the common ones.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownLiveEvent<'a> {
    /// Its id, to resume after.
    #[serde(serialize_with = "as_text")]
    id: EventId,
    /// When the node noticed it, in epoch milliseconds.
    at: u64,
    kind: &'static str,
    /// The name of the node.
    node: &'a str,
    /// The dependency; `null` if it is about the service.
    dependency: Option<&'a str>,
    /// The task; `null` if it is about none.
    #[serde(serialize_with = "as_optional_text")]
    task_id: Option<TaskId>,
    /// The caller's own id of the work, or else the task's id.
    correlation_id: Option<Correlation<'a>>,
    #[serde(flatten)]
    details: Details<'a>,
}

/// What tells the caller's work apart.
#[derive(Debug)]
struct Correlation<'a>(&'a TaskOfEvent);

/// The fields of a kind.
#[derive(Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Details<'a> {
    Accepted {
        due_at: Option<u64>,
    },
    Attempt {
        attempt_number: u32,
        attempt_in_run: u32,
        max_attempts: u32,
        run: u32,
        outcome: &'static str,
        error_type: Option<&'static str>,
        response_status: Option<u16>,
        duration_ms: Option<u64>,
        backoff_ms: Option<u64>,
    },
    RetryScheduled {
        due_at: u64,
    },
    End {
        status: &'static str,
        status_reason: Option<&'static str>,
        attempt_number: u32,
        attempt_in_run: u32,
        run: u32,
    },
    LeaseTakenOver {
        attempt_number: u32,
        attempt_in_run: u32,
        run: u32,
    },
    BreakerOpened {
        reason: &'static str,
        until: u64,
    },
    DependencyGone {
        reason: &'static str,
        since: Option<u64>,
    },
    Alert {
        change: &'static str,
        rule: &'static str,
        severity: &'static str,
        value: f64,
        why: &'a str,
    },
    None {},
}

impl<'a> ShownLiveEvent<'a> {
    /// An event of the node with this name.
    pub fn new(id: EventId, event: &'a LiveEvent, node: &'a str) -> Self {
        ShownLiveEvent {
            id,
            at: event.at.as_millis(),
            kind: event.kind().as_str(),
            node,
            dependency: event.dependency.as_ref().map(Dependency::as_str),
            task_id: event.task.as_ref().map(|task| task.id),
            correlation_id: event.task.as_ref().map(Correlation),
            details: Details::of(&event.happening),
        }
    }
}

impl<'a> Details<'a> {
    fn of(happening: &'a Happening) -> Self {
        match *happening {
            Happening::Accepted { due_at } => Details::Accepted { due_at: due_at.map(|due| due.as_millis()) },
            Happening::Attempt(ref attempt) => Details::of_attempt(attempt),
            Happening::RetryScheduled { due_at } => Details::RetryScheduled { due_at: due_at.as_millis() },
            Happening::Ended(end) | Happening::DeadLetter(end) => {
                let EndFacts { status, reason, attempts: AttemptNumbers { number, in_run, run } } = end;
                Details::End {
                    status: status.as_str(),
                    status_reason: reason.map(|reason| reason.as_str()),
                    attempt_number: number,
                    attempt_in_run: in_run,
                    run,
                }
            }
            Happening::LeaseTakenOver(AttemptNumbers { number, in_run, run }) => {
                Details::LeaseTakenOver { attempt_number: number, attempt_in_run: in_run, run }
            }
            Happening::BreakerOpened { until, why } => {
                Details::BreakerOpened { reason: why.as_str(), until: until.as_millis() }
            }
            Happening::DependencyGone(gone) => {
                let since = match gone {
                    Gone::Answered => None,
                    Gone::NoSuccessSince(since) => Some(since.as_millis()),
                };
                Details::DependencyGone { reason: gone.as_str(), since }
            }
            Happening::Alert(ref alert) => Details::Alert {
                change: alert.change.as_str(),
                rule: alert.signal.as_str(),
                severity: alert.severity.as_str(),
                value: alert.value,
                why: &alert.why,
            },
            Happening::BreakerClosed | Happening::Paused => Details::None {},
        }
    }

    fn of_attempt(attempt: &AttemptFacts) -> Self {
        Details::Attempt {
            attempt_number: attempt.numbers.number,
            attempt_in_run: attempt.numbers.in_run,
            max_attempts: attempt.max_attempts,
            run: attempt.numbers.run,
            outcome: attempt.outcome.as_str(),
            error_type: attempt.error.map(|error| error.as_str()),
            response_status: attempt.response_status,
            duration_ms: attempt.duration.map(millis),
            backoff_ms: attempt.backoff.map(millis),
        }
    }
}

/// Events that a reader will not see.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownGap<'a> {
    kind: &'static str,
    /// The name of the node.
    node: &'a str,
    /// `restart`, `too-old` or `slow-reader`.
    reason: &'static str,
    /// How many events of the node, whether they were wanted or not; `null` if that is not known.
    missed: Option<u64>,
}

impl<'a> ShownGap<'a> {
    /// The name of its event.
    pub const KIND: &'static str = "gap";

    /// A gap in the events of the node with this name.
    pub fn new(gap: Gap, node: &'a str) -> Self {
        ShownGap { kind: Self::KIND, node, reason: gap.reason.as_str(), missed: gap.missed }
    }
}

impl Serialize for Correlation<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.correlation_id {
            Some(given) => serializer.serialize_str(given.as_str()),
            None => serializer.collect_str(&self.0.id),
        }
    }
}

fn as_text<S: Serializer>(id: &EventId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

fn as_optional_text<S: Serializer>(id: &Option<TaskId>, serializer: S) -> Result<S::Ok, S::Error> {
    match id {
        Some(id) => serializer.collect_str(id),
        None => serializer.serialize_none(),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use redrive_core::alerts::{Change, Severity, Signal};
    use redrive_core::guards::breaker::OpenedBy;
    use redrive_core::{Outcome, Status, TenantId, Timestamp};
    use serde_json::Value;

    use super::*;
    use crate::live_events::{AlertFacts, Kind};

    const NUMBERS: AttemptNumbers = AttemptNumbers { number: 4, in_run: 1, run: 2 };
    const COMMON: [&str; 7] = ["id", "at", "kind", "node", "dependency", "taskId", "correlationId"];

    fn shown(happening: Happening) -> Value {
        let dependency = Some(Dependency::try_new("payments").unwrap());
        let tenant = TenantId::default_tenant();
        let task = Some(TaskOfEvent { id: TaskId::from_parts(7, 7), correlation_id: None });
        let event = LiveEvent { at: Timestamp::from_millis(5), tenant, dependency, task, happening };
        serde_json::to_value(ShownLiveEvent::new(EventId { start: 1, number: 2 }, &event, "a")).unwrap()
    }

    #[test]
    fn every_kind_has_the_fields_that_the_reference_lists() {
        let end = EndFacts { status: Status::Exhausted, reason: None, attempts: NUMBERS };
        let at = Timestamp::from_millis(9);
        let attempt = AttemptFacts {
            numbers: NUMBERS,
            max_attempts: 6,
            outcome: Outcome::Unknown,
            error: None,
            response_status: None,
            duration: None,
            backoff: None,
        };
        let alert = AlertFacts {
            change: Change::Fired,
            signal: Signal::DeadLetter,
            severity: Severity::Warning,
            value: 1.0,
            why: "because".into(),
        };
        let happenings = [
            Happening::Accepted { due_at: None },
            Happening::Attempt(attempt),
            Happening::RetryScheduled { due_at: at },
            Happening::Ended(end),
            Happening::DeadLetter(end),
            Happening::LeaseTakenOver(NUMBERS),
            Happening::BreakerOpened { until: at, why: OpenedBy::Operator },
            Happening::BreakerClosed,
            Happening::DependencyGone(Gone::Answered),
            Happening::Paused,
            Happening::Alert(Arc::new(alert)),
        ];
        assert_eq!(happenings.len(), Kind::ALL.len());
        for (kind, happening) in Kind::ALL.into_iter().zip(happenings) {
            let shown = shown(happening);
            assert_eq!(shown["kind"], kind.as_str());
            let mut fields: Vec<&str> = shown.as_object().unwrap().keys().map(String::as_str).collect();
            let mut expected: Vec<&str> = COMMON.iter().chain(kind.fields()).copied().collect();
            fields.sort_unstable();
            expected.sort_unstable();
            assert_eq!(fields, expected, "{kind:?}");
        }
    }
}
