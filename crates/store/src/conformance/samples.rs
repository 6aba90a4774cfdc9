//! Tasks, times and settlements to test a store with.
//!
//! A sample sets only what its test is about: `task(1).due(at(5))`. Durations are whole milliseconds, which is the
//! precision that a store must keep.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use redrive_core::attempt::LastError;
use redrive_core::guards;
use redrive_core::request::Fingerprinter;
use redrive_core::task::PolicyRef;
use redrive_core::trace::{self, SpanId, TraceId};
use redrive_core::{
    Answer, Attempt, Body, BodyHash, BodyRef, Class, CorrelationId, Dependency, ErrorType, IdempotencyKey, Lane,
    Outcome, PolicyId, Reason, Request, Status, Task, TaskId, TenantId, Timestamp, TraceParent, policy,
};

use crate::{
    ClaimRequest, ClaimedTask, Claims, Expected, LaneDue, LaneRoom, Lease, LeaseTerms, NewTask, Next, Settled,
    Settlement, Start, Store, Submitted, TaskDetail, TaskPage, TaskQuery,
};

/// How long an attempt of a sample task may take.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// The terms of every lease in the suite.
pub const TERMS: LeaseTerms = LeaseTerms { margin: Duration::from_secs(5) };

/// The name of the tenant of every sample that sets none.
pub const TENANT: &str = "acme";

/// The dependency of every sample that sets none.
pub const DEPENDENCY: &str = "https://billing.example";

/// The time `millis` after the suite's start time, a day in 2027.
pub fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + millis)
}

/// The tenant of every sample that sets none.
pub fn acme() -> TenantId {
    tenant(TENANT)
}

/// The tenant with this name.
pub fn tenant(name: &str) -> TenantId {
    TenantId::try_new(name).unwrap()
}

/// The policy with this name.
pub fn policy_id(name: &str) -> PolicyId {
    PolicyId::try_new(name).unwrap()
}

/// The lane of `tenant` and `dependency`.
pub fn lane(tenant_name: &str, dependency: &str) -> Lane {
    Lane { tenant: tenant(tenant_name), dependency: Dependency::try_new(dependency).unwrap() }
}

/// The lane of every sample that sets none.
pub fn billing() -> Lane {
    lane(TENANT, DEPENDENCY)
}

