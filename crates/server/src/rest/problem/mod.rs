//! Maps failures and refusals to problem details (RFC 9457), and with them to status codes. Nothing else does.

pub(crate) mod kind;
mod refusal;

pub(crate) use kind::Kind;
pub(crate) use refusal::Refusal;

use std::borrow::Cow;

use redrive_engine::bodies::BodyError;
use redrive_store as store;

use super::record_path;
use crate::operation_error::OperationError;
use crate::wire::{FieldFault, Malformed, Problem, ShownFinding, excerpt};

/// The kind of a refusal.
pub(crate) fn kind_of(refusal: &Refusal) -> &'static Kind {
    match refusal {
        Refusal::OperationError(failure) => kind_of_failure(failure),
        Refusal::CrossSite | Refusal::ForeignOrigin(_) => &kind::CROSS_SITE,
        Refusal::UnknownHost(_) => &kind::UNKNOWN_HOST,
        Refusal::NoSuchPath => &kind::NOT_FOUND,
        Refusal::MethodNotAllowed { .. } => &kind::METHOD_NOT_ALLOWED,
        Refusal::Parameter { .. } => &kind::INVALID_PARAMETER,
        Refusal::PreconditionRequired => &kind::PRECONDITION_REQUIRED,
        Refusal::NotJson(_) => &kind::NOT_JSON,
        Refusal::TooLarge { .. } => &kind::TOO_LARGE,
        Refusal::MemoryExhausted(_) | Refusal::ConnectionsExhausted => &kind::UNAVAILABLE,
        Refusal::TooSlow => &kind::REQUEST_TIMEOUT,
        Refusal::BrokenBody(_) => &kind::MALFORMED_JSON,
        Refusal::Unshowable(_) | Refusal::Panicked | Refusal::UnknownScopes(_) => &kind::INTERNAL,
    }
}

fn kind_of_failure(failure: &OperationError) -> &'static Kind {
    match failure {
        OperationError::Malformed(Malformed::Syntax(_)) => &kind::MALFORMED_JSON,
        OperationError::Malformed(Malformed::Shape { .. }) => &kind::INVALID_DOCUMENT,
        OperationError::Invalid(_) => &kind::INVALID_VALUE,
        OperationError::BreaksStandard(_) => &kind::BREAKS_STANDARD,
        OperationError::TooLarge { .. } => &kind::TOO_LARGE,
        OperationError::KeysDiffer => &kind::KEY_MISMATCH,
        OperationError::InvalidKey { .. } => &kind::INVALID_KEY,
        OperationError::KeyReused(_) | OperationError::RecordKeyReused => &kind::KEY_REUSED,
        OperationError::RecordInProgress { .. } => &kind::IN_PROGRESS,
        OperationError::Fenced => &kind::FENCED,
        OperationError::RecordEnded(_) => &kind::ALREADY_ENDED,
        OperationError::NoSuchRecord(_) => &kind::RECORD_NOT_FOUND,
        OperationError::RecordChanged => &kind::RECORD_CHANGED,
        OperationError::UnknownPolicy { .. } => &kind::UNKNOWN_POLICY,
        OperationError::UnknownBody { .. } => &kind::UNKNOWN_BODY,
        OperationError::NoSuchBody(_) | OperationError::Bodies(BodyError::Missing) => &kind::BODY_NOT_FOUND,
        OperationError::Bodies(BodyError::BrokenOff(_)) => &kind::BROKEN_BODY,
        OperationError::Bodies(BodyError::Damaged(_)) => &kind::INTERNAL,
        OperationError::Bodies(_) => &kind::UNAVAILABLE,
        OperationError::NoBodyStorage => &kind::NO_BODY_STORAGE,
        OperationError::NoSuchTask(_) | OperationError::NoTaskWithKey(_) => &kind::TASK_NOT_FOUND,
        OperationError::NoSuchPolicy(_) => &kind::POLICY_NOT_FOUND,
        OperationError::NoSuchDependency(_) => &kind::DEPENDENCY_NOT_FOUND,
        OperationError::TooManyControls { .. } => &kind::TOO_MANY_CONTROLS,
        OperationError::NoSuchSilence(_) => &kind::SILENCE_NOT_FOUND,
        OperationError::TooManySilences { .. } => &kind::TOO_MANY_SILENCES,
        OperationError::NoSuchSink { .. } => &kind::SINK_NOT_FOUND,
        OperationError::EventsOff => &kind::EVENTS_OFF,
        OperationError::FutureEvent { .. } => &kind::INVALID_PARAMETER,
        OperationError::TooManyReaders { .. } => &kind::TOO_MANY_READERS,
        OperationError::BreakerOff => &kind::BREAKER_OFF,
        OperationError::TaskEnded { .. } => &kind::TASK_ENDED,
        OperationError::TaskInFlight(_) => &kind::TASK_IN_FLIGHT,
        OperationError::TaskNotDead { .. } => &kind::TASK_NOT_DEAD,
        OperationError::PolicyGone { .. } => &kind::POLICY_GONE,
        OperationError::PolicyInUse { .. } => &kind::POLICY_IN_USE,
        OperationError::PolicyProtected(_) => &kind::POLICY_PROTECTED,
        OperationError::VersionMismatch { .. } => &kind::VERSION_MISMATCH,
        OperationError::DependencyUnavailable { .. } => &kind::DEPENDENCY_UNAVAILABLE,
        OperationError::Stopping | OperationError::TimeUncertain => &kind::UNAVAILABLE,
        OperationError::Store(store::Error::Full(_)) => &kind::STORAGE_FULL,
        OperationError::Store(store::Error::Unavailable(_) | store::Error::Closed) => &kind::UNAVAILABLE,
        OperationError::Store(store::Error::Corrupt(_)) => &kind::INTERNAL,
    }
}

