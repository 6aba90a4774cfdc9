//! The state of each partition of the index, as this process sees it.
//!
//! A partition is *complete* while due tasks are taken from it, *incomplete* when Redis reports that it has lost data,
//! and *failed* when Redis did not answer for it. Any call may find that a partition's state has become worse. Only the
//! repair loop makes it better, so that no claim ever waits to find out whether Redis is back.
//!
//! Tasks that become pending while a partition has failed are kept here and added before the partition is used again.
//! Their number is bounded. Beyond the bound they are dropped and the partition is marked as having missed tasks, which
//! the repair loop records in Redis for all processes.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive_core::{Lane, TaskId};
use redrive_store::{PendingTask, Token};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::keys::Partition;
use crate::redis_call_error::RedisCallError;
use crate::schedule::Gone;

/// The most tasks that are kept while Redis is away. For more than this, a rebuild from the store is as fast.
const MOST_KEPT: usize = 200_000;
/// How often a lasting failure is logged.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// The state of all partitions.
pub(crate) struct Partitions {
    address: String,
    state: Mutex<State>,
    /// Notified when there is work for the repair loop.
    worse: Notify,
}

struct State {
    all: Vec<Entry>,
    kept: usize,
    /// When the present failure was last logged.
    logged_at: Option<Instant>,
}

struct Entry {
    standing: Standing,
    kept: BTreeMap<(TaskId, Token), PendingTask>,
    has_missed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Failed,
    Incomplete,
    Complete,
}

/// What must be written to a partition before it is used again.
#[derive(Debug, Default)]
pub(crate) struct Owed {
    pub(crate) tasks: Vec<PendingTask>,
    /// Whether further tasks were dropped.
    pub(crate) has_missed: bool,
}

/// How much of the index is in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InUse {
    /// The number of partitions that tasks are taken from.
    pub complete: usize,
    /// The number of partitions that must first be filled from the store.
    pub incomplete: usize,
    /// The number of partitions for which Redis does not answer.
    pub failed: usize,
}

impl Partitions {
    /// The state at the start: unknown, which counts as failed. The address is for messages.
    pub(crate) fn new(address: String) -> Self {
        let entry = |_| Entry { standing: Standing::Failed, kept: BTreeMap::new(), has_missed: false };
        let state = State { all: Partition::all().map(entry).collect(), kept: 0, logged_at: None };
        Partitions { address, state: Mutex::new(state), worse: Notify::new() }
    }

    /// Whether tasks of this lane are taken from the index.
    pub(crate) fn is_complete(&self, lane: &Lane) -> bool {
        self.standing(Partition::of(lane)) == Standing::Complete
    }

    /// Whether Redis answers for this lane.
    pub(crate) fn is_reachable(&self, lane: &Lane) -> bool {
        self.standing(Partition::of(lane)) != Standing::Failed
    }

    pub(crate) fn standing(&self, partition: Partition) -> Standing {
        self.lock().all[partition.index()].standing
    }

    /// Records that Redis did not answer for this lane.
    pub(crate) fn failed(&self, lane: &Lane, failure: &RedisCallError) {
        self.partition_failed(Partition::of(lane), failure);
    }

    /// Records that Redis cannot be reached at all.
    pub(crate) fn all_failed(&self, failure: &RedisCallError) {
        Partition::all().for_each(|partition| self.partition_failed(partition, failure));
    }

