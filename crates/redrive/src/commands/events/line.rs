//! One event as a line for people.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use crate::follow::status_text;
use crate::output::{Colour, Output, duration, printable, status_colour, timestamp};

/// The widths of the kind and of the dependency, so that the lines are aligned as far as possible.
const KIND_CHARS: usize = 16;
const DEPENDENCY_CHARS: usize = 28;

/// Stands for the dependency of an event that is about the service.
const NO_DEPENDENCY: &str = "-";

/// An event of the server, with the fields of all kinds.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Event {
    at: u64,
    kind: String,
    dependency: Option<String>,
    task_id: Option<String>,
    correlation_id: Option<String>,
    due_at: Option<u64>,
    attempt_in_run: u32,
    attempt_number: u32,
    max_attempts: u32,
    run: u32,
    outcome: String,
    error_type: Option<String>,
    response_status: Option<u16>,
    duration_ms: Option<u64>,
    backoff_ms: Option<u64>,
    status: String,
    status_reason: Option<String>,
    reason: String,
    until: Option<u64>,
    since: Option<u64>,
    change: String,
    rule: String,
    severity: String,
    why: String,
}

/// Events that are missing.
#[derive(Debug, Deserialize)]
pub(super) struct Gap {
    reason: String,
    missed: Option<u64>,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.missed {
            Some(1) => f.write_str("1 event is missing: ")?,
            Some(missed) => write!(f, "{missed} events are missing: ")?,
            None => f.write_str("events may be missing: ")?,
        }
        match self.reason.as_str() {
            "restart" => f.write_str("the server was restarted, or another node answers"),
            "too-old" => f.write_str("the server does not keep them any longer"),
            "slow-reader" => f.write_str("they were not read in time"),
            other => f.write_str(&printable(other)),
        }
    }
}

/// `2026-01-31T12:00:00.123Z attempt          payments  0199… 2/6: 503 Service Unavailable after 12ms; next in 840ms`
pub(super) fn line(output: Output, event: &Event) -> String {
    let (kind, dependency) = (printable(&event.kind), printable(event.dependency.as_deref().unwrap_or(NO_DEPENDENCY)));
    let kind = output.paint(&format!("{kind:<KIND_CHARS$}"), colour(event));
    let time = output.paint(&timestamp(event.at), Colour::Faint);
    let task = event.task_id.as_ref().map(|id| format!(" {}", printable(id))).unwrap_or_default();
    let details = details(event);
    let details = if details.is_empty() { details } else { format!(" {details}") };
    // The task's id stands for a correlation id that was not given.
    let correlation = event.correlation_id.as_ref().filter(|given| event.task_id.as_ref() != Some(given));
    let correlation = correlation.map(|given| format!(" ({})", printable(given))).unwrap_or_default();
    format!("{time} {kind} {dependency:<DEPENDENCY_CHARS$}{task}{details}{correlation}").trim_end().to_owned()
}

fn colour(event: &Event) -> Colour {
    match event.kind.as_str() {
        "attempt" if event.outcome == "success" => Colour::Good,
        "attempt" | "retry-scheduled" | "lease-taken-over" => Colour::Busy,
        "ended" => status_colour(&event.status),
        "dead-letter" | "breaker-opened" | "dependency-gone" | "paused" => Colour::Bad,
        "breaker-closed" => Colour::Good,
        "alert" if event.change == "resolved" => Colour::Good,
        "alert" if event.severity == "critical" => Colour::Bad,
        "alert" => Colour::Busy,
        _ => Colour::Faint,
    }
}

fn details(event: &Event) -> String {
    let later = |due: Option<u64>| due.map(|due| span(due.saturating_sub(event.at)));
    match event.kind.as_str() {
        "accepted" => match event.due_at.filter(|due| *due > event.at) {
            Some(due) => format!("due in {}", span(due - event.at)),
            None => String::new(),
        },
        "attempt" => attempt(event),
        "retry-scheduled" => format!("due in {}", later(event.due_at).unwrap_or_default()),
        "ended" | "dead-letter" => {
            let reason = event.status_reason.as_ref().map(|reason| format!(" ({})", printable(reason)));
            let noun = if event.attempt_in_run == 1 { "attempt" } else { "attempts" };
            let status = printable(&event.status);
            format!("{status}{} after {} {noun}{}", reason.unwrap_or_default(), event.attempt_in_run, run(event))
        }
        "lease-taken-over" => format!("attempt {}{}", event.attempt_in_run, run(event)),
        "breaker-opened" => {
            let until = later(event.until).map(|left| format!(" for {left}")).unwrap_or_default();
            format!("{}{until}", printable(&event.reason))
        }
        "dependency-gone" => match event.since {
            Some(since) => format!("{} for {}", printable(&event.reason), span(event.at.saturating_sub(since))),
            None => printable(&event.reason),
        },
        "alert" => {
            let rule = printable(&event.rule);
            match event.change.as_str() {
                "resolved" => format!("{rule} is over: {}", printable(&event.why)),
                _ => format!("{rule} ({}): {}", printable(&event.severity), printable(&event.why)),
            }
        }
        _ => String::new(),
    }
}

