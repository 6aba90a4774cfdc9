//! Reading tasks and their attempts.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use redrive_core::request::Fingerprint;
use redrive_core::{
    Answer, Attempt, Dependency, IdempotencyKey, Lane, PolicyId, Request, Status, Task, TaskId, TaskIdPrefix, TenantId,
    Timestamp,
};

use crate::Error;

/// Reads tasks and attempts.
#[async_trait]
pub trait Reads: Send + Sync {
    /// One task with its request and, once it has ended, the dependency's answer.
    async fn task(&self, tenant: TenantId, id: TaskId) -> Result<Option<TaskDetail>, Error>;

    /// The task that an idempotency key belongs to, and the fingerprint of its request.
    async fn by_key(&self, tenant: TenantId, key: IdempotencyKey) -> Result<Option<(Task, Fingerprint)>, Error>;

    /// A page of tasks, newest first. A page may be short, even empty, and still have a `next`, because one call looks
    /// at a bounded number of rows.
    async fn list(&self, query: TaskQuery) -> Result<TaskPage, Error>;

    /// How many tasks the tenant has in each status, without counting them one by one.
    async fn counts(&self, tenant: TenantId) -> Result<Counts, Error>;

    /// How many pending tasks these lanes have, in order. Each number is counted up to `most`, along the index of due
    /// tasks, so the cost does not depend on the backlog. Rows are not read: one that cannot be read may be counted.
    async fn backlogs(&self, lanes: Vec<Lane>, now: Timestamp, most: u32) -> Result<Vec<Backlog>, Error>;

    /// How many retries of each of these lanes belong to tasks that were accepted before this moment, in order. Of each lane
    /// the `look_at` retries that are due first are looked at, along the index of due tasks. Rows are not read.
    async fn old_retries(&self, lanes: Vec<Lane>, accepted_before: Timestamp, look_at: u32) -> Result<Vec<u32>, Error>;

    /// A task's attempts with a number above `after`, ascending, at most `limit`; `None` if the task does not exist.
    async fn attempts(
        &self,
        tenant: TenantId,
        id: TaskId,
        after: u32,
        limit: usize,
    ) -> Result<Option<Vec<Attempt>>, Error>;
}

/// A task with everything that is kept of it except its attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskDetail {
    /// The task's state.
    pub task: Task,
    /// The request that the task sends.
    pub request: Arc<Request>,
    /// What the dependency answered last, once the task has ended.
    pub answer: Option<Answer>,
}

/// A filter for tasks.
#[derive(Debug, Clone)]
pub struct TaskQuery {
    /// Only tasks of this tenant.
    pub tenant: TenantId,
    /// Only tasks with these statuses; all if empty.
    pub statuses: Vec<Status>,
    /// Only tasks for this dependency.
    pub dependency: Option<Dependency>,
    /// Only tasks with this policy, whatever its version.
    pub policy: Option<PolicyId>,
    /// Only tasks with all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Only tasks accepted at or after this moment.
    pub created_from: Option<Timestamp>,
    /// Only tasks accepted before this moment.
    pub created_before: Option<Timestamp>,
    /// Only tasks whose id begins so.
    pub id_prefix: Option<TaskIdPrefix>,
    /// Only tasks with an id below this one: the `next` of the previous page.
    pub below: Option<TaskId>,
    /// At most this many tasks.
    pub limit: usize,
}

/// A page of tasks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskPage {
    /// The tasks, newest first.
    pub tasks: Vec<TaskDetail>,
    /// Where the next page begins, if there may be one.
    pub next: Option<TaskId>,
}

/// How many pending tasks a lane has, each number up to the bound that was given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Tasks that are due.
    pub due: u32,
    /// Tasks that are due later: they wait for their first attempt or for their backoff.
    pub waiting: u32,
}

/// Tasks by status; a status without tasks may be absent.
pub type Counts = BTreeMap<Status, u64>;