/// The problem details of a refusal.
pub(crate) fn of_refusal(refusal: &Refusal) -> Problem {
    let mut problem = match refusal {
        Refusal::OperationError(failure) => return of_failure(failure),
        other => plain(kind_of(other), other.to_string()),
    };
    match refusal {
        Refusal::Parameter { name, message } => {
            problem.field = Some(name.clone());
            problem.errors = vec![FieldFault { field: name.clone(), message: message.clone() }];
        }
        Refusal::PreconditionRequired => problem.field = Some("If-Match".into()),
        Refusal::ForeignOrigin(_) => problem.field = Some("Origin".into()),
        Refusal::UnknownHost(_) => problem.field = Some("Host".into()),
        Refusal::TooLarge { limit_bytes } => problem.limit_bytes = Some(*limit_bytes),
        _ => {}
    }
    shortened(problem)
}

/// The problem details of an operation's failure.
pub(crate) fn of_failure(failure: &OperationError) -> Problem {
    let mut problem = plain(kind_of_failure(failure), failure.to_string());
    add_members(&mut problem, failure);
    shortened(problem)
}

/// The problem with long texts shortened, since they may repeat what the caller sent.
fn shortened(mut problem: Problem) -> Problem {
    problem.detail = excerpt::sentence(problem.detail);
    problem.field = problem.field.map(excerpt::name);
    for fault in &mut problem.errors {
        fault.field = excerpt::name(std::mem::take(&mut fault.field));
        fault.message = excerpt::sentence(std::mem::take(&mut fault.message));
    }
    problem
}

/// A problem with the members that all problems have. The details of internal errors are for the log, not for the
/// caller.
fn plain(kind: &'static Kind, detail: String) -> Problem {
    Problem {
        kind: kind.uri(),
        title: Cow::Borrowed(kind.title),
        status: kind.status,
        detail: if kind == &kind::INTERNAL { "see the log of the service".into() } else { detail },
        field: None,
        errors: Vec::new(),
        findings: Vec::new(),
        task_id: None,
        live_tasks: None,
        current_version: None,
        limit_bytes: None,
        lease_until: None,
        poll_url: None,
    }
}

