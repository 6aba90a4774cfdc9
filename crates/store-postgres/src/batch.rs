//! Batching of calls: whatever is queued when a writer becomes free goes into its next transaction.
//!
//! The same idea as group commit, for a database that can commit several transactions at once. While each writer waits
//! for its commit, callers queue up, and the next statement takes them all. A single caller does not wait for others.
//! There is no timer and no window to tune.
//!
//! A batch is one transaction. If PostgreSQL refuses it, each call is tried alone, so that no call fails because of
//! another; of calls for records, the items of each key. So are those whose rows another transaction has locked: the others
//! are written at once. That runs beside the next batches, and so does finding out whether a batch was committed when its
//! answer was lost. So other calls are not delayed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use redrive_core::idempotency::RecordKey;
use redrive_store::{CommitCounter, Error, Liveness};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::pool::{Pool, call};
use crate::postgres_error::PostgresError;

/// The most queued calls. Further callers wait until there is room, at most for the call timeout.
const QUEUE: usize = 16_384;
/// The most items in one statement.
const MAX_ITEMS: usize = 512;
/// The most bytes in one statement, exceeded by at most one call.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// How long to find out whether a batch was committed before its callers get an error. A server that was killed is back
/// by then, or another has replaced it.
const FIND_OUT_FOR: Duration = Duration::from_secs(20);
/// How long a call by itself is retried because another transaction holds a lock that it needs.
const LOCKED_FOR: Duration = Duration::from_secs(5);
/// The first and the longest pause between two such retries.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How many calls, or keys, of one batch are tried alone at a time.
const ALONE: usize = 8;
/// The most batches of one writer that are repeated beside new batches; beyond that, new batches wait.
const REPEATS_AT_ONCE: usize = 16;

/// What a statement does about rows that another transaction has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locks {
    /// It leaves them, if the kind of work can.
    Skip,
    /// It waits for them, at most for the lock timeout.
    Wait,
}

/// The work of a batch: one kind of call.
pub(crate) trait Work: Send + Sync + 'static {
    /// What a caller submits.
    type Item: Send + Sync + 'static;
    /// The result for one item.
    type Answer: Send + 'static;
    /// The operation's name in error messages.
    const DOING: &'static str;
    /// Whether a second run finds out what the first one did, and does it if it did nothing.
    const CAN_REPEAT: bool;

    /// The approximate size of an item in bytes.
    fn size(item: &Self::Item) -> usize;

    /// The key that items share which are tried together, in their order. `None`: a call is tried as a whole.
    fn key(_: &Self::Item) -> Option<&RecordKey> {
        None
    }

    /// The answer for an item that failed; otherwise its call fails.
    fn failed(error: Error) -> Result<Self::Answer, Error> {
        Err(error)
    }

    /// Runs all items in one transaction and returns the answers in order; `None` for an item that was left because of
    /// [`Locks::Skip`].
    fn run(
        &self,
        connection: &mut Connection,
        items: &[&Self::Item],
        locks: Locks,
    ) -> impl Future<Output = Result<Vec<Option<Self::Answer>>, PostgresError>> + Send;
}

/// Connections for batches, and for batches that are repeated until their outcome is known.
#[derive(Clone)]
pub(crate) struct Pools {
    pub(crate) batches: Pool,
    pub(crate) repeats: Pool,
    /// Counts the transactions that both have committed.
    pub(crate) commits: Arc<CommitCounter>,
}

impl Pools {
    pub(crate) fn close(&self) {
        self.batches.close();
        self.repeats.close();
    }
}

/// The queue to the writers of one kind of call.
pub(crate) struct Batches<W: Work> {
    queue: mpsc::Sender<Call<W>>,
    /// How long a call waits in the queue.
    patience: Duration,
}

/// The writers. Each ends once the queue is closed and everything in it is written.
pub(crate) type Writing = JoinSet<()>;

struct Call<W: Work> {
    items: Vec<W::Item>,
    turn: Turn,
    reply: oneshot::Sender<Result<Vec<W::Answer>, Error>>,
}

