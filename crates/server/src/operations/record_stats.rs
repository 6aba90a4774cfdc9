//! Counts idempotency records and events.

use redrive_core::OperationName;
use redrive_core::idempotency::Operation;
use redrive_store::OperationCounts;

use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// The most records that are counted for one operation and state.
const MOST_COUNTED: u32 = 10_000;

/// The name of an operation that comes before every inbox in the order of texts, and after which few others do.
const BEFORE_INBOXES: &str = "inbox";
/// A text that comes after every inbox: `0` follows the slash of `inbox/`.
const AFTER_INBOXES: &str = "inbox0";

/// A page of numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountsPage {
    /// The numbers, by operation. A short or empty page may still have a `next`.
    pub counts: Vec<OperationCounts>,
    /// Where the next page begins, if there may be one.
    pub next: Option<Operation>,
    /// The bound of each number: one that is equal to it may be larger.
    pub counted_up_to: u32,
}

/// How many records the operations have in each state, by operation after `after`.
pub async fn count_records(
    app: &App,
    caller: &Caller,
    after: Option<Operation>,
    limit: Option<usize>,
) -> Result<CountsPage, OperationError> {
    let page = page(app, caller, after, limit).await?;
    let is_named = |counts: &OperationCounts| matches!(counts.operation, Operation::Named(_));
    Ok(CountsPage { counts: page.counts.into_iter().filter(is_named).collect(), ..page })
}

/// How many events the inboxes of consumers have, by consumer after `after`.
pub async fn count_events(
    app: &App,
    caller: &Caller,
    after: Option<Operation>,
    limit: Option<usize>,
) -> Result<CountsPage, OperationError> {
    let after = after.or_else(|| OperationName::try_new(BEFORE_INBOXES).ok().map(Operation::Named));
    let page = page(app, caller, after, limit).await?;
    let is_inbox = |counts: &OperationCounts| matches!(counts.operation, Operation::Inbox(_));
    Ok(CountsPage {
        counts: page.counts.into_iter().filter(is_inbox).collect(),
        next: page.next.filter(|next| next.to_string().as_str() < AFTER_INBOXES),
        counted_up_to: page.counted_up_to,
    })
}

async fn page(
    app: &App,
    caller: &Caller,
    after: Option<Operation>,
    limit: Option<usize>,
) -> Result<CountsPage, OperationError> {
    let limit = app.limits.page(limit);
    let counts = app.engine.store().records().counts(caller.tenant.clone(), after, limit, MOST_COUNTED).await?;
    let next = counts.last().filter(|_| counts.len() >= limit).map(|last| last.operation.clone());
    Ok(CountsPage { counts, next, counted_up_to: MOST_COUNTED })
}
