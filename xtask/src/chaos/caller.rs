//! Well-behaved callers: when the result of a request is unknown they repeat it, unchanged, at another node. Some also
//! misuse keys: they use one key for two different requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use fastrand::Rng;
use serde::Deserialize;

use super::addresses::Addresses;
use super::history::{Answer, Deed, Ledger, Said};
use super::line::Line;
use crate::api::{Answered, Attempt, Task};
use crate::clock::now_us;
use crate::witness::Submission;

/// The longest pause between two calls of a caller.
const LONGEST_PAUSE_MS: u64 = 120;
/// How many of its submissions a caller remembers for later calls.
const REMEMBERED: usize = 50;
/// The timeout of an attempt: short, so that leases expire within seconds.
const ATTEMPT_TIMEOUT_MS: std::ops::Range<u64> = 500..1_000;
const LARGEST_BATCH: usize = 10;
/// How many of 100 submissions have a body that is stored apart from its task.
const LARGE_PERCENT: u32 = 4;

/// What all callers share.
pub struct Callers {
    /// The addresses of the nodes.
    pub nodes: Arc<Addresses>,
    /// The target of the tasks.
    pub target: SocketAddr,
    /// The ledger of everything that happens.
    pub ledger: Arc<Ledger>,
    /// The run's seed.
    pub seed: u64,
    /// Whether to stop after the current call.
    pub stop: AtomicBool,
    /// The number of the next submission.
    pub next: AtomicU64,
}

impl Callers {
    /// A new submission.
    pub fn draw(&self, random: &mut Rng) -> Submission {
        let number = self.next.fetch_add(1, Ordering::AcqRel);
        let key = format!("chaos-{}-{number}", self.seed);
        let timeout = random.u64(ATTEMPT_TIMEOUT_MS);
        let mut submission = Submission::draw(key, self.target, timeout, random);
        if random.u32(..100) < LARGE_PERCENT {
            submission = submission.large(random);
        }
        self.ledger.write().requested.insert(submission.key.clone(), vec![submission.requested.clone()]);
        submission
    }
}

/// Runs `count` callers until they are stopped.
pub async fn run(shared: Arc<Callers>, count: usize) -> Result<()> {
    let mut callers = tokio::task::JoinSet::new();
    for at in 0..count {
        let random = Rng::with_seed(shared.seed.wrapping_mul(1_000_003).wrapping_add(at as u64));
        let shared = Arc::clone(&shared);
        let mut caller = Caller { shared, random, line: Line::default(), rival: Line::default(), earlier: Vec::new() };
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
    status: u16,
    task: Option<Task>,
}

/// The refusal of a key that belongs to another request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeyReused {
    r#type: String,
    task_id: String,
}

#[derive(Deserialize)]
struct AttemptPage {
    attempts: Vec<Attempt>,
}

struct Caller {
    shared: Arc<Callers>,
    random: Rng,
    line: Line,
    /// A second connection, for two requests at once.
    rival: Line,
    earlier: Vec<(Submission, String)>,
}

impl Caller {
    async fn run(&mut self) -> Result<()> {
        while !self.shared.stop.load(Ordering::Acquire) {
            match self.random.u32(..100) {
                0..5 => self.submit_batch().await?,
                5..10 => self.submit_two_at_once().await?,
                _ => {
                    let submission = self.draw();
                    let said = self.submit(&submission, 0).await?;
                    self.remember(submission, &said);
                }
            }
            match self.random.u32(..100) {
                0..6 => self.cancel_one().await?,
                6..20 => self.look_at_one().await?,
                20..25 => self.submit_one_again().await?,
                25..30 => self.submit_another_under_its_key().await?,
                30..36 => self.hurry_one().await?,
                36..60 => self.replay_one().await?,
                _ => {}
            }
            tokio::time::sleep(Duration::from_millis(self.random.u64(..=LONGEST_PAUSE_MS))).await;
        }
        Ok(())
    }

    fn draw(&mut self) -> Submission {
        self.shared.draw(&mut self.random)
    }

