//! Fills partitions of the index from the store.
//!
//! One process does this at a time. It reads all pending tasks, page by page, the next page while the last one is being
//! written, and adds those of the partitions to fill. Other processes continue to submit, settle and claim. A task that
//! becomes pending after its page was read is added by the process that makes it so. A task that is claimed after that
//! stays in the index out of date, and the store rejects it when it is taken. See
//! [`epoch`](crate::schedule::Schedule::begin) for how a loss in the meantime is detected.

use std::collections::BTreeSet;
use std::time::Instant;

use redrive_core::{TaskId, TenantId};
use redrive_store::{Error, PendingTask, SharedStore};

use crate::keys::Partition;
use crate::redis_call_error::RedisCallError;
use crate::schedule::Builder;
use crate::state::State;

/// How many tasks are read at once.
const PAGE: usize = 10_000;

/// The outcome of a rebuild.
#[derive(Debug)]
pub(crate) enum Rebuilt {
    /// These partitions were filled.
    Filled(Vec<Partition>),
    /// Another process is filling the index.
    NotOurTurn,
}

/// Why the index could not be filled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RebuildError {
    #[error(transparent)]
    Redis(#[from] RedisCallError),
    #[error(transparent)]
    Store(#[from] Error),
    #[error("the store is not shared")]
    NotShared,
    #[error("another process took over")]
    TakenOver,
}

/// Fills these partitions, unless another process is filling the index.
pub(crate) async fn rebuild(state: &State, partitions: Vec<Partition>) -> Result<Rebuilt, RebuildError> {
    let builder = Builder::new();
    let Some(&beside) = partitions.first() else { return Ok(Rebuilt::Filled(Vec::new())) };
    if !state.schedule.lock(beside, &builder).await? {
        return Ok(Rebuilt::NotOurTurn);
    }
    let begin = Instant::now();
    let count = partitions.len();
    tracing::info!(partitions = count, "rebuilding the index in redis");
    let filled = fill(state, partitions, beside, &builder).await;
    if let Err(failure) = state.schedule.unlock(beside, &builder).await {
        tracing::debug!(error = %failure, "the lock on the index runs out by itself");
    }
    let (filled, tasks) = filled?;
    let millis = begin.elapsed().as_millis() as u64;
    tracing::info!(partitions = filled.len(), tasks, millis, "rebuilt the index in redis");
    Ok(Rebuilt::Filled(filled))
}

/// Fills these partitions. Returns those that are complete now, and how many tasks were added.
async fn fill(
    state: &State,
    partitions: Vec<Partition>,
    beside: Partition,
    builder: &Builder,
) -> Result<(Vec<Partition>, usize), RebuildError> {
    let shared = state.store.shared().ok_or(RebuildError::NotShared)?;
    let begun = state.schedule.begin(&partitions, builder).await;
    let mut wanted = still_there(state, partitions, begun);
    let (mut page, mut added) = (shared.waiting(None, PAGE).await?, 0);
    while let Some(last) = page.last() {
        let after = (last.lane.tenant.clone(), last.id);
        page.retain(|task| wanted.contains(&Partition::of(&task.lane)));
        added += page.len();
        let (next, missing) = tokio::join!(read(shared, after), state.schedule.add(page));
        for missing in missing {
            if let Some(task) = missing.tasks.first() {
                state.partitions.failed(&task.lane, &missing.failure);
                wanted.remove(&Partition::of(&task.lane));
            }
        }
        if wanted.is_empty() {
            return Ok((Vec::new(), added));
        }
        if !state.schedule.keep_lock(beside, builder).await? {
            return Err(RebuildError::TakenOver);
        }
        page = next?;
    }
    let wanted: Vec<Partition> = wanted.into_iter().collect();
    let finished = state.schedule.finish(&wanted, builder).await;
    Ok((still_there(state, wanted, finished).into_iter().collect(), added))
}

async fn read(shared: &dyn SharedStore, after: (TenantId, TaskId)) -> Result<Vec<PendingTask>, Error> {
    shared.waiting(Some(after), PAGE).await
}

/// The partitions that answered yes. Those that did not answer are marked as failed.
fn still_there(
    state: &State,
    partitions: Vec<Partition>,
    answers: Vec<Result<bool, RedisCallError>>,
) -> BTreeSet<Partition> {
    let answered = |(partition, answer): (Partition, Result<bool, RedisCallError>)| match answer {
        Ok(is_there) => is_there.then_some(partition),
        Err(failure) => {
            state.partitions.partition_failed(partition, &failure);
            None
        }
    };
    partitions.into_iter().zip(answers).filter_map(answered).collect()
}
