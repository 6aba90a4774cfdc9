//! Lists tasks, newest first.

use std::collections::BTreeMap;

use redrive_core::{Dependency, PolicyId, Status, TaskId, TaskIdPrefix, Timestamp};
use redrive_store::{Counts, TaskPage, TaskQuery};

use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;

/// Which tasks to list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskFilter {
    /// Only these statuses; all if empty.
    pub statuses: Vec<Status>,
    /// Only this dependency.
    pub dependency: Option<Dependency>,
    /// Only this policy, in any version.
    pub policy: Option<PolicyId>,
    /// Only tasks with all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Only tasks accepted at or after this moment.
    pub created_after: Option<Timestamp>,
    /// Only tasks accepted before this moment.
    pub created_before: Option<Timestamp>,
    /// Only tasks whose id begins so.
    pub id_prefix: Option<TaskIdPrefix>,
    /// Where the page before ended.
    pub below: Option<TaskId>,
    /// The most tasks of the page; the default page size if not set, and never more than the largest one.
    pub limit: Option<usize>,
}

/// A page of tasks, and the number of all tasks in each status.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The page. A short or empty page may still have a `next`.
    pub page: TaskPage,
    /// How many tasks the tenant has in each status.
    pub counts: Counts,
}

/// A page of tasks, newest first, and the counts.
pub async fn list_tasks(app: &App, caller: &Caller, filter: TaskFilter) -> Result<Listing, OperationError> {
    let page = find_tasks(app, caller, filter).await?;
    let counts = count_tasks(app, caller).await?;
    Ok(Listing { page, counts })
}

/// A page of tasks, newest first.
pub async fn find_tasks(app: &App, caller: &Caller, filter: TaskFilter) -> Result<TaskPage, OperationError> {
    let query = TaskQuery {
        tenant: caller.tenant.clone(),
        statuses: filter.statuses,
        dependency: filter.dependency,
        policy: filter.policy,
        labels: filter.labels,
        created_from: filter.created_after,
        created_before: filter.created_before,
        id_prefix: filter.id_prefix,
        below: filter.below,
        limit: app.limits.page(filter.limit),
    };
    Ok(app.engine.store().reads().list(query).await?)
}

/// How many tasks there are in each status.
pub async fn count_tasks(app: &App, caller: &Caller) -> Result<Counts, OperationError> {
    Ok(app.engine.store().reads().counts(caller.tenant.clone()).await?)
}
