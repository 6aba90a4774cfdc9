//! One event, and which event of the engine it is made from.
//!
//! It has names and numbers only: no URL, header, body, answer, idempotency key or error message, which may contain
//! secrets. The only text is why an alert fires, as `GET /alerts` shows it. Making one clones a few `Arc`s and reads the clock;
//! nothing is formatted.
//!
//! The counts of `attempt`, `ended` and `dead-letter` events are those of the metrics: the same events of the engine are
//! counted there (`metrics/counts`).

use std::sync::Arc;
use std::time::Duration;

use redrive_core::alerts::{self, Severity, Signal, Subject, Transition};
use redrive_core::guards::Gone;
use redrive_core::guards::breaker::{Change, OpenedBy};
use redrive_core::{
    Attempt, CorrelationId, Dependency, ErrorType, Lane, Outcome, Reason, Status, Task, TaskId, TenantId, Timestamp,
};
use redrive_engine::clock::Clock;
use redrive_engine::events::{EndedBy, Event};
use redrive_store::rules::attempts_after;
use redrive_store::{Next, Settlement};

use super::kind::Kind;

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveEvent {
    /// When this node noticed it.
    pub at: Timestamp,
    /// Whose event it is.
    pub tenant: TenantId,
    /// The dependency that it is about; `None` if it is about the service.
    pub dependency: Option<Dependency>,
    /// The task that it is about, if it is about one.
    pub task: Option<TaskOfEvent>,
    /// What happened.
    pub happening: Happening,
}

/// What an event says of its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskOfEvent {
    /// The task's id.
    pub id: TaskId,
    /// The caller's own id of the work that it belongs to.
    pub correlation_id: Option<CorrelationId>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Happening {
    /// [`Kind::Accepted`].
    Accepted {
        /// When its first attempt is due.
        due_at: Option<Timestamp>,
    },
    /// [`Kind::Attempt`].
    Attempt(AttemptFacts),
    /// [`Kind::RetryScheduled`].
    RetryScheduled {
        /// When the next attempt is due.
        due_at: Timestamp,
    },
    /// [`Kind::Ended`].
    Ended(EndFacts),
    /// [`Kind::DeadLetter`].
    DeadLetter(EndFacts),
    /// [`Kind::LeaseTakenOver`], with the attempt whose lease expired.
    LeaseTakenOver(AttemptNumbers),
    /// [`Kind::BreakerOpened`].
    BreakerOpened {
        /// When it lets probes through.
        until: Timestamp,
        /// Why it opened.
        why: OpenedBy,
    },
    /// [`Kind::BreakerClosed`].
    BreakerClosed,
    /// [`Kind::DependencyGone`].
    DependencyGone(Gone),
    /// [`Kind::Paused`].
    Paused,
    /// [`Kind::Alert`]. Apart, because it is large and rare.
    Alert(Arc<AlertFacts>),
}

/// The beginning or the end of an alert.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertFacts {
    /// Which of both.
    pub change: alerts::Change,
    /// Its rule.
    pub signal: Signal,
    /// How urgent it is.
    pub severity: Severity,
    /// The last value while it fired.
    pub value: f64,
    /// What that value means.
    pub why: String,
}

/// The end of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndFacts {
    /// The status in which it ended.
    pub status: Status,
    /// Why; `None` for SUCCEEDED.
    pub reason: Option<Reason>,
    /// The numbers of its last attempt; 0 if it had none.
    pub attempts: AttemptNumbers,
}

/// An attempt's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptNumbers {
    /// Among all attempts of the task, from 1.
    pub number: u32,
    /// Within its run, from 1.
    pub in_run: u32,
    /// Its run, from 1.
    pub run: u32,
}

/// An attempt that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptFacts {
    /// Its numbers.
    pub numbers: AttemptNumbers,
    /// The most attempts that the task may make in one run.
    pub max_attempts: u32,
    /// Its outcome.
    pub outcome: Outcome,
    /// The kind of its error, if there was one.
    pub error: Option<ErrorType>,
    /// The answer's status code, if there was an answer.
    pub response_status: Option<u16>,
    /// How long it took, if that is known.
    pub duration: Option<Duration>,
    /// The wait before the next attempt, if there is to be one.
    pub backoff: Option<Duration>,
}

