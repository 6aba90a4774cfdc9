//! What the answers that show one dependency have in common.

use redrive_engine::LaneReport;

use crate::app::App;
use crate::rest::problem::Refusal;
use crate::rest::reply::Reply;
use crate::wire::ShownDependency;

/// The dependency's document.
pub(crate) fn reply(app: &App, report: &LaneReport) -> Result<Reply, Refusal> {
    Reply::json(200, &ShownDependency::new(report, app.engine.guard_settings(), app.engine.now()))
}

/// A dependency that fails.
pub(crate) const OPEN: &str = r#"{
  "dependency": "https://api.example.com",
  "state": "open",
  "why": "The circuit breaker is open because too many calls in a row failed. Nothing is sent until it probes the dependency.",
  "waitingFor": "breaker",
  "waitingUntil": 1731600015000,
  "breaker": { "state": "open", "openUntil": 1731600015000, "reason": "failuresInARow" },
  "budget": {
    "firstAttempts": 12,
    "retries": 5,
    "refunded": 0,
    "left": 7,
    "utilization": 0.403,
    "windowMs": 30000
  },
  "healthy": false,
  "recentOutcomes": { "count": 17, "failures": 17 },
  "concurrency": { "limit": 20, "inFlight": 0 },
  "totals": { "attempts": 17, "failures": 17 },
  "latencyMs": { "p50": 0.8, "p95": 1.4, "p99": 2.1, "calls": 17 },
  "firstAttemptDueAt": 1731600001000,
  "retryDueAt": 1731600003120,
  "failingSince": 1731599988040,
  "backlog": { "due": 31, "waiting": 4, "countedUpTo": 100000 },
  "controls": { "pause": null, "open": null, "limits": null }
}"#;

/// The same dependency without trouble.
pub(crate) const CLOSED: &str = r#"{
  "dependency": "https://api.example.com",
  "state": "ok",
  "why": "Nothing is held back.",
  "waitingFor": null,
  "waitingUntil": null,
  "breaker": { "state": "closed", "openUntil": null, "reason": null },
  "budget": {
    "firstAttempts": 12,
    "retries": 5,
    "refunded": 0,
    "left": 7,
    "utilization": 0.403,
    "windowMs": 30000
  },
  "healthy": false,
  "recentOutcomes": { "count": 0, "failures": 0 },
  "concurrency": { "limit": 3, "inFlight": 3 },
  "totals": { "attempts": 17, "failures": 17 },
  "latencyMs": { "p50": 0.8, "p95": 1.4, "p99": 2.1, "calls": 17 },
  "firstAttemptDueAt": null,
  "retryDueAt": 1731600003120,
  "failingSince": 1731599988040,
  "controls": { "pause": null, "open": null, "limits": null }
}"#;

/// The same dependency, paused.
pub(crate) const PAUSED: &str = r#"{
  "dependency": "https://api.example.com",
  "state": "paused",
  "why": "Paused by local: maintenance until noon. Nothing is sent until it is resumed.",
  "waitingFor": "pause",
  "waitingUntil": null,
  "breaker": { "state": "closed", "openUntil": null, "reason": null },
  "budget": {
    "firstAttempts": 0,
    "retries": 0,
    "refunded": 0,
    "left": 10,
    "utilization": 0.0,
    "windowMs": 30000
  },
  "healthy": false,
  "recentOutcomes": { "count": 0, "failures": 0 },
  "concurrency": { "limit": 20, "inFlight": 0 },
  "totals": { "attempts": 0, "failures": 0 },
  "latencyMs": null,
  "firstAttemptDueAt": null,
  "retryDueAt": null,
  "failingSince": null,
  "controls": {
    "pause": { "at": 1731600000000, "by": "local", "reason": "maintenance until noon" },
    "open": null,
    "limits": null
  }
}"#;

/// The same dependency with its breaker opened by hand.
pub(crate) const HELD_OPEN: &str = r#"{
  "dependency": "https://api.example.com",
  "state": "open",
  "why": "The circuit breaker is open because it was opened by local: maintenance. Nothing is sent until it probes the dependency.",
  "waitingFor": "breaker",
  "waitingUntil": 1731600600000,
  "breaker": { "state": "open", "openUntil": 1731600600000, "reason": "operator" },
  "budget": {
    "firstAttempts": 0,
    "retries": 0,
    "refunded": 0,
    "left": 10,
    "utilization": 0.0,
    "windowMs": 30000
  },
  "healthy": false,
  "recentOutcomes": { "count": 0, "failures": 0 },
  "concurrency": { "limit": 20, "inFlight": 0 },
  "totals": { "attempts": 0, "failures": 0 },
  "latencyMs": null,
  "firstAttemptDueAt": null,
  "retryDueAt": null,
  "failingSince": null,
  "controls": {
    "pause": null,
    "open": { "at": 1731600000000, "by": "local", "reason": "maintenance", "until": 1731600600000 },
    "limits": null
  }
}"#;

/// The same dependency with other limits.
pub(crate) const LIMITED: &str = r#"{
  "dependency": "https://api.example.com",
  "state": "ok",
  "why": "Nothing is held back.",
  "waitingFor": null,
  "waitingUntil": null,
  "breaker": { "state": "closed", "openUntil": null, "reason": null },
  "budget": {
    "firstAttempts": 0,
    "retries": 0,
    "refunded": 0,
    "left": 10,
    "utilization": 0.0,
    "windowMs": 30000
  },
  "healthy": false,
  "recentOutcomes": { "count": 0, "failures": 0 },
  "concurrency": { "limit": 5, "inFlight": 0 },
  "totals": { "attempts": 0, "failures": 0 },
  "latencyMs": null,
  "firstAttemptDueAt": null,
  "retryDueAt": null,
  "failingSince": null,
  "controls": {
    "pause": null,
    "open": null,
    "limits": {
      "concurrency": 5,
      "minConcurrency": null,
      "maxConcurrency": null,
      "at": 1731600000000,
      "by": "local",
      "reason": null
    }
  }
}"#;
