//! Tells the sinks that a part of the service has failed, before the process exits.

use futures_util::future::join_all;
use redrive_core::alerts::{Alert, Notification, Signal, Subject};

use super::delivery;
use super::document::{Context, documents};
use crate::app::App;

/// Tells all sinks at once and directly: the loop of alerts, the engine or the store may be what failed. Ends once they are told
/// or have refused; the caller bounds the time. Nothing tells them that it is over.
pub async fn tell_of_failure(app: &App, part: &str) {
    let settings = app.alerts.settings();
    let (rule, now) = (settings.rules.of(Signal::PartFailed), app.engine.now());
    let alert = Alert {
        signal: Signal::PartFailed,
        subject: Subject::Service,
        severity: rule.severity,
        value: 1.0,
        why: format!("{part} has failed: this process exits"),
        fired_at: now,
        resolved_at: None,
    };
    let sinks = settings.sinks.iter().filter(|sink| rule.is_enabled && sink.is_told_of(&alert));
    let told = sinks.map(async |sink| {
        let notification =
            Notification { signal: alert.signal, firing: vec![alert.clone()], resolved: Vec::new() };
        let context = Context::new(&app.node, now, settings.timing.repeat);
        for document in documents(sink.kind, &notification, &context) {
            if let Err(error) = delivery::send_directly(app, &app.alerts.system, sink, document).await {
                tracing::warn!(sink = %sink.name, error, "a sink could not be told that a part of the service has failed");
            }
        }
    });
    join_all(told).await;
}
