//! Problem details (RFC 9457).

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;

use super::finding::ShownFinding;

/// What went wrong, for programs and people. Members that say nothing are left out.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The kind of problem: stable, and a page of this server that explains it.
    #[serde(rename = "type")]
    #[schemars(example = &"/problems/idempotency-key-reused")]
    pub kind: String,
    /// The kind in a few words; always the same for a type.
    pub title: Cow<'static, str>,
    /// The status code.
    pub status: u16,
    /// What went wrong this time.
    pub detail: String,
    /// Where the first fault is: a path such as `tasks[3].headers`, a query parameter or a header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Every fault that was found, the first one included.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldFault>,
    /// The rules of the retry standard that the document breaks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<ShownFinding>,
    /// The task that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// How many tasks that have not ended pin the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_tasks: Option<u64>,
    /// The policy's current version; left out if there is no such policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_version: Option<u32>,
    /// The most that is allowed, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<usize>,
}

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FieldFault {
    /// Where it is.
    pub field: String,
    /// What is wrong there.
    pub message: String,
}
