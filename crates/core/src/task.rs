//! A task: one request to deliver, and its state.

use std::fmt;
use std::time::Duration;

use crate::attempt::LastError;
use crate::id::{CorrelationId, IdempotencyKey, Lane, PolicyId, TaskId};
use crate::time::Timestamp;
use crate::trace::TraceParent;

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// The task waits for its next attempt.
    Pending,
    /// An attempt is claimed or under way, or was when its worker died.
    InFlight,
    /// The dependency accepted it.
    Succeeded,
    /// An attempt failed in a way that no retry can fix.
    Failed,
    /// Its attempts or its time ran out.
    Exhausted,
    /// It was cancelled.
    Cancelled,
}

impl Status {
    /// Every status, in the order of a task's life.
    pub const ALL: [Status; 6] =
        [Status::Pending, Status::InFlight, Status::Succeeded, Status::Failed, Status::Exhausted, Status::Cancelled];

    /// Its name on the wire and in the stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "PENDING",
            Status::InFlight => "IN_FLIGHT",
            Status::Succeeded => "SUCCEEDED",
            Status::Failed => "FAILED",
            Status::Exhausted => "EXHAUSTED",
            Status::Cancelled => "CANCELLED",
        }
    }

    /// The status with this name.
    pub fn from_name(name: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether nothing more will happen to the task, unless a person replays it.
    pub const fn is_ended(self) -> bool {
        !matches!(self, Status::Pending | Status::InFlight)
    }

    /// Whether the task is a dead letter: it ended without being delivered or cancelled.
    pub const fn is_dead_letter(self) -> bool {
        matches!(self, Status::Failed | Status::Exhausted)
    }
}

/// Why a task ended as it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// FAILED: the answer or error is of a kind that is never retried.
    NotRetryable,
    /// FAILED: the stored body that it was to send is gone or damaged.
    BodyLost,
    /// FAILED: the policy version that it refers to is gone or cannot be read.
    PolicyLost,
    /// EXHAUSTED: all attempts were used.
    Attempts,
    /// EXHAUSTED: the name of the dependency could not be resolved in [`DNS_ATTEMPTS`](crate::classify::DNS_ATTEMPTS)
    /// attempts.
    DnsAttempts,
    /// EXHAUSTED: another attempt would not fit into the total time budget.
    Deadline,
    /// EXHAUSTED: the dependency asked for a longer wait than the task may take.
    RetryAfter,
    /// EXHAUSTED: a caller waits for the answer, and the retry budget of the dependency was spent: the last error is final.
    Budget,
    /// EXHAUSTED: a crash interrupted the last attempt, and its outcome is unknown.
    OutcomeUnknown,
    /// CANCELLED: the task was cancelled.
    Cancelled,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 10] = [
        Reason::NotRetryable,
        Reason::BodyLost,
        Reason::PolicyLost,
        Reason::Attempts,
        Reason::DnsAttempts,
        Reason::Deadline,
        Reason::RetryAfter,
        Reason::Budget,
        Reason::OutcomeUnknown,
        Reason::Cancelled,
    ];

    /// Its name on the wire and in the stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::NotRetryable => "not-retryable",
            Reason::BodyLost => "body-lost",
            Reason::PolicyLost => "policy-lost",
            Reason::Attempts => "attempts",
            Reason::DnsAttempts => "dns-attempts",
            Reason::Deadline => "deadline",
            Reason::RetryAfter => "retry-after",
            Reason::Budget => "budget",
            Reason::OutcomeUnknown => "outcome-unknown",
            Reason::Cancelled => "cancelled",
        }
    }

    /// The reason with this name.
    pub fn from_name(name: &str) -> Option<Reason> {
        Reason::ALL.into_iter().find(|reason| reason.as_str() == name)
    }
}

/// The queues of a lane: due work is indexed by lane, class and time, so that work of one class that has to wait does
/// not block the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The first attempt of a run.
    First,
    /// Every later attempt of it.
    Retry,
}

