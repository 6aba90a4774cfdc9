//! One attempt: the last checks, the send, the verdict, the settlement.

use std::sync::Arc;
use std::time::Duration;

use redrive_core::attempt::LastError;
use redrive_core::classify::{self, Verdict};
use redrive_core::decide::{self, Fit, Standing};
use redrive_core::planted::{self, Bug};
use redrive_core::{Answer, Attempt, Decision, ErrorType, Outcome, Reason, Status, Timestamp};
use redrive_store::{Claimed, Next, Settlement};

use crate::in_flight::Place;
use crate::lanes::Room;
use crate::mistakes;
use crate::policies::Resolved;
use crate::settle::{Left, settle_or_leave};
use crate::shared::{Phase, Shared};
use crate::transport::{AlwaysOpen, Outbound, SendError};

/// Starts the attempt that `claimed` counts, in its lane's `room`.
pub(crate) fn start(shared: &Arc<Shared>, claimed: Claimed, policy: Arc<Resolved>, room: Room) {
    let held = shared.left_behind.hold(&claimed);
    let place = shared.in_flight.enter(claimed.task.id);
    let spawner = shared.spawner.clone();
    let shared = shared.clone();
    spawner.spawn(Box::pin(async move {
        if let Ok(()) = run(&shared, claimed, &policy, room, &place).await {
            held.settled();
        }
        drop(place);
    }));
}

/// Sees the attempt through, or leaves it to the rescuer.
async fn run(shared: &Shared, claimed: Claimed, policy: &Resolved, mut room: Room, place: &Place) -> Result<(), Left> {
    let send_by = latest_send(shared, &claimed);
    wait_for_slot(shared, &mut room, send_by).await;
    let timeout = match last_checks(shared, &claimed, &room, send_by, place) {
        LastChecks::Send { timeout } => timeout,
        LastChecks::Unsent(next) => {
            drop(room);
            let unsent = settlement(&claimed, None, next, shared.clock.now());
            return settle_or_leave(shared, &claimed, unsent).await;
        }
        LastChecks::LeaseRanOut => return Err(Left),
    };
    let begun = shared.clock.elapsed();
    let sent = send(shared, &claimed, policy, timeout).await;
    let took = shared.clock.elapsed().saturating_sub(begun);
    if sent.tells_latency() {
        shared.lanes.record_latency(&claimed.task.lane, took, shared.clock.elapsed());
    }
    // The dependency is done with it: the lane's room is free while the result is written down.
    drop(room);
    let ended = judge(shared, &claimed, policy, sent, took, place);
    settle_or_leave(shared, &claimed, ended).await
}

/// What is found just before the send.
enum LastChecks {
    /// It may go out, and take this long.
    Send { timeout: Duration },
    /// It must not go out; the attempt that the claim counted is taken back.
    Unsent(Next),
    /// Somebody else may hold the task by now.
    LeaseRanOut,
}

/// The last moment at which the attempt may begin: if it takes all of its timeout from then on, half of the lease's
/// margin is left to write its result down. A claim whose answer came late has used up some of its lease already.
fn latest_send(shared: &Shared, claimed: &Claimed) -> Timestamp {
    claimed.lease.until.before(claimed.task.attempt_timeout).before(shared.options.lease_margin / 2)
}

/// Waits until the lane lets it on the wire, for no longer than the lease can bear.
async fn wait_for_slot(shared: &Shared, room: &mut Room, send_by: Timestamp) {
    if room.try_slot() || planted::is(Bug::NoSlots) {
        return;
    }
    tokio::select! {
        biased;
        () = room.slot() => {}
        () = shared.reached(Phase::Returning) => {}
        () = shared.clock.sleep(send_by.since(shared.clock.now())) => {}
    }
}

