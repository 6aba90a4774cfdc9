//! Makes tasks like the service does, to fill a store without it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use fastrand::Rng;
use redrive_core::id::make_key;
use redrive_core::request::{Fingerprint, Fingerprinter};
use redrive_core::task::PolicyRef;
use redrive_core::{
    Answer, Attempt, Dependency, Lane, Outcome, PolicyId, Request, Status, Task, TaskId, TenantId, Timestamp,
};
use redrive_store::{Lease, LeaseTerms, NewTask, Next, Settlement, Start};

use super::super::deliveries::NUMBER_DIGITS;
use crate::clock::now_us;

const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
const BUDGET: Duration = Duration::from_secs(29 * 24 * 3600);
const LEASE: LeaseTerms = LeaseTerms { margin: Duration::from_secs(15) };

/// Makes tasks with increasing ids and random keys, spread over some lanes.
pub(super) struct Maker {
    random: Rng,
    sequence: u64,
    lanes: Vec<Lane>,
    request: Arc<Request>,
    fingerprint: Fingerprint,
}

impl Maker {
    /// Makes tasks with `body` bytes for `target`; `first` is when the first of them is accepted.
    pub(super) fn new(target: SocketAddr, lanes: usize, body: usize, first: Timestamp) -> Result<Self> {
        let lanes: Result<Vec<Lane>, _> = (0..lanes)
            .map(|at| {
                let dependency = Dependency::try_new(format!("preloaded-{at}"))?;
                Ok::<_, redrive_core::id::InvalidId>(Lane { tenant: TenantId::default_tenant(), dependency })
            })
            .collect();
        let body = Bytes::from("0".repeat(body.max(NUMBER_DIGITS)));
        let request = Request {
            target_url: format!("http://{target}/"),
            method: "POST".to_owned(),
            headers: vec![("content-type".to_owned(), "text/plain".to_owned())],
            // The target reads these digits as task number 0.
            body: body.clone().into(),
            overrides: None,
            labels: BTreeMap::new(),
        };
        Ok(Maker {
            random: Rng::with_seed(now_us()),
            sequence: TaskId::first_sequence(first),
            lanes: lanes?,
            fingerprint: Fingerprinter::default().part(&body).finish(),
            request: Arc::new(request),
        })
    }

    /// The next task, accepted at `created` (not before the previous one), due at `due`.
    pub(super) fn pending(&mut self, created: Timestamp, due: Timestamp) -> NewTask {
        self.sequence = (self.sequence + 1).max(TaskId::first_sequence(created));
        let lane = self.lanes[self.random.usize(..self.lanes.len())].clone();
        let task = Task {
            id: TaskId::from_parts(self.sequence, self.random.u64(..)),
            lane,
            idempotency_key: make_key(self.random.u128(..)),
            policy: PolicyRef { id: PolicyId::default_policy(), version: 1 },
            status: Status::Pending,
            reason: None,
            attempt_number: 0,
            run: 1,
            attempts_before: 0,
            max_attempts: 6,
            attempt_timeout: ATTEMPT_TIMEOUT,
            created_at: created,
            run_started_at: created,
            deadline_at: created.after(BUDGET),
            next_attempt_at: Some(due),
            ended_at: None,
            backoff: None,
            dns_failures: 0,
            cancel_requested: false,
            correlation_id: None,
            trace_parent: None,
            last_error: None,
        };
        NewTask { task, request: Arc::clone(&self.request), fingerprint: self.fingerprint, start: Start::Pending }
    }

    /// The next task, accepted, due and claimed at `created`.
    pub(super) fn claimed(&mut self, created: Timestamp) -> NewTask {
        NewTask { start: Start::Claimed(LEASE, created), ..self.pending(created, created) }
    }
}

/// The settlement of a task's first attempt, which was answered 200.
pub(super) fn success(id: TaskId, lease: Lease) -> Settlement {
    let attempt = Attempt {
        number: 1,
        number_in_run: 1,
        started_at: lease.since,
        duration: Some(Duration::from_millis(1)),
        outcome: Outcome::Success,
        response_status: Some(200),
        error: None,
        backoff: None,
    };
    let answer = Answer {
        status: 200,
        headers: vec![("content-length".to_owned(), "2".to_owned())],
        body: Bytes::from_static(b"ok").into(),
        truncated: false,
    };
    Settlement {
        tenant: TenantId::default_tenant(),
        id,
        token: lease.token,
        attempt: Some(attempt),
        next: Next::End { status: Status::Succeeded, reason: None, answer: Some(Box::new(answer)) },
        at: lease.since.after(Duration::from_millis(1)),
    }
}

/// The current time as a [`Timestamp`].
pub(super) fn now() -> Timestamp {
    Timestamp::from_millis(now_us() / 1_000)
}
