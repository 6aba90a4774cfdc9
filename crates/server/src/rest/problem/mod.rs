//! Maps failures and refusals to problem details (RFC 9457), and with them to status codes. Nothing else does.

pub(crate) mod kind;
mod refusal;

pub(crate) use kind::Kind;
pub(crate) use refusal::Refusal;

use std::borrow::Cow;

use redrive_engine::bodies::BodyError;
use redrive_store as store;

use crate::failure::Failure;
use crate::wire::{FieldFault, Malformed, Problem, ShownFinding, excerpt};

/// The kind of a refusal.
pub(crate) fn kind_of(refusal: &Refusal) -> &'static Kind {
    match refusal {
        Refusal::Failure(failure) => kind_of_failure(failure),
        Refusal::CrossSite | Refusal::ForeignOrigin(_) => &kind::CROSS_SITE,
        Refusal::UnknownHost(_) => &kind::UNKNOWN_HOST,
        Refusal::NoSuchPath => &kind::NOT_FOUND,
        Refusal::MethodNotAllowed { .. } => &kind::METHOD_NOT_ALLOWED,
        Refusal::Parameter { .. } => &kind::INVALID_PARAMETER,
        Refusal::NotJson(_) => &kind::NOT_JSON,
        Refusal::TooLarge { .. } => &kind::TOO_LARGE,
        Refusal::MemoryExhausted(_) | Refusal::ConnectionsExhausted => &kind::UNAVAILABLE,
        Refusal::TooSlow => &kind::REQUEST_TIMEOUT,
        Refusal::BrokenBody(_) => &kind::MALFORMED_JSON,
        Refusal::Unshowable(_) | Refusal::Panicked | Refusal::UnknownScopes(_) => &kind::INTERNAL,
    }
}

fn kind_of_failure(failure: &Failure) -> &'static Kind {
    match failure {
        Failure::Malformed(Malformed::Syntax(_)) => &kind::MALFORMED_JSON,
        Failure::Malformed(Malformed::Shape { .. }) => &kind::INVALID_DOCUMENT,
        Failure::Invalid(_) => &kind::INVALID_VALUE,
        Failure::BreaksStandard(_) => &kind::BREAKS_STANDARD,
        Failure::TooLarge { .. } => &kind::TOO_LARGE,
        Failure::KeysDiffer => &kind::KEY_MISMATCH,
        Failure::KeyReused(_) => &kind::KEY_REUSED,
        Failure::UnknownPolicy { .. } => &kind::UNKNOWN_POLICY,
        Failure::UnknownBody { .. } => &kind::UNKNOWN_BODY,
        Failure::NoSuchBody(_) | Failure::Bodies(BodyError::Missing) => &kind::BODY_NOT_FOUND,
        Failure::Bodies(BodyError::BrokenOff(_)) => &kind::BROKEN_BODY,
        Failure::Bodies(BodyError::Damaged(_)) => &kind::INTERNAL,
        Failure::Bodies(_) => &kind::UNAVAILABLE,
        Failure::NoBodyStorage => &kind::NO_BODY_STORAGE,
        Failure::NoSuchTask(_) => &kind::TASK_NOT_FOUND,
        Failure::NoSuchPolicy(_) => &kind::POLICY_NOT_FOUND,
        Failure::TaskEnded { .. } => &kind::TASK_ENDED,
        Failure::TaskInFlight(_) => &kind::TASK_IN_FLIGHT,
        Failure::TaskNotDead { .. } => &kind::TASK_NOT_DEAD,
        Failure::PolicyGone { .. } => &kind::POLICY_GONE,
        Failure::PolicyInUse { .. } => &kind::POLICY_IN_USE,
        Failure::PolicyProtected(_) => &kind::POLICY_PROTECTED,
        Failure::VersionMismatch { .. } => &kind::VERSION_MISMATCH,
        Failure::Stopping => &kind::UNAVAILABLE,
        Failure::Store(store::Error::Full(_)) => &kind::STORAGE_FULL,
        Failure::Store(store::Error::Unavailable(_) | store::Error::Closed) => &kind::UNAVAILABLE,
        Failure::Store(store::Error::Corrupt(_)) => &kind::INTERNAL,
    }
}

/// The problem details of a refusal.
pub(crate) fn of_refusal(refusal: &Refusal) -> Problem {
    let mut problem = match refusal {
        Refusal::Failure(failure) => return of_failure(failure),
        other => plain(kind_of(other), other.to_string()),
    };
    match refusal {
        Refusal::Parameter { name, message } => {
            problem.field = Some(name.clone());
            problem.errors = vec![FieldFault { field: name.clone(), message: message.clone() }];
        }
        Refusal::ForeignOrigin(_) => problem.field = Some("Origin".into()),
        Refusal::UnknownHost(_) => problem.field = Some("Host".into()),
        Refusal::TooLarge { limit_bytes } => problem.limit_bytes = Some(*limit_bytes),
        _ => {}
    }
    shortened(problem)
}

