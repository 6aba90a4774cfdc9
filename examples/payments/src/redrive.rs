//! The calls of Redrive's idempotency API that this service makes.

use anyhow::{Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::http::{Request, post};

/// How long no other process takes over, if `LEASE_MS` does not say. Longer than a payment takes; after a crash a client waits
/// for this long.
const LEASE_MS: u64 = 2_000;

fn lease_ms() -> u64 {
    std::env::var("LEASE_MS").ok().and_then(|given| given.parse().ok()).unwrap_or(LEASE_MS)
}

/// The right to execute an operation, until another execution takes over.
pub(crate) struct Execution {
    redrive: String,
    path: String,
    pub(crate) id: Value,
    pub(crate) epoch: Value,
    /// Whether there was an execution before it, whose outcome is not known.
    pub(crate) has_previous: bool,
}

/// The answer to the end of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It is stored.
    Done,
    /// Another execution has taken over: its result counts.
    Fenced,
}

/// The answer to a reservation.
pub(crate) enum Reserved {
    /// This process executes the operation.
    Granted(Execution),
    /// The operation has ended: its status and its body.
    Replay(u16, Value),
    /// Another process executes it.
    InProgress,
    /// The key belongs to another request.
    OtherRequest,
}

/// Reserves the key of a request.
pub(crate) async fn reserve(redrive: &str, operation: &str, key: &str, request: &Request) -> Result<Reserved> {
    let path = format!("/idempotency-records/{operation}/{}", utf8_percent_encode(key, NON_ALPHANUMERIC));
    let hashed = json!({
        "method": request.method,
        "path": request.path,
        "contentType": request.content_type,
        "bodyText": String::from_utf8_lossy(&request.body),
    });
    let ask = json!({ "request": hashed, "leaseMs": lease_ms() });
    let (status, answer) = post(redrive, &format!("{path}/reserve"), None, &ask).await?;
    Ok(match status {
        201 => Reserved::Granted(Execution::new(redrive, path, &answer)),
        200 => {
            let status = answer["response"]["status"].as_u64().and_then(|status| u16::try_from(status).ok());
            Reserved::Replay(status.unwrap_or(200), body_of(&answer["response"])?)
        }
        409 if is_problem(&answer, "idempotency-in-progress") => Reserved::InProgress,
        422 if is_problem(&answer, "idempotency-key-reused") => Reserved::OtherRequest,
        _ => bail!("reserving a key: {status} {answer}"),
    })
}

/// Whether the answer is a problem of this type.
fn is_problem(answer: &Value, name: &str) -> bool {
    answer["type"].as_str().and_then(|kind| kind.rsplit('/').next()) == Some(name)
}

/// The body of a stored response, which this service wrote as JSON.
fn body_of(response: &Value) -> Result<Value> {
    let text = response["bodyBase64"].as_str().unwrap_or_default();
    Ok(serde_json::from_slice(&STANDARD.decode(text)?)?)
}

/// The answer to an event.
pub(crate) enum Event {
    /// This process applies it.
    New(Execution),
    /// It was applied before.
    Duplicate,
    /// Another process applies it.
    InProgress,
}

/// Begins to apply an event. If it is not confirmed within its lease, it is new again.
pub(crate) async fn begin(redrive: &str, consumer: &str, event: &str) -> Result<Event> {
    let path = format!("/inboxes/{consumer}/events/{}", utf8_percent_encode(event, NON_ALPHANUMERIC));
    let (status, answer) = post(redrive, &path, None, &json!({ "mode": "begin", "leaseMs": lease_ms() })).await?;
    Ok(match status {
        201 => Event::New(Execution::new(redrive, path, &answer)),
        200 => Event::Duplicate,
        409 if is_problem(&answer, "idempotency-in-progress") => Event::InProgress,
        _ => bail!("beginning an event: {status} {answer}"),
    })
}

impl Execution {
    fn new(redrive: &str, path: String, answer: &Value) -> Self {
        let (id, epoch) = (answer["executionId"].clone(), answer["epoch"].clone());
        Execution { redrive: redrive.to_owned(), path, id, epoch, has_previous: !answer["previous"].is_null() }
    }

    /// Stores the response.
    pub(crate) async fn complete(&self, status: u16, body: &Value) -> Result<Ended> {
        let response = json!({ "status": status, "bodyText": body.to_string() });
        self.end("complete", json!({ "response": response })).await
    }

    /// Says that nothing is known to have happened: the next caller tries again.
    pub(crate) async fn fail(&self) -> Result<Ended> {
        self.end("fail", json!({ "retryable": true })).await
    }

    /// Confirms an event.
    pub(crate) async fn confirm(&self) -> Result<Ended> {
        self.end("confirm", json!({})).await
    }

    async fn end(&self, how: &str, mut document: Value) -> Result<Ended> {
        document["executionId"] = self.id.clone();
        document["epoch"] = self.epoch.clone();
        let (status, answer) = post(&self.redrive, &format!("{}/{how}", self.path), None, &document).await?;
        match status {
            200 => Ok(Ended::Done),
            409 if is_problem(&answer, "fenced") => Ok(Ended::Fenced),
            _ => bail!("{how}: {status} {answer}"),
        }
    }
}
