//! The frail dependency: it fails and recovers again and again, and its tasks would be retried without a pause. The retry
//! budget that all nodes share has to protect it (invariant 8).
//!
//! It has an origin of its own and receives nothing but these tasks, so that every attempt of its lane is in the ledger:
//! it always reads the request before it answers or resets the connection. No caller cancels, replays or brings forward
//! its tasks, so attempt 1 is the first attempt and every later one is a retry.
//!
//! There are few tasks, so that the floor of the budget is what counts: three nodes with a floor each would be noticed.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use fastrand::Rng;
use serde_json::json;

use super::caller::{self, Callers};
use super::history::Ledger;
use super::line::Line;
use crate::clock::now_us;
use crate::fingerprint::hash_of;
use crate::http::{Reply, Request, Respond};
use crate::witness::{Arrival, RequestedTask, Submission};

/// Its name.
pub const FRAIL: &str = "frail";
/// Settings of the nodes. With the default ones the breaker opens before a budget that does not work is noticed: here it
/// opens when nothing succeeds, or when retries have waited for the budget for 10 s. It is never open for a minute,
/// because the run is hardly longer.
pub const SERVE_ARGUMENTS: [&str; 6] =
    ["--breaker-failures", "1000", "--breaker-failure-percent", "100", "--breaker-longest-open", "15s"];

/// How many callers submit for it: one of them may wait for a node that does not answer.
const CALLERS: u64 = 3;
/// The pause of a caller between two submissions.
const EVERY_MS: std::ops::Range<u64> = 500..1_500;
/// Many retries, each soon after the attempt before.
const MAX_ATTEMPTS: u32 = 60;
const INITIAL_DELAY_MS: u64 = 20;
const MAX_DELAY_MS: u64 = 100;
const ATTEMPT_TIMEOUT_MS: u64 = 800;
/// While it is sick, this many of 100 tasks succeed and all attempts of the others fail. So many that a node's breaker
/// does not see failures only.
const SPARED_PERCENT: u64 = 50;
/// How long it is well at first, and how long each state lasts.
const WELL_AT_FIRST_MS: u64 = 2_000;
const SICK_MS: std::ops::Range<u64> = 9_000..14_000;
const DEAD_MS: std::ops::Range<u64> = 2_000..6_000;
const WELL_MS: std::ops::Range<u64> = 3_000..10_000;
/// Makes its random numbers differ from those of the other callers.
const OWN_SEED: u64 = 0x0066_7261_696c;

/// The state of the dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Every request is answered 200.
    Well,
    /// Most tasks fail, whatever the attempt.
    Sick,
    /// Every request fails.
    Dead,
}

/// The target of its tasks.
pub struct Frail {
    ledger: Arc<Ledger>,
    seed: u64,
    /// When the first request arrived: its states are counted from then on.
    began: OnceLock<Instant>,
    is_healed: AtomicBool,
}

impl Frail {
    /// It is well for a moment, and then sick.
    pub fn new(seed: u64, ledger: Arc<Ledger>) -> Self {
        Frail { ledger, seed, began: OnceLock::new(), is_healed: AtomicBool::new(false) }
    }

    /// From now on every request is answered 200.
    pub fn heal(&self) {
        self.is_healed.store(true, Ordering::Release);
    }

    fn state(&self) -> State {
        if self.is_healed.load(Ordering::Acquire) {
            return State::Well;
        }
        state_after(self.seed, self.began.get_or_init(Instant::now).elapsed())
    }
}

impl Respond for Frail {
    fn respond(&self, request: &Request<'_>) -> Reply {
        let key = request.header("idempotency-key").unwrap_or_default().trim_matches('"');
        let attempt = request.header("redrive-attempt").and_then(|number| number.parse().ok()).unwrap_or(0);
        let is_spared = hash_of((self.seed, key)) % 100 < SPARED_PERCENT;
        let (answered, reply) = match self.state() {
            State::Well => answer(200),
            State::Sick if is_spared => answer(200),
            // Both are failures of a dependency that has received the request.
            State::Sick | State::Dead if hash_of((self.seed, key, attempt)).is_multiple_of(4) => (None, Reply::Reset),
            State::Sick | State::Dead => answer(500),
        };
        self.ledger.write().arrivals.push(Arrival {
            at: now_us(),
            task: request.header("redrive-task-id").unwrap_or_default().to_owned(),
            attempt,
            key: key.to_owned(),
            target: format!("{} {}", request.method(), request.path()),
            body_hash: hash_of(request.body),
            answered,
        });
        reply
    }
}