/// The id of sample `n`: ids grow with `n`.
pub fn id(n: u64) -> TaskId {
    TaskId::from_parts(TaskId::first_sequence(at(0)) + n, n.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// The trace that the caller of sample `n` named.
fn trace_parent(n: u64) -> TraceParent {
    let (trace, span) = (TraceId::from_u128(u128::from(n) + 1), SpanId::from_u64(n + 2));
    let flags = trace::Flags { is_sampled: n.is_multiple_of(4), is_random: true };
    TraceParent { trace: trace.unwrap(), span: span.unwrap(), flags }
}

/// A task to submit, changed by its methods.
#[derive(Debug, Clone)]
pub struct Sample(pub NewTask);

/// The body of every sample that sets none.
const BODY: &[u8] = b"{}";

/// Sample `n`: pending, due and accepted at `at(0)`, with a key of its own and the default policy's version 1.
pub fn task(n: u64) -> Sample {
    let request = Request {
        target_url: format!("{DEPENDENCY}/charges"),
        method: "POST".to_owned(),
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: Body::from(Bytes::from_static(BODY)),
        overrides: None,
        labels: BTreeMap::new(),
    };
    let task = Task {
        id: id(n),
        lane: billing(),
        idempotency_key: IdempotencyKey::try_new(format!("key-{n}")).unwrap(),
        // Given for every other sample: stores must keep both.
        correlation_id: n.is_multiple_of(2).then(|| CorrelationId::try_new(format!("order-{n}")).unwrap()),
        trace_parent: n.is_multiple_of(2).then(|| trace_parent(n)),
        policy: PolicyRef { id: PolicyId::default_policy(), version: 1 },
        status: Status::Pending,
        reason: None,
        attempt_number: 0,
        run: 1,
        attempts_before: 0,
        max_attempts: 5,
        attempt_timeout: ATTEMPT_TIMEOUT,
        created_at: at(0),
        run_started_at: at(0),
        deadline_at: at(86_400_000),
        next_attempt_at: Some(at(0)),
        ended_at: None,
        backoff: None,
        dns_failures: 0,
        cancel_requested: false,
        last_error: None,
    };
    let fingerprint = Fingerprinter::default().part(BODY).finish();
    Sample(NewTask { task, request: Arc::new(request), fingerprint, start: Start::Pending })
}

impl Sample {
    /// Sets the tenant.
    pub fn of(mut self, name: &str) -> Self {
        self.0.task.lane.tenant = tenant(name);
        self
    }

    /// Sets the dependency.
    pub fn to(mut self, dependency: &str) -> Self {
        self.0.task.lane.dependency = Dependency::try_new(dependency).unwrap();
        self
    }

    /// Sets the idempotency key.
    pub fn key(mut self, key: &str) -> Self {
        self.0.task.idempotency_key = IdempotencyKey::try_new(key).unwrap();
        self
    }

    /// Removes the correlation id and the trace, as in versions that had none.
    pub fn uncorrelated(mut self) -> Self {
        (self.0.task.correlation_id, self.0.task.trace_parent) = (None, None);
        self
    }

    /// Sets the first due time.
    pub fn due(mut self, due: Timestamp) -> Self {
        self.0.task.next_attempt_at = Some(due);
        self
    }

    /// Sets the id.
    pub fn id(mut self, id: TaskId) -> Self {
        self.0.task.id = id;
        self
    }

    /// Sets the time of acceptance, at which the first run starts.
    pub fn created(mut self, created: Timestamp) -> Self {
        self.0.task.created_at = created;
        self.0.task.run_started_at = created;
        self
    }

    /// Sets the end of the total time budget.
    pub fn deadline(mut self, deadline: Timestamp) -> Self {
        self.0.task.deadline_at = deadline;
        self
    }

    /// Sets the maximum number of attempts in a run.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.0.task.max_attempts = attempts;
        self
    }

    /// Sets the policy version that the task pins.
    pub fn policy(mut self, name: &str, version: u32) -> Self {
        self.0.task.policy = PolicyRef { id: policy_id(name), version };
        self
    }

    /// Makes the task start claimed, at this time.
    pub fn claimed(mut self, now: Timestamp) -> Self {
        self.0.start = Start::Claimed(TERMS, now);
        self
    }

    /// Sets the body: another body is another request.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        self.0.fingerprint = Fingerprinter::default().part(&body).finish();
        self.request(|request| request.body = body.into())
    }

    /// Sets a body that is kept in this blob.
    pub fn stored(mut self, body: BodyRef) -> Self {
        self.0.fingerprint = Fingerprinter::default().part(&body.hash.0).finish();
        self.request(|request| request.body = body.into())
    }

    /// Adds a label.
    pub fn label(self, name: &str, value: &str) -> Self {
        self.request(|request| {
            request.labels.insert(name.to_owned(), value.to_owned());
        })
    }

    /// Changes the request.
    pub fn request(mut self, change: impl FnOnce(&mut Request)) -> Self {
        change(Arc::make_mut(&mut self.0.request));
        self
    }
}

/// The reference to copy `copy` of this content.
pub fn stored(content: &str, copy: u64) -> BodyRef {
    BodyRef { hash: BodyHash::of(content.as_bytes()), length: content.len() as u64, copy }
}

/// Makes the default policy's version 1 of a tenant, which the samples pin.
pub async fn allow(store: &dyn Store, tenant: TenantId) {
    let (id, spec) = (PolicyId::default_policy(), policy::Spec::default());
    store.policies().put(tenant, id, spec, Expected::Anything, at(0)).await.unwrap();
}

