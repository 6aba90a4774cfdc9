//! The writer: writes the queued changes of this process to the index.

use std::sync::Arc;

use redrive_store::PendingTask;

use crate::pending_changes::Change;
use crate::schedule::Gone;
use crate::state::State;

/// Runs until it is aborted.
pub(crate) async fn run(state: Arc<State>) {
    loop {
        let changes = state.pending_changes.next().await;
        let count = changes.len();
        write(&state, changes).await;
        state.pending_changes.wrote(count);
    }
}

async fn write(state: &State, changes: Vec<Change>) {
    let (mut tasks, mut gone, mut due) = (Vec::new(), Vec::new(), Vec::new());
    for change in changes {
        match change {
            Change::PendingTask { task, is_due } => {
                if is_due {
                    due.push(((task.lane.clone(), task.class), task.due));
                }
                tasks.push(task);
            }
            Change::Gone(task) => gone.push(task),
        }
    }
    add(state, tasks).await;
    // After the additions: a task that is gone was added before, never after.
    remove(state, gone).await;
    due.retain(|((lane, _), _)| state.partitions.is_reachable(lane));
    state.news.say(due);
}

async fn add(state: &State, tasks: Vec<PendingTask>) {
    let (tasks, failed): (Vec<PendingTask>, Vec<PendingTask>) =
        tasks.into_iter().partition(|task| state.partitions.is_reachable(&task.lane));
    failed.into_iter().for_each(|task| state.partitions.keep(task));
    for missing in state.schedule.add(tasks).await {
        if let Some(task) = missing.tasks.first() {
            state.partitions.failed(&task.lane, &missing.failure);
        }
        missing.tasks.into_iter().for_each(|task| state.partitions.keep(task));
    }
}

async fn remove(state: &State, mut gone: Vec<Gone>) {
    gone.iter().for_each(|task| state.partitions.unkeep(task));
    gone.retain(|task| state.partitions.is_reachable(&task.lane));
    if let Err(failure) = state.schedule.remove(gone).await {
        // An entry that stays is out of date, and the store rejects it when it is taken.
        tracing::debug!(error = %failure, "removing from the index failed");
    }
}