/// The state after this time: well, sick, well, dead, and so on.
fn state_after(seed: u64, elapsed: Duration) -> State {
    let mut random = Rng::with_seed(seed ^ OWN_SEED);
    let Some(mut left) = elapsed.checked_sub(Duration::from_millis(WELL_AT_FIRST_MS)) else { return State::Well };
    let states = [(State::Sick, SICK_MS), (State::Well, WELL_MS), (State::Dead, DEAD_MS), (State::Well, WELL_MS)];
    for (state, lasts) in states.into_iter().cycle() {
        let lasts = Duration::from_millis(random.u64(lasts));
        match left.checked_sub(lasts) {
            Some(rest) if !lasts.is_zero() => left = rest,
            _ => return state,
        }
    }
    State::Well
}

fn answer(status: u16) -> (Option<u16>, Reply) {
    (Some(status), Reply::Now(Bytes::from(format!("HTTP/1.1 {status} X\r\ncontent-length: 2\r\n\r\nok"))))
}

/// Submits tasks for it until the callers are stopped.
pub async fn run(shared: Arc<Callers>, target: SocketAddr) -> Result<()> {
    let mut callers = tokio::task::JoinSet::new();
    for at in 0..CALLERS {
        callers.spawn(submit(Arc::clone(&shared), target, at));
    }
    while let Some(ended) = callers.join_next().await {
        ended.context("a caller panicked")??;
    }
    Ok(())
}

async fn submit(shared: Arc<Callers>, target: SocketAddr, at: u64) -> Result<()> {
    let mut random = Rng::with_seed((shared.seed ^ OWN_SEED).wrapping_add(at));
    let mut line = Line::default();
    while !shared.stop.load(Ordering::Acquire) {
        let submission = draw(&shared, target);
        shared.ledger.write().requested.insert(submission.key.clone(), vec![submission.requested.clone()]);
        caller::submit(&shared, &mut line, &mut random, &submission, 0).await?;
        tokio::time::sleep(Duration::from_millis(random.u64(EVERY_MS))).await;
    }
    Ok(())
}

fn draw(shared: &Callers, target: SocketAddr) -> Submission {
    let key = format!("frail-{}-{}", shared.seed, shared.next.fetch_add(1, Ordering::AcqRel));
    let (path, body) = (format!("/{key}"), "handle with care");
    let document = json!({
        "targetUrl": format!("http://{target}{path}"),
        "method": "POST",
        "body": body,
        "idempotencyKey": key,
        "dependency": FRAIL,
        "policy": {
            "maxAttempts": MAX_ATTEMPTS,
            "initialDelayMs": INITIAL_DELAY_MS,
            "maxDelayMs": MAX_DELAY_MS,
            "attemptTimeoutMs": ATTEMPT_TIMEOUT_MS,
            "connectTimeoutMs": ATTEMPT_TIMEOUT_MS,
        },
    });
    let requested = RequestedTask {
        target: format!("POST {path}"),
        body_hash: hash_of(body.as_bytes()),
        dependency: FRAIL.to_owned(),
        max_attempts: MAX_ATTEMPTS,
        attempt_timeout_ms: ATTEMPT_TIMEOUT_MS,
    };
    Submission { key, document: document.to_string(), requested }
}

#[cfg(test)]
mod tests {
    use super::super::SHORT;
    use super::*;

    #[test]
    fn it_is_well_and_sick_or_dead_in_turns() {
        for seed in [SHORT.seed, 1, 2, 3] {
            let mut states: Vec<State> =
                (0..600).map(|tenths| state_after(seed, Duration::from_millis(100 * tenths))).collect();
            states.dedup();
            assert_eq!(states[..5], [State::Well, State::Sick, State::Well, State::Dead, State::Well], "seed {seed}");
        }
    }

    #[test]
    fn the_short_run_has_it_sick_for_at_least_nine_seconds_and_well_after_that() {
        let states = [WELL_AT_FIRST_MS, WELL_AT_FIRST_MS + 8_900, SHORT.trouble.as_millis() as u64 - 3_000]
            .map(|elapsed| state_after(SHORT.seed, Duration::from_millis(elapsed)));
        assert_eq!(states[..2], [State::Sick, State::Sick]);
        assert_ne!(states[2], State::Sick);
    }
}
