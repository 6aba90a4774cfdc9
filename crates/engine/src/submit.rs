//! Accepting tasks: one durable commit for all tasks of a call, with the first claim in it where a lane has room.

use std::sync::Arc;

use redrive_core::request::Fingerprint;
use redrive_core::{CorrelationId, IdempotencyKey, Lane, Request, Status, Task, Timestamp, TraceParent};
use redrive_store::{ClaimedTask, Error, NewTask, Start, Submitted};

use crate::attempt;
use crate::engine_state::{EngineState, Phase};
use crate::events::Event;
use crate::lanes::Reservation;
use crate::policies::Resolved;

/// A submission that was validated, with its policy resolved: everything that a new task is made from.
#[derive(Debug, Clone)]
pub struct ValidatedTask {
    /// The tenant and the dependency.
    pub lane: Lane,
    /// The key that every attempt will carry.
    pub idempotency_key: IdempotencyKey,
    /// The caller's own id of the work that the task belongs to.
    pub correlation_id: Option<CorrelationId>,
    /// The caller's own trace and span.
    pub trace_parent: Option<TraceParent>,
    /// The policy version that the task pins, its own overrides included.
    pub policy: Arc<Resolved>,
    /// The request that the task sends.
    pub request: Arc<Request>,
    /// The hash of the request: two submissions with the same key must have the same.
    pub fingerprint: Fingerprint,
    /// When the first attempt may begin, if not now.
    pub not_before: Option<Timestamp>,
}

/// Stores new tasks in one commit, and starts those that were claimed with it.
pub(crate) async fn submit(shared: &Arc<EngineState>, tasks: Vec<ValidatedTask>) -> Result<Vec<Submitted>, Error> {
    let (now, began) = (shared.clock.now(), shared.clock.elapsed());
    let (new, first_attempts): (Vec<_>, Vec<_>) = tasks.into_iter().map(|valid| prepare(shared, valid, now)).unzip();
    let submitted = shared.store.tasks().submit(new).await?;
    shared.events.emit(Event::Stored { took: shared.clock.elapsed().saturating_sub(began) });
    for (first_attempt, submitted) in first_attempts.into_iter().zip(&submitted) {
        first_attempt.follow(shared, submitted);
    }
    Ok(submitted)
}

/// A task for the store, claimed if its lane has room, and what its first attempt needs.
fn prepare(shared: &Arc<EngineState>, valid: ValidatedTask, now: Timestamp) -> (NewTask, FirstAttempt) {
    let task = new_task(shared, &valid, now);
    let ValidatedTask { request, policy, fingerprint, .. } = valid;
    let is_due = task.next_attempt_at.is_some_and(|due| due <= now);
    let reservation = match is_due && shared.phase() == Phase::Running && shared.clock.is_certain() {
        true => shared.lanes.reserve(&task.lane, &request, task.is_next_attempt_last()),
        false => None,
    };
    let start = if reservation.is_some() { Start::Claimed(shared.lease_terms(), now) } else { Start::Pending };
    (NewTask { task, request: request.clone(), fingerprint, start }, FirstAttempt { request, policy, reservation })
}

/// What is kept in memory of a new task during its commit.
struct FirstAttempt {
    request: Arc<Request>,
    policy: Arc<Resolved>,
    reservation: Option<Reservation>,
}

impl FirstAttempt {
    /// Starts the attempt that was claimed with the commit, or schedules a task that waits.
    fn follow(self, shared: &Arc<EngineState>, submitted: &Submitted) {
        if let Submitted::Created(task, _) = submitted {
            shared.events.emit(Event::Accepted(task));
        }
        match (submitted, self.reservation) {
            (Submitted::Created(task, Some(lease)), Some(reservation)) => {
                let claimed = ClaimedTask { task: Task::clone(task), request: self.request, lease: *lease };
                attempt::start(shared, claimed, Some(self.policy), reservation);
            }
            (Submitted::Created(task, _), _) => shared.note_due(task),
            // The call that stored it may have failed before the task was scheduled.
            (Submitted::Replayed(task), _) if task.status == Status::Pending => shared.note_due(task),
            _ => {}
        }
    }
}

fn new_task(shared: &EngineState, valid: &ValidatedTask, now: Timestamp) -> Task {
    let policy = &valid.policy.policy;
    Task {
        id: shared.ids.next(now, shared.entropy.bits()),
        lane: valid.lane.clone(),
        idempotency_key: valid.idempotency_key.clone(),
        correlation_id: valid.correlation_id.clone(),
        trace_parent: valid.trace_parent,
        policy: valid.policy.reference.clone(),
        status: Status::Pending,
        reason: None,
        attempt_number: 0,
        run: 1,
        attempts_before: 0,
        max_attempts: policy.max_attempts,
        attempt_timeout: policy.attempt_timeout,
        created_at: now,
        run_started_at: now,
        deadline_at: now.after(policy.total_budget),
        next_attempt_at: Some(valid.not_before.unwrap_or(now).max(now)),
        ended_at: None,
        backoff: None,
        dns_failures: 0,
        cancel_requested: false,
        last_error: None,
    }
}
