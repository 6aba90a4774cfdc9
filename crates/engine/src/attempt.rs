//! One attempt: the last checks, the send, the verdict, the settlement.

use std::sync::Arc;
use std::time::Duration;

use redrive_core::attempt::LastError;
use redrive_core::classify::{self, Verdict};
use redrive_core::decide::{self, RunState, SendCheck};
use redrive_core::guards::concurrency::Signal;
use redrive_core::guards::{self, Health, Held, Presence};
use redrive_core::policy::Context;
use redrive_core::{
    Answer, Attempt, Class, Decision, ErrorType, Outcome, Reason, Status, Task, Timestamp, retry_after, trace,
};
use redrive_store::{ClaimedTask, Error, Next, Settlement};

use crate::admission::pace::AttemptEnd;
use crate::engine_state::{EngineState, Phase};
use crate::events::Event;
use crate::first_byte::FirstByte;
use crate::gone_dependency;
use crate::in_flight::Signals;
use crate::lanes::{Origin, Reservation};
use crate::options::TraceOptions;
use crate::policies::Resolved;
use crate::settle::{Abandoned, settle_or_abandon};
use crate::transport::{AttemptTrace, Outbound, SendError};

/// The longest time that a claimed task is held until it is due. A task that is not due by then, because the wall clock
/// was set back, goes back to the store.
const LONGEST_HOLD: Duration = Duration::from_secs(1);

/// The longest time that a claimed task waits for a slot. It was claimed to be sent within milliseconds. If its lane
/// has stalled since, it goes back to the store.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The wait before a task goes back to the store because its policy could not be read.
const POLICY_PAUSE: Duration = Duration::from_millis(250);

/// Starts the attempt that `claimed` counts, in its lane's `reservation`. Reads its policy from the store if it is not
/// cached.
pub(crate) fn start(
    shared: &Arc<EngineState>,
    claimed: ClaimedTask,
    policy: Option<Arc<Resolved>>,
    reservation: Reservation,
) {
    shared.events.emit(Event::Claimed(&claimed));
    shared.awaited_retries.forget(&claimed.task);
    let held = shared.abandoned_leases.hold(&claimed);
    let entry = shared.in_flight.enter(claimed.task.id);
    let spawner = shared.spawner.clone();
    let shared = shared.clone();
    spawner.spawn(Box::pin(async move {
        let ended = match find_policy(&shared, &claimed, policy).await {
            Ok(policy) => run(&shared, claimed, &policy, reservation, &entry.signals).await,
            Err(error) => without_policy(&shared, &claimed, error, reservation).await,
        };
        if let Ok(()) = ended {
            held.settled();
        }
        drop(entry);
    }));
}

async fn find_policy(
    shared: &EngineState,
    claimed: &ClaimedTask,
    at_hand: Option<Arc<Resolved>>,
) -> Result<Arc<Resolved>, Error> {
    match at_hand {
        Some(policy) => Ok(policy),
        None => shared.policies.of(claimed).await,
    }
}

/// Settles a task whose policy cannot be read: nothing is sent and no attempt is counted. If the policy is damaged or
/// gone the task ends as a dead letter. It can be replayed once the policy can be read.
async fn without_policy(
    shared: &EngineState,
    claimed: &ClaimedTask,
    error: Error,
    mut reservation: Reservation,
) -> Result<(), Abandoned> {
    let task = &claimed.task;
    let next = if let Error::Corrupt(_) = error {
        shared.events.emit(Event::PolicyLost(task, &error));
        Next::End { status: Status::Failed, reason: Some(Reason::PolicyLost), answer: None }
    } else {
        shared.events.emit(Event::PolicyUnavailable(task, &error));
        tokio::select! {
            biased;
            () = shared.reached(Phase::Returning) => {}
            () = shared.clock.sleep(POLICY_PAUSE) => {}
        }
        wait_again(claimed, shared.clock.now())
    };
    reservation.give_back();
    settle_or_abandon(shared, claimed, settlement(claimed, None, next, shared.clock.now())).await
}

