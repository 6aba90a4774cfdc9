//! Whether the service can take work.

use crate::app::App;
use crate::failure::Failure;

/// Whether the service can take work right now: it is not about to stop, and its store can be written to.
pub async fn check_ready(app: &App) -> Result<(), Failure> {
    if app.engine.is_stopping() {
        return Err(Failure::Stopping);
    }
    Ok(app.engine.store().check().await?)
}
