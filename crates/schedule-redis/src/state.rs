//! The state that the loops and the operations share, and the comparison of the store with the index.

use std::sync::Arc;

use redrive_core::{TaskId, TenantId, Timestamp};
use redrive_store::{LaneDue, PendingTask, Store};

use crate::claimed_queues::ClaimedQueues;
use crate::news::News;
use crate::partitions::Partitions;
use crate::pending_changes::{Change, PendingChanges};
use crate::schedule::{Queue, Schedule};
use crate::stale_queues::StaleQueues;

/// The state that the loops and the operations share.
pub(crate) struct State {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) partitions: Arc<Partitions>,
    pub(crate) pending_changes: PendingChanges,
    pub(crate) stale_queues: StaleQueues,
    pub(crate) claimed_queues: ClaimedQueues,
    pub(crate) news: News,
}

impl State {
    pub(crate) fn new(store: Arc<dyn Store>, schedule: Arc<Schedule>) -> Self {
        State {
            store,
            partitions: Arc::new(Partitions::new(schedule.link.connector.address.to_string())),
            schedule,
            pending_changes: PendingChanges::new(),
            stale_queues: StaleQueues::default(),
            claimed_queues: ClaimedQueues::default(),
            news: News::new(),
        }
    }

    /// Queues changes for the index.
    pub(crate) fn note(&self, changes: impl IntoIterator<Item = Change>) {
        self.pending_changes.note(changes, &self.partitions);
    }

    /// Compares these classes of lanes in the store with the index. A class is marked as stale if the store has an
    /// earlier task than the index, and is cleared otherwise.
    pub(crate) async fn look(&self, lanes: &[LaneDue]) {
        if !self.pending_changes.flushed().await {
            return;
        }
        let known = |lane: &LaneDue| Some(((lane.lane.clone(), lane.class), lane.next_due?));
        let (queues, dues): (Vec<Queue>, Vec<Timestamp>) =
            lanes.iter().filter_map(known).filter(|((lane, _), _)| self.partitions.is_complete(lane)).unzip();
        let heads = self.schedule.heads(&queues).await;
        for ((queue, due), head) in queues.iter().zip(dues).zip(heads) {
            match head {
                Ok(Some(head)) if head <= due => self.stale_queues.clear(queue),
                Ok(_) => self.stale_queues.mark(queue, due),
                Err(failure) => self.partitions.failed(&queue.0, &failure),
            }
        }
    }

    /// Whether a task is pending in the store as the index has it; `None` if the store does not answer.
    pub(crate) async fn is_waiting(&self, task: &PendingTask) -> Option<bool> {
        let after = Some((task.lane.tenant.clone(), id_before(task.id)?));
        let page = self.store.shared()?.waiting(after, 1).await.ok()?;
        Some(page.iter().any(|found| found.id == task.id && found.token == task.token && found.class == task.class))
    }

    /// A pending task as stored. It is read as a page of one pending task, after the id before its own.
    pub(crate) async fn look_up(&self, tenant: &TenantId, id: TaskId) -> Option<PendingTask> {
        let after = Some((tenant.clone(), id_before(id)?));
        match self.store.shared()?.waiting(after, 1).await {
            Ok(page) => page.into_iter().find(|task| task.id == id && task.lane.tenant == *tenant),
            Err(error) => {
                // The next scan of the store finds the task.
                tracing::debug!(task = %id, %error, "looking a task up for the index failed");
                None
            }
        }
    }
}

/// The greatest id below this one.
fn id_before(id: TaskId) -> Option<TaskId> {
    match (id.sequence(), id.tail()) {
        (0, 0) => None,
        (sequence, 0) => Some(TaskId::from_parts(sequence - 1, u64::MAX)),
        (sequence, tail) => Some(TaskId::from_parts(sequence, tail - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_is_between_an_id_and_the_one_before_it() {
        let id = TaskId::from_parts;
        assert_eq!(id_before(id(5, 3)), Some(id(5, 2)));
        assert_eq!(id_before(id(5, 0)), Some(id(4, (1 << 59) - 1)));
        assert_eq!(id_before(id(0, 0)), None);
    }
}