impl<W: Work> Batches<W> {
    /// Starts this many writers in `writing`.
    pub(crate) fn start(pools: &Pools, writers: usize, work: W, writing: &mut Writing, liveness: &Liveness) -> Self {
        let (queue, incoming) = mpsc::channel(QUEUE);
        let incoming = Arc::new(Mutex::new(incoming));
        let work = Arc::new(work);
        for _ in 0..writers.max(1) {
            let (alive, written) =
                (liveness.part("writer"), write_until_closed(pools.clone(), incoming.clone(), work.clone()));
            writing.spawn(async move {
                written.await;
                alive.ended(true);
            });
        }
        Batches { queue, patience: pools.batches.call_timeout() }
    }

    /// Writes these items together with the other queued calls. A call that is still queued after the call timeout is
    /// taken back: nothing of it is written.
    pub(crate) async fn call(&self, items: Vec<W::Item>) -> Result<Vec<W::Answer>, Error> {
        let (reply, mut answer) = oneshot::channel();
        let (turn, deadline) = (Turn::default(), Instant::now() + self.patience);
        let call = Call { items, turn: turn.clone(), reply };
        match tokio::time::timeout_at(deadline, self.queue.send(call)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(Error::Closed),
            Err(_) => return Err(self.busy()),
        }
        match tokio::time::timeout_at(deadline, &mut answer).await {
            Ok(answer) => answer.unwrap_or(Err(Error::Closed)),
            Err(_) if turn.take() => Err(self.busy()),
            // A writer has taken the call and answers in time.
            Err(_) => answer.await.unwrap_or(Err(Error::Closed)),
        }
    }

    fn busy(&self) -> Error {
        PostgresError::Busy(self.patience).into_error(W::DOING)
    }
}

/// Whether a call has left the queue. Either its writer or its caller (after a timeout) takes it, the first one wins.
#[derive(Clone, Default)]
struct Turn(Arc<AtomicBool>);