    pub(crate) fn partition_failed(&self, partition: Partition, failure: &RedisCallError) {
        let mut state = self.lock();
        state.all[partition.index()].standing = Standing::Failed;
        self.worse.notify_one();
        if state.logged_at.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
            state.logged_at = Some(Instant::now());
            tracing::warn!(address = self.address, error = %failure, "redis failed: claiming from the store until it is back");
        }
    }

    /// Records that this lane's partition has lost data.
    pub(crate) fn incomplete(&self, lane: &Lane) {
        let mut state = self.lock();
        let entry = &mut state.all[Partition::of(lane).index()];
        if entry.standing == Standing::Complete {
            entry.standing = Standing::Incomplete;
            self.worse.notify_one();
        }
    }

    /// Keeps a task until its partition answers again. A partition with kept tasks is not in use, even if it was found
    /// to answer at the same moment.
    pub(crate) fn keep(&self, task: PendingTask) {
        let mut state = self.lock();
        let is_full = state.kept >= MOST_KEPT;
        let entry = &mut state.all[Partition::of(&task.lane).index()];
        entry.standing = Standing::Failed;
        if is_full {
            entry.has_missed = true;
        } else if entry.kept.insert((task.id, task.token), task).is_none() {
            state.kept += 1;
        }
        self.worse.notify_one();
    }

    /// Drops a kept task that is not pending any more.
    pub(crate) fn unkeep(&self, gone: &Gone) {
        let mut state = self.lock();
        if state.all[Partition::of(&gone.lane).index()].kept.remove(&(gone.id, gone.token)).is_some() {
            state.kept -= 1;
        }
    }

    /// Records that a task of this lane was dropped before it was written to Redis.
    pub(crate) fn missed(&self, lane: &Lane) {
        let mut state = self.lock();
        let entry = &mut state.all[Partition::of(lane).index()];
        entry.has_missed = true;
        entry.standing = Standing::Failed;
        self.worse.notify_one();
    }

    /// Whether all partitions are complete.
    pub(crate) fn is_complete_throughout(&self) -> bool {
        self.lock().all.iter().all(|entry| entry.standing == Standing::Complete)
    }

    /// Takes what must be written to this partition; the caller must write it, or give it back with [`owe`](Self::owe).
    pub(crate) fn owed(&self, partition: Partition) -> Owed {
        let mut state = self.lock();
        let entry = &mut state.all[partition.index()];
        let tasks = mem::take(&mut entry.kept).into_values().collect();
        let owed = Owed { tasks, has_missed: mem::take(&mut entry.has_missed) };
        state.kept -= owed.tasks.len();
        owed
    }

    pub(crate) fn owe(&self, partition: Partition, owed: Owed) {
        if owed.has_missed {
            self.lock().all[partition.index()].has_missed = true;
        }
        owed.tasks.into_iter().for_each(|task| self.keep(task));
    }

    /// Sets the state that the repair loop found for a partition for which Redis answers. It is ignored if a task was
    /// kept meanwhile: then the repair loop must check again.
    pub(crate) fn found(&self, partition: Partition, standing: Standing) {
        let mut state = self.lock();
        let entry = &mut state.all[partition.index()];
        if entry.kept.is_empty() && !entry.has_missed {
            entry.standing = standing;
        }
        let is_complete = state.all.iter().all(|entry| entry.standing == Standing::Complete);
        if is_complete && state.logged_at.take().is_some() {
            tracing::info!("redis is back: claiming from the index again");
        }
    }

    /// Waits until a state has become worse since the last call.
    pub(crate) async fn worse(&self) {
        self.worse.notified().await;
    }

    pub(crate) fn in_use(&self) -> InUse {
        let mut in_use = InUse::default();
        for entry in &self.lock().all {
            match entry.standing {
                Standing::Complete => in_use.complete += 1,
                Standing::Incomplete => in_use.incomplete += 1,
                Standing::Failed => in_use.failed += 1,
            }
        }
        in_use
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::{Class, Dependency, TenantId, Timestamp};

    use super::*;

    fn task(number: u64) -> PendingTask {
        let lane = Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new("a").unwrap() };
        PendingTask {
            lane,
            class: Class::First,
            id: TaskId::from_parts(number, 0),
            token: Token(0),
            due: Timestamp::from_millis(number),
        }
    }

    #[test]
    fn nothing_is_taken_from_a_partition_before_it_was_found_complete() {
        let (partitions, lane) = (Partitions::new(String::new()), task(1).lane);
        assert!(!partitions.is_reachable(&lane));
        partitions.found(Partition::of(&lane), Standing::Incomplete);
        assert!(partitions.is_reachable(&lane) && !partitions.is_complete(&lane));
        partitions.found(Partition::of(&lane), Standing::Complete);
        assert!(partitions.is_complete(&lane));
        assert_eq!(partitions.in_use(), InUse { complete: 1, incomplete: 0, failed: 255 });
        partitions.incomplete(&lane);
        assert!(!partitions.is_complete(&lane));
        partitions.failed(&lane, &RedisCallError::Unconnected);
        partitions.incomplete(&lane);
        assert!(!partitions.is_reachable(&lane), "that it has lost something does not make it answer");
    }

    #[test]
    fn a_partition_is_not_used_while_something_is_kept_for_it() {
        let (partitions, lane) = (Partitions::new(String::new()), task(1).lane);
        let partition = Partition::of(&lane);
        partitions.keep(task(1));
        partitions.found(partition, Standing::Complete);
        assert!(!partitions.is_complete(&lane));
        let owed = partitions.owed(partition);
        assert_eq!((owed.tasks.len(), owed.has_missed), (1, false));
        partitions.owe(partition, owed);
        partitions.found(partition, Standing::Complete);
        assert!(!partitions.is_complete(&lane));
        drop(partitions.owed(partition));
        partitions.found(partition, Standing::Complete);
        assert!(partitions.is_complete(&lane));
        partitions.keep(task(1));
        assert!(!partitions.is_complete(&lane), "it was found to answer just before");
    }

    #[test]
    fn what_is_not_pending_any_more_is_not_kept() {
        let partitions = Partitions::new(String::new());
        [1, 2, 1].into_iter().for_each(|number| partitions.keep(task(number)));
        let PendingTask { lane, class, id, token, .. } = task(1);
        partitions.unkeep(&Gone { lane: lane.clone(), class, id, token: Token(9) });
        partitions.unkeep(&Gone { lane: lane.clone(), class, id, token });
        assert_eq!(partitions.owed(Partition::of(&lane)).tasks, [task(2)]);
        assert_eq!(partitions.lock().kept, 0);
    }

    #[test]
    fn what_does_not_fit_is_noted_as_missed() {
        let partitions = Partitions::new(String::new());
        (0..=MOST_KEPT as u64).for_each(|number| partitions.keep(task(number)));
        let owed = partitions.owed(Partition::of(&task(0).lane));
        assert_eq!((owed.tasks.len(), owed.has_missed), (MOST_KEPT, true));
        partitions.keep(task(1));
        let owed = partitions.owed(Partition::of(&task(0).lane));
        assert_eq!((owed.tasks.len(), owed.has_missed), (1, false));
    }
}
