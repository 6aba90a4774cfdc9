//! Problem details (RFC 9457).

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;

use super::finding::ShownFinding;

/// A problem (RFC 9457). Members without a value are left out.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The type of the problem: a stable path of this server, with a page that explains it.
    #[serde(rename = "type")]
    #[schemars(example = &"/problems/idempotency-key-reused")]
    pub kind: String,
    /// The type in a few words; always the same for a type.
    pub title: Cow<'static, str>,
    /// The status code.
    pub status: u16,
    /// What was wrong with this request.
    pub detail: String,
    /// The place of the first fault: a path such as `tasks[3].headers`, a query parameter or a header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Every fault that was found, the first one included.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldFault>,
    /// The rules of the retry standard that the document breaks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<ShownFinding>,
    /// The task that the problem is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// How many tasks that have not ended use the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_tasks: Option<u64>,
    /// The policy's current version; left out if there is no such policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_version: Option<u32>,
    /// The limit, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<usize>,
    /// When another execution may take over, in epoch milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<u64>,
    /// The path of the record to poll.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_url: Option<String>,
}

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FieldFault {
    /// The path of the field.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}