impl Class {
    /// Every class.
    pub const ALL: [Class; 2] = [Class::First, Class::Retry];

    /// Its number in the stores. Stores leave room for more classes between and above these.
    pub const fn code(self) -> u8 {
        match self {
            Class::First => 0,
            Class::Retry => 1,
        }
    }

    /// The class with this number.
    pub fn from_code(code: u8) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.code() == code)
    }
}

/// The version of a policy that a task was accepted with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyRef {
    /// The policy's name.
    pub id: PolicyId,
    /// Its version, from 1.
    pub version: u32,
}

/// The part of a task that changes: its lane, its status and its counters.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its identifier.
    pub id: TaskId,
    /// Its tenant and its dependency.
    pub lane: Lane,
    /// The key that every attempt carries.
    pub idempotency_key: IdempotencyKey,
    /// The caller's own id of the work that it belongs to, for logs and events.
    pub correlation_id: Option<CorrelationId>,
    /// The caller's own trace and span, if it named them.
    pub trace_parent: Option<TraceParent>,
    /// The policy version that it was accepted with.
    pub policy: PolicyRef,
    /// Its status.
    pub status: Status,
    /// Why it ended, once it has.
    pub reason: Option<Reason>,
    /// Attempts made so far, in all runs, the one under way included; counted durably before the send.
    pub attempt_number: u32,
    /// Which run this is: 1, and one more with every replay.
    pub run: u32,
    /// Attempts that earlier runs made.
    pub attempts_before: u32,
    /// The most attempts it may make in one run.
    pub max_attempts: u32,
    /// How long one attempt may take; the lease is longer than this.
    pub attempt_timeout: Duration,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When this run began; the first one began when the task was accepted.
    pub run_started_at: Timestamp,
    /// When this run's total time budget ends: no send begins after this.
    pub deadline_at: Timestamp,
    /// When the next attempt is due; while in flight, when the current one was; nothing once ended.
    pub next_attempt_at: Option<Timestamp>,
    /// When it ended, once it has.
    pub ended_at: Option<Timestamp>,
    /// The wait that was drawn before the coming attempt (decorrelated jitter builds on it).
    pub backoff: Option<Duration>,
    /// Attempts of this run that failed because the dependency's name could not be resolved.
    pub dns_failures: u32,
    /// A cancel came while an attempt was under way.
    pub cancel_requested: bool,
    /// The last error, if there was one.
    pub last_error: Option<LastError>,
}

impl Task {
    /// Attempts made in this run, the one under way included: what the limits and the backoff count.
    pub const fn attempt_in_run(&self) -> u32 {
        self.attempt_number.saturating_sub(self.attempts_before)
    }

    /// What logs and events correlate it by: the caller's own id, or else the task's.
    pub fn correlation(&self) -> &dyn fmt::Display {
        match &self.correlation_id {
            Some(given) => given,
            None => &self.id,
        }
    }

    /// The queue of its lane that it waits in while it is pending.
    pub const fn class(&self) -> Class {
        if self.attempt_in_run() == 0 { Class::First } else { Class::Retry }
    }

    /// Whether the next attempt is the last one that this run allows: if its claim is lost, nothing can follow.
    pub const fn is_next_attempt_last(&self) -> bool {
        self.attempt_in_run().saturating_add(1) >= self.max_attempts
    }

