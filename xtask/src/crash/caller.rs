//! Well-behaved callers: when the result of a submission is unknown, they submit it again, unchanged.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fastrand::Rng;
use serde::Deserialize;

use super::history::{Acknowledged, Ledger};
use crate::api::{Answered, Api, Task};
use crate::witness::Submission;

/// How long a caller retries: the service must be back within this time.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause before a retry.
const AGAIN_AFTER: Duration = Duration::from_millis(5);
/// The longest pause between two calls of a caller.
const LONGEST_PAUSE_MS: u64 = 25;
/// How many of its submissions a caller remembers for later calls.
const REMEMBERED: usize = 50;
/// How many of 100 submissions are batches.
const BATCH_PERCENT: u32 = 5;
const LARGEST_BATCH: usize = 10;
/// How many of 100 tasks have one attempt only.
const ONCE_PERCENT: u32 = 15;
/// How many of 100 tasks have a dependency of their own: if such a task is a dead letter, its alert names it.
const ALONE_PERCENT: u32 = 5;
/// The timeout of an attempt.
const ATTEMPT_TIMEOUT_MS: u64 = 1_000;

/// What all callers share.
pub struct Callers {
    /// The service.
    pub service: SocketAddr,
    /// The target of the tasks.
    pub target: SocketAddr,
    /// The ledger of everything that happens.
    pub ledger: Arc<Ledger>,
    /// The run's seed.
    pub seed: u64,
    /// Whether to stop after the current submission.
    pub stop: AtomicBool,
    /// The number of the next submission.
    pub next: AtomicU64,
}

/// Runs `count` callers until they are stopped.
pub async fn run(shared: Arc<Callers>, count: usize) -> Result<()> {
    let mut callers = tokio::task::JoinSet::new();
    for at in 0..count {
        let random = Rng::with_seed(shared.seed.wrapping_mul(1_000_003).wrapping_add(at as u64));
        let mut caller = Caller { shared: Arc::clone(&shared), random, api: None, earlier: Vec::new() };
        callers.spawn(async move { caller.run().await });
    }
    while let Some(ended) = callers.join_next().await {
        ended.context("a caller panicked")??;
    }
    Ok(())
}

#[derive(Deserialize)]
struct BatchAnswer {
    results: Vec<BatchResult>,
}

#[derive(Deserialize)]
struct BatchResult {
    task: Option<Task>,
}

struct Caller {
    shared: Arc<Callers>,
    random: Rng,
    api: Option<Api>,
    earlier: Vec<(Submission, String)>,
}

impl Caller {
    async fn run(&mut self) -> Result<()> {
        while !self.shared.stop.load(Ordering::Acquire) {
            if self.random.u32(..100) < BATCH_PERCENT {
                self.submit_batch().await?;
            } else {
                let submission = self.draw();
                let task = self.submit(&submission).await?;
                self.remember(submission, task);
            }
            match self.random.u32(..100) {
                0..5 => self.cancel_one().await?,
                5..11 => self.look_at_one().await?,
                11..14 => self.submit_one_again().await?,
                _ => {}
            }
            let pause = Duration::from_millis(self.random.u64(..=LONGEST_PAUSE_MS));
            tokio::time::sleep(pause).await;
        }
        Ok(())
    }

    /// A new submission.
    fn draw(&mut self) -> Submission {
        let number = self.shared.next.fetch_add(1, Ordering::AcqRel);
        let key = format!("crash-{}-{number}", self.shared.seed);
        let submission = Submission::draw(key, self.shared.target, ATTEMPT_TIMEOUT_MS, &mut self.random);
        let submission = if self.random.u32(..100) < ONCE_PERCENT { submission.once() } else { submission };
        let is_alone = self.random.u32(..100) < ALONE_PERCENT;
        let submission = if is_alone { submission.once().of_its_own_dependency() } else { submission };
        self.shared.ledger.write().requested.insert(submission.key.clone(), submission.requested.clone());
        submission
    }

    /// Submits until it is acknowledged; returns the task's id.
    async fn submit(&mut self, submission: &Submission) -> Result<String> {
        let answer = self.call("POST", "/retry-tasks", &submission.document).await?;
        if !matches!(answer.status, 200 | 201) {
            bail!("the submission {} was answered {}", submission.key, answer.describe());
        }
        Ok(self.acknowledged(submission, &answer.document()?))
    }

