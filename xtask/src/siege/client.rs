//! The client that works during a siege: small submissions and health checks at a steady pace.
//!
//! It has a thread of its own, so that the attackers in this process do not slow it down. Calls on connections of their
//! own begin on time, whatever the earlier ones do; half of the submissions share a kept connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use serde_json::json;
use tokio::task::JoinSet;

use super::outcome::Calls;
use crate::api::{Api, Task};

/// The time between two submissions, and between two health checks.
const EVERY: Duration = Duration::from_millis(20);
/// How long the client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The body of each submission.
const BODY_BYTES: usize = 512;
/// The most characters of a refusal that are kept.
const SHOWN: usize = 120;

/// The client's results.
#[derive(Debug, Default)]
pub struct Observed {
    /// Its submissions.
    pub submits: Calls,
    /// Its calls of `/livez`.
    pub health: Calls,
    /// The tasks that were acknowledged.
    pub tasks: Vec<String>,
}

/// The client.
pub struct Client {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Observed>>,
}

impl Client {
    /// Begins to call `service` with tasks for `target`.
    pub fn start(service: SocketAddr, target: SocketAddr) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("client".to_owned())
            .spawn(move || runtime.block_on(call_until(told, service, target)))?;
        Ok(Client { stop, thread })
    }

    /// Begins no further call, waits for those in progress, and returns all results.
    pub fn stop(self) -> Result<Observed> {
        self.stop.store(true, Ordering::Release);
        self.thread.join().map_err(|_| anyhow!("the client panicked"))?
    }
}

/// The result of one call.
enum Called {
    Submit(Duration, Result<String, String>),
    Health(Duration, Result<(), String>),
}

impl Observed {
    fn add(&mut self, called: Called) {
        match called {
            Called::Health(took, outcome) => self.health.add(took, outcome),
            Called::Submit(took, Ok(task)) => {
                self.tasks.push(task);
                self.submits.add(took, Ok(()));
            }
            Called::Submit(took, Err(instead)) => self.submits.add(took, Err(instead)),
        }
    }
}

async fn call_until(stop: Arc<AtomicBool>, service: SocketAddr, target: SocketAddr) -> Result<Observed> {
    let kept = tokio::spawn(submit_over_one_connection(Arc::clone(&stop), service, target));
    let mut observed = Observed::default();
    let mut calls = JoinSet::new();
    let mut ticks = tokio::time::interval(EVERY);
    for number in 0_u64.. {
        ticks.tick().await;
        if stop.load(Ordering::Acquire) {
            break;
        }
        calls.spawn(async move { timed_health(service).await });
        if number % 2 == 0 {
            let document = document(target, &format!("fresh-{number}"));
            calls.spawn(async move { timed_submit(&mut None, service, &document).await });
        }
        while let Some(called) = calls.try_join_next() {
            observed.add(called?);
        }
    }
    while let Some(called) = calls.join_next().await {
        observed.add(called?);
    }
    for called in kept.await? {
        observed.add(called);
    }
    Ok(observed)
}

async fn submit_over_one_connection(stop: Arc<AtomicBool>, service: SocketAddr, target: SocketAddr) -> Vec<Called> {
    let mut called = Vec::new();
    let mut connection = None;
    let mut ticks = tokio::time::interval(2 * EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while !stop.load(Ordering::Acquire) {
        ticks.tick().await;
        let document = document(target, &format!("kept-{}", called.len()));
        called.push(timed_submit(&mut connection, service, &document).await);
    }
    called
}

fn document(target: SocketAddr, key: &str) -> String {
    json!({
        "targetUrl": format!("http://{target}/{key}"),
        "method": "POST",
        "body": "x".repeat(BODY_BYTES),
        "idempotencyKey": key,
        "dependency": "steady",
        "policy": { "maxAttempts": 3, "initialDelayMs": 50, "maxDelayMs": 200 },
    })
    .to_string()
}

async fn timed_health(service: SocketAddr) -> Called {
    let begin = Instant::now();
    let asked = async {
        let answer = Api::connect(service).await?.call("GET", "/livez", "").await?;
        anyhow::Ok(if answer.status == 200 { Ok(()) } else { Err(answer.describe()) })
    };
    let outcome = within_patience(asked).await;
    Called::Health(begin.elapsed(), outcome)
}

/// Submits over `connection`, or a new one. A kept connection may have been closed meanwhile: then the same request is
/// repeated over a new one, as any client would do.
async fn timed_submit(connection: &mut Option<Api>, service: SocketAddr, document: &str) -> Called {
    let begin = Instant::now();
    let outcome = within_patience(async {
        if let Some(api) = connection.take()
            && let Ok(submitted) = submit(connection, api, document).await
        {
            return Ok(submitted);
        }
        submit(connection, Api::connect(service).await?, document).await
    });
    let outcome = outcome.await;
    Called::Submit(begin.elapsed(), outcome)
}

/// The task's id or the refusal; an error if the connection is unusable.
async fn submit(keep: &mut Option<Api>, mut api: Api, document: &str) -> Result<Result<String, String>> {
    let answer = api.call("POST", "/retry-tasks", document).await?;
    if !matches!(answer.status, 200 | 201) {
        return Ok(Err(answer.describe()));
    }
    let task: Task = answer.document()?;
    *keep = Some(api);
    Ok(Ok(task.task_id))
}

async fn within_patience<T>(call: impl Future<Output = Result<Result<T, String>>>) -> Result<T, String> {
    let instead = match tokio::time::timeout(PATIENCE, call).await {
        Ok(Ok(Ok(done))) => return Ok(done),
        Ok(Ok(Err(refusal))) => refusal,
        Ok(Err(error)) => format!("{error:#}"),
        Err(_) => format!("no answer within {PATIENCE:?}"),
    };
    Err(instead.chars().take(SHOWN).collect())
}