/// `2/6: 503 Service Unavailable after 12ms; next in 840ms`
fn attempt(event: &Event) -> String {
    let what = match (event.outcome.as_str(), event.response_status, &event.error_type) {
        ("unknown", _, _) => "interrupted, outcome unknown".to_owned(),
        (_, Some(code), _) => status_text(code),
        (_, None, Some(kind)) => printable(kind),
        (outcome, None, None) => printable(outcome),
    };
    let took = event.duration_ms.map(|took| format!(" after {}", span(took))).unwrap_or_default();
    let next = match (event.backoff_ms, event.outcome.as_str()) {
        (Some(backoff), _) => format!("; next in {}", span(backoff)),
        (None, "permanent") => "; not to be retried".to_owned(),
        (None, _) => String::new(),
    };
    format!("{}/{}{}: {what}{took}{next}", event.attempt_in_run, event.max_attempts, run(event))
}

/// ` (run 2, 8 in all)` of a task that was replayed.
fn run(event: &Event) -> String {
    match event.run {
        0 | 1 => String::new(),
        run => format!(" (run {run}, {} in all)", event.attempt_number),
    }
}

fn span(millis: u64) -> String {
    duration(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PLAIN: Output = Output { coloured: false, live: false, width: None, height: None };

    #[test]
    fn an_event_is_a_line() {
        const AT: u64 = 1_700_000_000_000;
        let task = json!({ "taskId": "t-1", "correlationId": "t-1" });
        for (event, common, expected) in [
            (json!({ "kind": "accepted", "dueAt": AT }), &task, "accepted         payments                     t-1"),
            (
                json!({ "kind": "accepted", "dueAt": AT + 90_000, "correlationId": "order\u{1b}7" }),
                &json!({ "taskId": "t-1" }),
                "accepted         payments                     t-1 due in 1m 30s (order\u{fffd}7)",
            ),
            (
                json!({ "kind": "attempt", "attemptInRun": 2, "attemptNumber": 2, "maxAttempts": 6, "run": 1, "outcome": "retryable",
                    "responseStatus": 503, "errorType": "http-status", "durationMs": 12, "backoffMs": 840 }),
                &task,
                "attempt          payments                     t-1 2/6: 503 Service Unavailable after 12ms; next in 840ms",
            ),
            (
                json!({ "kind": "attempt", "attemptInRun": 1, "attemptNumber": 7, "maxAttempts": 6, "run": 2,
                    "outcome": "permanent", "errorType": "tls-certificate", "durationMs": 3 }),
                &task,
                "attempt          payments                     t-1 1/6 (run 2, 7 in all): tls-certificate after 3ms; not to be retried",
            ),
            (
                json!({ "kind": "retry-scheduled", "dueAt": AT + 840 }),
                &task,
                "retry-scheduled  payments                     t-1 due in 840ms",
            ),
            (
                json!({ "kind": "dead-letter", "status": "EXHAUSTED", "statusReason": "attempts", "attemptInRun": 6 }),
                &task,
                "dead-letter      payments                     t-1 EXHAUSTED (attempts) after 6 attempts",
            ),
            (
                json!({ "kind": "breaker-opened", "reason": "failureRate", "until": AT + 15_000 }),
                &json!({ "taskId": null, "correlationId": null }),
                "breaker-opened   payments                     failureRate for 15s",
            ),
            (json!({ "kind": "paused" }), &json!({}), "paused           payments"),
            (
                json!({ "kind": "alert", "change": "fired", "rule": "breaker-open", "severity": "critical", "value": 1.0,
                    "why": "the circuit breaker is open" }),
                &json!({ "taskId": null, "correlationId": null }),
                "alert            payments                     breaker-open (critical): the circuit breaker is open",
            ),
            (
                json!({ "kind": "alert", "change": "resolved", "rule": "store-unavailable", "severity": "critical", "value": 1.0,
                    "why": "the store fails" }),
                &json!({ "dependency": null }),
                "alert            -                            store-unavailable is over: the store fails",
            ),
        ] {
            let mut document = json!({ "at": AT, "dependency": "payments" });
            for part in [common, &event] {
                document.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
            }
            let event: Event = serde_json::from_value(document).unwrap();
            assert_eq!(line(PLAIN, &event), format!("2023-11-14T22:13:20.000Z {expected}"));
        }
    }

    #[test]
    fn a_gap_says_how_many_events_are_missing_and_why() {
        let gap = |reason: &str, missed| Gap { reason: reason.into(), missed }.to_string();
        assert_eq!(gap("restart", None), "events may be missing: the server was restarted, or another node answers");
        assert_eq!(gap("too-old", Some(1)), "1 event is missing: the server does not keep them any longer");
        assert_eq!(gap("slow-reader", Some(20)), "20 events are missing: they were not read in time");
    }
}
