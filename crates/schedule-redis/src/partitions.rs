//! How this process stands with each partition of the index.
//!
//! A partition is *complete* when due work is taken from it; *incomplete* when Redis says that it has lost something; and
//! *failed* when Redis did not answer for it. Anybody may find out that a partition has become worse. Only the keeper
//! makes it better, so that no claim ever waits to see whether Redis is back.
//!
//! What became pending while a partition had failed is kept here and added before it is used again. That is bounded: if
//! it becomes too much, it is dropped, and the partition is noted as having missed something, which the keeper passes on
//! to Redis, for all processes.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive_core::{Lane, TaskId};
use redrive_store::{PendingTask, Token};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::keys::Partition;
use crate::schedule::Gone;

/// The most tasks that are kept while Redis is away. More than this, and reading the store again is as good.
const MOST_KEPT: usize = 200_000;
/// How often a failure that lasts is logged.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// All partitions, as this process sees them.
pub(crate) struct Partitions {
    address: String,
    state: Mutex<State>,
    /// Rings when there is something for the keeper to do.
    worse: Notify,
}

struct State {
    all: Vec<Entry>,
    kept: usize,
    /// When the failure that is under way was logged, last.
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

/// What a partition has to be told before it is used again.
#[derive(Debug, Default)]
pub(crate) struct Owed {
    pub(crate) tasks: Vec<PendingTask>,
    /// Whether there was more, which nobody remembers.
    pub(crate) has_missed: bool,
}

/// How much of the index is in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InUse {
    /// Partitions that work is taken from.
    pub complete: usize,
    /// Partitions that have to be filled from the store first.
    pub incomplete: usize,
    /// Partitions for which Redis does not answer.
    pub failed: usize,
}

impl Partitions {
    /// Nothing is known yet, which is as good as failed.
    /// Of the Redis at this address, which is for messages.
    pub(crate) fn new(address: String) -> Self {
        let entry = |_| Entry { standing: Standing::Failed, kept: BTreeMap::new(), has_missed: false };
        let state = State { all: Partition::all().map(entry).collect(), kept: 0, logged_at: None };
        Partitions { address, state: Mutex::new(state), worse: Notify::new() }
    }

    /// Whether work of this lane is taken from the index.
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

    /// Redis did not answer for this lane.
    pub(crate) fn failed(&self, lane: &Lane, failure: &Failure) {
        self.partition_failed(Partition::of(lane), failure);
    }

    /// There is no way to Redis at all.
    pub(crate) fn all_failed(&self, failure: &Failure) {
        Partition::all().for_each(|partition| self.partition_failed(partition, failure));
    }

    pub(crate) fn partition_failed(&self, partition: Partition, failure: &Failure) {
        let mut state = self.lock();
        state.all[partition.index()].standing = Standing::Failed;
        self.worse.notify_one();
        if state.logged_at.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
            state.logged_at = Some(Instant::now());
            tracing::warn!(address = self.address, error = %failure, "redis failed: claiming from the store until it is back");
        }
    }

    /// Redis says that this lane's partition has lost something.
    pub(crate) fn incomplete(&self, lane: &Lane) {
        let mut state = self.lock();
        let entry = &mut state.all[Partition::of(lane).index()];
        if entry.standing == Standing::Complete {
            entry.standing = Standing::Incomplete;
            self.worse.notify_one();
        }
    }

    /// Keeps a task until its partition answers again. A partition that is owed something is not in use, even if it was
    /// found to answer in this very moment.
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

    /// Keeps a task no longer: it is not pending any more.
    pub(crate) fn unkeep(&self, gone: &Gone) {
        let mut state = self.lock();
        if state.all[Partition::of(&gone.lane).index()].kept.remove(&(gone.id, gone.token)).is_some() {
            state.kept -= 1;
        }
    }

    /// A task of this lane was dropped on its way to Redis.
    pub(crate) fn missed(&self, lane: &Lane) {
        let mut state = self.lock();
        let entry = &mut state.all[Partition::of(lane).index()];
        entry.has_missed = true;
        entry.standing = Standing::Failed;
        self.worse.notify_one();
    }

    /// Whether work is taken from all of them.
    pub(crate) fn is_complete_throughout(&self) -> bool {
        self.lock().all.iter().all(|entry| entry.standing == Standing::Complete)
    }

    /// What this partition has to be told; whoever asks has to tell it, or to [`owe`](Self::owe) it again.
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

    /// The keeper found Redis to answer for this partition, with this standing. Holds unless something was kept
    /// meanwhile: then the keeper has to come again.
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

    /// Ends when something has become worse since the last call.
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
        partitions.failed(&lane, &Failure::Unconnected);
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
