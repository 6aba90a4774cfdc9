//! Group commit: one writer thread that takes everything in its queue into the next transaction.
//!
//! Why: an fsync costs the same for one row as for a thousand. While one commit is being written to disk, callers queue
//! up, and the next commit takes them all. So the batch grows by itself under load, and a single caller never waits for
//! others: there is no timer and no window to tune.
//!
//! A transaction commits or rolls back as a whole. If any of its jobs fails, or the commit fails, everything is rolled
//! back: no caller gets `Ok` for what was not committed. Then each half is tried as its own transaction, and so on,
//! until each failing job is alone and gets its error. The other jobs of the batch are delayed and lose nothing. So a
//! job may run more than once, each time on the state of the last commit. An ordinary refusal is an `Ok` value.
//!
//! Not here: what a transaction is (see the backend), and reading (readers have their own connections).

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::sync::{mpsc, oneshot, watch};

use crate::commit_counts::CommitCounter;
use crate::{CommitCounts, Error};

/// What the writer thread owns, usually one connection. All methods are called on that thread.
pub trait Backend: Send + 'static {
    /// Opens a transaction.
    fn begin(&mut self) -> Result<(), Error>;
    /// Makes the open transaction durable.
    fn commit(&mut self) -> Result<(), Error>;
    /// Rolls back the open transaction; also called after a commit that failed.
    fn rollback(&mut self);
}

/// The bounds of a group commit; zero counts as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The most jobs in one transaction: bounds how long the first of them waits for the last.
    pub max_jobs_per_commit: usize,
    /// The most queued jobs; further callers wait until there is room.
    pub queue: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { max_jobs_per_commit: 1_024, queue: 16_384 }
    }
}

/// A cheap handle to the writer thread. The thread ends with [`close`](GroupCommit::close), or when the last handle is
/// dropped.
pub struct GroupCommit<B> {
    shared: Arc<Shared<B>>,
}

struct Shared<B> {
    queue: mpsc::Sender<Message<B>>,
    closed: AtomicBool,
    /// The writer thread holds the other end and drops it last, after the backend.
    ended: watch::Receiver<()>,
    commits: Arc<CommitCounter>,
}

impl<B: Backend> GroupCommit<B> {
    /// Starts the writer thread.
    pub fn start(thread_name: &str, backend: B, options: Options) -> Result<Self, Error> {
        let (queue, incoming) = mpsc::channel(options.queue.max(1));
        let (ending, ended) = watch::channel(());
        let max_jobs = options.max_jobs_per_commit.max(1);
        let commits = Arc::new(CommitCounter::default());
        let counter = commits.clone();
        std::thread::Builder::new()
            .name(thread_name.to_owned())
            .spawn(move || {
                write_until_closed(backend, incoming, max_jobs, &counter);
                drop(ending);
            })
            .map_err(|error| Error::Unavailable(format!("starting the writer thread: {error}")))?;
        Ok(GroupCommit { shared: Arc::new(Shared { queue, closed: AtomicBool::new(false), ended, commits }) })
    }

    /// Runs `job` inside the next transaction and returns after that transaction has been committed.
    ///
    /// Waits while the queue is full. Once queued, the job runs even if this future is dropped. It runs again if a
    /// transaction that it was in is rolled back because of another job.
    pub async fn run<R: Send + 'static>(
        &self,
        job: impl FnMut(&mut B) -> Result<R, Error> + Send + 'static,
    ) -> Result<R, Error> {
        if self.shared.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Call { job, result: None, reply });
        if self.shared.queue.send(Message::Run(job)).await.is_err() {
            return Err(self.ended());
        }
        match answer.await {
            Ok(result) => result,
            // The writer answers every job that it took, unless it panicked in one of them.
            Err(_) => Err(writer_died()),
        }
    }

    /// Commits the queued jobs, ends the thread, drops the backend and waits for that.
    pub async fn close(&self) {
        self.shared.closed.store(true, Ordering::Release);
        if self.shared.queue.send(Message::Close).await.is_err() {
            tracing::debug!("the writer thread had ended before it was closed");
        }
        let mut ended = self.shared.ended.clone();
        // Nothing is ever sent here: the error means that the thread dropped its end.
        while ended.changed().await.is_ok() {}
    }

    /// Completes if the thread ends without having been closed.
    pub async fn died(&self) {
        let mut ended = self.shared.ended.clone();
        while ended.changed().await.is_ok() {}
        if self.shared.closed.load(Ordering::Acquire) {
            std::future::pending().await
        }
    }

    /// The commits so far.
    pub fn commits(&self) -> CommitCounts {
        self.shared.commits.counts()
    }

    /// Why the queue accepts no more jobs.
    fn ended(&self) -> Error {
        if self.shared.closed.load(Ordering::Acquire) { Error::Closed } else { writer_died() }
    }
}

impl<B> Clone for GroupCommit<B> {
    fn clone(&self) -> Self {
        GroupCommit { shared: Arc::clone(&self.shared) }
    }
}

