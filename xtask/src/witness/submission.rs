//! What a caller submits: drawn from its random numbers, with small delays so that a run is short.

use std::net::SocketAddr;

use fastrand::Rng;
use serde_json::{Value, json};

use crate::fingerprint::hash_of;

const METHODS: [&str; 3] = ["POST", "PUT", "PATCH"];
/// So that several lanes are at work.
pub const DEPENDENCIES: [&str; 4] = ["north", "east", "south", "west"];

/// What a caller asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Method and path of the target.
    pub target: String,
    /// The body.
    pub body_hash: u64,
    /// The most sends that it allows.
    pub max_attempts: u32,
    /// How long each of them may take.
    pub attempt_timeout_ms: u64,
}

/// One submission, which may be sent several times.
pub struct Submission {
    /// Its idempotency key, which no other submission has.
    pub key: String,
    /// The JSON document.
    pub document: String,
    /// What the ledger keeps of it.
    pub asked: Asked,
}

impl Submission {
    /// A submission with this key, for `target`, each of whose attempts may take this long.
    pub fn draw(key: String, target: SocketAddr, attempt_timeout_ms: u64, random: &mut Rng) -> Self {
        let method = METHODS[random.usize(..METHODS.len())];
        let path = format!("/{key}?part={}", random.u32(..10));
        let length = random.usize(..2_000);
        let body: String = std::iter::repeat_with(|| random.alphanumeric()).take(length).collect();
        let max_attempts = random.u32(3..=8);
        let mut document = json!({
            "targetUrl": format!("http://{target}{path}"),
            "method": method,
            "body": body,
            "idempotencyKey": key,
            "dependency": DEPENDENCIES[random.usize(..DEPENDENCIES.len())],
            "policy": {
                "maxAttempts": max_attempts,
                "initialDelayMs": random.u64(10..=50),
                "maxDelayMs": 200,
                "attemptTimeoutMs": attempt_timeout_ms,
                "connectTimeoutMs": attempt_timeout_ms,
            },
        });
        if random.u32(..10) < 3 {
            document["delayMs"] = Value::from(random.u64(1..500));
        }
        let target = format!("{method} {path}");
        let asked = Asked { target, body_hash: hash_of(body.as_bytes()), max_attempts, attempt_timeout_ms };
        Submission { key, document: document.to_string(), asked }
    }

    /// Another request under the same key: all but the body is the same.
    pub fn other(&self, random: &mut Rng) -> Self {
        let body = format!("another body, {}", random.u64(..));
        let mut document: Value = serde_json::from_str(&self.document).unwrap_or_default();
        document["body"] = Value::from(body.as_str());
        let asked = Asked { body_hash: hash_of(body.as_bytes()), ..self.asked.clone() };
        Submission { key: self.key.clone(), document: document.to_string(), asked }
    }
}
