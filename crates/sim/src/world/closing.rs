//! The end of a world, after all faults are over: due tasks must be sent, all must end, and the final state is checked.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redrive_core::{Attempt, Status, Task, TaskId, TenantId};
use redrive_server::OperationError;
use redrive_server::operations::{self, TaskFilter};
use redrive_store::{Counts, TaskDetail};

use super::World;
use super::client::{Answer, Caller, local};
use crate::model::Rules;
use crate::moment::Moment;

/// The longest time that a world may take to end.
pub(super) const LONGEST: Duration = Duration::from_secs(24 * 3_600);

/// Reads and checks the final state, after the time in which everything must settle.
pub(super) async fn close(world: Arc<World>, well_since: Moment, closed: Arc<AtomicBool>) {
    let rules = Rules::of(&world.shape);
    let mut caller = Caller::new(&world, 1, Duration::from_secs(60));
    world.executor.sleep_until(well_since.after(rules.settles_within)).await;
    let mut last_due = well_since;
    for tenant in world.tenants.clone() {
        let asked = world.now();
        let tasks = read_tasks(&mut caller, &tenant, vec![]).await;
        let mut observer = world.observer();
        tasks.iter().for_each(|detail| observer.model.shows(&tenant, detail, asked));
        let tasks: Vec<Task> = tasks.into_iter().map(|detail| detail.task).collect();
        last_due = last_due.max(observer.model.is_moving(&tasks, well_since).unwrap_or(last_due));
    }
    world.executor.sleep_until(last_due.after(rules.settles_within).after(rules.alerts_within)).await;
    for tenant in world.tenants.clone() {
        judge(&world, &mut caller, &tenant).await;
    }
    world.observer().model.sinks_were_told(well_since);
    if let Some(alerts) = &rules.alerts {
        world.executor.sleep(alerts.over_within).await;
        world.observer().model.sinks_heard_the_end();
    }
    closed.store(true, Ordering::Relaxed);
}

async fn judge(world: &Arc<World>, caller: &mut Caller, tenant: &TenantId) {
    let asked = world.now();
    let details = read_tasks(caller, tenant, vec![]).await;
    let dead = read_tasks(caller, tenant, vec![Status::Failed, Status::Exhausted]).await;
    let counts = read_counts(caller, tenant).await;
    let tasks: Vec<Task> = details.iter().map(|detail| detail.task.clone()).collect();
    {
        let mut observer = world.observer();
        details.iter().for_each(|detail| observer.model.shows(tenant, detail, asked));
        let dead: BTreeSet<TaskId> = dead.iter().map(|detail| detail.task.id).collect();
        observer.model.is_finished(tenant, &tasks, &dead, &counts);
        for task in &tasks {
            observer.tally.succeeded += u64::from(task.status == Status::Succeeded);
            observer.tally.dead_letters += u64::from(task.status.is_dead_letter());
        }
    }
    for task in tasks {
        let Some(attempts) = read_attempts(caller, tenant, task.id).await else {
            world.observer().model.shows_nothing(task.id);
            continue;
        };
        let now = world.now();
        let mut observer = world.observer();
        observer.note(now, (60, task.id, task.status, attempts.len()), None, || {
            format!("in the end, {} is {} after {} attempts", task.id, task.status.as_str(), attempts.len())
        });
        observer.model.ended_rightly(&task, &attempts);
    }
}

/// Reads all tasks of a tenant, page by page, and retries until it has worked.
async fn read_tasks(caller: &mut Caller, tenant: &TenantId, statuses: Vec<Status>) -> Vec<TaskDetail> {
    let (mut tasks, mut below) = (Vec::new(), None);
    loop {
        let (tenant, statuses) = (tenant.clone(), statuses.clone());
        let filter = TaskFilter { statuses, below, limit: Some(200), ..TaskFilter::default() };
        let answer =
            caller.call(move |app| async move { operations::list_tasks(&app, &local(&tenant), filter).await }).await;
        if let Answer::Given(Ok(listing), _) = answer {
            tasks.extend(listing.page.tasks);
            below = listing.page.next;
            if below.is_none() {
                return tasks;
            }
        }
    }
}

async fn read_counts(caller: &mut Caller, tenant: &TenantId) -> Counts {
    loop {
        let tenant = tenant.clone();
        let filter = TaskFilter { limit: Some(1), ..TaskFilter::default() };
        let answer =
            caller.call(move |app| async move { operations::list_tasks(&app, &local(&tenant), filter).await }).await;
        if let Answer::Given(Ok(listing), _) = answer {
            return listing.counts;
        }
    }
}

/// Reads all attempts of a task; `None` if it has been removed meanwhile.
async fn read_attempts(caller: &mut Caller, tenant: &TenantId, id: TaskId) -> Option<Vec<Attempt>> {
    loop {
        let tenant = tenant.clone();
        let answer = caller
            .call(move |app| async move { operations::list_attempts(&app, &local(&tenant), id, 0, Some(500)).await })
            .await;
        match answer {
            Answer::Given(Ok(page), _) => return Some(page.attempts),
            Answer::Given(Err(OperationError::NoSuchTask(_)), _) => return None,
            _ => {}
        }
    }
}