    /// Submits several tasks in one request until they are acknowledged.
    async fn submit_batch(&mut self) -> Result<()> {
        let count = self.random.usize(2..=LARGEST_BATCH);
        let submissions: Vec<Submission> = std::iter::repeat_with(|| self.draw()).take(count).collect();
        let documents: Vec<&str> = submissions.iter().map(|submission| submission.document.as_str()).collect();
        let batch = format!("{{\"tasks\":[{}]}}", documents.join(","));
        let answer = self.call("POST", "/retry-tasks/batch", &batch).await?;
        let results = if answer.status == 200 { answer.document::<BatchAnswer>()?.results } else { Vec::new() };
        if results.len() != count {
            bail!("a batch of {count} was answered {}", answer.describe());
        }
        for (submission, result) in submissions.into_iter().zip(results) {
            let task = result.task.with_context(|| format!("a part of a batch was refused: {}", answer.describe()))?;
            let task = self.acknowledged(&submission, &task);
            self.remember(submission, task);
        }
        Ok(())
    }

    fn acknowledged(&self, submission: &Submission, task: &Task) -> String {
        let acknowledged = Acknowledged { key: submission.key.clone(), task: task.task_id.clone() };
        self.shared.ledger.write().acknowledged.push(acknowledged);
        self.shared.ledger.saw(task, false);
        task.task_id.clone()
    }

    async fn cancel_one(&mut self) -> Result<()> {
        // Mostly the newest: older ones have usually ended.
        let at = if self.random.u32(..4) > 0 { self.earlier.len().checked_sub(1) } else { self.pick() };
        let Some(at) = at else { return Ok(()) };
        let task = self.earlier[at].1.clone();
        let answer = self.call("DELETE", &format!("/retry-tasks/{task}"), "").await?;
        match answer.status {
            200 | 202 => self.shared.ledger.saw(&answer.document()?, true),
            // It had ended, perhaps by an earlier try of this cancel.
            409 => self.look_at(&task).await?,
            404 => self.shared.ledger.missed(&task),
            _ => bail!("the cancel of {task} was answered {}", answer.describe()),
        }
        Ok(())
    }

    async fn look_at_one(&mut self) -> Result<()> {
        let Some(at) = self.pick() else { return Ok(()) };
        let task = self.earlier[at].1.clone();
        self.look_at(&task).await
    }

    async fn look_at(&mut self, task: &str) -> Result<()> {
        let answer = self.call("GET", &format!("/retry-tasks/{task}"), "").await?;
        match answer.status {
            200 => self.shared.ledger.saw(&answer.document()?, false),
            404 => self.shared.ledger.missed(task),
            _ => bail!("the look at {task} was answered {}", answer.describe()),
        }
        Ok(())
    }

    async fn submit_one_again(&mut self) -> Result<()> {
        let Some(at) = self.pick() else { return Ok(()) };
        let (submission, task) = self.earlier.swap_remove(at);
        // The rules detect an id that differs from the first.
        self.submit(&submission).await?;
        self.remember(submission, task);
        Ok(())
    }

    fn remember(&mut self, submission: Submission, task: String) {
        if self.earlier.len() == REMEMBERED {
            self.earlier.swap_remove(self.random.usize(..REMEMBERED));
        }
        self.earlier.push((submission, task));
    }

    fn pick(&mut self) -> Option<usize> {
        (!self.earlier.is_empty()).then(|| self.random.usize(..self.earlier.len()))
    }

    /// Sends the same request until there is an answer other than 503.
    async fn call(&mut self, method: &str, path: &str, body: &str) -> Result<Answered> {
        let begin = Instant::now();
        loop {
            let outcome = match &mut self.api {
                Some(api) => api.call(method, path, body).await,
                None => match Api::connect(self.shared.service).await {
                    Ok(api) => self.api.insert(api).call(method, path, body).await,
                    Err(error) => Err(error),
                },
            };
            match outcome {
                Ok(answer) if answer.status != 503 => return Ok(answer),
                Ok(answer) if begin.elapsed() > PATIENCE => {
                    bail!("{method} {path} was still answered {} after {PATIENCE:?}", answer.describe())
                }
                Err(error) if begin.elapsed() > PATIENCE => {
                    return Err(error.context(format!("{method} {path} had no answer for {PATIENCE:?}")));
                }
                Ok(_) => {}
                // The connection is lost, and it is unknown whether the request had arrived.
                Err(_) => self.api = None,
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }
}