/// The members beyond the common ones: the field, the errors, the task and so on.
fn add_members(problem: &mut Problem, failure: &OperationError) {
    match failure {
        OperationError::Malformed(Malformed::Shape { field: Some(field), message }) => {
            problem.field = Some(field.clone());
            problem.errors = vec![FieldFault { field: field.clone(), message: message.clone() }];
        }
        OperationError::Invalid(faults) => {
            problem.field = faults.first().map(|fault| fault.field.clone());
            problem.errors.clone_from(faults);
        }
        OperationError::BreaksStandard(findings) => {
            let broken = || findings.iter().filter(|finding| finding.breaks_a_must);
            problem.field = broken().next().map(|finding| finding.field.clone());
            let fault = |finding: &ShownFinding| FieldFault {
                field: finding.field.clone(),
                message: format!("{}: {}; {}", finding.rule, finding.wrong, finding.fix),
            };
            problem.errors = broken().map(fault).collect();
            problem.findings.clone_from(findings);
        }
        OperationError::TooLarge { field, limit_bytes } => {
            problem.field = Some(field.clone());
            problem.limit_bytes = Some(*limit_bytes);
        }
        OperationError::InvalidKey { field, message } => {
            problem.field = Some(field.clone());
            problem.errors = vec![FieldFault { field: field.clone(), message: message.clone() }];
        }
        OperationError::RecordInProgress { key, lease_until, .. } => {
            problem.lease_until = Some(lease_until.as_millis());
            problem.poll_url = record_path::of(key);
        }
        OperationError::FutureEvent { .. } => problem.field = Some("after".into()),
        OperationError::RecordChanged => problem.field = Some("If-Match".into()),
        OperationError::KeysDiffer => problem.field = Some("idempotencyKey".into()),
        OperationError::UnknownPolicy { field, .. } | OperationError::UnknownBody { field, .. } => {
            problem.field = Some(field.clone())
        }
        OperationError::KeyReused(id)
        | OperationError::TaskInFlight(id)
        | OperationError::TaskEnded { id, .. }
        | OperationError::TaskNotDead { id, .. }
        | OperationError::PolicyGone { task: id, .. } => problem.task_id = Some(id.to_string()),
        OperationError::PolicyInUse { tasks, .. } => problem.live_tasks = Some(*tasks),
        OperationError::VersionMismatch { current } => problem.current_version = *current,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redrive_core::idempotency::{RecordKey, State};
    use redrive_core::task::PolicyRef;
    use redrive_core::{PolicyId, RecordName, Status, TaskId, TenantId, Timestamp};

    use super::*;

    fn key() -> RecordKey {
        let name = RecordName::try_new("a/b").unwrap();
        RecordKey { tenant: TenantId::default_tenant(), operation: "pay".parse().unwrap(), name }
    }

    #[test]
    fn every_failure_has_its_status_and_type() {
        let (id, policy) = (TaskId::from_parts(1, 2), PolicyId::default_policy());
        let reference = PolicyRef { id: policy.clone(), version: 1 };
        let text = || String::from("x");
        for (failure, status, name) in [
            (OperationError::Malformed(Malformed::Syntax(text())), 400, "malformed-json"),
            (OperationError::Malformed(Malformed::Shape { field: None, message: text() }), 400, "invalid-document"),
            (OperationError::invalid("a", "b"), 422, "invalid-value"),
            (OperationError::BreaksStandard(Vec::new()), 422, "breaks-standard"),
            (OperationError::TooLarge { field: text(), limit_bytes: 1 }, 413, "content-too-large"),
            (OperationError::KeysDiffer, 400, "idempotency-key-mismatch"),
            (OperationError::InvalidKey { field: text(), message: text() }, 400, "invalid-idempotency-key"),
            (OperationError::KeyReused(id), 422, "idempotency-key-reused"),
            (OperationError::RecordKeyReused, 422, "idempotency-key-reused"),
            (
                OperationError::RecordInProgress { key: key(), lease_until: Timestamp::MAX, retry_in: Duration::ZERO },
                409,
                "idempotency-in-progress",
            ),
            (OperationError::Fenced, 409, "fenced"),
            (OperationError::RecordEnded(State::Succeeded), 409, "already-ended"),
            (OperationError::NoSuchRecord(text()), 404, "record-not-found"),
            (OperationError::RecordChanged, 412, "record-changed"),
            (OperationError::TimeUncertain, 503, "unavailable"),
            (OperationError::NoTaskWithKey(text()), 404, "task-not-found"),
            (OperationError::UnknownPolicy { field: text(), id: text() }, 422, "unknown-policy"),
            (OperationError::UnknownBody { field: text(), body_ref: text() }, 422, "unknown-body"),
            (OperationError::NoSuchBody(text()), 404, "body-not-found"),
            (BodyError::BrokenOff(text()).into(), 400, "broken-body"),
            (BodyError::Unavailable(text()).into(), 503, "unavailable"),
            (OperationError::NoBodyStorage, 501, "no-body-storage"),
            (BodyError::Damaged(text()).into(), 500, "internal-error"),
            (BodyError::TooLarge { limit: 1 }.into(), 413, "content-too-large"),
            (BodyError::Store(store::Error::Full(text())).into(), 507, "storage-full"),
            (OperationError::NoSuchTask(text()), 404, "task-not-found"),
            (OperationError::NoSuchPolicy(text()), 404, "policy-not-found"),
            (OperationError::NoSuchDependency(text()), 404, "dependency-not-found"),
            (OperationError::TooManyControls { most: 1 }, 409, "too-many-controls"),
            (OperationError::BreakerOff, 409, "breaker-off"),
            (OperationError::TaskEnded { id, status: Status::Failed }, 409, "task-already-ended"),
            (OperationError::TaskInFlight(id), 409, "task-in-flight"),
            (OperationError::TaskNotDead { id, status: Status::Pending }, 409, "task-not-dead"),
            (OperationError::PolicyGone { task: id, policy: reference }, 409, "policy-gone"),
            (OperationError::PolicyInUse { id: policy.clone(), tasks: 3 }, 409, "policy-in-use"),
            (OperationError::PolicyProtected(policy), 409, "policy-protected"),
            (OperationError::VersionMismatch { current: Some(7) }, 412, "version-mismatch"),
            (
                OperationError::DependencyUnavailable { dependency: text(), retry_in: Duration::ZERO },
                503,
                "dependency-unavailable",
            ),
            (OperationError::Stopping, 503, "unavailable"),
            (store::Error::Full(text()).into(), 507, "storage-full"),
            (store::Error::Unavailable(text()).into(), 503, "unavailable"),
            (store::Error::Closed.into(), 503, "unavailable"),
            (store::Error::Corrupt(text()).into(), 500, "internal-error"),
        ] {
            let problem = of_failure(&failure);
            assert_eq!((problem.status, problem.kind), (status, format!("/problems/{name}")), "{failure:?}");
        }
    }

    #[test]
    fn what_went_wrong_inside_is_for_the_log() {
        let problem = of_failure(&store::Error::Corrupt("row 17 of /var/lib/redrive".into()).into());
        assert!(!problem.detail.contains("row 17"), "{}", problem.detail);
    }
}
