//! The request to enqueue.

use std::collections::BTreeMap;
use std::time::SystemTime;

/// A request to deliver: where to send it, what to send, and how to retry it.
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
    /// The retry policy.
    pub policy_id: String,
    /// The key that every attempt carries and that makes it safe to enqueue again: 1 to 64 visible ASCII characters.
    /// One is generated if it is `None`.
    pub idempotency_key: Option<String>,
    /// The tenant that the task belongs to.
    pub tenant: String,
    /// The dependency that the target belongs to; the target's origin if it is `None`.
    pub dependency: Option<String>,
    /// When the first attempt may begin; at once if it is `None`. The precision is 1 ms.
    pub not_before: Option<SystemTime>,
    /// Your own id of the work that the task belongs to, for Redrive's logs and events: 1 to 128 visible ASCII characters.
    pub correlation_id: Option<String>,
    /// Names and values to find the task by.
    pub labels: BTreeMap<String, String>,
}

impl Enqueue {
    /// A POST without a body to `target_url`, with the default tenant and the default policy.
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
            correlation_id: None,
            labels: BTreeMap::new(),
        }
    }
}

/// The body to send, and its content type unless a header sets another.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Body {
    /// No body.
    #[default]
    Empty,
    /// A text: `text/plain; charset=utf-8`.
    Text(String),
    /// A JSON document, written without spaces: `application/json`. Names are in the order of `serde_json`, which is
    /// alphabetical unless the program enables its feature `preserve_order`. The order matters when a key is used
    /// again.
    Json(serde_json::Value),
    /// Bytes of any kind: no content type.
    Bytes(Vec<u8>),
}