    /// Another request under the same key. Returns also its number among those under the key.
    fn draw_other(&mut self, submission: &Submission) -> (Submission, usize) {
        let other = submission.other(&mut self.random);
        let mut history = self.shared.ledger.write();
        let variants = history.requested.entry(other.key.clone()).or_default();
        variants.push(other.requested.clone());
        let variant = variants.len() - 1;
        (other, variant)
    }

    async fn submit(&mut self, submission: &Submission, variant: usize) -> Result<Said> {
        submit(&self.shared, &mut self.line, &mut self.random, submission, variant).await
    }

    /// Submits two different requests under one key, at the same moment and mostly at two nodes: one of them wins.
    async fn submit_two_at_once(&mut self) -> Result<()> {
        let submission = self.draw();
        let (other, variant) = self.draw_other(&submission);
        let mut random = self.random.fork();
        let (first, second) = tokio::join!(
            submit(&self.shared, &mut self.line, &mut self.random, &submission, 0),
            submit(&self.shared, &mut self.rival, &mut random, &other, variant),
        );
        let (first, second) = (first?, second?);
        if first.acknowledged().is_some() {
            self.remember(submission, &first);
        } else {
            self.remember(other, &second);
        }
        Ok(())
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
        for (submission, BatchResult { status, task }) in submissions.into_iter().zip(results) {
            let said = match (status, task) {
                (200 | 201, Some(task)) => acknowledged(&self.shared.ledger, &submission, 0, status, task),
                // The database failed in the middle of the batch.
                (503, None) => self.submit(&submission, 0).await?,
                _ => bail!("a part of a batch was refused: {}", answer.describe()),
            };
            self.remember(submission, &said);
        }
        Ok(())
    }

    async fn submit_one_again(&mut self) -> Result<()> {
        let Some(at) = self.pick() else { return Ok(()) };
        let submission = self.earlier.swap_remove(at).0;
        let variant = self.variant_of(&submission);
        // The rules detect an id that differs from the first.
        let said = self.submit(&submission, variant).await?;
        self.remember(submission, &said);
        Ok(())
    }

    async fn submit_another_under_its_key(&mut self) -> Result<()> {
        let Some(at) = self.pick() else { return Ok(()) };
        let (submission, task) = self.earlier.swap_remove(at);
        let (other, variant) = self.draw_other(&submission);
        self.submit(&other, variant).await?;
        self.earlier.push((submission, task));
        Ok(())
    }

    async fn cancel_one(&mut self) -> Result<()> {
        // Mostly the newest: older ones have usually ended.
        let at = if self.random.u32(..4) > 0 { self.earlier.len().checked_sub(1) } else { self.pick() };
        let Some(at) = at else { return Ok(()) };
        let task = self.earlier[at].1.clone();
        self.act_on(&task, "DELETE", "", Deed::Cancel).await
    }

    async fn hurry_one(&mut self) -> Result<()> {
        let Some(at) = self.pick() else { return Ok(()) };
        let task = self.earlier[at].1.clone();
        self.act_on(&task, "POST", "/retry-now", Deed::RetryNow).await
    }

    async fn replay_one(&mut self) -> Result<()> {
        let Some(at) = self.pick() else { return Ok(()) };
        let task = self.earlier[at].1.clone();
        // Recorded before the call: its result may be lost.
        self.shared.ledger.write().replays_asked.entry(task.clone()).or_default().push(now_us());
        self.act_on(&task, "POST", "/replay", Deed::Replay).await
    }

    /// Makes a call that changes a task; reads the task where that is not possible (any more).
    async fn act_on(&mut self, task: &str, method: &str, action: &str, deed: Deed) -> Result<()> {
        let answer = self.call(method, &format!("/retry-tasks/{task}{action}"), "").await?;
        match answer.status {
            200 | 202 => self.shared.ledger.saw(answer.document()?, deed),
            404 => self.shared.ledger.missed(task),
            409 => self.look_at(task).await?,
            _ => bail!("{method} {action} of {task} was answered {}", answer.describe()),
        }
        Ok(())
    }

