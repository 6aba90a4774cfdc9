//! The repair loop of the index: connects to Redis, checks the state of each partition, adds what Redis missed, and
//! rebuilds what was lost.
//!
//! It sleeps while the whole index is in use, and checks every [`CHECK_EVERY`] while a part is not. No call waits for
//! it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::keys::Partition;
use crate::partitions::{Owed, Standing};
use crate::rebuild::{self, Rebuilt};
use crate::redis_call_error::RedisCallError;
use crate::state::State;

/// The time between two checks while a part of the index is not in use: the pause after a failure.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Runs until it is aborted.
pub(crate) async fn run(state: Arc<State>) {
    loop {
        check(&state).await;
        match state.partitions.is_complete_throughout() {
            true => state.partitions.worse().await,
            // New failures wait for this pause too, or a failing server would be called without a pause.
            false => sleep(CHECK_EVERY).await,
        }
    }
}

/// One check: afterwards every partition that can be used is in use.
async fn check(state: &State) {
    if state.partitions.is_complete_throughout() {
        return;
    }
    if !state.schedule.link.is_connected()
        && let Err(failure) = state.schedule.connect().await
    {
        return state.partitions.all_failed(&failure);
    }
    // All partitions: if one has lost data, others may have too, and one rebuild is enough for all.
    let incomplete = take_stock(state, Partition::all().collect()).await;
    if incomplete.is_empty() {
        return;
    }
    match rebuild::rebuild(state, incomplete).await {
        Ok(Rebuilt::Filled(partitions)) => {
            // Tasks that were kept meanwhile are added before the partitions are used.
            take_stock(state, partitions).await;
        }
        Ok(Rebuilt::NotOurTurn) => {}
        Err(error) => tracing::warn!(%error, "rebuilding the index failed, trying again"),
    }
}

/// Reads the state of these partitions and adds what they missed. Returns those that are not complete.
async fn take_stock(state: &State, partitions: Vec<Partition>) -> Vec<Partition> {
    let answers = state.schedule.is_complete(&partitions).await;
    if answers.iter().all(Result::is_err) {
        // In a cluster some nodes may be away for long. If no node answers, a new connection is made.
        state.schedule.link.disconnect();
    }
    let mut incomplete = Vec::new();
    for (partition, answer) in partitions.into_iter().zip(answers) {
        match settle_debts(state, partition, answer).await {
            Ok(standing) => {
                state.partitions.found(partition, standing);
                if standing == Standing::Incomplete {
                    incomplete.push(partition);
                }
            }
            Err(failure) => state.partitions.partition_failed(partition, &failure),
        }
    }
    incomplete
}

/// Adds what a partition missed; returns its state afterwards.
async fn settle_debts(
    state: &State,
    partition: Partition,
    answer: Result<bool, RedisCallError>,
) -> Result<Standing, RedisCallError> {
    let is_complete = answer?;
    let owed = state.partitions.owed(partition);
    if owed.has_missed
        && let Some(Err(failure)) = state.schedule.forget(&[partition]).await.pop()
    {
        state.partitions.owe(partition, owed);
        return Err(failure);
    }
    let has_missed = owed.has_missed;
    let missing = state.schedule.add(owed.tasks).await;
    if let Some(first) = missing.first() {
        let failure = first.failure.clone();
        let tasks = missing.into_iter().flat_map(|missing| missing.tasks).collect();
        state.partitions.owe(partition, Owed { tasks, has_missed: false });
        return Err(failure);
    }
    Ok(if is_complete && !has_missed { Standing::Complete } else { Standing::Incomplete })
}