impl<B> fmt::Debug for GroupCommit<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queued = self.shared.queue.max_capacity() - self.shared.queue.capacity();
        f.debug_struct("GroupCommit").field("queued", &queued).finish_non_exhaustive()
    }
}

fn writer_died() -> Error {
    Error::Unavailable("the writer thread has died; the process must be restarted".to_owned())
}

enum Message<B> {
    Run(Box<dyn Job<B>>),
    Close,
}

/// One queued call in two steps: it runs, and it is answered after the commit.
trait Job<B>: Send {
    fn execute(&mut self, backend: &mut B) -> Result<(), Error>;
    fn answer(self: Box<Self>, outcome: Result<(), Error>);
}

/// Job, result and reply in one allocation.
struct Call<F, R> {
    job: F,
    result: Option<R>,
    reply: oneshot::Sender<Result<R, Error>>,
}

impl<B, F, R> Job<B> for Call<F, R>
where
    F: FnMut(&mut B) -> Result<R, Error> + Send,
    R: Send,
{
    fn execute(&mut self, backend: &mut B) -> Result<(), Error> {
        self.result = Some((self.job)(backend)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), Error>) {
        let call = *self;
        let answer = match (outcome, call.result) {
            (Ok(()), Some(result)) => Ok(result),
            (Err(error), _) => Err(error),
            (Ok(()), None) => Err(writer_died()),
        };
        if call.reply.send(answer).is_err() {
            tracing::trace!("a caller did not wait for its commit");
        }
    }
}

/// The writer thread: everything from its start to the drop of the backend.
fn write_until_closed<B: Backend>(
    backend: B,
    mut incoming: mpsc::Receiver<Message<B>>,
    max_jobs: usize,
    commits: &CommitCounter,
) {
    let work = AssertUnwindSafe(|| write_batches(backend, &mut incoming, max_jobs, commits));
    if catch_unwind(work).is_err() {
        // The backend's state after the panic is unknown, so the backend is dropped, and the transaction with it.
        tracing::error!("the writer thread died: a job or the backend panicked");
    }
    // Dropping the receiver alone could lose a job that is being sent at this moment, and its caller would wait
    // forever.
    incoming.close();
    while let Some(message) = incoming.blocking_recv() {
        if let Message::Run(job) = message {
            job.answer(Err(writer_died()));
        }
    }
}

/// Writes batch after batch until the queue is closed and empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the duration of commits is measured for metrics: nothing is decided by it"
)]
fn write_batches<B: Backend>(
    mut backend: B,
    incoming: &mut mpsc::Receiver<Message<B>>,
    max_jobs: usize,
    commits: &CommitCounter,
) {
    let mut messages = Vec::new();
    let mut jobs = Vec::new();
    while incoming.blocking_recv_many(&mut messages, max_jobs) > 0 {
        for message in messages.drain(..) {
            match message {
                Message::Run(job) => jobs.push(job),
                // From here on the queue accepts no more jobs; those already in it are still written.
                Message::Close => incoming.close(),
            }
        }
        if jobs.is_empty() {
            continue;
        }
        let began = Instant::now();
        match write_batch(&mut backend, &mut jobs) {
            Ok(()) => {
                commits.count(began.elapsed(), jobs.len());
                jobs.drain(..).for_each(|job| job.answer(Ok(())));
            }
            Err(refusal) => {
                tracing::error!(jobs = jobs.len(), error = %refusal.error, "a commit failed and was rolled back");
                write_apart(&mut backend, std::mem::take(&mut jobs), refusal);
            }
        }
    }
}

/// Why a transaction failed.
struct Refusal {
    error: Error,
    /// Whether the transaction had been opened.
    had_begun: bool,
}

/// Finds the jobs that made a transaction fail: each half is tried by itself, in order.
fn write_apart<B: Backend>(backend: &mut B, mut jobs: Vec<Box<dyn Job<B>>>, refusal: Refusal) {
    if jobs.len() == 1 || !refusal.had_begun {
        return jobs.into_iter().for_each(|job| job.answer(Err(refusal.error.clone())));
    }
    let second = jobs.split_off(jobs.len() / 2);
    for mut half in [jobs, second] {
        match write_batch(backend, &mut half) {
            Ok(()) => half.into_iter().for_each(|job| job.answer(Ok(()))),
            Err(refusal) => write_apart(backend, half, refusal),
        }
    }
}

/// Runs one transaction: all of the jobs or none.
fn write_batch<B: Backend>(backend: &mut B, jobs: &mut [Box<dyn Job<B>>]) -> Result<(), Refusal> {
    backend.begin().map_err(|error| Refusal { error, had_begun: false })?;
    let outcome = jobs.iter_mut().try_for_each(|job| job.execute(backend)).and_then(|()| backend.commit());
    outcome.map_err(|error| {
        backend.rollback();
        Refusal { error, had_begun: true }
    })
}

#[cfg(test)]
mod tests;
