//! Numbers of idempotency records and of events.

use redrive_core::idempotency::Operation;
use redrive_store::OperationCounts;
use schemars::JsonSchema;
use serde::Serialize;

use crate::idempotency::TotalsSnapshot;

/// Numbers of idempotency records.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordStats {
    /// The operations, by name.
    pub operations: Vec<OperationStats>,
    /// Where the next page begins; `null` on the last one.
    pub next_cursor: Option<String>,
    /// The bound of the numbers above: a number that is equal to it may be larger.
    pub counted_up_to: u32,
    /// What this node has answered since it started.
    pub totals: RecordTotals,
}

/// How many records an operation has in each state. Records that have expired are counted until they are cleaned.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationStats {
    /// The operation.
    pub operation: String,
    /// Executions under way, or abandoned.
    pub in_progress: u32,
    /// Operations that took place.
    pub succeeded: u32,
    /// Executions that failed and may be made again.
    pub failed_retryable: u32,
    /// Operations that failed for good.
    pub failed_final: u32,
}

impl From<&OperationCounts> for OperationStats {
    fn from(counts: &OperationCounts) -> Self {
        OperationStats {
            operation: counts.operation.to_string(),
            in_progress: counts.in_progress,
            succeeded: counts.succeeded,
            failed_retryable: counts.failed_retryable,
            failed_final: counts.failed_final,
        }
    }
}

/// What a node has answered since it started.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordTotals {
    /// Reservations that were granted.
    pub reservations: u64,
    /// Reservations that were answered with a stored result.
    pub replays: u64,
    /// Reservations that were refused because another execution was under way.
    pub in_progress: u64,
    /// Reservations that were refused because the key belongs to another request.
    pub mismatches: u64,
    /// Reservations and events whose previous owner had not reported a result when its lease ended.
    pub takeovers: u64,
    /// Results that owners reported, successes and failures, also of events.
    pub completions: u64,
    /// Changes that were refused because another execution had taken over, also of events.
    pub fenced: u64,
    /// Records that their owners gave up, also of events.
    pub released: u64,
    /// Events.
    pub inboxes: InboxTotals,
    /// Submissions to Redrive itself (the operation `submit-task`).
    pub submissions: SubmissionTotals,
}

/// What a node has answered to submissions with a key that was used before, since it started.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SubmissionTotals {
    /// Submissions that were answered with the task of an earlier one.
    pub replays: u64,
    /// Submissions that were refused because the key belongs to another one.
    pub mismatches: u64,
}

/// What a node has answered about events since it started.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InboxTotals {
    /// Events that were new.
    pub new: u64,
    /// Events that had been seen before.
    pub duplicates: u64,
    /// Events that another execution was processing.
    pub in_progress: u64,
}

impl From<&TotalsSnapshot> for RecordTotals {
    fn from(totals: &TotalsSnapshot) -> Self {
        RecordTotals {
            reservations: totals.reservations,
            replays: totals.replays,
            in_progress: totals.in_progress,
            mismatches: totals.mismatches,
            takeovers: totals.takeovers,
            completions: totals.completions,
            fenced: totals.fenced,
            released: totals.released,
            inboxes: InboxTotals::from(totals),
            submissions: SubmissionTotals {
                replays: totals.submission_replays,
                mismatches: totals.submission_mismatches,
            },
        }
    }
}

impl From<&TotalsSnapshot> for InboxTotals {
    fn from(totals: &TotalsSnapshot) -> Self {
        InboxTotals {
            new: totals.new_events,
            duplicates: totals.duplicate_events,
            in_progress: totals.events_in_progress,
        }
    }
}

/// The inboxes of consumers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InboxList {
    /// The inboxes, by the name of their consumer. A short or empty page may still have a next one.
    pub inboxes: Vec<InboxStats>,
    /// Where the next page begins; `null` on the last one.
    pub next_cursor: Option<String>,
    /// The bound of the numbers above: a number that is equal to it may be larger.
    pub counted_up_to: u32,
    /// What this node has answered since it started.
    pub totals: InboxTotals,
}

/// The inbox of one consumer. Events whose window is over are counted until they are cleaned.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InboxStats {
    /// The consumer.
    pub consumer: String,
    /// Events that were recorded or confirmed.
    pub seen: u32,
    /// Events that were begun and not confirmed.
    pub in_progress: u32,
}

impl InboxStats {
    /// The inbox that these numbers are of; `None` if they are of another operation.
    pub fn of(counts: &OperationCounts) -> Option<Self> {
        let Operation::Inbox(consumer) = &counts.operation else { return None };
        Some(InboxStats { consumer: consumer.to_string(), seen: counts.succeeded, in_progress: counts.in_progress })
    }
}
