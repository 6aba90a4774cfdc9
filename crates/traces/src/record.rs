//! What a span is made from: noted on the path of every task, so it is little more than copies of ids and shared names.

use std::time::Duration;

use redrive_core::request::origin_of;
use redrive_core::trace::{SpanId, TraceId, span_of_attempt, span_of_run, trace_of};
use redrive_core::{
    Attempt, CorrelationId, ErrorType, Lane, Outcome, PolicyId, Reason, Request, Status, Task, TaskId, Timestamp,
};
use redrive_store::{ClaimedTask, Next, Settlement, rules};

/// A span that is to be exported.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) trace: TraceId,
    pub(crate) span: SpanId,
    pub(crate) parent: Option<SpanId>,
    /// Whether the parent is a span of the caller's.
    pub(crate) is_parent_remote: bool,
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    pub(crate) task: TaskId,
    pub(crate) lane: Lane,
    pub(crate) correlation: Option<CorrelationId>,
    pub(crate) policy: PolicyId,
    pub(crate) run: u32,
    pub(crate) what: What,
}

/// What the span is about.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum What {
    /// A run of a task, from its beginning to its end.
    Run { status: Status, reason: Option<Reason>, attempts: u32 },
    /// An attempt.
    Attempt(AttemptFacts),
}

/// What is said of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AttemptFacts {
    pub(crate) number: u32,
    pub(crate) number_in_run: u32,
    pub(crate) outcome: Outcome,
    pub(crate) response_status: Option<u16>,
    pub(crate) error: Option<ErrorType>,
    pub(crate) backoff: Option<Duration>,
    pub(crate) method: &'static str,
    pub(crate) host: Box<str>,
    pub(crate) port: Option<u16>,
}

/// A moment in nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Nanos(pub(crate) u64);

impl From<Timestamp> for Nanos {
    fn from(at: Timestamp) -> Self {
        Nanos(at.as_millis().saturating_mul(1_000_000))
    }
}

impl Nanos {
    fn before(self, duration: Duration) -> Self {
        Nanos(self.0.saturating_sub(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// The span of an attempt that was settled.
pub(crate) fn attempt(claimed: &ClaimedTask, attempt: &Attempt, settled_at: Timestamp) -> Record {
    let task = &claimed.task;
    let (host, port) = address(&claimed.request);
    let facts = AttemptFacts {
        number: attempt.number,
        number_in_run: attempt.number_in_run,
        outcome: attempt.outcome,
        response_status: attempt.response_status,
        error: attempt.error.as_ref().map(|error| error.kind),
        backoff: attempt.backoff,
        method: known_method(&claimed.request.method),
        host,
        port,
    };
    let end = Nanos::from(settled_at);
    let start = match attempt.duration {
        // Connecting is part of the attempt; it began before the first byte.
        Some(duration) => end.before(duration),
        None => attempt.started_at.into(),
    };
    Record {
        span: span_of_attempt(task.id, attempt.number),
        parent: Some(span_of_run(task.id, task.run)),
        start: start.max(task.run_started_at.into()).min(end),
        end,
        ..of(task, What::Attempt(facts))
    }
}

/// The span of a run that ended with the settlement of an attempt.
pub(crate) fn settled_run(task: &Task, settlement: &Settlement, status: Status) -> Record {
    let reason = match (&settlement.next, status) {
        (_, Status::Cancelled) => Some(Reason::Cancelled),
        (Next::End { reason, .. }, _) => *reason,
        (Next::RetryAt { .. }, _) => None,
    };
    let attempts = rules::attempts_after(task.attempt_number, settlement.attempt.is_some());
    run(task, (status, reason), attempts.saturating_sub(task.attempts_before), settlement.at)
}

/// The span of a run that ended while its task waited.
pub(crate) fn ended_run(task: &Task) -> Record {
    let ended_at = task.ended_at.unwrap_or(task.run_started_at);
    run(task, (task.status, task.reason), task.attempt_in_run(), ended_at)
}

fn run(task: &Task, (status, reason): (Status, Option<Reason>), attempts: u32, ended_at: Timestamp) -> Record {
    let record = of(task, What::Run { status, reason, attempts });
    let start = Nanos::from(task.run_started_at);
    let (parent, is_parent_remote) = match (task.run, task.trace_parent) {
        (0 | 1, caller) => (caller.map(|caller| caller.span), caller.is_some()),
        _ => (Some(span_of_run(task.id, 1)), false),
    };
    Record { parent, is_parent_remote, start, end: Nanos::from(ended_at).max(start), ..record }
}

/// What all spans of a task have.
fn of(task: &Task, what: What) -> Record {
    Record {
        trace: trace_of(task),
        span: span_of_run(task.id, task.run),
        parent: None,
        is_parent_remote: false,
        start: Nanos(0),
        end: Nanos(0),
        task: task.id,
        lane: task.lane.clone(),
        correlation: task.correlation_id.clone(),
        policy: task.policy.id.clone(),
        run: task.run,
        what,
    }
}

/// The methods that OpenTelemetry knows; others are `_OTHER`.
const METHODS: [&str; 10] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "QUERY"];

fn known_method(method: &str) -> &'static str {
    METHODS.into_iter().find(|known| *known == method).unwrap_or("_OTHER")
}

/// The host and the port that the request is sent to: the only parts of its URL that are exported.
fn address(request: &Request) -> (Box<str>, Option<u16>) {
    let origin = origin_of(&request.target_url);
    let (scheme, authority) = origin.split_once("://").unwrap_or_default();
    let default_port = match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    };
    let port = |port: &str| port.parse().ok();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, text)) if port(text).is_some() => (host, port(text)),
        _ => (authority, default_port),
    };
    (host.trim_start_matches('[').trim_end_matches(']').into(), port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_host_and_port_of_a_url_are_exported() {
        for (url, host, port) in [
            ("https://me:s3cret@A.test/path/s3cret?q=s3cret#s3cret", "a.test", 443),
            ("http://a.test", "a.test", 80),
            ("http://a.test:8080/", "a.test", 8080),
            ("http://[::1]:8080/", "::1", 8080),
            ("https://[2001:db8::443]/", "2001:db8::443", 443),
        ] {
            let request = Request {
                target_url: url.into(),
                method: "POST".into(),
                headers: Vec::new(),
                body: Default::default(),
                overrides: None,
                labels: Default::default(),
            };
            assert_eq!(address(&request), (host.into(), Some(port)), "{url}");
        }
    }

    #[test]
    fn a_method_of_the_callers_own_is_not_exported() {
        assert_eq!((known_method("PATCH"), known_method("S3CRET"), known_method("get")), ("PATCH", "_OTHER", "_OTHER"));
    }
}