    async fn look_at_one(&mut self) -> Result<()> {
        let Some(at) = self.pick() else { return Ok(()) };
        let task = self.earlier[at].1.clone();
        self.look_at(&task).await?;
        self.look_at_log(&task).await
    }

    async fn look_at(&mut self, task: &str) -> Result<()> {
        let answer = self.call("GET", &format!("/retry-tasks/{task}"), "").await?;
        match answer.status {
            200 => self.shared.ledger.saw(answer.document()?, Deed::Look),
            404 => self.shared.ledger.missed(task),
            _ => bail!("the look at {task} was answered {}", answer.describe()),
        }
        Ok(())
    }

    async fn look_at_log(&mut self, task: &str) -> Result<()> {
        let answer = self.call("GET", &format!("/retry-tasks/{task}/attempts"), "").await?;
        match answer.status {
            200 => {
                let lines = answer.document::<AttemptPage>()?.attempts;
                let lines = lines.into_iter().map(|line| ((task.to_owned(), line.attempt_number), line));
                self.shared.ledger.write().lines_seen.extend(lines);
            }
            404 => self.shared.ledger.missed(task),
            _ => bail!("the look at the log of {task} was answered {}", answer.describe()),
        }
        Ok(())
    }

    /// Remembers a submission for later calls. One that was refused is left to the rules.
    fn remember(&mut self, submission: Submission, said: &Said) {
        let Some(task) = said.acknowledged() else { return };
        if self.earlier.len() == REMEMBERED {
            self.earlier.swap_remove(self.random.usize(..REMEMBERED));
        }
        self.earlier.push((submission, task.to_owned()));
    }

    /// The number of this request among those under its key.
    fn variant_of(&self, submission: &Submission) -> usize {
        let history = self.shared.ledger.write();
        let variants = history.requested.get(&submission.key).map(Vec::as_slice).unwrap_or_default();
        variants.iter().position(|requested| *requested == submission.requested).unwrap_or_default()
    }

    fn pick(&mut self) -> Option<usize> {
        (!self.earlier.is_empty()).then(|| self.random.usize(..self.earlier.len()))
    }

    async fn call(&mut self, method: &str, path: &str, body: &str) -> Result<Answered> {
        self.line.call(&self.shared.nodes, &mut self.random, (method, path, body)).await
    }
}

/// Submits until there is an answer.
pub(super) async fn submit(
    shared: &Callers,
    line: &mut Line,
    random: &mut Rng,
    submission: &Submission,
    variant: usize,
) -> Result<Said> {
    let refused = line.refused;
    let answer = line.call(&shared.nodes, random, ("POST", "/retry-tasks", &submission.document)).await?;
    if submission.is_large() {
        shared.ledger.write().large_refused += line.refused - refused;
    }
    match answer.status {
        200 | 201 => Ok(acknowledged(&shared.ledger, submission, variant, answer.status, answer.document()?)),
        422 => {
            let refusal: KeyReused = answer.document()?;
            if !refusal.r#type.ends_with("/idempotency-key-reused") {
                bail!("the submission {} was answered {}", submission.key, answer.describe());
            }
            let said = Said::Reused(refusal.task_id);
            note(&shared.ledger, submission, variant, said.clone());
            Ok(said)
        }
        _ => bail!("the submission {} was answered {}", submission.key, answer.describe()),
    }
}

fn acknowledged(ledger: &Ledger, submission: &Submission, variant: usize, status: u16, task: Task) -> Said {
    let id = task.task_id.clone();
    let said = if status == 201 { Said::Created(id) } else { Said::Known(id) };
    note(ledger, submission, variant, said.clone());
    ledger.saw(task, Deed::Look);
    said
}

fn note(ledger: &Ledger, submission: &Submission, variant: usize, said: Said) {
    let answer = Answer { at: now_us(), key: submission.key.clone(), variant, said };
    ledger.write().answers.push(answer);
}