/// Runs the attempt to its settlement, or leaves it to the rescuer.
async fn run(
    shared: &Arc<EngineState>,
    claimed: ClaimedTask,
    policy: &Resolved,
    mut reservation: Reservation,
    signals: &Arc<Signals>,
) -> Result<(), Abandoned> {
    let send_by = latest_send(shared, &claimed);
    hold_until_due(shared, &claimed, &mut reservation, signals).await;
    let wait_until = send_by.min(claimed.task.deadline_at).min(shared.clock.now().after(LONGEST_WAIT));
    wait_for_slot(shared, &mut reservation, wait_until, signals).await;
    let timeout = match last_checks(shared, &claimed, reservation.has_slot(), send_by, signals) {
        LastChecks::Send { timeout } => timeout,
        LastChecks::Unsent(next) => {
            reservation.give_back();
            let unsent = settlement(&claimed, None, next, shared.clock.now());
            return settle_or_abandon(shared, &claimed, unsent).await;
        }
        LastChecks::LeaseRanOut => return Err(Abandoned),
    };
    let first_byte = FirstByte::new(shared, signals, &claimed.task, send_by);
    let (began_at, begun) = (shared.clock.now(), shared.clock.elapsed());
    if let Err(held) = reservation.begin(class_of(&claimed), || origin_of(&claimed)) {
        // A guard closed since the claim: the task waits, and no attempt is counted.
        reservation.give_back();
        let next = match held {
            Held::Budget(_) if is_suppressed(shared, &claimed, policy) => {
                Next::End { status: Status::Exhausted, reason: Some(Reason::Budget), answer: None }
            }
            _ => wait_again(&claimed, began_at),
        };
        return settle_or_abandon(shared, &claimed, settlement(&claimed, None, next, began_at)).await;
    }
    let sent = send(shared, &claimed, policy, timeout, first_byte.clone()).await;
    let took = shared.clock.elapsed().saturating_sub(begun);
    if sent.is_withdrawn(&first_byte) {
        reservation.give_back();
        return give_back(shared, &claimed, send_by, signals).await;
    }
    let outcome = sent.guard_outcome(took, shared.clock.now());
    let call = sent.tells_latency().then_some(took);
    if let Some(gone) = reservation.end(sent.end(), call, outcome, sent.presence()) {
        gone_dependency::found(shared, &claimed.task, &policy.policy, gone);
    }
    let timing = Timing { started_at: first_byte.left_at().unwrap_or(began_at), took };
    let ended = judge(shared, &claimed, policy, sent, timing, signals);
    let retry_at = match ended.next {
        Next::RetryAt { at, .. } if is_awaited(policy) => Some(at),
        Next::RetryAt { .. } | Next::End { .. } => None,
    };
    settle_or_abandon(shared, &claimed, ended).await?;
    if let Some(at) = retry_at {
        shared.awaited_retries.note(&claimed.task, at);
    }
    Ok(())
}

/// Settles an attempt of which no byte was sent: the claim's count is taken back.
async fn give_back(
    shared: &EngineState,
    claimed: &ClaimedTask,
    send_by: Timestamp,
    signals: &Signals,
) -> Result<(), Abandoned> {
    let next = match last_checks(shared, claimed, false, send_by, signals) {
        LastChecks::Unsent(next) => next,
        LastChecks::Send { .. } => wait_again(claimed, shared.clock.now()),
        LastChecks::LeaseRanOut => return Err(Abandoned),
    };
    settle_or_abandon(shared, claimed, settlement(claimed, None, next, shared.clock.now())).await
}

/// The outcome of the checks just before the send.
enum LastChecks {
    /// The attempt may be sent, with this timeout.
    Send { timeout: Duration },
    /// The attempt must not be sent; the claim's count is taken back.
    Unsent(Next),
    /// The lease has expired: another process may have claimed the task.
    LeaseRanOut,
}

/// The latest moment at which the attempt may begin. If it then uses all of its timeout, half of the lease margin is
/// left to settle it. A claim whose answer came late has used up a part of its lease already.
fn latest_send(shared: &EngineState, claimed: &ClaimedTask) -> Timestamp {
    claimed.lease.until.before(claimed.task.attempt_timeout).before(shared.options.lease_margin / 2)
}

/// Holds a task that was claimed shortly before it is due, so that no commit delays the send past its due time.
async fn hold_until_due(shared: &EngineState, claimed: &ClaimedTask, reservation: &mut Reservation, signals: &Signals) {
    let Some(due) = claimed.task.next_attempt_at else { return };
    let is_last = claimed.task.attempt_in_run() >= claimed.task.max_attempts;
    if due > shared.clock.now() && !is_last {
        reservation.lend_slot();
    }
    loop {
        let changed = signals.changed();
        let early = due.since(shared.clock.now());
        signals.set_held(!early.is_zero());
        if early.is_zero() || early > LONGEST_HOLD || signals.is_released() || signals.is_cancelled() {
            return signals.set_held(false);
        }
        tokio::select! {
            biased;
            () = changed => {}
            () = shared.reached(Phase::Returning) => return,
            () = shared.clock.sleep(early) => {}
        }
    }
}