fn last_checks(shared: &Shared, claimed: &Claimed, room: &Room, send_by: Timestamp, place: &Place) -> LastChecks {
    let (task, now) = (&claimed.task, shared.clock.now());
    let end = |status, reason| LastChecks::Unsent(Next::End { status, reason: Some(reason), answer: None });
    if now >= claimed.lease.until && !planted::is(Bug::SendAfterLease) {
        return LastChecks::LeaseRanOut;
    }
    if place.is_cancelled() || task.cancel_requested {
        return end(Status::Cancelled, Reason::Cancelled);
    }
    let timeout = match decide::before_send(task.deadline_at, shared.estimate(claimed), task.attempt_timeout, now) {
        Fit::SendNow { timeout } => timeout,
        Fit::TooLate if planted::is(Bug::SendAfterDeadline) => task.attempt_timeout,
        Fit::TooLate => return end(Status::Exhausted, Reason::Deadline),
    };
    let is_late = now > send_by && !planted::is(Bug::LateClaimIsSent) && !planted::is(Bug::SendAfterLease);
    let has_slot = room.has_slot() || planted::is(Bug::NoSlots);
    if is_late || !has_slot || shared.phase() >= Phase::Returning {
        // It keeps its place in the queue: due when it was.
        let at = task.next_attempt_at.unwrap_or(now);
        return LastChecks::Unsent(Next::RetryAt { at, backoff: task.backoff });
    }
    LastChecks::Send { timeout }
}

/// What a send came to.
enum Sent {
    Answered(Answer),
    Failed(SendError),
    /// The process stops and waits no longer; what the dependency did with it is unknown.
    GivenUp,
}

impl Sent {
    /// Whether it says what a call of this dependency takes: a refused connection says nothing of that.
    fn tells_latency(&self) -> bool {
        match self {
            Sent::Answered(_) => true,
            Sent::Failed(error) => error.kind == ErrorType::ReadTimeout,
            Sent::GivenUp => false,
        }
    }
}

async fn send(shared: &Shared, claimed: &Claimed, policy: &Resolved, timeout: Duration) -> Sent {
    let task = &claimed.task;
    let outbound = Outbound {
        lane: task.lane.clone(),
        request: claimed.request.clone(),
        idempotency_key: task.idempotency_key.clone(),
        task: task.id,
        attempt: task.attempt_number,
        connect_timeout: policy.policy.connect_timeout.min(timeout),
        attempt_timeout: timeout,
        gate: Arc::new(AlwaysOpen),
    };
    let sending = match mistakes::send(shared, task, &outbound) {
        Some(sending) => sending,
        None => shared.transport.send(outbound),
    };
    tokio::select! {
        biased;
        sent = sending => match sent {
            Ok(answer) => Sent::Answered(answer),
            Err(error) => Sent::Failed(error),
        },
        () = shared.reached(Phase::Returning) => Sent::GivenUp,
    }
}

/// What the send means for the task: the line for the attempt log, and what happens next.
fn judge(
    shared: &Shared,
    claimed: &Claimed,
    policy: &Resolved,
    sent: Sent,
    took: Duration,
    place: &Place,
) -> Settlement {
    let now = shared.clock.now();
    let standing = standing(shared, claimed);
    let unit = shared.entropy.unit();
    let (answer, error, verdict) = match sent {
        Sent::Answered(answer) => {
            let verdict = classify::answer(&policy.policy, &answer, now);
            let error = (verdict != Verdict::Success).then(|| LastError {
                kind: ErrorType::HttpStatus,
                message: format!("the dependency answered {}", answer.status),
            });
            (Some(answer), error, verdict)
        }
        Sent::Failed(error) => {
            let verdict = classify::error(error.kind);
            if verdict == Verdict::NotSent {
                log_unread(shared, claimed, &error);
            }
            (None, Some(LastError { kind: error.kind, message: error.message }), verdict)
        }
        Sent::GivenUp if planted::is(Bug::TakeBackWhatWasSent) => {
            let at = claimed.task.next_attempt_at.unwrap_or(now);
            return settlement(claimed, None, Next::RetryAt { at, backoff: claimed.task.backoff }, now);
        }
        Sent::GivenUp => {
            let decision = decide::after_lost_lease(&policy.policy, &standing, now, unit);
            return cut_off(claimed, decision, Some(took), now);
        }
    };
    let decision = match decide::after_attempt(&policy.policy, &standing, &verdict, now, unit) {
        // The store would see to it as well, but it has no answer to keep for a task that it thinks is to be retried.
        Decision::Retry { .. } if place.is_cancelled() => Decision::End(Status::Cancelled, Some(Reason::Cancelled)),
        // Nobody was asked anything: no attempt is in the log, and what the claim counted is taken back.
        decision @ Decision::PutOff { .. } => return settlement(claimed, None, next(claimed, decision, None), now),
        decision => decision,
    };
    let attempt = Attempt {
        number: claimed.task.attempt_number,
        started_at: claimed.lease.since,
        duration: Some(took),
        outcome: verdict.outcome(),
        response_status: answer.as_ref().map(|answer| answer.status),
        error,
        backoff: backoff(&decision),
    };
    log_attempt(claimed, &attempt);
    let next = next(claimed, decision, answer);
    settlement(claimed, Some(attempt), next, now)
}

