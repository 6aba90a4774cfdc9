//! The clients' submissions: documents that can be recognised wherever they appear.

use std::time::Duration;

use redrive_core::policy::Spec;
use redrive_core::{Policy, TenantId};
use redrive_server::wire::{Submission, Text};

/// The suffix of the body of the other request under the same key.
pub const OTHER: &str = " (another request under the same key)";

/// One task that a client submits, with all that the model needs of it.
#[derive(Debug, Clone)]
pub struct Item {
    /// Its name; the body and the target contain it, so that it is recognised on the wire.
    pub name: String,
    /// The document.
    pub document: Document,
    /// The policy by which it must be retried.
    pub policy: Policy,
}

/// A submission, as the client writes it.
#[derive(Debug, Clone)]
pub struct Document {
    /// The tenant.
    pub tenant: TenantId,
    /// The key; the service makes one if there is none.
    pub key: Option<String>,
    /// The target.
    pub target_url: String,
    /// The method.
    pub method: &'static str,
    /// The body.
    pub body: String,
    /// The policy that it names.
    pub policy_id: Option<&'static str>,
    /// The fields of the policy that it changes.
    pub overrides: Option<Spec>,
    /// How long to wait before the first attempt.
    pub delay: Option<Duration>,
}

impl Document {
    /// The document as the server reads it; `is_other` makes it another request under the same key.
    pub fn submission(&self, is_other: bool) -> Submission<'static> {
        Submission {
            target_url: Text::from(self.target_url.clone()),
            method: Some(Text::from(self.method)),
            body: Some(Text::from(self.sent_body(is_other))),
            policy_id: self.policy_id.map(Text::from),
            policy: self.overrides.clone(),
            idempotency_key: self.key.clone().map(Text::from),
            delay_ms: self.delay.map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
            ..Submission::default()
        }
    }

    /// The body that arrives at the dependency.
    pub fn sent_body(&self, is_other: bool) -> String {
        if is_other { format!("{}{OTHER}", self.body) } else { self.body.clone() }
    }
}
