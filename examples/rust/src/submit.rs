//! `orders submit`: announces an order and waits until it is delivered.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::redrive::{Answer, call};

/// How often a call is made when there is no answer, or one that says "later".
const TRIES: u32 = 5;

const OTHER_REQUEST: u8 = 2;
const DEAD_LETTER: u8 = 3;

pub(crate) async fn submit(order: &str, amount: &str, url: &str) -> Result<ExitCode> {
    let task = json!({ "targetUrl": url, "bodyJson": { "order": order, "amount": amount } });
    // The key names the order, not this run: submitted again after a crash or a lost answer, it is the same task.
    let headers = [("idempotency-key", order), ("prefer", "wait=30")];
    let answer = call_until_answered("POST", "/retry-tasks", &headers, &task).await?;
    let mut task = match answer.status {
        200..=202 => answer.document,
        422 if answer.is_problem("idempotency-key-reused") => {
            eprintln!("{order} was announced before with other contents");
            return Ok(OTHER_REQUEST.into());
        }
        status => bail!("{status}: {}", answer.document),
    };
    // 202: the wait was over before the task has ended. Wait again; do not submit again.
    while let Some("PENDING" | "IN_FLIGHT") = task["status"].as_str() {
        let path = format!("/retry-tasks/{}", task["taskId"].as_str().unwrap_or_default());
        let answer = call_until_answered("GET", &path, &[("prefer", "wait=30")], &Value::Null).await?;
        if answer.status != 200 {
            bail!("{}: {}", answer.status, answer.document);
        }
        task = answer.document;
    }
    let status = task["status"].as_str().unwrap_or_default();
    println!("{order}: {status} after {} attempt(s)", task["attemptNumber"]);
    // What is not SUCCEEDED is a dead letter: `redrive tasks replay ID` sends it again.
    Ok(if status == "SUCCEEDED" { ExitCode::SUCCESS } else { DEAD_LETTER.into() })
}

/// Calls Redrive, again while there is no answer or one that says "later".
async fn call_until_answered(method: &str, path: &str, headers: &[(&str, &str)], document: &Value) -> Result<Answer> {
    let mut tries = 0;
    loop {
        tries += 1;
        let outcome = call(method, path, headers, document).await;
        let seconds = match &outcome {
            Ok(answer) if matches!(answer.status, 429 | 503) => answer.retry_after.unwrap_or(1),
            Ok(_) => return outcome,
            Err(_) => 1,
        };
        if tries == TRIES {
            return outcome;
        }
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
}
