//! Pairs of reserve and complete through the HTTP API.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use fastrand::Rng;
use tokio::task::JoinSet;

use super::options::Load;
use crate::api;
use crate::bench::world::Service;
use crate::http::Connection;

/// The hash of the request; every key has the same one.
const HASH: &str = "0101010101010101010101010101010101010101010101010101010101010101";

/// Pairs per second. Every key is random and new, and every answer is checked.
pub(super) fn per_second(service: &Service, load: &Load) -> Result<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let addresses = service.addresses();
    runtime.block_on(async {
        let mut callers = JoinSet::new();
        let begin = Instant::now();
        let end = begin + load.duration;
        for at in 0..load.callers {
            callers.spawn(call_until(addresses[at % addresses.len()], end));
        }
        let mut pairs = 0;
        while let Some(ended) = callers.join_next().await {
            pairs += ended.context("a caller panicked")??;
        }
        Ok(f64::from(pairs) / begin.elapsed().as_secs_f64())
    })
}

async fn call_until(address: SocketAddr, end: Instant) -> Result<u32> {
    let mut connection = Connection::open(address).await?;
    let mut random = Rng::new();
    let ask = format!(r#"{{"requestHash": "{HASH}"}}"#);
    let mut pairs = 0;
    while Instant::now() < end {
        let path = format!("/idempotency-records/bench/{:032x}", random.u128(..));
        let request = api::head("POST", &format!("{path}/reserve"), ask.len()) + &ask;
        let answer = connection.call(request.as_bytes()).await?;
        if answer.status != 201 {
            bail!("a reservation was answered {}", answer.describe());
        }
        let owner = owner_of(answer.body)?;
        let complete =
            format!(r#"{{{owner}, "response": {{"status": 201, "bodyText": "{{\"payment\": \"pay_123\"}}"}}}}"#);
        let request = api::head("POST", &format!("{path}/complete"), complete.len()) + &complete;
        let answer = connection.call(request.as_bytes()).await?;
        if answer.status != 200 {
            bail!("a completion was answered {}", answer.describe());
        }
        pairs += 1;
    }
    Ok(pairs)
}

/// The fields `executionId` and `epoch` of an answer, as they go into the next document.
fn owner_of(body: &[u8]) -> Result<String> {
    let answer: serde_json::Value = serde_json::from_slice(body).context("reading a reservation")?;
    Ok(format!(r#""executionId": {}, "epoch": {}"#, answer["executionId"], answer["epoch"]))
}