/// Waits until the lane grants a slot, until `at_most` at the latest: the limit that lease and deadline set.
async fn wait_for_slot(shared: &EngineState, reservation: &mut Reservation, at_most: Timestamp, signals: &Signals) {
    if reservation.has_slot() {
        return;
    }
    let mut time_is_up = shared.clock.sleep(at_most.since(shared.clock.now()));
    loop {
        let changed = signals.changed();
        if signals.is_cancelled() {
            return;
        }
        tokio::select! {
            biased;
            () = reservation.slot() => return,
            () = shared.reached(Phase::Returning) => return,
            () = &mut time_is_up => return,
            () = changed => {}
        }
    }
}

fn last_checks(
    shared: &EngineState,
    claimed: &ClaimedTask,
    has_slot: bool,
    send_by: Timestamp,
    signals: &Signals,
) -> LastChecks {
    let (task, now) = (&claimed.task, shared.clock.now());
    let end = |status, reason| LastChecks::Unsent(Next::End { status, reason: Some(reason), answer: None });
    if now >= claimed.lease.until {
        return LastChecks::LeaseRanOut;
    }
    if signals.is_cancelled() || task.cancel_requested {
        return end(Status::Cancelled, Reason::Cancelled);
    }
    let timeout = match decide::before_send(task.deadline_at, shared.estimate(claimed), task.attempt_timeout, now) {
        SendCheck::SendNow { timeout } => timeout,
        SendCheck::TooLate => return end(Status::Exhausted, Reason::Deadline),
    };
    let is_early = task.next_attempt_at.is_some_and(|due| now < due) && !signals.is_released();
    if is_early || now > send_by || !has_slot || shared.phase() >= Phase::Returning {
        return LastChecks::Unsent(wait_again(claimed, now));
    }
    LastChecks::Send { timeout }
}

/// Returns the task to the queue with the due time that it had.
fn wait_again(claimed: &ClaimedTask, now: Timestamp) -> Next {
    let task = &claimed.task;
    let at = task.next_attempt_at.unwrap_or(now);
    Next::RetryAt { at, backoff: task.backoff, dns_failures: task.dns_failures }
}

/// Whether a caller waits for the answer.
fn is_awaited(policy: &Resolved) -> bool {
    policy.policy.context.is_some_and(Context::is_waited_for)
}

/// Whether a caller waits for the answer, and the retry budget of the dependency is spent.
fn is_suppressed(shared: &EngineState, claimed: &ClaimedTask, policy: &Resolved) -> bool {
    is_awaited(policy) && shared.lanes.is_budget_spent(&claimed.task.lane)
}

/// Whether the attempt that was claimed is the first of its run.
fn class_of(claimed: &ClaimedTask) -> Class {
    if claimed.task.attempt_in_run() <= 1 { Class::First } else { Class::Retry }
}

/// Where an attempt goes: retries that first attempts do not earn are limited for each origin.
fn origin_of(claimed: &ClaimedTask) -> Origin {
    Origin::new(&claimed.task.lane, &claimed.request.target_url)
}

/// The result of a send.
enum SendOutcome {
    Answered(Answer),
    Failed(SendError),
    /// The process stops and no longer waits; what the dependency did with the request is unknown.
    GivenUp,
}

impl SendOutcome {
    /// Whether its duration is a sample of the dependency's latency. A refused connection is not.
    fn tells_latency(&self) -> bool {
        match self {
            SendOutcome::Answered(_) => true,
            SendOutcome::Failed(error) => error.kind == ErrorType::ReadTimeout,
            SendOutcome::GivenUp => false,
        }
    }

    /// What the attempt shows the lane's guards.
    fn guard_outcome(&self, took: Duration, now: Timestamp) -> guards::Outcome {
        let (health, signal, retry_after) = match self {
            SendOutcome::Answered(answer) => {
                let signal = match answer.status {
                    429 => Signal::Overloaded,
                    503 => Signal::Unavailable,
                    _ => Signal::Answered,
                };
                let health = Health::of_status(answer.status);
                let retry_after = if health == Health::Well { None } else { retry_after::of(answer, now) };
                (Some(health), signal, retry_after)
            }
            SendOutcome::Failed(error) => {
                let is_timeout = matches!(error.kind, ErrorType::ReadTimeout | ErrorType::ConnectTimeout);
                (Health::of_error(error.kind), if is_timeout { Signal::Unavailable } else { Signal::Neutral }, None)
            }
            SendOutcome::GivenUp => (None, Signal::Neutral, None),
        };
        guards::Outcome { health, signal, took, retry_after }
    }

