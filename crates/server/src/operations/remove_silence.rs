//! Ends a silence.

use crate::alerts::silences;
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// Ends a silence on all nodes. Sinks are told of what it kept from them and still fires.
pub async fn remove_silence(app: &App, caller: &Caller, id: &str) -> Result<(), OperationError> {
    let unknown = || OperationError::NoSuchSilence(id.to_owned());
    let silences = silences::read(app).await?;
    let is_it = |silence: &&crate::alerts::Silence| silence.tenant == caller.tenant && silence.id.to_string() == id;
    let silence = silences.iter().find(is_it).ok_or_else(unknown)?;
    match silences::remove(app, silence.id).await? {
        true => app.alerts.look_soon(),
        false => return Err(unknown()),
    }
    Ok(())
}
