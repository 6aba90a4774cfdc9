//! Idempotency records and inboxes, as the server shows them.

use serde::Deserialize;

use super::views::Response;

/// An idempotency record.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The operation.
    pub operation: String,
    /// The idempotency key.
    pub key: String,
    /// Its state.
    pub state: String,
    /// The hash of the request.
    #[serde(default)]
    pub request_hash: String,
    /// The execution that owns it.
    #[serde(default)]
    pub execution_id: String,
    /// Its fencing number.
    #[serde(default)]
    pub epoch: u64,
    /// When another execution may take over.
    #[serde(default)]
    pub lease_until: u64,
    /// When the owner reserved it.
    #[serde(default)]
    pub started_at: u64,
    /// When it last changed.
    #[serde(default)]
    pub updated_at: u64,
    /// From when on it does not exist any more.
    pub expires_at: Option<u64>,
    /// The response that duplicates get.
    pub response: Option<Response>,
    /// The type of the object that the operation made.
    pub resource_type: Option<String>,
    /// Its id.
    pub resource_id: Option<String>,
}

impl Record {
    /// The state; of an execution whose lease is over, that too: `IN_PROGRESS (lease over)`.
    pub fn state_text(&self, now: u64) -> String {
        let is_over = self.state == "IN_PROGRESS" && self.lease_until <= now;
        if is_over { format!("{} (lease over)", self.state) } else { self.state.clone() }
    }
}

/// How many records an operation has in each state.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationStats {
    /// The operation.
    pub operation: String,
    /// Executions under way, or abandoned.
    #[serde(default)]
    pub in_progress: u64,
    /// Operations that took place.
    #[serde(default)]
    pub succeeded: u64,
    /// Executions that may be made again.
    #[serde(default)]
    pub failed_retryable: u64,
    /// Operations that failed for good.
    #[serde(default)]
    pub failed_final: u64,
}

/// The inbox of a consumer.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InboxStats {
    /// The consumer.
    pub consumer: String,
    /// Events that were recorded or confirmed.
    #[serde(default)]
    pub seen: u64,
    /// Events that were begun and not confirmed.
    #[serde(default)]
    pub in_progress: u64,
}

/// A number that was counted up to a bound: `10000+` if there may be more.
pub fn bounded_text(number: u64, counted_up_to: u64) -> String {
    let more = if number > 0 && number >= counted_up_to { "+" } else { "" };
    format!("{number}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_reaches_the_bound_may_be_larger() {
        for (number, bound, text) in [(0, 0, "0"), (8, 9, "8"), (9, 9, "9+")] {
            assert_eq!(bounded_text(number, bound), text);
        }
    }
}
