//! Deletes a policy.

use redrive_core::PolicyId;
use redrive_store::{DeletePolicy, Expected};

use super::put_policy::Precondition;
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// Deletes a policy, unless a task that has not ended uses one of its versions.
pub async fn delete_policy(
    app: &App,
    caller: &Caller,
    id: PolicyId,
    precondition: Precondition,
) -> Result<(), OperationError> {
    if id == PolicyId::default_policy() {
        return Err(OperationError::PolicyProtected(id));
    }
    let expected = match &precondition {
        // The store reports a missing policy; any version will do.
        Precondition::Exists => Expected::Anything,
        other => other.expected(app, caller, &id).await?,
    };
    match app.engine.policies().delete(caller.tenant.clone(), id.clone(), expected).await? {
        DeletePolicy::Done => Ok(()),
        DeletePolicy::NotFound => Err(OperationError::NoSuchPolicy(id.to_string())),
        DeletePolicy::Pinned(tasks) => Err(OperationError::PolicyInUse { id, tasks }),
        DeletePolicy::Conflict(current) => Err(OperationError::VersionMismatch { current: Some(current) }),
    }
}
