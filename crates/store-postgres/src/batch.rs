//! Natural batching: whatever is queued when a writer is free goes into its next transaction.
//!
//! The same idea as group commit, for a database that can commit several transactions at once: while each writer waits
//! for its commit, callers queue up, and the next statement takes them all. A lone caller waits for nobody. There is no
//! timer, and no window to tune.
//!
//! A batch is one transaction. If PostgreSQL refuses what is in it, each call is tried alone, so that nobody fails for
//! another's sake.

use std::sync::Arc;

use redrive_store::Error;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::pool::{Pool, call};

/// The most calls that wait; further callers wait until there is room.
const QUEUE: usize = 16_384;
/// The most items in one statement.
const MAX_ITEMS: usize = 512;
/// The most bytes in one statement, give or take one call.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// How often a batch whose fate is unknown is tried again. What it did the first time is found by its ids.
const DOUBTS: usize = 3;

/// What a batch does: one kind of call.
pub(crate) trait Work: Send + Sync + 'static {
    /// What a caller hands over.
    type Item: Send + Sync + 'static;
    /// What became of it.
    type Answer: Send + 'static;
    /// For messages.
    const DOING: &'static str;
    /// Whether running it a second time finds out what the first one did, and does it if it did nothing.
    const CAN_REPEAT: bool;

    /// About how many bytes an item takes.
    fn size(item: &Self::Item) -> usize;

    /// Does all of it in one transaction, and answers in order.
    fn run(
        &self,
        connection: &Connection,
        items: &[&Self::Item],
    ) -> impl Future<Output = Result<Vec<Self::Answer>, Failure>> + Send;
}

/// The way to the writers of one kind of call.
pub(crate) struct Batches<W: Work> {
    queue: mpsc::Sender<Call<W>>,
}

/// The writers themselves: they end once nobody can hand them anything and what was queued is written.
pub(crate) type Writing = JoinSet<()>;

struct Call<W: Work> {
    items: Vec<W::Item>,
    reply: oneshot::Sender<Result<Vec<W::Answer>, Error>>,
}

impl<W: Work> Batches<W> {
    /// Starts this many writers, among `writing`.
    pub(crate) fn start(pool: &Pool, writers: usize, work: W, writing: &mut Writing) -> Self {
        let (queue, incoming) = mpsc::channel(QUEUE);
        let incoming = Arc::new(Mutex::new(incoming));
        let work = Arc::new(work);
        for _ in 0..writers.max(1) {
            writing.spawn(write_until_closed(pool.clone(), incoming.clone(), work.clone()));
        }
        Batches { queue }
    }

    /// Has these items written together with whatever else is waiting.
    pub(crate) async fn call(&self, items: Vec<W::Item>) -> Result<Vec<W::Answer>, Error> {
        let (reply, answer) = oneshot::channel();
        if self.queue.send(Call { items, reply }).await.is_err() {
            return Err(Error::Closed);
        }
        answer.await.unwrap_or(Err(Error::Closed))
    }
}

async fn write_until_closed<W: Work>(pool: Pool, incoming: Arc<Mutex<mpsc::Receiver<Call<W>>>>, work: Arc<W>) {
    loop {
        let calls = next_batch(&mut *incoming.lock().await).await;
        if calls.is_empty() {
            return;
        }
        write(&pool, &*work, calls).await;
    }
}

/// The first call that comes, and whatever is queued behind it.
async fn next_batch<W: Work>(incoming: &mut mpsc::Receiver<Call<W>>) -> Vec<Call<W>> {
    let Some(first) = incoming.recv().await else { return Vec::new() };
    let size = |call: &Call<W>| call.items.iter().map(W::size).sum::<usize>();
    let (mut items, mut bytes) = (first.items.len(), size(&first));
    let mut calls = vec![first];
    while items < MAX_ITEMS && bytes < MAX_BYTES {
        let Ok(call) = incoming.try_recv() else { break };
        items += call.items.len();
        bytes += size(&call);
        calls.push(call);
    }
    calls
}

async fn write<W: Work>(pool: &Pool, work: &W, calls: Vec<Call<W>>) {
    let items: Vec<&W::Item> = calls.iter().flat_map(|call| &call.items).collect();
    match run(pool, work, &items).await {
        Ok(answers) => {
            let mut answers = answers.into_iter();
            for call in calls {
                let count = call.items.len();
                answer(call, Ok(answers.by_ref().take(count).collect()));
            }
        }
        Err(failure) if failure.is_refusal() && calls.len() > 1 => {
            tracing::warn!(%failure, calls = calls.len(), doing = W::DOING, "refused together, trying each alone");
            for call in calls {
                let items: Vec<&W::Item> = call.items.iter().collect();
                let outcome = run(pool, work, &items).await.map_err(|failure| failure.into_error(W::DOING));
                answer(call, outcome);
            }
        }
        Err(failure) => {
            let error = failure.into_error(W::DOING);
            for call in calls {
                answer(call, Err(error.clone()));
            }
        }
    }
}

async fn run<W: Work>(pool: &Pool, work: &W, items: &[&W::Item]) -> Result<Vec<W::Answer>, Failure> {
    let mut doubts = 0;
    loop {
        match call!(*pool, |connection| work.run(connection, items)) {
            Err(failure) if W::CAN_REPEAT && failure.is_in_doubt() && doubts < DOUBTS => {
                tracing::warn!(%failure, doing = W::DOING, "the connection broke off; finding out what happened");
                doubts += 1;
            }
            outcome => return outcome,
        }
    }
}

fn answer<W: Work>(call: Call<W>, outcome: Result<Vec<W::Answer>, Error>) {
    if call.reply.send(outcome).is_err() {
        tracing::trace!(doing = W::DOING, "a caller did not wait for its commit");
    }
}
