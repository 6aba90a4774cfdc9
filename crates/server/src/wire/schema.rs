//! The schemas of enumerations, made from the lists of the domain types.

use std::borrow::Cow;

use redrive_core::guards::breaker::OpenedBy;
use redrive_core::idempotency::State;
use redrive_core::{ErrorType, Outcome, Reason, Status};
use redrive_engine::WaitingFor;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::dependency::DependencyState;

macro_rules! one_of {
    ($name:ident, $description:literal, $type:ident, $meaning:ident) => {
        one_of!($name, $description, $type, as_str, $meaning);
    };
    ($name:ident, $description:literal, $type:ident, $text:ident, $meaning:ident) => {
        #[doc = $description]
        #[derive(Debug)]
        pub enum $name {}

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let names = $type::ALL.map($type::$text);
                let meanings = $type::ALL.map(|each| format!("`{}`: {}", each.$text(), $meaning(each))).join("; ");
                let description = format!("{} {meanings}.", $description);
                json_schema!({ "type": "string", "description": description, "enum": names })
            }
        }
    };
}

one_of!(TaskStatus, "Where a task stands.", Status, status);
one_of!(StatusReason, "Why a task ended as it did.", Reason, reason);
one_of!(AttemptOutcome, "What an attempt meant for its task.", Outcome, outcome);
one_of!(ErrorKind, "What kind of error an attempt met.", ErrorType, error);
one_of!(WaitReason, "What a task waits for.", WaitingFor, waiting);
one_of!(BreakerReason, "Why a circuit breaker opened.", OpenedBy, opened_by);
one_of!(RecordState, "The state of an idempotency record.", State, name, record_state);
one_of!(DependencyStateName, "Whether a dependency's tasks are held back.", DependencyState, dependency_state);

fn record_state(state: State) -> &'static str {
    match state {
        State::InProgress => "an execution owns it and has not reported its result",
        State::Succeeded => "the operation took place, and its result is kept",
        State::FailedRetryable => "the execution failed, and the next caller may execute the operation again",
        State::FailedFinal => "the operation failed for good, and duplicates get the failure",
        State::Released => "its owner gave it up, and it counts as absent",
    }
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Pending => "it waits for its next attempt",
        Status::InFlight => "an attempt is claimed or under way",
        Status::Succeeded => "the dependency accepted it",
        Status::Failed => "an attempt failed in a way that no retry can fix",
        Status::Exhausted => "its attempts or its time ran out",
        Status::Cancelled => "it was cancelled, and nothing is sent any more",
    }
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::NotRetryable => "FAILED, the answer or error is of a kind that is never retried",
        Reason::BodyLost => "FAILED, the stored body is gone or damaged",
        Reason::PolicyLost => "FAILED, the policy version that it uses is gone or damaged",
        Reason::Attempts => "EXHAUSTED, all attempts of the run were used",
        Reason::DnsAttempts => {
            "EXHAUSTED, two attempts of the run failed because the dependency's name could not be resolved"
        }
        Reason::Deadline => "EXHAUSTED, one more attempt would not have fitted into the total time budget",
        Reason::RetryAfter => "EXHAUSTED, the dependency asked for a longer wait than the task may take",
        Reason::Budget => {
            "EXHAUSTED, a caller waits for the answer, and the dependency's retry budget was spent: no retry was sent"
        }
        Reason::OutcomeUnknown => "EXHAUSTED, a crash cut the last attempt off: it may have been delivered or not",
        Reason::Cancelled => "CANCELLED, the caller cancelled it",
    }
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Success => "the dependency accepted it",
        Outcome::Retryable => "it failed, and a later attempt may succeed",
        Outcome::Overloaded => "the dependency answered 429, which is retried",
        Outcome::Permanent => "it failed in a way that no retry can fix",
        Outcome::Unknown => "a crash interrupted it, and it may or may not have been delivered",
    }
}

fn error(kind: ErrorType) -> &'static str {
    match kind {
        ErrorType::HttpStatus => "an answer whose status is not a success",
        ErrorType::ConnectionRefused => "the connection was refused",
        ErrorType::ConnectionReset => "the connection was closed or reset before the answer was complete",
        ErrorType::ConnectTimeout => "no connection within the connect timeout",
        ErrorType::ConnectFailed => "no connection for another reason, such as an unreachable network",
        ErrorType::ReadTimeout => "no complete answer within the attempt timeout",
        ErrorType::Dns => "the name could not be resolved",
        ErrorType::TlsHandshakeTimeout => "the TLS handshake did not end in time",
        ErrorType::TlsCertificate => "the certificate is not trusted",
        ErrorType::TlsHandshake => "the TLS handshake failed for another reason",
        ErrorType::MalformedAnswer => "the answer is not HTTP",
        ErrorType::InvalidRequest => "the request cannot be put on the wire",
        ErrorType::BodyMissing => "the stored body is gone, and nothing was sent",
        ErrorType::BodyDamaged => "the stored body is damaged, and only a part of it was sent",
        ErrorType::BodyUnavailable => "the stored body could not be read, and nothing was sent",
        ErrorType::BodyIncomplete => "the stored body could not be read to its end, and only a part of it was sent",
        ErrorType::NotSent => "nothing was sent, because the send was withdrawn or this node ran short of resources",
        ErrorType::Interrupted => "the process stopped while the attempt was under way",
    }
}

fn waiting(waiting: WaitingFor) -> &'static str {
    match waiting {
        WaitingFor::Backoff => "its own due time has not come",
        WaitingFor::Budget => "the dependency's retry budget is spent",
        WaitingFor::Breaker => "the dependency's circuit breaker is open, or probes it",
        WaitingFor::Concurrency => "as many attempts to the dependency are in flight as its limit allows",
        WaitingFor::Pause => "an operator paused the dependency",
        WaitingFor::Capacity => "the capacity of this node, which all dependencies share, is used up",
    }
}

pub(super) fn opened_by(why: OpenedBy) -> &'static str {
    match why {
        OpenedBy::FailuresInARow => "too many calls in a row failed",
        OpenedBy::FailureRate => "too large a part of the latest calls failed",
        OpenedBy::SlowCalls => "too large a part of the latest calls were slow",
        OpenedBy::FailedProbe => "a probe failed",
        OpenedBy::SpentBudget => "retries waited for the budget for too long while calls failed",
        OpenedBy::Operator => "an operator opened it",
    }
}

fn dependency_state(state: DependencyState) -> &'static str {
    match state {
        DependencyState::Ok => "nothing is held back",
        DependencyState::Paused => "an operator paused it, and nothing is sent",
        DependencyState::Open => "the circuit breaker is open, and nothing is sent",
        DependencyState::Probing => "the circuit breaker lets a few calls through to test the dependency",
        DependencyState::Budget => "the retry budget is spent, so retries wait and first attempts are sent",
        DependencyState::Busy => "due tasks wait until an attempt in flight ends",
    }
}

/// The pattern of a policy's name.
pub(crate) const POLICY_ID: &str = "^[A-Za-z0-9._:-]{1,100}$";

/// A UUID, as text.
#[derive(Debug)]
pub enum Uuid {}

impl JsonSchema for Uuid {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Uuid".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "uuid" })
    }
}
