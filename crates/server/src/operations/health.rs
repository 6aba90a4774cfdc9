//! Whether the service can take work.

use redrive_store::{Error, SetAside};

use crate::app::App;
use crate::failure::Failure;

/// Whether the service can take work right now: it is not about to stop, all of it lives, its store can be written to, and
/// large bodies would go where they are kept.
/// Answers what the store has set aside, and names at most this many rows of it.
pub async fn check_ready(app: &App, named: usize) -> Result<SetAside, Failure> {
    if app.engine.is_stopping() {
        return Err(Failure::Stopping);
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
