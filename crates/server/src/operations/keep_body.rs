//! Stores a body that a later submission refers to.

use redrive_core::BodyRef;
use redrive_engine::bodies::Pieces;

use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// Stores a body, piece by piece as it arrives. When this returns, the body is durable and a submission may refer to
/// it.
pub async fn keep_body(app: &App, caller: &Caller, pieces: Pieces) -> Result<BodyRef, OperationError> {
    if app.engine.is_stopping() {
        return Err(OperationError::Stopping);
    }
    let bodies = app.engine.bodies().ok_or(OperationError::NoBodyStorage)?;
    Ok(bodies.keep(&caller.tenant, pieces, app.limits.stored_body_bytes).await?)
}
