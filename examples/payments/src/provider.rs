//! A fake card provider. Like real ones it takes an idempotency key, and charges once for each key. It counts the calls for
//! each key, so that a service that calls it more often than it has to is found.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::http::{self, Request, Response};

/// Calls for keys with this end are answered after `POST /release`.
const HELD: &str = "-held";

struct Provider {
    /// The calls for each key.
    calls: Mutex<BTreeMap<String, u64>>,
    /// Closed by `POST /release`.
    hold: Semaphore,
}

pub(crate) async fn serve(listen: &str) -> Result<()> {
    let provider = Arc::new(Provider { calls: Mutex::default(), hold: Semaphore::new(0) });
    http::serve(listen, move |request| {
        let provider = provider.clone();
        async move { Ok(answer(&provider, request).await) }
    })
    .await
}

async fn answer(provider: &Provider, request: Request) -> Response {
    match (request.method.as_str(), request.path.as_str(), request.idempotency_key) {
        ("POST", "/charges", Some(key)) => {
            *provider.calls.lock().unwrap_or_else(PoisonError::into_inner).entry(key.clone()).or_default() += 1;
            if key.ends_with(HELD) {
                // There are no permits: this ends with an error once the semaphore is closed.
                drop(provider.hold.acquire().await);
            }
            Response::new(200, json!({ "charge": format!("ch_{key}") }))
        }
        ("POST", "/release", _) => {
            provider.hold.close();
            Response::new(200, Value::Null)
        }
        ("GET", "/charges", _) => {
            Response::new(200, json!(&*provider.calls.lock().unwrap_or_else(PoisonError::into_inner)))
        }
        _ => Response::new(404, Value::Null),
    }
}
