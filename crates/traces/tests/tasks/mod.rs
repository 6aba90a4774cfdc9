//! Tasks and settlements for events, with secrets in all that must not be exported.

use std::sync::Arc;
use std::time::Duration;

use redrive_core::attempt::LastError;
use redrive_core::task::PolicyRef;
use redrive_core::{
    Attempt, Dependency, ErrorType, IdempotencyKey, Lane, Outcome, PolicyId, Reason, Request, Status, Task, TaskId,
    TenantId, Timestamp,
};
use redrive_store::{ClaimedTask, Lease, Next, Settlement, Token};

pub(crate) const CREATED: Timestamp = Timestamp::from_millis(1_700_000_000_000);
/// When attempts are settled.
const SETTLED: Timestamp = Timestamp::from_millis(1_700_000_000_100);

/// A task whose first attempt is under way.
pub(crate) fn task(n: u64) -> Task {
    Task {
        id: TaskId::from_parts(TaskId::first_sequence(CREATED) + n, n),
        lane: Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new("billing").unwrap() },
        idempotency_key: IdempotencyKey::try_new("canary-key").unwrap(),
        correlation_id: None,
        trace_parent: None,
        policy: PolicyRef { id: PolicyId::default_policy(), version: 1 },
        status: Status::InFlight,
        reason: None,
        attempt_number: 1,
        run: 1,
        attempts_before: 0,
        max_attempts: 5,
        attempt_timeout: Duration::from_secs(30),
        created_at: CREATED,
        run_started_at: CREATED,
        deadline_at: CREATED.after(Duration::from_secs(60)),
        next_attempt_at: Some(CREATED),
        ended_at: None,
        backoff: None,
        dns_failures: 0,
        cancel_requested: false,
        last_error: None,
    }
}

pub(crate) fn claimed(task: Task) -> ClaimedTask {
    let request = Request {
        target_url: "https://canary-user:s3cret@billing.test:8443/canary-path?token=s3cret".into(),
        method: "POST".into(),
        headers: vec![("authorization".into(), "Bearer s3cret".into())],
        body: "canary-body".into(),
        overrides: None,
        labels: [("canary-label".to_owned(), "canary".to_owned())].into(),
    };
    let lease = Lease { token: Token(1), since: CREATED, until: CREATED.after(Duration::from_secs(45)) };
    ClaimedTask { task, request: Arc::new(request), lease }
}

/// An attempt that took 1.5 ms.
pub(crate) fn attempt(number: u32, response_status: Option<u16>, error: Option<ErrorType>) -> Attempt {
    Attempt {
        number,
        number_in_run: number,
        started_at: SETTLED,
        duration: Some(Duration::from_micros(1_500)),
        outcome: if error.is_some() { Outcome::Retryable } else { Outcome::Success },
        response_status,
        error: error.map(|kind| LastError { kind, message: "canary-message".into() }),
        backoff: error.map(|_| Duration::from_millis(250)),
    }
}

/// A settlement after which the task waits.
pub(crate) fn retries(attempt: Attempt) -> Settlement {
    let next = Next::RetryAt { at: SETTLED, backoff: attempt.backoff, dns_failures: 0 };
    settlement(Some(attempt), next)
}

/// A settlement that ends the task.
pub(crate) fn ends(attempt: Option<Attempt>, status: Status, reason: Option<Reason>) -> Settlement {
    settlement(attempt, Next::End { status, reason, answer: None })
}

fn settlement(attempt: Option<Attempt>, next: Next) -> Settlement {
    let id = TaskId::from_parts(1, 1);
    Settlement { tenant: TenantId::default_tenant(), id, token: Token(1), attempt, next, at: SETTLED }
}
