//! The calls of the engine's background loops: lanes with pending tasks, expired leases, overdue tasks, alerts,
//! retention.

use async_trait::async_trait;
use redrive_core::{Class, Lane, Task, TaskId, TenantId, Timestamp};

use crate::{ClaimedTask, Error, LaneDue};

/// Finds the work of background loops, and removes what has passed its retention.
#[async_trait]
pub trait Upkeep: Send + Sync {
    /// The classes of lanes that have pending tasks, in order after `after`, at most `limit`, each with its earliest due
    /// time. Costs one index probe per class of a lane, whatever the backlog.
    async fn pending_lanes(&self, after: Option<(Lane, Class)>, limit: usize) -> Result<Vec<LaneDue>, Error>;

    /// Tasks in flight whose lease has expired by `now`, at most `limit`. Reads only: the rescuer settles each with the
    /// token that it finds, so the first settlement wins.
    async fn expired_leases(&self, now: Timestamp, limit: usize) -> Result<Vec<ClaimedTask>, Error>;

    /// Ends pending tasks whose deadline is at or before `now`, at most `limit`, earliest deadline first: EXHAUSTED, reason
    /// `deadline`, without an attempt, with a [pending alert](Upkeep::pending_alerts) like any dead letter. Costs one index
    /// probe when there is none.
    async fn end_overdue(&self, now: Timestamp, limit: usize) -> Result<Overdue, Error>;

    /// Dead letters that ended before `ended_before` and whose alert has not been [confirmed](Upkeep::confirm_alerts),
    /// earliest end first, at most `limit`. A settle that makes a dead letter notes its alert in the same transaction; a
    /// replay or a cleaning of the task removes the note.
    async fn pending_alerts(&self, ended_before: Timestamp, limit: usize) -> Result<Vec<Task>, Error>;

    /// Records that these alerts have been raised. Repeating it, or naming a run that is no dead letter any more, changes
    /// nothing.
    async fn confirm_alerts(&self, alerts: Vec<RaisedAlert>) -> Result<(), Error>;

    /// Removes tasks that ended before `ended_before`, with everything that belongs to them. Looks at no more than
    /// `limit` rows from `from` on. Returns where the next step starts, or `None` when the pass is complete.
    async fn clean(&self, ended_before: Timestamp, from: CleanFrom, limit: usize) -> Result<Cleaned, Error>;

    /// The newest task id ever stored here: later ids must be above it.
    async fn newest_task(&self) -> Result<Option<TaskId>, Error>;
}

/// The answer to ending overdue tasks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overdue {
    /// The tasks that were ended, EXHAUSTED by their deadline.
    pub ended: Vec<Task>,
    /// The earliest deadline of the tasks that are still pending.
    pub next_deadline: Option<Timestamp>,
}

/// A dead letter whose alert has been raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaisedAlert {
    /// The task's tenant.
    pub tenant: TenantId,
    /// The task's id.
    pub id: TaskId,
    /// The run that ended: a later run that ends as a dead letter has its own alert.
    pub run: u32,
}

/// Where a step of a cleaning pass starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CleanFrom {
    /// At the oldest task.
    Start,
    /// After this task.
    After(TaskId),
}

/// The result of one step of cleaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cleaned {
    /// How many tasks were removed.
    pub removed: usize,
    /// Where the next step starts, `None` when the pass is complete.
    pub next: Option<CleanFrom>,
}
