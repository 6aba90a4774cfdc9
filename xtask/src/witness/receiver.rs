//! The sink that people would read: an Alertmanager that reports the dependencies whose dead letters it is told of.

use bytes::Bytes;
use serde_json::Value;

use crate::http::{Reply, Request, Respond};

/// The name of the alert.
const DEAD_LETTER: &str = "RedriveDeadLetter";

/// The receiver.
pub struct AlertReceiver<Note> {
    note: Note,
}

impl<Note: Fn(String)> AlertReceiver<Note> {
    /// A receiver; `note` is called with each dependency before the notification is answered.
    pub fn new(note: Note) -> Self {
        AlertReceiver { note }
    }
}

impl<Note: Fn(String) + Send + Sync + 'static> Respond for AlertReceiver<Note> {
    fn respond(&self, request: &Request<'_>) -> Reply {
        let alerts: Vec<Value> = serde_json::from_slice(request.body).unwrap_or_default();
        let labels = alerts.iter().map(|alert| &alert["labels"]);
        for labels in labels.filter(|labels| labels["alertname"] == DEAD_LETTER) {
            if let Some(dependency) = labels["dependency"].as_str() {
                (self.note)(dependency.to_owned());
            }
        }
        Reply::Now(Bytes::from_static(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"))
    }
}
