//! How a task that is being followed is printed.

use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use serde_json::value::RawValue;

use crate::client::{Attempt, Task};
use crate::output::{Colour, Output, duration, printable, status_colour};

/// The form of the output.
#[derive(Debug, Clone, Copy)]
pub(super) enum View {
    /// For people: a line per attempt, a countdown on a terminal.
    Lines(Output),
    /// For programs: every event as a line of JSON, `{"attempt": …}` or `{"task": …}`.
    Events,
    /// For programs: the task as it is at the end.
    Last,
}

impl View {
    /// Where a countdown can be drawn.
    pub(super) fn output(self) -> Option<Output> {
        match self {
            View::Lines(output) => Some(output),
            View::Events | View::Last => None,
        }
    }

    pub(super) fn attempt(self, task: &Task, attempt: &Attempt, document: &RawValue) -> std::io::Result<()> {
        match self {
            View::Lines(output) => output.line(attempt_line(output, task, attempt)),
            View::Events => Output::standard().json(format!("{{\"attempt\":{document}}}").as_bytes()),
            View::Last => Ok(()),
        }
    }

    pub(super) fn changed(self, document: &Bytes) -> std::io::Result<()> {
        match self {
            View::Events => Output::standard().json(&[b"{\"task\":", document.trim_ascii(), b"}"].concat()),
            View::Lines(_) | View::Last => Ok(()),
        }
    }

    pub(super) fn ended(self, output: Output, task: &Task, document: &Bytes) -> std::io::Result<()> {
        match self {
            View::Lines(output) => output.line(ended_line(output, task)),
            View::Last => output.json(document),
            View::Events => Ok(()),
        }
    }

    /// Following stops before the task has ended.
    pub(super) fn left(self, output: Output, last: Option<&Bytes>) -> std::io::Result<()> {
        match (self, last) {
            (View::Lines(output), _) => output.overwrite(""),
            (View::Last, Some(document)) => output.json(document),
            (View::Last | View::Events, _) => Ok(()),
        }
    }

    /// What is being waited for, in a line that is drawn over again and again.
    pub(super) fn waiting(self, task: &Task, now: u64) -> String {
        let (next, at_most) = (task.attempts_in_run() + 1, task.max_attempts);
        let text = match (task.status.as_str(), task.next_attempt_at) {
            ("PENDING", Some(due)) if due > now => {
                format!("attempt {next}/{at_most} in {}", countdown(due - now))
            }
            ("PENDING", _) => format!("attempt {next}/{at_most} is due"),
            _ => format!("attempt {}/{at_most} is in progress", task.attempts_in_run()),
        };
        self.output().map_or_else(String::new, |output| output.paint(&text, Colour::Busy))
    }
}

/// `attempt 2/6: 503 Service Unavailable after 12ms; next in 840ms`
fn attempt_line(output: Output, task: &Task, attempt: &Attempt) -> String {
    let millis = |millis| duration(Duration::from_millis(millis));
    let colour = match attempt.outcome.as_str() {
        "success" => Colour::Good,
        "unknown" => Colour::Busy,
        _ => Colour::Bad,
    };
    let what = match (attempt.outcome.as_str(), attempt.response_status, &attempt.error_type) {
        ("unknown", _, _) => "interrupted, outcome unknown".into(),
        (_, Some(code), _) => status_text(code),
        (_, None, Some(kind)) => printable(kind),
        (outcome, None, None) => printable(outcome),
    };
    let took = attempt.duration_ms.map(|took| format!(" after {}", millis(took))).unwrap_or_default();
    let next = match (attempt.backoff_ms, attempt.outcome.as_str()) {
        (Some(backoff), _) => format!("; next in {}", millis(backoff)),
        (None, "permanent") => "; not to be retried".into(),
        (None, _) => String::new(),
    };
    // A status says all; where there is none, the message comes last because it may be long.
    let why = attempt.error_message.as_ref().filter(|_| attempt.response_status.is_none());
    let why = why.map(|message| format!(" ({})", printable(message))).unwrap_or_default();
    format!("attempt {}: {}{took}{next}{why}", number_text(task, attempt), output.paint(&what, colour))
}

/// `2/6`, of a task that was replayed `2/6 (run 2, 8 in all)`, and of its attempts before that `2/6 (earlier run)`
fn number_text(task: &Task, attempt: &Attempt) -> String {
    let (total, before, at_most) = (attempt.attempt_number, task.attempts_before(), task.max_attempts);
    let in_all = if attempt.is_of_later_run() { format!(", {total} in all") } else { String::new() };
    match total.checked_sub(before) {
        None | Some(0) => format!("{} (earlier run{in_all})", attempt.number_text()),
        Some(in_run) if before == 0 => format!("{in_run}/{at_most}"),
        Some(in_run) => format!("{in_run}/{at_most} (run {}, {total} in all)", task.run),
    }
}

/// `SUCCEEDED after 3 attempts in 2.6s`, of a task that was replayed `SUCCEEDED after 2 attempts (run 2, 8 in all) in
/// 1h`
fn ended_line(output: Output, task: &Task) -> String {
    let status = output.paint(&task.status_text(), status_colour(&task.status));
    let attempts = if task.attempts_in_run() == 1 { "attempt" } else { "attempts" };
    let took = task.ended_at.map(|ended| Duration::from_millis(ended.saturating_sub(task.created_at)));
    let took = took.map(|took| format!(" in {}", duration(took))).unwrap_or_default();
    format!("{status} after {} {attempts}{}{took}", task.attempts_in_run(), task.run_text())
}

/// Tenths of a second: enough to see that something moves, not so much that it flickers.
fn countdown(millis: u64) -> String {
    match millis {
        0..10_000 => format!("{}.{}s", millis / 1_000, millis % 1_000 / 100),
        _ => duration(Duration::from_millis(millis)),
    }
}

