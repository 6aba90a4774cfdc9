//! A receiver of notifications: what is sent to its host does not reach the target.

use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use redrive_core::{Body, ErrorType};
use redrive_engine::transport::{Outbound, SendError, Sending, Transport};
use serde_json::Value;

use super::target::{ScriptedTarget, answer};

/// The beginning of the receiver's URLs.
pub(crate) const RECEIVER: &str = "https://receiver.example/";

/// Answers every notification with the same status, and passes everything else on to the target.
pub(crate) struct Receiver {
    target: Arc<ScriptedTarget>,
    status: AtomicU16,
    /// Whether it shows a certificate that is not trusted.
    is_untrusted: AtomicBool,
    received: Mutex<Vec<Received>>,
}

/// A notification that arrived, whatever was answered.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) url: String,
    pub(crate) authorization: Option<String>,
    pub(crate) document: Value,
}

impl Receiver {
    pub(crate) fn new(target: Arc<ScriptedTarget>) -> Arc<Self> {
        Arc::new(Receiver {
            target,
            status: AtomicU16::new(200),
            is_untrusted: AtomicBool::new(false),
            received: Mutex::default(),
        })
    }

    /// What is answered from here on.
    pub(crate) fn answer(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    /// Shows a certificate that is not trusted from here on: what is sent does not arrive.
    pub(crate) fn lose_trust(&self) {
        self.is_untrusted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

impl Transport for Receiver {
    fn send(&self, outbound: Outbound) -> Sending {
        let request = outbound.request.clone();
        if !request.target_url.starts_with(RECEIVER) {
            return self.target.send(outbound);
        }
        if self.is_untrusted.load(Ordering::Relaxed) {
            let error = SendError { kind: ErrorType::TlsCertificate, message: "it is not trusted".into() };
            return Box::pin(std::future::ready(Err(error)));
        }
        let Body::Inline(body) = &request.body else { panic!("a notification is small") };
        let authorization = request.headers.iter().find(|(name, _)| name == "authorization");
        self.received.lock().unwrap().push(Received {
            url: request.target_url.clone(),
            authorization: authorization.map(|(_, value)| value.clone()),
            document: serde_json::from_slice(body).unwrap(),
        });
        let status = self.status.load(Ordering::Relaxed);
        Box::pin(async move {
            let opened = outbound.gate.open();
            opened.map_err(|error| SendError { kind: ErrorType::NotSent, message: error.to_string() })?;
            Ok(answer(status, ""))
        })
    }
}