/// What operators have set for a lane.
pub async fn controls_of(store: &dyn Store, lane: &Lane) -> guards::Controls {
    let all = store.controls().list(None, 1_000).await.unwrap();
    all.into_iter().find(|(of, _)| of == lane).map(|(_, controls)| controls).unwrap_or_default()
}

/// Replaces what operators have set for a lane, whatever it was.
pub async fn set_controls(store: &dyn Store, lane: Lane, controls: guards::Controls) {
    let before = controls_of(store, &lane).await;
    assert!(store.controls().replace(lane, before, controls).await.unwrap());
}

/// Submits samples in one call.
pub async fn submit(store: &dyn Store, samples: impl IntoIterator<Item = Sample>) -> Vec<Submitted> {
    store.tasks().submit(samples.into_iter().map(|sample| sample.0).collect()).await.unwrap()
}

/// Submits samples whose policies must exist and which must all be new.
pub async fn keep(store: &dyn Store, samples: impl IntoIterator<Item = Sample>) -> Vec<Option<Lease>> {
    let samples: Vec<Sample> = samples.into_iter().collect();
    for tenant in samples.iter().map(|sample| &sample.0.task.lane.tenant) {
        if store.policies().versions(tenant.clone(), PolicyId::default_policy()).await.unwrap().is_empty() {
            allow(store, tenant.clone()).await;
        }
    }
    let kept = submit(store, samples).await.into_iter().map(|submitted| match submitted {
        Submitted::Created(_, lease) => lease,
        other => panic!("a new task was not kept: {other:?}"),
    });
    kept.collect()
}

/// Submits samples whose first attempt has failed: each waits for its second attempt, due at the sample's due time.
pub async fn keep_retries(store: &dyn Store, samples: impl IntoIterator<Item = Sample>) {
    let samples: Vec<Sample> = samples.into_iter().map(|sample| sample.claimed(at(0))).collect();
    let leases = keep(store, samples.iter().cloned()).await;
    let ends = samples.into_iter().zip(leases).map(|(Sample(new), lease)| {
        let task = Task { status: Status::InFlight, attempt_number: 1, ..new.task };
        let due = task.next_attempt_at.unwrap();
        retry(&ClaimedTask { task, request: new.request, lease: lease.unwrap() }, at(0), due)
    });
    let settled = store.tasks().settle(ends.collect()).await.unwrap();
    assert!(settled.iter().all(|settled| *settled == Settled::Done(Status::Pending)));
}

/// Gives claims back unsent: each task keeps its due time.
pub async fn give_back(store: &dyn Store, claimed: &[ClaimedTask], now: Timestamp) {
    let ends = claimed.iter().map(|claimed| unsent(claimed, now, claimed.task.next_attempt_at.unwrap()));
    let settled = store.tasks().settle(ends.collect()).await.unwrap();
    assert!(settled.iter().all(|settled| *settled == Settled::Done(Status::Pending)));
}

/// Room for `slots` tasks of one class of a lane, and for `ahead` more.
pub fn room(lane: Lane, class: Class, slots: usize, ahead: usize) -> LaneRoom {
    LaneRoom { lane, class, slots, ahead }
}

/// A request for the tasks that are due at `now`, as many as the rooms hold.
pub fn request(rooms: impl IntoIterator<Item = LaneRoom>, now: Timestamp) -> ClaimRequest {
    ClaimRequest { rooms: rooms.into_iter().collect(), most: usize::MAX, due_by: now, lease: TERMS, now }
}

/// Claims the tasks that fit into these rooms and are due at `now`.
pub async fn claim_rooms(store: &dyn Store, rooms: impl IntoIterator<Item = LaneRoom>, now: Timestamp) -> Claims {
    store.tasks().claim(request(rooms, now)).await.unwrap()
}

