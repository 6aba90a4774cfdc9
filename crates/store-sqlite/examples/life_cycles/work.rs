//! The tasks of the benchmark.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use redrive_core::id::make_key;
use redrive_core::request::Fingerprinter;
use redrive_core::task::PolicyRef;
use redrive_core::{
    Answer, Attempt, Class, Dependency, Lane, Outcome, PolicyId, Request, Status, Task, TaskId, TenantId, Timestamp,
    policy,
};
use redrive_store::{
    ClaimRequest, Expected, LaneRoom, Lease, LeaseTerms, NewTask, Next, Settled, Settlement, Start, Store, Submitted,
    Token,
};
use redrive_store_sqlite::SqliteStore;

pub(crate) const TERMS: LeaseTerms = LeaseTerms { margin: Duration::from_secs(10) };
const LANES: u64 = 20;
const BATCH: u64 = 1_000;

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Timestamp::from_millis(since.as_millis() as u64)
}

/// A store and a generator of tasks for it.
pub(crate) struct Work {
    pub(crate) store: SqliteStore,
    request: Arc<Request>,
    answer: Answer,
    next: AtomicU64,
    random: RandomState,
}

impl Work {
    pub(crate) async fn new(store: SqliteStore, body: usize) -> Arc<Work> {
        let tenant = TenantId::default_tenant();
        let policy = PolicyId::default_policy();
        store.policies().put(tenant, policy, policy::Spec::default(), Expected::Anything, now()).await.unwrap();
        let newest = store.upkeep().newest_task().await.unwrap().map_or(0, TaskId::sequence);
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let request = Request {
            target_url: "https://billing.example.com/v1/charges".to_owned(),
            method: "POST".to_owned(),
            headers: vec![header("content-type", "application/json"), header("x-request-source", "life-cycles")],
            body: Bytes::from(vec![b'x'; body]).into(),
            overrides: None,
            labels: BTreeMap::new(),
        };
        let answer = Answer {
            status: 200,
            headers: vec![header("content-type", "application/json"), header("content-length", "15")],
            body: Bytes::from_static(b"{\"status\":\"ok\"}").into(),
            truncated: false,
        };
        let next = AtomicU64::new((newest + 1).max(TaskId::first_sequence(now())));
        Arc::new(Work { store, request: Arc::new(request), answer, next, random: RandomState::new() })
    }

