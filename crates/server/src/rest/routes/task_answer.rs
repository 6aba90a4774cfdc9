//! What the answers that show one task have in common.

use redrive_core::TaskId;
use redrive_store::TaskDetail;

use crate::app::App;
use crate::wire::Task;

/// Where a task is found.
pub(crate) fn location(id: TaskId) -> String {
    format!("/retry-tasks/{id}")
}

/// The task's document, with what it waits for and what its policy says about it.
pub(crate) async fn shown<'a>(app: &'a App, detail: &'a TaskDetail) -> Task<'a> {
    let policy = app.policy_of(detail).await;
    Task::full(detail, &app.secrets).waiting(app.engine.waiting_for(&detail.task)).with_policy(policy.as_deref())
}

/// The task as a list shows it, with what it waits for.
pub(crate) fn summary<'a>(app: &'a App, detail: &'a TaskDetail) -> Task<'a> {
    Task::summary(detail, &app.secrets).waiting(app.engine.waiting_for(&detail.task))
}

/// A task that waits for its second attempt.
pub(crate) const WAITING: &str = r#"{
  "taskId": "01932c07-4b70-7f57-a123-456789abcdef",
  "status": "PENDING",
  "statusReason": null,
  "attemptNumber": 1,
  "run": 1,
  "attemptInRun": 1,
  "maxAttempts": 6,
  "nextAttemptAt": 1731600000731,
  "waitingFor": "backoff",
  "waitingUntil": 1731600000731,
  "createdAt": 1731600000000,
  "deadlineAt": 1731686400000,
  "endedAt": null,
  "cancelRequested": false,
  "targetUrl": "https://api.example.com/invoices",
  "method": "POST",
  "headers": { "authorization": "***", "content-type": "application/json" },
  "bodyBytes": 41,
  "dependency": "https://api.example.com",
  "policyId": "default",
  "policyVersion": 1,
  "policy": null,
  "retrySpan": { "attempts": 6, "meanMs": 15500, "mostMs": 31000, "cutByBudget": false },
  "idempotencyKey": "order-1234",
  "labels": { "team": "billing" },
  "lastError": { "type": "http-status", "message": "the dependency answered 503" },
  "response": null
}"#;

/// The same task, delivered.
pub(crate) const DELIVERED: &str = r#"{
  "taskId": "01932c07-4b70-7f57-a123-456789abcdef",
  "status": "SUCCEEDED",
  "statusReason": null,
  "attemptNumber": 2,
  "run": 1,
  "attemptInRun": 2,
  "maxAttempts": 6,
  "nextAttemptAt": null,
  "createdAt": 1731600000000,
  "deadlineAt": 1731686400000,
  "endedAt": 1731600000802,
  "cancelRequested": false,
  "targetUrl": "https://api.example.com/invoices",
  "method": "POST",
  "headers": { "authorization": "***", "content-type": "application/json" },
  "bodyBytes": 41,
  "dependency": "https://api.example.com",
  "policyId": "default",
  "policyVersion": 1,
  "policy": null,
  "retrySpan": { "attempts": 6, "meanMs": 15500, "mostMs": 31000, "cutByBudget": false },
  "idempotencyKey": "order-1234",
  "labels": { "team": "billing" },
  "lastError": { "type": "http-status", "message": "the dependency answered 503" },
  "response": {
    "status": 201,
    "headers": { "content-type": "application/json" },
    "body": "{\"invoice\":77}",
    "bodyBytes": 14,
    "truncated": false
  }
}"#;

/// The same task, taken back.
pub(crate) const CANCELLED: &str = r#"{
  "taskId": "01932c07-4b70-7f57-a123-456789abcdef",
  "status": "CANCELLED",
  "statusReason": "cancelled",
  "attemptNumber": 1,
  "run": 1,
  "attemptInRun": 1,
  "maxAttempts": 6,
  "nextAttemptAt": null,
  "createdAt": 1731600000000,
  "deadlineAt": 1731686400000,
  "endedAt": 1731600000500,
  "cancelRequested": false,
  "targetUrl": "https://api.example.com/invoices",
  "method": "POST",
  "headers": { "authorization": "***", "content-type": "application/json" },
  "bodyBytes": 41,
  "dependency": "https://api.example.com",
  "policyId": "default",
  "policyVersion": 1,
  "policy": null,
  "retrySpan": { "attempts": 6, "meanMs": 15500, "mostMs": 31000, "cutByBudget": false },
  "idempotencyKey": "order-1234",
  "labels": { "team": "billing" },
  "lastError": { "type": "http-status", "message": "the dependency answered 503" },
  "response": null
}"#;

/// The same task, put back to work after its six attempts had failed.
pub(crate) const REPLAYED: &str = r#"{
  "taskId": "01932c07-4b70-7f57-a123-456789abcdef",
  "status": "PENDING",
  "statusReason": null,
  "attemptNumber": 6,
  "run": 2,
  "attemptInRun": 0,
  "maxAttempts": 6,
  "nextAttemptAt": 1731603600000,
  "createdAt": 1731600000000,
  "deadlineAt": 1731690000000,
  "endedAt": null,
  "cancelRequested": false,
  "targetUrl": "https://api.example.com/invoices",
  "method": "POST",
  "headers": { "authorization": "***", "content-type": "application/json" },
  "bodyBytes": 41,
  "dependency": "https://api.example.com",
  "policyId": "default",
  "policyVersion": 1,
  "policy": null,
  "retrySpan": { "attempts": 6, "meanMs": 15500, "mostMs": 31000, "cutByBudget": false },
  "idempotencyKey": "order-1234",
  "labels": { "team": "billing" },
  "lastError": { "type": "http-status", "message": "the dependency answered 503" },
  "response": null
}"#;