/// Claims up to `slots` tasks of one lane, each into a slot, first attempts before retries.
pub async fn claim(store: &dyn Store, lane: Lane, slots: usize, now: Timestamp) -> Vec<ClaimedTask> {
    let rooms = Class::ALL.map(|class| room(lane.clone(), class, slots, 0));
    store.tasks().claim(ClaimRequest { most: slots, ..request(rooms, now) }).await.unwrap().claimed
}

/// Claims up to `slots` tasks of one class of a lane, each into a slot.
pub async fn claim_class(
    store: &dyn Store,
    lane: Lane,
    class: Class,
    slots: usize,
    now: Timestamp,
) -> Vec<ClaimedTask> {
    claim_rooms(store, [room(lane, class, slots, 0)], now).await.claimed
}

/// The ids of claimed tasks, in their order.
pub fn ids(claimed: &[ClaimedTask]) -> Vec<TaskId> {
    claimed.iter().map(|claimed| claimed.task.id).collect()
}

/// A class of a lane that is next due then.
pub fn lane_due(lane: Lane, class: Class, next_due: Option<Timestamp>) -> LaneDue {
    LaneDue { lane, class, next_due }
}

/// Submits one sample and claims it as soon as it is due.
pub async fn keep_and_claim(store: &dyn Store, sample: Sample) -> ClaimedTask {
    let (lane, due) = (sample.0.task.lane.clone(), sample.0.task.next_attempt_at.unwrap());
    keep(store, [sample]).await;
    claim(store, lane, 1, due).await.remove(0)
}

/// Submits one sample, claims it at `at(0)` and ends it.
pub async fn keep_and_end(store: &dyn Store, sample: Sample, status: Status, ended: Timestamp) -> ClaimedTask {
    let claimed = keep_and_claim(store, sample).await;
    let reason = match status {
        Status::Succeeded => None,
        Status::Failed => Some(Reason::NotRetryable),
        _ => Some(Reason::Attempts),
    };
    assert_eq!(settle(store, end(&claimed, status, reason, ended)).await, Settled::Done(status));
    claimed
}

/// Settles one attempt.
pub async fn settle(store: &dyn Store, settlement: Settlement) -> Settled {
    store.tasks().settle(vec![settlement]).await.unwrap().remove(0)
}

/// A task with everything that is kept of it; it must exist.
pub async fn detail(store: &dyn Store, task: &Task) -> TaskDetail {
    store.reads().task(task.lane.tenant.clone(), task.id).await.unwrap().expect("the task is there")
}

/// The current state of a task; it must exist.
pub async fn now_of(store: &dyn Store, task: &Task) -> Task {
    detail(store, task).await.task
}

/// All attempts of a task; it must exist.
pub async fn attempts(store: &dyn Store, task: &Task) -> Vec<Attempt> {
    store.reads().attempts(task.lane.tenant.clone(), task.id, 0, 1_000).await.unwrap().expect("the task is there")
}

/// How many tasks a tenant has in each status, in the order of [`Status::ALL`].
pub async fn counts(store: &dyn Store, tenant: TenantId) -> [u64; 6] {
    let counts = store.reads().counts(tenant).await.unwrap();
    Status::ALL.map(|status| counts.get(&status).copied().unwrap_or(0))
}

/// A query for all tasks of a tenant.
pub fn everything(tenant: TenantId) -> TaskQuery {
    TaskQuery {
        tenant,
        statuses: Vec::new(),
        dependency: None,
        policy: None,
        labels: BTreeMap::new(),
        created_from: None,
        created_before: None,
        id_prefix: None,
        below: None,
        limit: 100,
    }
}