    /// Replays a dead letter at `now`: it is due at once, with as many attempts and as much time as its last run had.
    /// Attempt numbers continue, and the last error stays.
    pub fn begin_next_run(&mut self, now: Timestamp) {
        debug_assert!(self.status.is_dead_letter(), "only a dead letter is replayed");
        let total_budget = self.deadline_at.since(self.run_started_at);
        self.status = Status::Pending;
        self.reason = None;
        self.run = self.run.saturating_add(1);
        self.attempts_before = self.attempt_number;
        self.run_started_at = now;
        self.deadline_at = now.after(total_budget);
        self.next_attempt_at = Some(now);
        self.ended_at = None;
        self.backoff = None;
        self.dns_failures = 0;
        self.cancel_requested = false;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::attempt::ErrorType;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// Accepted at 1 s with a budget of 10 s, three attempts made of three.
    pub(crate) fn dead_letter() -> Task {
        Task {
            id: TaskId::from_parts(1, 2),
            lane: Lane {
                tenant: crate::TenantId::default_tenant(),
                dependency: crate::Dependency::try_new("billing").unwrap(),
            },
            idempotency_key: IdempotencyKey::try_new("key").unwrap(),
            correlation_id: None,
            trace_parent: None,
            policy: PolicyRef { id: PolicyId::default_policy(), version: 1 },
            status: Status::Exhausted,
            reason: Some(Reason::Attempts),
            attempt_number: 3,
            run: 1,
            attempts_before: 0,
            max_attempts: 3,
            attempt_timeout: Duration::from_secs(30),
            created_at: at(1_000),
            run_started_at: at(1_000),
            deadline_at: at(11_000),
            next_attempt_at: None,
            ended_at: Some(at(9_000)),
            backoff: Some(Duration::from_secs(4)),
            dns_failures: 2,
            cancel_requested: true,
            last_error: Some(LastError { kind: ErrorType::Dns, message: "no such name".into() }),
        }
    }

    #[test]
    fn every_run_has_the_attempts_and_the_time_of_the_first() {
        let first = dead_letter();
        let mut task = first.clone();
        task.begin_next_run(at(50_000));
        let expected = Task {
            status: Status::Pending,
            reason: None,
            run: 2,
            attempts_before: 3,
            run_started_at: at(50_000),
            deadline_at: at(60_000),
            next_attempt_at: Some(at(50_000)),
            ended_at: None,
            backoff: None,
            dns_failures: 0,
            cancel_requested: false,
            ..first
        };
        assert_eq!(task, expected);
        assert_eq!((task.attempt_in_run(), task.class(), task.is_next_attempt_last()), (0, Class::First, false));

        task.attempt_number += 1;
        assert_eq!((task.class(), task.is_next_attempt_last()), (Class::Retry, false));
        task.attempt_number += 1;
        assert!(task.is_next_attempt_last());
        assert_eq!(task.attempt_in_run(), 2);
        task.status = Status::Failed;
        task.begin_next_run(at(70_000));
        assert_eq!((task.run, task.attempts_before, task.attempt_in_run()), (3, 5, 0));
        assert_eq!(task.deadline_at, at(80_000), "as much as the run before, not what was left of it");
    }

    #[test]
    fn a_task_is_correlated_by_what_its_caller_gave_or_by_its_id() {
        let task = dead_letter();
        assert_eq!(task.correlation().to_string(), task.id.to_string());
        let given = Task { correlation_id: Some(CorrelationId::try_new("order-7/checkout").unwrap()), ..task };
        assert_eq!(given.correlation().to_string(), "order-7/checkout");
    }

    #[test]
    fn every_name_leads_back_to_what_it_names() {
        for status in Status::ALL {
            assert_eq!(Status::from_name(status.as_str()), Some(status));
        }
        for reason in Reason::ALL {
            assert_eq!(Reason::from_name(reason.as_str()), Some(reason));
        }
        for class in Class::ALL {
            assert_eq!(Class::from_code(class.code()), Some(class));
        }
        assert_eq!(Class::from_code(9), None);
        assert_eq!(Status::from_name("pending"), None);
        assert_eq!(Reason::from_name(""), None);
    }

    #[test]
    fn dead_letters_are_the_failed_and_the_exhausted() {
        // status, ended, dead letter
        let cases = [
            (Status::Pending, false, false),
            (Status::InFlight, false, false),
            (Status::Succeeded, true, false),
            (Status::Failed, true, true),
            (Status::Exhausted, true, true),
            (Status::Cancelled, true, false),
        ];
        for (status, ended, dead_letter) in cases {
            assert_eq!((status.is_ended(), status.is_dead_letter()), (ended, dead_letter), "{status:?}");
        }
    }
}
