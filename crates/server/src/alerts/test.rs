//! A notification that tests a sink: sent at once and directly, so that its answer can be shown.

use redrive_core::alerts::{Alert, Notification, Severity, Signal, Subject};

use super::delivery;
use super::document::{Context, documents};
use super::settings::SinkSettings;
use crate::app::App;

/// Tells a sink that nothing is wrong. Returns the status code that it answered, or why it did not receive it.
pub(crate) async fn test_sink(app: &App, sink: &SinkSettings) -> Result<u16, String> {
    let now = app.engine.now();
    let alert = Alert {
        // No sink is ever told of this signal, so that no other alert is taken for it.
        signal: Signal::SinkFailing,
        subject: Subject::Service,
        severity: Severity::Info,
        value: 0.0,
        why: format!("this is a test of the sink {}; nothing is wrong", sink.name),
        fired_at: now,
        resolved_at: None,
    };
    let notification = Notification { signal: alert.signal, firing: vec![alert], resolved: Vec::new() };
    let document = documents(sink.kind, &notification, &Context::test(&app.node, now)).concat();
    delivery::send_directly(app, &app.alerts.system, sink, document).await
}
