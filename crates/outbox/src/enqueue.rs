//! What is to be sent.

use std::collections::BTreeMap;
use std::time::SystemTime;

/// A request to see through: where to send it, what to send, and how to retry it.
///
/// ```
/// use redrive_outbox::{Body, Enqueue};
///
/// let enqueue = Enqueue {
///     body: Body::Text("hello".to_owned()),
///     idempotency_key: Some("order-7".to_owned()),
///     ..Enqueue::new("https://example.com/orders")
/// };
/// assert_eq!((enqueue.method.as_str(), enqueue.policy_id.as_str()), ("POST", "default"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Enqueue {
    /// The absolute `http` or `https` URL to call.
    pub target_url: String,
    /// The method, sent as given.
    pub method: String,
    /// Header fields to send, in this order. Those that Redrive sets itself, such as `Idempotency-Key`, are refused.
    pub headers: Vec<(String, String)>,
    /// The body to send.
    pub body: Body,
    /// The policy to retry by.
    pub policy_id: String,
    /// The key that every attempt carries and that makes enqueueing again safe: 1 to 64 visible ASCII characters. One is
    /// made if there is none.
    pub idempotency_key: Option<String>,
    /// Whom the task belongs to.
    pub tenant: String,
    /// The downstream that the target belongs to; the target's origin if there is none.
    pub dependency: Option<String>,
    /// When the first attempt may begin; at once if there is none. Milliseconds count, what is finer does not.
    pub not_before: Option<SystemTime>,
    /// Names and values for finding the task again.
    pub labels: BTreeMap<String, String>,
}

impl Enqueue {
    /// A POST without a body to `target_url`, of the default tenant and by the default policy.
    pub fn new(target_url: impl Into<String>) -> Self {
        Enqueue {
            target_url: target_url.into(),
            method: "POST".to_owned(),
            headers: Vec::new(),
            body: Body::Empty,
            policy_id: "default".to_owned(),
            idempotency_key: None,
            tenant: "default".to_owned(),
            dependency: None,
            not_before: None,
            labels: BTreeMap::new(),
        }
    }
}

/// What to send, and the content type that it has unless a header says otherwise.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Body {
    /// Nothing.
    #[default]
    Empty,
    /// A text: `text/plain; charset=utf-8`.
    Text(String),
    /// A JSON document, written without spaces: `application/json`. Names are in the order that `serde_json` gives them,
    /// the alphabetical one unless something in the program switches on its `preserve_order`. It counts when a key is
    /// used again.
    Json(serde_json::Value),
    /// Bytes of any kind: no content type.
    Bytes(Vec<u8>),
}