/// All that a query finds, page after page.
pub async fn list(store: &dyn Store, mut query: TaskQuery) -> Vec<TaskDetail> {
    let mut found = Vec::new();
    loop {
        let TaskPage { tasks, next } = store.reads().list(query.clone()).await.unwrap();
        assert!(tasks.len() <= query.limit, "a page of {} for a limit of {}", tasks.len(), query.limit);
        found.extend(tasks);
        let Some(next) = next else { return found };
        assert!(query.below.is_none_or(|below| next < below), "a page leads on to older tasks, or it never ends");
        query.below = Some(next);
    }
}

/// A log line for a claimed attempt that failed and may be retried.
pub fn failed_attempt(claimed: &ClaimedTask) -> Attempt {
    let number = claimed.task.attempt_number;
    Attempt {
        number,
        number_in_run: claimed.task.attempt_in_run(),
        started_at: claimed.lease.since,
        duration: Some(Duration::from_millis(120)),
        outcome: Outcome::Retryable,
        response_status: Some(503),
        error: Some(LastError { kind: ErrorType::HttpStatus, message: format!("503 at attempt {number}") }),
        backoff: None,
    }
}

/// A log line for a claimed attempt that succeeded.
pub fn successful_attempt(claimed: &ClaimedTask) -> Attempt {
    Attempt { outcome: Outcome::Success, response_status: Some(200), error: None, ..failed_attempt(claimed) }
}

/// A minimal answer with this status code.
pub fn answer(status: u16) -> Box<Answer> {
    let headers = vec![("content-type".to_owned(), "text/plain".to_owned())];
    Box::new(Answer { status, headers, body: Bytes::from_static(b"answer").into(), truncated: false })
}

/// The attempt failed at `decided`, and the next one is due at `next`.
pub fn retry(claimed: &ClaimedTask, decided: Timestamp, next: Timestamp) -> Settlement {
    let backoff = Some(next.since(decided));
    let attempt = Attempt { backoff, ..failed_attempt(claimed) };
    let next = Next::RetryAt { at: next, backoff, dns_failures: claimed.task.dns_failures };
    settlement(claimed, Some(attempt), next, decided)
}

/// The attempt was never sent, and is due again at `next`.
pub fn unsent(claimed: &ClaimedTask, decided: Timestamp, next: Timestamp) -> Settlement {
    let (backoff, dns_failures) = (claimed.task.backoff, claimed.task.dns_failures);
    settlement(claimed, None, Next::RetryAt { at: next, backoff, dns_failures }, decided)
}

/// The attempt succeeded.
pub fn succeed(claimed: &ClaimedTask, decided: Timestamp) -> Settlement {
    end(claimed, Status::Succeeded, None, decided)
}

/// The attempt was the last, and the task ends with this status and reason.
pub fn end(claimed: &ClaimedTask, status: Status, reason: Option<Reason>, decided: Timestamp) -> Settlement {
    let (attempt, answer) = match status {
        Status::Succeeded => (successful_attempt(claimed), answer(200)),
        _ => (failed_attempt(claimed), answer(503)),
    };
    settlement(claimed, Some(attempt), Next::End { status, reason, answer: Some(answer) }, decided)
}

/// The settlement of a claim, as the holder of its lease would make it.
pub fn settlement(claimed: &ClaimedTask, attempt: Option<Attempt>, next: Next, decided: Timestamp) -> Settlement {
    Settlement {
        tenant: claimed.task.lane.tenant.clone(),
        id: claimed.task.id,
        token: claimed.lease.token,
        attempt,
        next,
        at: decided,
    }
}

/// The state of a lane's guards with a value in every field. Each number makes another state.
pub fn guard_snapshot(number: u32) -> guards::Snapshot {
    let at = at(0).as_millis();
    let text = format!(
        r#"{{
            "budget": [[{at}, [{number}, 2, 3]]], "reserved": 4, "recent": [{recent}, 64, true],
            "open": [{at}, 5000, "failures"], "opened": 6, "inARow": 7, "calls": [[{at}, [8, 9, 10]]]
        }}"#,
        recent = u64::MAX
    );
    serde_json::from_str(&text).unwrap()
}
