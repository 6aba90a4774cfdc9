//! Accepting tasks: one durable commit for all of a call, and the first claim with it where a lane has room.

use std::sync::Arc;

use redrive_core::request::Fingerprint;
use redrive_core::{IdempotencyKey, Lane, Request, Status, Task, TaskId, Timestamp};
use redrive_store::{Claimed, Error, NewTask, Start, Submitted};

use crate::attempt;
use crate::lanes::Seat;
use crate::policies::Resolved;
use crate::shared::{Phase, Shared};

/// A task as the caller gives it: validated, with its policy resolved.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Whose it is and whom it calls.
    pub lane: Lane,
    /// The key that every attempt will carry.
    pub idempotency_key: IdempotencyKey,
    /// The policy version that it pins, its own overrides included.
    pub policy: Arc<Resolved>,
    /// What it sends.
    pub request: Arc<Request>,
    /// What makes two submissions the same request.
    pub fingerprint: Fingerprint,
    /// When the first attempt may begin, if not now.
    pub not_before: Option<Timestamp>,
}

/// What became of a draft.
#[derive(Debug, Clone)]
pub enum Submission {
    /// It is a task now, and durable.
    Created(Box<Task>),
    /// The key belongs to this task, and the request was the same.
    Replayed(Box<Task>),
    /// The key belongs to this task, and the request was another.
    KeyReused(TaskId),
    /// The key belongs to this task, which cannot be understood: whether the request was the same is not known.
    KeyUnreadable(TaskId),
    /// The policy was deleted in the meantime.
    PolicyGone,
    /// The stored body was deleted in the meantime.
    BodyGone,
}

/// Keeps the drafts, in one commit, and starts those that could be claimed with it.
pub(crate) async fn submit(shared: &Arc<Shared>, drafts: Vec<Draft>) -> Result<Vec<Submission>, Error> {
    let now = shared.clock.now();
    let mut begun = Vec::with_capacity(drafts.len());
    let mut tasks = Vec::with_capacity(drafts.len());
    for draft in drafts {
        let task = accept(shared, &draft, now);
        let is_due = task.next_attempt_at.is_some_and(|due| due <= now);
        let seat = match is_due && shared.phase() == Phase::Running && shared.clock.is_certain() {
            true => shared.lanes.reserve(&task.lane, &draft.request, task.is_next_attempt_last()),
            false => None,
        };
        let start = if seat.is_some() { Start::Claimed(shared.lease_terms(), now) } else { Start::Pending };
        let (request, fingerprint) = (draft.request.clone(), draft.fingerprint);
        tasks.push(NewTask { task: task.clone(), request, fingerprint, start });
        begun.push(Begun { task, draft, seat });
    }
    let submitted = shared.store.submit(tasks).await?;
    Ok(begun.into_iter().zip(submitted).map(|(begun, submitted)| begun.end(shared, submitted)).collect())
}

/// A draft on its way into the store, with a seat for its first attempt if its lane had room.
struct Begun {
    task: Task,
    draft: Draft,
    seat: Option<Seat>,
}

impl Begun {
    /// What became of it; an attempt that was claimed with it is started.
    fn end(self, shared: &Arc<Shared>, submitted: Submitted) -> Submission {
        let Begun { mut task, draft, seat } = self;
        match submitted {
            Submitted::Created(lease) => {
                if let (Some(lease), Some(seat)) = (lease, seat) {
                    task.status = Status::InFlight;
                    task.attempt_number = 1;
                    let claimed = Claimed { task: task.clone(), request: draft.request, lease };
                    attempt::start(shared, claimed, Some(draft.policy), seat);
                } else {
                    shared.note_due(&task);
                }
                Submission::Created(Box::new(task))
            }
            Submitted::Replayed(task) => {
                // The call that kept it may have failed before its lane was told.
                if task.status == Status::Pending {
                    shared.note_due(&task);
                }
                Submission::Replayed(task)
            }
            Submitted::KeyReused(id) => Submission::KeyReused(id),
            Submitted::KeyUnreadable(id) => Submission::KeyUnreadable(id),
            Submitted::PolicyGone => Submission::PolicyGone,
            Submitted::BodyGone => Submission::BodyGone,
        }
    }
}

fn accept(shared: &Shared, draft: &Draft, now: Timestamp) -> Task {
    let policy = &draft.policy.policy;
    Task {
        id: shared.ids.next(now, shared.entropy.bits()),
        lane: draft.lane.clone(),
        idempotency_key: draft.idempotency_key.clone(),
        policy: draft.policy.reference.clone(),
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
        next_attempt_at: Some(draft.not_before.unwrap_or(now).max(now)),
        ended_at: None,
        backoff: None,
        dns_failures: 0,
        cancel_requested: false,
        last_error: None,
    }
}
