//! Lists idempotency records.

use std::time::Duration;

use redrive_core::OperationName;
use redrive_core::idempotency::{Operation, State};
use redrive_store::{OperationFilter, RecordCursor, RecordPage, RecordQuery};

use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// Which records to list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordFilter {
    /// Only records of this operation.
    pub operation: Option<OperationName>,
    /// Only records in this state.
    pub state: Option<State>,
    /// Only records that last changed at least this long ago.
    pub older_than: Option<Duration>,
    /// Where the page before ended.
    pub after: Option<RecordCursor>,
    /// The most records of the page; the default page size if not set, and never more than the largest one.
    pub limit: Option<usize>,
}

/// A page of the records of operations, by operation. Events are not listed.
pub async fn list_records(app: &App, caller: &Caller, filter: RecordFilter) -> Result<RecordPage, OperationError> {
    let now = app.engine.now();
    let query = RecordQuery {
        operations: match filter.operation {
            Some(operation) => OperationFilter::One(Operation::Named(operation)),
            None => OperationFilter::AllNamed,
        },
        state: filter.state,
        updated_before: filter.older_than.map(|age| now.before(age)),
        after: filter.after,
        limit: app.limits.page(filter.limit),
        tenant: caller.tenant.clone(),
        now,
    };
    Ok(app.engine.store().records().list(query).await?)
}
