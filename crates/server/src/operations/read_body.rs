//! Reads a stored body: the body of a request, or of a dependency's answer.

use redrive_core::BodyRef;
use redrive_engine::bodies::Pieces;

use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// The stored body with the reference `name`, piece by piece, and its length.
pub async fn read_body(app: &App, caller: &Caller, name: &str) -> Result<(BodyRef, Pieces), OperationError> {
    let nothing = || OperationError::NoSuchBody(name.to_owned());
    let hash = name.parse().map_err(|_| nothing())?;
    let bodies = app.engine.bodies().ok_or(OperationError::NoBodyStorage)?;
    let body = bodies.find(&caller.tenant, hash).await?.ok_or_else(nothing)?;
    Ok((body, bodies.open(&caller.tenant, &body).await?))
}