impl Turn {
    fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

async fn write_until_closed<W: Work>(pools: Pools, incoming: Arc<Mutex<mpsc::Receiver<Call<W>>>>, work: Arc<W>) {
    let mut repeats = JoinSet::new();
    loop {
        let calls = next_batch(&mut *incoming.lock().await).await;
        if calls.is_empty() {
            break;
        }
        if let Some(left) = write(&pools, &*work, calls).await {
            while repeats.len() >= REPEATS_AT_ONCE {
                repeats.join_next().await;
            }
            repeats.spawn(left.repeat_until_answered(pools.clone(), work.clone()));
        }
        while repeats.try_join_next().is_some() {}
    }
    while repeats.join_next().await.is_some() {}
}

/// The first call that arrives, and the calls that are queued behind it.
async fn next_batch<W: Work>(incoming: &mut mpsc::Receiver<Call<W>>) -> Vec<Call<W>> {
    let first = loop {
        match incoming.recv().await {
            Some(call) if call.turn.take() => break call,
            Some(_) => {}
            None => return Vec::new(),
        }
    };
    let size = |call: &Call<W>| call.items.iter().map(W::size).sum::<usize>();
    let (mut items, mut bytes) = (first.items.len(), size(&first));
    let mut calls = vec![first];
    while items < MAX_ITEMS && bytes < MAX_BYTES {
        let Ok(call) = incoming.try_recv() else { break };
        if !call.turn.take() {
            continue;
        }
        items += call.items.len();
        bytes += size(&call);
        calls.push(call);
    }
    calls
}

/// A call and the answers that its items have so far.
type Undecided<W> = (Call<W>, Vec<Option<<W as Work>::Answer>>);

/// The calls of a batch that have not been answered.
enum Unanswered<W: Work> {
    /// One of the calls was refused, and so none was written.
    Refused(Vec<Call<W>>),
    /// It is unknown whether they were written.
    InDoubt(Vec<Call<W>>),
    /// The items without an answer have rows that another transaction has locked. The others were written.
    Held(Vec<Undecided<W>>),
}

/// Writes a batch and answers its calls. Returns those whose repetition would delay the next batch.
async fn write<W: Work>(pools: &Pools, work: &W, calls: Vec<Call<W>>) -> Option<Unanswered<W>> {
    let outcome = {
        let items: Vec<&W::Item> = calls.iter().flat_map(|call| &call.items).collect();
        call!(pools.batches, |connection| timed(work.run(connection, &items, Locks::Skip)))
    };
    match outcome {
        Ok((answers, took)) => {
            count_decided(&pools.commits, &calls, &answers, took);
            answer_decided(calls, answers).map(Unanswered::Held)
        }
        Err(failure) if failure.is_refusal() && (failure.is_lock_timeout() || units(&calls).len() > 1) => {
            tracing::debug!(%failure, calls = calls.len(), doing = W::DOING, "refused together, trying each alone");
            Some(Unanswered::Refused(calls))
        }
        Err(failure) if W::CAN_REPEAT && failure.is_in_doubt() => {
            tracing::debug!(%failure, calls = calls.len(), doing = W::DOING, "finding out what happened");
            Some(Unanswered::InDoubt(calls))
        }
        Err(failure) => {
            answer_all(calls, Err(failure));
            None
        }
    }
}

/// The result of a transaction that was committed, and how long it took with its commit.
async fn timed<T>(transaction: impl Future<Output = Result<T, PostgresError>>) -> Result<(T, Duration), PostgresError> {
    let began = Instant::now();
    let result = transaction.await?;
    Ok((result, began.elapsed()))
}

/// Counts a commit with the calls of which it decided at least one item. A commit that left all items is not counted.
fn count_decided<W: Work>(commits: &CommitCounter, calls: &[Call<W>], answers: &[Option<W::Answer>], took: Duration) {
    let mut rest = answers;
    let decided = calls.iter().filter(|call| {
        let (own, others) = rest.split_at(call.items.len().min(rest.len()));
        rest = others;
        own.iter().any(Option::is_some)
    });
    match decided.count() {
        0 => {}
        decided => commits.count(took, decided),
    }
}

/// Answers the calls whose items are all decided, and returns the others.
fn answer_decided<W: Work>(calls: Vec<Call<W>>, answers: Vec<Option<W::Answer>>) -> Option<Vec<Undecided<W>>> {
    let (mut answers, mut held) = (answers.into_iter(), Vec::new());
    for call in calls {
        let own: Vec<Option<W::Answer>> = answers.by_ref().take(call.items.len()).collect();
        if own.iter().any(Option::is_none) {
            held.push((call, own));
        } else {
            answer(call, Ok(own.into_iter().flatten().collect()));
        }
    }
    Some(held).filter(|held| !held.is_empty())
}

/// The places of items, a call and an item of it, that are tried together: those of a key, or of a call without keys.
fn units<W: Work>(calls: &[Call<W>]) -> Vec<Vec<(usize, usize)>> {
    let mut units: BTreeMap<Option<&RecordKey>, Vec<(usize, usize)>> = BTreeMap::new();
    let mut whole_calls = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        let places = |at| (number, at);
        match call.items.first().and_then(W::key) {
            None => whole_calls.push((0..call.items.len()).map(places).collect()),
            Some(_) => {
                for (at, item) in call.items.iter().enumerate() {
                    units.entry(W::key(item)).or_default().push(places(at));
                }
            }
        }
    }
    whole_calls.extend(units.into_values());
    whole_calls
}

impl<W: Work> Unanswered<W> {
    async fn repeat_until_answered(self, pools: Pools, work: Arc<W>) {
        let undecided = |calls: Vec<Call<W>>| {
            let none = |call: &Call<W>| call.items.iter().map(|_| None).collect();
            calls.into_iter().map(|call| (none(&call), call)).map(|(none, call)| (call, none)).collect()
        };
        let (calls, is_in_doubt) = match self {
            Unanswered::Refused(calls) => (undecided(calls), false),
            Unanswered::Held(calls) => (calls, false),
            Unanswered::InDoubt(calls) => {
                let outcome = {
                    let items: Vec<&W::Item> = calls.iter().flat_map(|call| &call.items).collect();
                    let doubt = Doubt { is_in_doubt: true, is_alone: units(&calls).len() == 1 };
                    run_until_known(&pools, &*work, &items, calls.len(), doubt).await
                };
                match outcome {
                    Err(failure) if failure.is_refusal() && units(&calls).len() > 1 => (undecided(calls), true),
                    outcome => return answer_all(calls, outcome),
                }
            }
        };
        try_each_alone(&pools, &*work, calls, is_in_doubt).await;
    }
}

