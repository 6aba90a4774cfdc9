//! Deletes a policy.

use redrive_core::{PolicyId, policy};
use redrive_store::{DeletePolicy, Expected, PolicyVersion};

use super::put_policy::Precondition;
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// Deletes a policy, unless a task that has not ended uses one of its versions. In the place of one that has the name of a
/// built-in policy, the built-in one applies again.
pub async fn delete_policy(
    app: &App,
    caller: &Caller,
    id: PolicyId,
    precondition: Precondition,
) -> Result<(), OperationError> {
    if id == PolicyId::default_policy() || is_built_in(app, caller, &id).await? {
        return Err(OperationError::PolicyProtected(id));
    }
    let expected = match &precondition {
        // The store reports a missing policy; any version will do.
        Precondition::Exists => Expected::Anything,
        other => other.expected(app, caller, &id).await?,
    };
    match app.engine.policies().delete(caller.tenant.clone(), id.clone(), expected).await? {
        DeletePolicy::Done => {
            // If the name is that of a built-in policy, this stores it again. If that fails, the next use of it does.
            if let Err(error) = app.engine.policies().current(&caller.tenant, &id).await {
                tracing::debug!(%error, policy = %id, "the built-in policy was not stored again");
            }
            Ok(())
        }
        DeletePolicy::NotFound => Err(OperationError::NoSuchPolicy(id.to_string())),
        DeletePolicy::Pinned(tasks) => Err(OperationError::PolicyInUse { id, tasks }),
        DeletePolicy::Conflict(current) => Err(OperationError::VersionMismatch { current: Some(current) }),
    }
}

async fn is_built_in(app: &App, caller: &Caller, id: &PolicyId) -> Result<bool, OperationError> {
    if policy::built_in(id.as_str()).is_none() {
        return Ok(false);
    }
    let versions = app.engine.store().policies().versions(caller.tenant.clone(), id.clone()).await?;
    Ok(versions.last().is_some_and(PolicyVersion::is_built_in))
}