impl LiveEvent {
    /// The event to keep of this one of the engine, if it is of interest.
    pub(super) fn of(event: &Event<'_>, clock: &dyn Clock) -> Option<Self> {
        let (lane, task, happening) = match *event {
            Event::Accepted(task) => of_task(task, Happening::Accepted { due_at: task.next_attempt_at }),
            Event::AttemptEnded(task, attempt) => of_task(task, Happening::Attempt(AttemptFacts::of(task, attempt))),
            Event::Retried(task, due_at) => of_task(task, Happening::RetryScheduled { due_at }),
            // The settlement knows the reason, and the event of the end that follows it does not.
            Event::Settled(claimed, settlement, status) if status.is_ended() => {
                of_task(&claimed.task, Happening::Ended(EndFacts::of_settlement(&claimed.task, settlement, status)))
            }
            Event::Ended(task, status, EndedBy::Cancel | EndedBy::Deadline | EndedBy::Budget) => {
                let attempts = AttemptNumbers::of(task, task.attempt_number);
                of_task(task, Happening::Ended(EndFacts { status, reason: task.reason, attempts }))
            }
            Event::TakenOver(task) => {
                of_task(task, Happening::LeaseTakenOver(AttemptNumbers::of(task, task.attempt_number)))
            }
            Event::Breaker(lane, Change::Opened { until, why }) => {
                (lane, None, Happening::BreakerOpened { until, why })
            }
            Event::Breaker(lane, Change::Closed) => (lane, None, Happening::BreakerClosed),
            Event::DependencyGone(task, gone) => of_task(task, Happening::DependencyGone(gone)),
            Event::PausedOnGone(task) => of_task(task, Happening::Paused),
            _ => return None,
        };
        let task = task.map(|task| TaskOfEvent { id: task.id, correlation_id: task.correlation_id.clone() });
        let Lane { tenant, dependency } = lane.clone();
        Some(LiveEvent { at: clock.now(), tenant, dependency: Some(dependency), task, happening })
    }

    /// The event of an alert that began or ended. One about the service or about a sink is an event of `operator`.
    pub(super) fn of_alert(transition: &Transition, operator: &TenantId, at: Timestamp) -> Self {
        let Transition { change, alert } = transition;
        let (tenant, dependency) = match &alert.subject {
            Subject::Service => (operator, None),
            Subject::Lane(lane) if alert.signal.is_local() => (operator, Some(&lane.dependency)),
            Subject::Lane(lane) => (&lane.tenant, Some(&lane.dependency)),
        };
        let facts = AlertFacts {
            change: *change,
            signal: alert.signal,
            severity: alert.severity,
            value: alert.value,
            why: alert.why.clone(),
        };
        LiveEvent {
            at,
            tenant: tenant.clone(),
            dependency: dependency.cloned(),
            task: None,
            happening: Happening::Alert(Arc::new(facts)),
        }
    }

    /// The event that follows this one if it is the end of a dead letter.
    pub(super) fn dead_letter(&self) -> Option<Self> {
        match self.happening {
            Happening::Ended(end) if end.status.is_dead_letter() => {
                Some(LiveEvent { happening: Happening::DeadLetter(end), ..self.clone() })
            }
            _ => None,
        }
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self.happening {
            Happening::Accepted { .. } => Kind::Accepted,
            Happening::Attempt(_) => Kind::Attempt,
            Happening::RetryScheduled { .. } => Kind::RetryScheduled,
            Happening::Ended(_) => Kind::Ended,
            Happening::DeadLetter(_) => Kind::DeadLetter,
            Happening::LeaseTakenOver(_) => Kind::LeaseTakenOver,
            Happening::BreakerOpened { .. } => Kind::BreakerOpened,
            Happening::BreakerClosed => Kind::BreakerClosed,
            Happening::DependencyGone(_) => Kind::DependencyGone,
            Happening::Paused => Kind::Paused,
            Happening::Alert(_) => Kind::Alert,
        }
    }
}

fn of_task(task: &Task, happening: Happening) -> (&Lane, Option<&Task>, Happening) {
    (&task.lane, Some(task), happening)
}

impl EndFacts {
    fn of_settlement(task: &Task, settlement: &Settlement, status: Status) -> Self {
        let reason = match &settlement.next {
            // The task was cancelled meanwhile.
            _ if status == Status::Cancelled => Some(Reason::Cancelled),
            Next::End { reason, .. } => *reason,
            Next::RetryAt { .. } => None,
        };
        let number = attempts_after(task.attempt_number, settlement.attempt.is_some());
        EndFacts { status, reason, attempts: AttemptNumbers::of(task, number) }
    }
}

impl AttemptNumbers {
    /// Those of the attempt with this number among all attempts of the task.
    fn of(task: &Task, number: u32) -> Self {
        AttemptNumbers { number, in_run: number.saturating_sub(task.attempts_before), run: task.run }
    }
}

impl AttemptFacts {
    fn of(task: &Task, attempt: &Attempt) -> Self {
        AttemptFacts {
            numbers: AttemptNumbers { number: attempt.number, in_run: attempt.number_in_run, run: task.run },
            max_attempts: task.max_attempts,
            outcome: attempt.outcome,
            error: attempt.error.as_ref().map(|error| error.kind),
            response_status: attempt.response_status,
            duration: attempt.duration,
            backoff: attempt.backoff,
        }
    }
}