/// The settlement of an attempt that was cut off, by a crash or by a stop that would wait no longer.
pub(crate) fn cut_off(claimed: &Claimed, decision: Decision, took: Option<Duration>, now: Timestamp) -> Settlement {
    let error = LastError {
        kind: ErrorType::Interrupted,
        message: "the process stopped while the attempt was under way; its outcome is unknown".into(),
    };
    let attempt = Attempt {
        number: claimed.task.attempt_number,
        started_at: claimed.lease.since,
        duration: took,
        outcome: Outcome::Unknown,
        response_status: None,
        error: Some(error),
        backoff: backoff(&decision),
    };
    log_attempt(claimed, &attempt);
    settlement(claimed, Some(attempt), next(claimed, decision, None), now)
}

/// Where the task stands now that the attempt is over. Limits and backoff are those of its run, as if there had been no
/// other.
pub(crate) fn standing(shared: &Shared, claimed: &Claimed) -> Standing {
    Standing {
        attempt: claimed.task.attempt_in_run(),
        max_attempts: claimed.task.max_attempts,
        deadline_at: claimed.task.deadline_at,
        previous_backoff: claimed.task.backoff,
        estimate: shared.estimate(claimed),
    }
}

fn backoff(decision: &Decision) -> Option<Duration> {
    match decision {
        Decision::Retry { backoff, .. } => Some(*backoff),
        Decision::End(..) | Decision::PutOff { .. } => None,
    }
}

fn next(claimed: &Claimed, decision: Decision, answer: Option<Answer>) -> Next {
    match decision {
        Decision::Retry { at, backoff } => Next::RetryAt { at, backoff: Some(backoff) },
        // The dependency's backoff goes on where it was.
        Decision::PutOff { until } => Next::RetryAt { at: until, backoff: claimed.task.backoff },
        Decision::End(status, reason) => Next::End { status, reason, answer: answer.map(Box::new) },
    }
}

fn settlement(claimed: &Claimed, attempt: Option<Attempt>, next: Next, at: Timestamp) -> Settlement {
    let task = &claimed.task;
    Settlement { tenant: task.lane.tenant.clone(), id: task.id, token: claimed.lease.token, attempt, next, at }
}

/// Object storage that is out of reach may concern every task: one line for all of them, every now and then.
fn log_unread(shared: &Shared, claimed: &Claimed, error: &SendError) {
    let task = &claimed.task;
    tracing::debug!(task = %task.id, dependency = %task.lane.dependency, "the stored body could not be read");
    if let Some(times) = shared.unread.count(shared.clock.elapsed()) {
        tracing::warn!(times, error = %error, "stored bodies cannot be read: their tasks wait, and nothing is sent");
    }
}

/// Rule R-10: every attempt that did not succeed is logged with these fields; never a body, a token or a secret.
fn log_attempt(claimed: &Claimed, attempt: &Attempt) {
    let task = &claimed.task;
    let Some(error) = &attempt.error else {
        tracing::debug!(task = %task.id, dependency = %task.lane.dependency, attempt = attempt.number, "delivered");
        return;
    };
    tracing::info!(
        correlation_id = %task.id,
        tenant = %task.lane.tenant,
        dependency = %task.lane.dependency,
        attempt = attempt.number,
        run = task.run,
        max_attempts = task.max_attempts,
        backoff_ms = attempt.backoff.map(|backoff| u64::try_from(backoff.as_millis()).unwrap_or(u64::MAX)),
        error_type = error.kind.as_str(),
        response_status = attempt.response_status,
        idempotency_key = %task.idempotency_key,
        "attempt failed"
    );
}
