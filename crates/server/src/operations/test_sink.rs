//! Tests a sink of alerts.

use crate::alerts;
use crate::app::App;
use crate::operation_error::OperationError;

/// Sends a test notification to a sink. Returns the status code of its answer, or why it did not receive it.
pub async fn test_sink(app: &App, name: &str) -> Result<Result<u16, String>, OperationError> {
    let sinks = &app.alerts.settings().sinks;
    let Some(sink) = sinks.iter().find(|sink| sink.name.as_str() == name) else {
        let names = sinks.iter().map(|sink| sink.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(OperationError::NoSuchSink { name: name.to_owned(), names });
    };
    Ok(alerts::test_sink(app, sink).await)
}
