//! Reads a policy and its versions.

use redrive_core::PolicyId;
use redrive_store::PolicyVersion;

use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// Every version of a policy that is still kept, oldest first; there is at least one, and the last is the current one.
pub async fn get_policy(app: &App, caller: &Caller, id: PolicyId) -> Result<Vec<PolicyVersion>, OperationError> {
    let versions = app.engine.store().policies().versions(caller.tenant.clone(), id.clone()).await?;
    if versions.is_empty() { Err(OperationError::NoSuchPolicy(id.to_string())) } else { Ok(versions) }
}