    /// Whether the dependency seems to be there; `None` if the attempt does not show it.
    fn presence(&self) -> Option<Presence> {
        match self {
            SendOutcome::Answered(answer) => Some(Presence::of_status(answer.status)),
            SendOutcome::Failed(error) => Health::of_error(error.kind).map(|_| Presence::NoSuccess),
            SendOutcome::GivenUp => None,
        }
    }

    /// How the attempt ended, for its lane's measurements. A send that was given up counts as answered: only its
    /// duration matters.
    fn end(&self) -> AttemptEnd {
        match self {
            SendOutcome::Answered(_) | SendOutcome::GivenUp => AttemptEnd::Answered,
            SendOutcome::Failed(error) => match error.kind {
                ErrorType::ConnectionRefused
                | ErrorType::ConnectionReset
                | ErrorType::ConnectTimeout
                | ErrorType::ConnectFailed
                | ErrorType::Dns
                | ErrorType::TlsHandshakeTimeout
                | ErrorType::TlsHandshake
                | ErrorType::TlsCertificate => AttemptEnd::NoConnection,
                ErrorType::NotSent | ErrorType::BodyUnavailable => AttemptEnd::LocalFailure,
                ErrorType::ReadTimeout => AttemptEnd::TimedOut,
                _ => AttemptEnd::Answered,
            },
        }
    }

    /// Whether no byte was sent because the attempt was withdrawn.
    fn is_withdrawn(&self, first_byte: &FirstByte) -> bool {
        let is_unsent = first_byte.left_at().is_none();
        match self {
            SendOutcome::Answered(_) => false,
            SendOutcome::Failed(error) => is_unsent && error.kind == ErrorType::NotSent && first_byte.is_refused(),
            SendOutcome::GivenUp => is_unsent,
        }
    }
}

/// When an attempt began, and how long it took.
#[derive(Clone, Copy)]
struct Timing {
    started_at: Timestamp,
    took: Duration,
}

async fn send(
    shared: &EngineState,
    claimed: &ClaimedTask,
    policy: &Resolved,
    timeout: Duration,
    first_byte: Arc<FirstByte>,
) -> SendOutcome {
    let task = &claimed.task;
    let outbound = Outbound {
        lane: task.lane.clone(),
        request: claimed.request.clone(),
        idempotency_key: task.idempotency_key.clone(),
        task: task.id,
        attempt: task.attempt_number,
        trace: attempt_trace(&shared.options.traces, task),
        connect_timeout: policy.policy.connect_timeout.min(timeout),
        attempt_timeout: timeout,
        gate: first_byte,
    };
    tokio::select! {
        biased;
        sent = shared.transport.send(outbound) => match sent {
            Ok(answer) => SendOutcome::Answered(answer),
            Err(error) => SendOutcome::Failed(error),
        },
        () = shared.reached(Phase::Returning) => SendOutcome::GivenUp,
    }
}

/// What the attempt that was claimed says about its trace.
fn attempt_trace(options: &TraceOptions, task: &Task) -> Option<AttemptTrace> {
    options.propagators.trace_context.then(|| AttemptTrace {
        parent: trace::attempt_context(task, &options.sampler),
        keeps_state: task.trace_parent.is_some(),
    })
}

