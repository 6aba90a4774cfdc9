//! Checks whether the service can accept work.

use redrive_store::{Error, SetAside};

use crate::app::App;
use crate::operation_error::OperationError;

/// Checks that the service can accept work now: it is not stopping, its loops run, its store and its storage for large
/// bodies can be written to. Returns the rows that the store has set aside, at most `named` of them by name.
pub async fn check_ready(app: &App, named: usize) -> Result<SetAside, OperationError> {
    if app.engine.is_stopping() {
        return Err(OperationError::Stopping);
    }
    if let Some(name) = app.engine.dead() {
        return Err(Error::Unavailable(format!("the engine's {name} has died")).into());
    }
    app.engine.store().health().check().await?;
    if let Some(bodies) = app.engine.bodies() {
        bodies.check().await?;
    }
    Ok(app.engine.store().health().set_aside(named).await?)
}