/// The problem details of an operation's failure.
pub(crate) fn of_failure(failure: &Failure) -> Problem {
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
    }
}

/// The members beyond the common ones: the field, the errors, the task and so on.
fn add_members(problem: &mut Problem, failure: &Failure) {
    match failure {
        Failure::Malformed(Malformed::Shape { field: Some(field), message }) => {
            problem.field = Some(field.clone());
            problem.errors = vec![FieldFault { field: field.clone(), message: message.clone() }];
        }
        Failure::Invalid(faults) => {
            problem.field = faults.first().map(|fault| fault.field.clone());
            problem.errors.clone_from(faults);
        }
        Failure::BreaksStandard(findings) => {
            let broken = || findings.iter().filter(|finding| finding.breaks_a_must);
            problem.field = broken().next().map(|finding| finding.field.clone());
            let fault = |finding: &ShownFinding| FieldFault {
                field: finding.field.clone(),
                message: format!("{}: {}; {}", finding.rule, finding.wrong, finding.fix),
            };
            problem.errors = broken().map(fault).collect();
            problem.findings.clone_from(findings);
        }
        Failure::TooLarge { field, limit_bytes } => {
            problem.field = Some(field.clone());
            problem.limit_bytes = Some(*limit_bytes);
        }
        Failure::KeysDiffer => problem.field = Some("idempotencyKey".into()),
        Failure::UnknownPolicy { field, .. } | Failure::UnknownBody { field, .. } => {
            problem.field = Some(field.clone())
        }
        Failure::KeyReused(id)
        | Failure::TaskInFlight(id)
        | Failure::TaskEnded { id, .. }
        | Failure::TaskNotDead { id, .. }
        | Failure::PolicyGone { task: id, .. } => problem.task_id = Some(id.to_string()),
        Failure::PolicyInUse { tasks, .. } => problem.live_tasks = Some(*tasks),
        Failure::VersionMismatch { current } => problem.current_version = *current,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::task::PolicyRef;
    use redrive_core::{PolicyId, Status, TaskId};

    use super::*;

    #[test]
    fn every_failure_has_its_status_and_type() {
        let (id, policy) = (TaskId::from_parts(1, 2), PolicyId::default_policy());
        let reference = PolicyRef { id: policy.clone(), version: 1 };
        let text = || String::from("x");
        for (failure, status, name) in [
            (Failure::Malformed(Malformed::Syntax(text())), 400, "malformed-json"),
            (Failure::Malformed(Malformed::Shape { field: None, message: text() }), 400, "invalid-document"),
            (Failure::invalid("a", "b"), 422, "invalid-value"),
            (Failure::BreaksStandard(Vec::new()), 422, "breaks-standard"),
            (Failure::TooLarge { field: text(), limit_bytes: 1 }, 413, "content-too-large"),
            (Failure::KeysDiffer, 400, "idempotency-key-mismatch"),
            (Failure::KeyReused(id), 422, "idempotency-key-reused"),
            (Failure::UnknownPolicy { field: text(), id: text() }, 422, "unknown-policy"),
            (Failure::UnknownBody { field: text(), body_ref: text() }, 422, "unknown-body"),
            (Failure::NoSuchBody(text()), 404, "body-not-found"),
            (BodyError::BrokenOff(text()).into(), 400, "broken-body"),
            (BodyError::Unavailable(text()).into(), 503, "unavailable"),
            (Failure::NoBodyStorage, 501, "no-body-storage"),
            (BodyError::Damaged(text()).into(), 500, "internal-error"),
            (BodyError::TooLarge { limit: 1 }.into(), 413, "content-too-large"),
            (BodyError::Store(store::Error::Full(text())).into(), 507, "storage-full"),
            (Failure::NoSuchTask(text()), 404, "task-not-found"),
            (Failure::NoSuchPolicy(text()), 404, "policy-not-found"),
            (Failure::TaskEnded { id, status: Status::Failed }, 409, "task-already-ended"),
            (Failure::TaskInFlight(id), 409, "task-in-flight"),
            (Failure::TaskNotDead { id, status: Status::Pending }, 409, "task-not-dead"),
            (Failure::PolicyGone { task: id, policy: reference }, 409, "policy-gone"),
            (Failure::PolicyInUse { id: policy.clone(), tasks: 3 }, 409, "policy-in-use"),
            (Failure::PolicyProtected(policy), 409, "policy-protected"),
            (Failure::VersionMismatch { current: Some(7) }, 412, "version-mismatch"),
            (Failure::Stopping, 503, "unavailable"),
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
