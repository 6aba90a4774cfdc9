//! Random submissions, with small delays so that a run is short.

use std::net::SocketAddr;

use fastrand::Rng;
use serde_json::{Value, json};

use crate::fingerprint::hash_of;

/// The size of a large body: over 64 KiB it is stored apart from its task.
const LARGE: std::ops::Range<usize> = 66_000..100_000;
const METHODS: [&str; 3] = ["POST", "PUT", "PATCH"];
/// Several, so that there are several lanes.
pub const DEPENDENCIES: [&str; 4] = ["north", "east", "south", "west"];

/// What a caller requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedTask {
    /// Method and path of the target.
    pub target: String,
    /// The hash of the body.
    pub body_hash: u64,
    /// The dependency, whose lane the task is in.
    pub dependency: String,
    /// The most sends that it allows.
    pub max_attempts: u32,
    /// The timeout of each send.
    pub attempt_timeout_ms: u64,
}

/// One submission, which may be sent several times.
pub struct Submission {
    /// Its idempotency key, which no other submission has.
    pub key: String,
    /// The JSON document.
    pub document: String,
    /// What the ledger keeps of it.
    pub requested: RequestedTask,
}

impl Submission {
    /// A submission with this key and attempt timeout, for `target`.
    pub fn draw(key: String, target: SocketAddr, attempt_timeout_ms: u64, random: &mut Rng) -> Self {
        let method = METHODS[random.usize(..METHODS.len())];
        let path = format!("/{key}?part={}", random.u32(..10));
        let length = random.usize(..2_000);
        let body: String = std::iter::repeat_with(|| random.alphanumeric()).take(length).collect();
        let max_attempts = random.u32(3..=8);
        let dependency = DEPENDENCIES[random.usize(..DEPENDENCIES.len())];
        let mut document = json!({
            "targetUrl": format!("http://{target}{path}"),
            "method": method,
            "body": body,
            "idempotencyKey": key,
            "dependency": dependency,
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
        let (body_hash, dependency) = (hash_of(body.as_bytes()), dependency.to_owned());
        let requested = RequestedTask { target, body_hash, dependency, max_attempts, attempt_timeout_ms };
        Submission { key, document: document.to_string(), requested }
    }

    /// Limits it to one attempt.
    pub fn once(self) -> Self {
        let mut document: Value = serde_json::from_str(&self.document).unwrap_or_default();
        document["policy"]["maxAttempts"] = Value::from(1);
        Submission {
            document: document.to_string(),
            requested: RequestedTask { max_attempts: 1, ..self.requested },
            ..self
        }
    }

    /// Gives it a dependency of its own, named as its key.
    pub fn of_its_own_dependency(self) -> Self {
        let document = self.with("dependency", Value::from(self.key.as_str()));
        let requested = RequestedTask { dependency: self.key.clone(), ..self.requested.clone() };
        Submission { document, requested, ..self }
    }

    /// Gives it a large body.
    pub fn large(self, random: &mut Rng) -> Self {
        let length = random.usize(LARGE);
        let body: String = std::iter::repeat_with(|| random.alphanumeric()).take(length).collect();
        let requested = RequestedTask { body_hash: hash_of(body.as_bytes()), ..self.requested.clone() };
        Submission { document: self.with("body", Value::from(body)), requested, ..self }
    }

    /// Whether its body is large.
    pub fn is_large(&self) -> bool {
        self.document.len() > LARGE.start
    }

    /// Delays it by this many milliseconds.
    pub fn after_ms(self, delay_ms: u64) -> Self {
        Submission { document: self.with("delayMs", Value::from(delay_ms)), ..self }
    }

    /// The document with another value of one field.
    fn with(&self, field: &str, value: Value) -> String {
        let mut document: Value = serde_json::from_str(&self.document).unwrap_or_default();
        document[field] = value;
        document.to_string()
    }

    /// Another request under the same key: all but the body is the same.
    pub fn other(&self, random: &mut Rng) -> Self {
        let body = format!("another body, {}", random.u64(..));
        let requested = RequestedTask { body_hash: hash_of(body.as_bytes()), ..self.requested.clone() };
        Submission { key: self.key.clone(), document: self.with("body", Value::from(body)), requested }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_submission_is_known_by_its_body() {
        let mut random = Rng::with_seed(1);
        let small = Submission::draw("key".to_owned(), "127.0.0.1:9".parse().unwrap(), 1_000, &mut random);
        assert!(!small.is_large());
        let requested = small.requested.clone();
        let large = small.large(&mut random).after_ms(7);
        let document: Value = serde_json::from_str(&large.document).unwrap();
        assert!(large.is_large() && document["body"].as_str().unwrap().len() >= LARGE.start);
        assert_eq!(document["delayMs"], 7);
        assert_eq!(large.requested.body_hash, hash_of(document["body"].as_str().unwrap().as_bytes()));
        assert_eq!(RequestedTask { body_hash: requested.body_hash, ..large.requested }, requested);
    }

    #[test]
    fn a_submission_with_one_attempt_differs_in_nothing_else() {
        let target = "127.0.0.1:9".parse().unwrap();
        let draw = || Submission::draw("key".to_owned(), target, 1_000, &mut Rng::with_seed(1));
        let (several, once) = (draw(), draw().once());
        let mut expected: Value = serde_json::from_str(&several.document).unwrap();
        expected["policy"]["maxAttempts"] = Value::from(1);
        assert_eq!(serde_json::from_str::<Value>(&once.document).unwrap(), expected);
        assert_eq!(once.requested, RequestedTask { max_attempts: 1, ..several.requested });
    }
}