/// Turns the result of a send into a settlement: the entry for the attempt log, and what happens next.
fn judge(
    shared: &EngineState,
    claimed: &ClaimedTask,
    policy: &Resolved,
    sent: SendOutcome,
    timing: Timing,
    signals: &Signals,
) -> Settlement {
    let now = shared.clock.now();
    let standing = standing(shared, claimed);
    let unit = shared.entropy.unit();
    let (answer, error, verdict) = match sent {
        SendOutcome::Answered(answer) => {
            let verdict = classify::answer(&policy.policy, &answer, now);
            let error = (verdict != Verdict::Success).then(|| LastError {
                kind: ErrorType::HttpStatus,
                message: format!("the dependency answered {}", answer.status),
            });
            (Some(answer), error, verdict)
        }
        SendOutcome::Failed(error) => {
            let verdict = classify::error(error.kind);
            if error.kind == ErrorType::BodyUnavailable {
                let times = shared.unread.count(shared.clock.elapsed());
                shared.events.emit(Event::BodyUnavailable(&claimed.task, times, &error));
            }
            (None, Some(LastError { kind: error.kind, message: error.message }), verdict)
        }
        SendOutcome::GivenUp => {
            let decision = decide::after_lost_lease(&policy.policy, &standing, now, unit);
            let settlement = interrupted(claimed, decision, Some(timing.took), now);
            if let Some(attempt) = &settlement.attempt {
                shared.events.emit(Event::AttemptEnded(&claimed.task, attempt));
            }
            return settlement;
        }
    };
    let is_unsent = error.as_ref().is_some_and(|error| error.kind == ErrorType::NotSent);
    let decision = match decide::after_attempt(&policy.policy, &standing, &verdict, now, unit) {
        // Also if it ends the task: an attempt that was never sent is not in the log.
        decision if is_unsent => return settlement(claimed, None, next(claimed, decision, None), now),
        // The store would cancel it as well, but it keeps no answer for a task that is to be retried.
        Decision::Retry { .. } if signals.is_cancelled() => Decision::End(Status::Cancelled, Some(Reason::Cancelled)),
        // Rule R-7: a caller that waits gets the error at once; a retry would wait for the budget.
        Decision::Retry { .. } if is_suppressed(shared, claimed, policy) => {
            Decision::End(Status::Exhausted, Some(Reason::Budget))
        }
        // No request was sent: the log gets no attempt, and the claim's count is taken back.
        decision @ Decision::PutOff { .. } => return settlement(claimed, None, next(claimed, decision, None), now),
        decision => decision,
    };
    let attempt = Attempt {
        number: claimed.task.attempt_number,
        number_in_run: claimed.task.attempt_in_run(),
        started_at: timing.started_at,
        duration: Some(timing.took),
        outcome: verdict.outcome(),
        response_status: answer.as_ref().map(|answer| answer.status),
        error,
        backoff: backoff(&decision),
    };
    let next = next(claimed, decision, answer);
    attempt_made(shared, claimed, attempt, next, now)
}

/// The settlement of an attempt that was interrupted, by a crash or by a stop whose grace is over. Nothing is reported here.
pub(crate) fn interrupted(
    claimed: &ClaimedTask,
    decision: Decision,
    took: Option<Duration>,
    now: Timestamp,
) -> Settlement {
    let error = LastError {
        kind: ErrorType::Interrupted,
        message: "the process stopped while the attempt was under way; its outcome is unknown".into(),
    };
    let attempt = Attempt {
        number: claimed.task.attempt_number,
        number_in_run: claimed.task.attempt_in_run(),
        started_at: claimed.lease.since,
        duration: took,
        outcome: Outcome::Unknown,
        response_status: None,
        error: Some(error),
        backoff: backoff(&decision),
    };
    settlement(claimed, Some(attempt), next(claimed, decision, None), now)
}

/// The settlement of an attempt that has an outcome, which is reported here.
fn attempt_made(
    shared: &EngineState,
    claimed: &ClaimedTask,
    attempt: Attempt,
    next: Next,
    now: Timestamp,
) -> Settlement {
    shared.events.emit(Event::AttemptEnded(&claimed.task, &attempt));
    settlement(claimed, Some(attempt), next, now)
}

/// The state of the task's current run after this attempt. Limits and backoff count from the start of the run.
pub(crate) fn standing(shared: &EngineState, claimed: &ClaimedTask) -> RunState {
    RunState {
        attempt: claimed.task.attempt_in_run(),
        max_attempts: claimed.task.max_attempts,
        deadline_at: claimed.task.deadline_at,
        previous_backoff: claimed.task.backoff,
        dns_failures: claimed.task.dns_failures,
        estimate: shared.estimate(claimed),
    }
}

fn backoff(decision: &Decision) -> Option<Duration> {
    match decision {
        Decision::Retry { backoff, .. } => Some(*backoff),
        Decision::End(..) | Decision::PutOff { .. } => None,
    }
}

fn next(claimed: &ClaimedTask, decision: Decision, answer: Option<Answer>) -> Next {
    match decision {
        Decision::Retry { at, backoff, dns_failures } => Next::RetryAt { at, backoff: Some(backoff), dns_failures },
        // The dependency's backoff stays as it was.
        Decision::PutOff { until } => {
            Next::RetryAt { at: until, backoff: claimed.task.backoff, dns_failures: claimed.task.dns_failures }
        }
        Decision::End(status, reason) => Next::End { status, reason, answer: answer.map(Box::new) },
    }
}

fn settlement(claimed: &ClaimedTask, attempt: Option<Attempt>, next: Next, at: Timestamp) -> Settlement {
    let task = &claimed.task;
    Settlement { tenant: task.lane.tenant.clone(), id: task.id, token: claimed.lease.token, attempt, next, at }
}