/// `503 Service Unavailable`
pub(crate) fn status_text(code: u16) -> String {
    let reason = StatusCode::from_u16(code).ok().and_then(|status| status.canonical_reason());
    reason.map_or_else(|| code.to_string(), |reason| format!("{code} {reason}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PLAIN: Output = Output { coloured: false, live: false, width: None, height: None };

    fn task(fields: serde_json::Value) -> Task {
        let mut document = json!({"taskId": "t", "status": "PENDING", "maxAttempts": 6, "createdAt": 1_000});
        document.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn an_attempt_is_a_line() {
        for (attempt, expected) in [
            (
                json!({"outcome": "retryable", "durationMs": 12, "responseStatus": 503, "errorType": "http-status",
                    "errorMessage": "answered 503", "backoffMs": 840}),
                "attempt 2/6: 503 Service Unavailable after 12ms; next in 840ms",
            ),
            (
                json!({"outcome": "retryable", "durationMs": 1_500, "errorType": "connection-refused",
                    "errorMessage": "nobody\x1b[2J there", "backoffMs": 2_000}),
                "attempt 2/6: connection-refused after 1.5s; next in 2s (nobody\u{fffd}[2J there)",
            ),
            (json!({"outcome": "success", "durationMs": 8, "responseStatus": 299}), "attempt 2/6: 299 after 8ms"),
            (
                json!({"outcome": "permanent", "durationMs": 8, "responseStatus": 404}),
                "attempt 2/6: 404 Not Found after 8ms; not to be retried",
            ),
            (
                json!({"outcome": "unknown", "errorType": "interrupted", "errorMessage": "the process died"}),
                "attempt 2/6: interrupted, outcome unknown (the process died)",
            ),
        ] {
            let mut document = attempt;
            document["attemptNumber"] = json!(2);
            let attempt = serde_json::from_value(document).unwrap();
            assert_eq!(attempt_line(PLAIN, &task(json!({})), &attempt), expected);
        }
    }

    #[test]
    fn attempts_are_numbered_within_their_run() {
        let attempt = |number: u32, in_run: u32| {
            serde_json::from_value(json!({"attemptNumber": number, "attemptInRun": in_run, "maxAttempts": 6})).unwrap()
        };
        let replayed = task(json!({"attemptNumber": 9, "run": 3, "attemptInRun": 2}));
        for (number, in_run, expected) in [
            (1, 1, "1/6 (earlier run)"),
            (6, 6, "6/6 (earlier run)"),
            (7, 1, "1/6 (earlier run, 7 in all)"),
            (8, 1, "1/6 (run 3, 8 in all)"),
            (9, 2, "2/6 (run 3, 9 in all)"),
        ] {
            assert_eq!(number_text(&replayed, &attempt(number, in_run)), expected);
        }
        assert_eq!(View::Lines(PLAIN).waiting(&replayed, 500), "attempt 3/6 is due");
        let ended = task(json!({"status": "SUCCEEDED", "attemptNumber": 8, "run": 2, "attemptInRun": 2}));
        assert_eq!(ended_line(PLAIN, &ended), "SUCCEEDED after 2 attempts (run 2, 8 in all)");
    }

    #[test]
    fn a_server_that_counts_only_in_all_is_understood() {
        let attempt = serde_json::from_value(json!({"attemptNumber": 3})).unwrap();
        assert_eq!(number_text(&task(json!({"attemptNumber": 3})), &attempt), "3/6");
        // Logged in the second of three runs, before attempts were counted within their run.
        let old = serde_json::from_value(json!({"attemptNumber": 7, "attemptInRun": 7, "maxAttempts": 6})).unwrap();
        let twice = task(json!({"attemptNumber": 9, "run": 3, "attemptInRun": 1}));
        assert_eq!(number_text(&twice, &old), "7 (earlier run)");
        // It knows replays, but does not say which attempt of its run each was.
        let replayed = task(json!({"attemptNumber": 4, "run": 2, "attemptInRun": 2}));
        assert_eq!(number_text(&replayed, &attempt), "1/6 (run 2, 3 in all)");
    }

    #[test]
    fn the_end_is_a_line() {
        for (fields, expected) in [
            (json!({"status": "SUCCEEDED", "attemptNumber": 1, "endedAt": 3_600}), "SUCCEEDED after 1 attempt in 2.6s"),
            (
                json!({"status": "EXHAUSTED", "statusReason": "attempts", "attemptNumber": 6, "endedAt": 61_000}),
                "EXHAUSTED (attempts) after 6 attempts in 1m",
            ),
            (
                json!({"status": "CANCELLED", "statusReason": "cancelled", "attemptNumber": 0, "endedAt": 1_001}),
                "CANCELLED after 0 attempts in 1ms",
            ),
        ] {
            assert_eq!(ended_line(PLAIN, &task(fields)), expected);
        }
    }

    #[test]
    fn what_is_waited_for_is_a_line() {
        let view = View::Lines(PLAIN);
        for (fields, expected) in [
            (json!({"attemptNumber": 1, "nextAttemptAt": 9_500}), "attempt 2/6 in 9.0s"),
            (json!({"attemptNumber": 1, "nextAttemptAt": 500}), "attempt 2/6 is due"),
            (json!({"status": "IN_FLIGHT", "attemptNumber": 1}), "attempt 1/6 is in progress"),
        ] {
            assert_eq!(view.waiting(&task(fields), 500), expected);
        }
        assert_eq!((countdown(940), countdown(9_999), countdown(45_000)), ("0.9s".into(), "9.9s".into(), "45s".into()));
    }
}
