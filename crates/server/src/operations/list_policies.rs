//! Lists policies.

use redrive_core::PolicyId;
use redrive_store::PolicyVersion;

use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// A page of policies, by name.
#[derive(Debug, Clone)]
pub struct PolicyPage {
    /// The current version of each.
    pub policies: Vec<PolicyVersion>,
    /// The name after which the next page begins, if there is one.
    pub next: Option<PolicyId>,
}

/// The policies with a name above `after`, at most `limit` (or a page's size).
pub async fn list_policies(
    app: &App,
    caller: &Caller,
    after: Option<PolicyId>,
    limit: Option<usize>,
) -> Result<PolicyPage, OperationError> {
    let limit = app.limits.page(limit);
    // One more than the page holds tells whether there is a next one.
    let mut policies = app.engine.store().policies().list(caller.tenant.clone(), after, limit + 1).await?;
    let more = policies.len() > limit;
    policies.truncate(limit);
    let next = policies.last().filter(|_| more).map(|last| last.id.clone());
    Ok(PolicyPage { policies, next })
}