    /// Runs tasks that start claimed, `callers` at a time.
    pub(crate) async fn live_claimed(self: &Arc<Self>, tasks: u64, callers: u64) {
        let callers: Vec<_> = (0..callers)
            .map(|caller| {
                let work = Arc::clone(self);
                tokio::spawn(async move {
                    for _ in (caller..tasks).step_by(callers as usize) {
                        work.live_one().await;
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.await.unwrap();
        }
    }

    async fn live_one(&self) {
        let at = now();
        let new = self.new_task(Start::Claimed(TERMS, at), at);
        let id = new.task.id;
        let said = self.store.tasks().submit(vec![new]).await.unwrap();
        let [Submitted::Created(_, Some(lease))] = said[..] else { panic!("not created") };
        let settled = self.store.tasks().settle(vec![self.success(id, lease)]).await.unwrap();
        assert_eq!(settled, [Settled::Done(Status::Succeeded)]);
    }

    /// Runs tasks that start pending; one worker claims for all.
    pub(crate) async fn live_pending(self: &Arc<Self>, tasks: u64, callers: u64) {
        let submitters: Vec<_> = (0..callers)
            .map(|caller| {
                let work = Arc::clone(self);
                tokio::spawn(async move {
                    for _ in (caller..tasks).step_by(callers as usize) {
                        let new = work.new_task(Start::Pending, now());
                        work.store.tasks().submit(vec![new]).await.unwrap();
                    }
                })
            })
            .collect();
        let mut settlers = Vec::new();
        let mut claimed = 0;
        while claimed < tasks {
            let claims = self.store.tasks().claim(first_attempts((0..LANES).map(lane), 100)).await.unwrap();
            claimed += claims.claimed.len() as u64;
            for claim in claims.claimed {
                let work = Arc::clone(self);
                settlers.push(tokio::spawn(async move {
                    work.store.tasks().settle(vec![work.success(claim.task.id, claim.lease)]).await.unwrap();
                }));
            }
        }
        for task in submitters.into_iter().chain(settlers) {
            task.await.unwrap();
        }
    }

    /// Fills the store, a few large calls at a time.
    pub(crate) async fn preload(self: &Arc<Self>, tasks: u64, ended: bool) {
        const CALLERS: u64 = 4;
        let batches = tasks.div_ceil(BATCH);
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let work = Arc::clone(self);
                tokio::spawn(async move {
                    for _ in (caller..batches).step_by(CALLERS as usize) {
                        work.preload_batch(ended).await;
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.await.unwrap();
        }
    }

    async fn preload_batch(&self, ended: bool) {
        let at = now();
        let start = if ended { Start::Claimed(TERMS, at) } else { Start::Pending };
        let batch: Vec<_> = (0..BATCH).map(|_| self.new_task(start, at)).collect();
        let lease = Lease { token: Token(1), since: at, until: at };
        let ends = batch.iter().map(|new| self.success(new.task.id, lease)).collect();
        self.store.tasks().submit(batch).await.unwrap();
        if ended {
            self.store.tasks().settle(ends).await.unwrap();
        }
    }

    fn new_task(&self, start: Start, at: Timestamp) -> NewTask {
        let sequence = self.next.fetch_add(1, Ordering::Relaxed);
        let random = u128::from(self.random.hash_one(sequence)) << 64 | u128::from(self.random.hash_one(!sequence));
        let key = make_key(random);
        let task = Task {
            id: TaskId::from_parts(sequence, random as u64),
            lane: lane(sequence % LANES),
            idempotency_key: key.clone(),
            policy: PolicyRef { id: PolicyId::default_policy(), version: 1 },
            status: Status::Pending,
            reason: None,
            attempt_number: 0,
            run: 1,
            attempts_before: 0,
            max_attempts: 5,
            attempt_timeout: Duration::from_secs(10),
            created_at: at,
            run_started_at: at,
            deadline_at: at.after(Duration::from_secs(86_400)),
            next_attempt_at: Some(at),
            ended_at: None,
            backoff: None,
            dns_failures: 0,
            cancel_requested: false,
            correlation_id: None,
            trace_parent: None,
            last_error: None,
        };
        let body = self.request.body.inline().map_or(&[][..], |bytes| bytes);
        let fingerprint = Fingerprinter::default().part(body).part(key.as_str().as_bytes()).finish();
        NewTask { task, request: Arc::clone(&self.request), fingerprint, start }
    }

    fn success(&self, id: TaskId, lease: Lease) -> Settlement {
        let attempt = Attempt {
            number: 1,
            number_in_run: 1,
            started_at: lease.since,
            duration: Some(Duration::from_micros(1_234)),
            outcome: Outcome::Success,
            response_status: Some(200),
            error: None,
            backoff: None,
        };
        Settlement {
            tenant: TenantId::default_tenant(),
            id,
            token: lease.token,
            attempt: Some(attempt),
            next: Next::End { status: Status::Succeeded, reason: None, answer: Some(Box::new(self.answer.clone())) },
            at: now(),
        }
    }
}

fn lane(n: u64) -> Lane {
    let dependency = Dependency::try_new(format!("https://billing-{n}.example.com")).unwrap();
    Lane { tenant: TenantId::default_tenant(), dependency }
}

/// A request for up to `slots` first attempts of each lane.
pub(crate) fn first_attempts(lanes: impl IntoIterator<Item = Lane>, slots: usize) -> ClaimRequest {
    let rooms = lanes.into_iter().map(|lane| LaneRoom { lane, class: Class::First, slots, ahead: 0 }).collect();
    let now = now();
    ClaimRequest { rooms, most: usize::MAX, due_by: now, lease: TERMS, now }
}