/// Runs the items that have no answer, those of each unit together, and answers each call when its last item has an answer.
async fn try_each_alone<W: Work>(pools: &Pools, work: &W, calls: Vec<Undecided<W>>, is_in_doubt: bool) {
    let (calls, mut decided): (Vec<Call<W>>, Vec<_>) = calls.into_iter().unzip();
    let mut alone = units(&calls);
    for unit in &mut alone {
        unit.retain(|(call, at)| decided[*call][*at].is_none());
    }
    let mut calls: Vec<Option<Call<W>>> = calls.into_iter().map(Some).collect();
    alone.retain(|unit| !unit.is_empty());
    let items: Vec<Vec<W::Item>> = calls.iter_mut().flatten().map(|call| std::mem::take(&mut call.items)).collect();
    let items = &items;
    let runs = alone.into_iter().map(|unit| async move {
        let own: Vec<&W::Item> = unit.iter().map(|(call, at)| &items[*call][*at]).collect();
        let calls = unit.iter().map(|(call, _)| call).collect::<BTreeSet<_>>().len();
        let outcome = run_until_known(pools, work, &own, calls, Doubt { is_in_doubt, is_alone: true }).await;
        (unit, outcome.map_err(|failure| failure.into_error(W::DOING)))
    });
    let mut runs = stream::iter(runs).buffer_unordered(ALONE);
    while let Some((unit, outcome)) = runs.next().await {
        let answers: Vec<Result<W::Answer, Error>> = match outcome {
            Ok(answers) => answers.into_iter().map(Ok).collect(),
            Err(error) => unit.iter().map(|_| W::failed(error.clone())).collect(),
        };
        for ((call, at), given) in unit.into_iter().zip(answers) {
            match given {
                Ok(given) => decided[call][at] = Some(given),
                Err(error) => calls[call].take().into_iter().for_each(|call| answer(call, Err(error.clone()))),
            }
            if decided[call].iter().all(Option::is_some)
                && let Some(done) = calls[call].take()
            {
                answer(done, Ok(std::mem::take(&mut decided[call]).into_iter().flatten().collect()));
            }
        }
    }
}

/// What is known of calls before they are run again.
struct Doubt {
    /// Whether they may have been written already.
    is_in_doubt: bool,
    /// Whether it is a single call. The calls of a larger batch can be tried each alone.
    is_alone: bool,
}

/// Runs the items, which belong to this many calls. If the outcome is unknown, runs them again until it is known: what the first run did is found by the
/// ids. A single call that could not get a lock has written nothing, and is retried for [`LOCKED_FOR`].
async fn run_until_known<W: Work>(
    pools: &Pools,
    work: &W,
    items: &[&W::Item],
    calls: usize,
    Doubt { mut is_in_doubt, is_alone }: Doubt,
) -> Result<Vec<W::Answer>, PostgresError> {
    let (begun, mut pause) = (Instant::now(), FIRST_PAUSE);
    loop {
        let failure = match call!(pools.repeats, |connection| timed(work.run(connection, items, Locks::Wait))) {
            Err(failure) => failure,
            Ok((answers, took)) => {
                pools.commits.count(took, calls);
                let left = || PostgresError::corrupt("a batch", "an item has no answer");
                return answers.into_iter().collect::<Option<Vec<_>>>().ok_or_else(left);
            }
        };
        is_in_doubt |= failure.is_in_doubt();
        let is_locked = is_alone && failure.is_lock_timeout();
        let may_be_found_out = W::CAN_REPEAT && is_in_doubt && (failure.is_passing() || is_locked);
        let may_be_unlocked = is_locked && begun.elapsed() < LOCKED_FOR;
        if !(may_be_found_out || may_be_unlocked) || begun.elapsed() >= FIND_OUT_FOR {
            return Err(failure);
        }
        tracing::debug!(%failure, doing = W::DOING, "still finding out what happened");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn answer_all<W: Work>(calls: Vec<Call<W>>, outcome: Result<Vec<W::Answer>, PostgresError>) {
    match outcome {
        Ok(answers) => {
            let mut answers = answers.into_iter();
            for call in calls {
                let count = call.items.len();
                answer(call, Ok(answers.by_ref().take(count).collect()));
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

fn answer<W: Work>(call: Call<W>, outcome: Result<Vec<W::Answer>, Error>) {
    if call.reply.send(outcome).is_err() {
        tracing::trace!(doing = W::DOING, "a caller did not wait for its commit");
    }
}
