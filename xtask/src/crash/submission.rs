//! What a caller submits: drawn from its random numbers, with small delays so that a run is short.

use std::net::SocketAddr;

use fastrand::Rng;
use serde_json::{Value, json};

use super::history::Asked;
use crate::fingerprint::hash_of;

const METHODS: [&str; 3] = ["POST", "PUT", "PATCH"];
/// So that several lanes are at work.
const DEPENDENCIES: [&str; 4] = ["north", "east", "south", "west"];

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
    /// The submission with this key, for `target`.
    pub fn draw(key: String, target: SocketAddr, random: &mut Rng) -> Self {
        let method = METHODS[random.usize(..METHODS.len())];
        let path = format!("/crash/{key}?part={}", random.u32(..10));
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
                "attemptTimeoutMs": 1_000,
                "connectTimeoutMs": 1_000,
            },
        });
        if random.u32(..10) < 3 {
            document["delayMs"] = Value::from(random.u64(1..500));
        }
        let asked = Asked { target: format!("{method} {path}"), body_hash: hash_of(body.as_bytes()), max_attempts };
        Submission { key, document: document.to_string(), asked }
    }
}
