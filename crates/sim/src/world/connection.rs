//! A process's connection to the store: every call is delayed, and it or its answer may be lost.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use redrive_core::guards::Controls;
use redrive_core::policy::Spec;
use redrive_core::request::Fingerprint;
use redrive_core::task::PolicyRef;
use redrive_core::{
    Attempt, BodyHash, BodyRef, Class, IdempotencyKey, Lane, PolicyId, Task, TaskId, TenantId, Timestamp,
};
use redrive_store::*;
use tokio::sync::oneshot;

use super::World;
use super::database::Fate;
use super::observer::Name;
use crate::executor::WORLD;
use crate::model::Whose;

/// A process's connection to the store.
pub(super) struct Connection {
    pub(super) world: Arc<World>,
    pub(super) whose: Whose,
    /// The other processes that have stopped, as this one last read them.
    pub(super) departed_nodes: Mutex<DepartedNodes>,
}

pub(super) type Work<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

impl Connection {
    /// Makes one call, from its beginning to its answer. `seen` is called at the moment at which the call takes effect.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        method: &'static str,
        work: impl FnOnce(Arc<dyn Store>) -> Work<T> + Send + 'static,
        seen: impl FnOnce(&Arc<World>, Whose, &T) + Send + 'static,
    ) -> Result<T, Error> {
        let (world, whose) = (self.world.clone(), self.whose);
        world.effect(whose).await;
        let fate = world.database.fate(&world, whose);
        if let Some(lasts) = fate.trouble() {
            world.observer().model.store_trouble(whose.node, world.now().after(lasts));
        }
        let (answer, answered) = oneshot::channel();
        let elsewhere = world.clone();
        // It runs without its caller: a process that dies does not recall what it has sent.
        world.executor.spawn(WORLD, async move {
            let result = happen(&elsewhere, whose, method, fate, work, seen).await;
            // A caller that is gone needs no answer.
            answer.send(result).ok();
        });
        let result = answered.await.unwrap_or_else(|_| Err(unavailable("the world has ended")));
        world.effect(whose).await;
        result
    }
}

async fn happen<T>(
    world: &Arc<World>,
    whose: Whose,
    method: &'static str,
    fate: Fate,
    work: impl FnOnce(Arc<dyn Store>) -> Work<T>,
    seen: impl FnOnce(&Arc<World>, Whose, &T),
) -> Result<T, Error> {
    let database = &world.database;
    world.executor.sleep(fate.there).await;
    let is_cut_off = fate.powers_lost != database.powers_lost();
    // An embedded store dies with its process.
    let is_gone = database.is_exclusive() && !world.nodes[whose.node].is_alive(whose);
    if fate.fails || is_cut_off || is_gone {
        world.observer().tally.store_failures += 1;
        world.observer().model.store_trouble(whose.node, world.now().after(fate.back));
        let text = || format!("the store fails {method} of {}", Name(whose));
        world.observer().note(world.now(), (30, whose, method), None, text);
        world.executor.sleep(fate.back).await;
        return Err(unavailable("the store failed"));
    }
    let result = work(database.store()).await;
    if let Ok(value) = &result {
        seen(world, whose, value);
    }
    world.executor.sleep(fate.back).await;
    if fate.loses_answer || fate.powers_lost != database.powers_lost() {
        let mut observer = world.observer();
        observer.tally.answers_lost += 1;
        observer.model.store_trouble(whose.node, world.now());
        observer.note(world.now(), (31, whose, method), None, || {
            format!("the answer to {method} is lost on its way to {}", Name(whose))
        });
        return Err(unavailable("the connection was lost"));
    }
    result
}

fn unavailable(what: &str) -> Error {
    Error::Unavailable(what.to_owned())
}

#[async_trait]
impl Store for Connection {
    redrive_store::own_concepts!();

    fn guard_states(&self) -> Option<&dyn GuardStates> {
        if self.is_exclusive() { Some(self) } else { None }
    }

    fn is_exclusive(&self) -> bool {
        self.world.database.is_exclusive()
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        if self.is_exclusive() { None } else { Some(self) }
    }

    async fn close(&self) {}
}

/// The observer is informed of the effects of calls that write attempts.
#[async_trait]
impl Tasks for Connection {
    async fn submit(&self, tasks: Vec<NewTask>) -> Result<Vec<Submitted>, Error> {
        let seen = saw_submit(tasks.clone());
        self.call("submit", |store| Box::pin(async move { store.tasks().submit(tasks).await }), seen).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claims, Error> {
        self.call("claim", |store| Box::pin(async move { store.tasks().claim(request).await }), saw_claim).await
    }

    async fn settle(&self, ends: Vec<Settlement>) -> Result<Vec<Settled>, Error> {
        let seen = saw_settle(ends.clone());
        self.call("settle", |store| Box::pin(async move { store.tasks().settle(ends).await }), seen).await
    }

    async fn cancel(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<CancelOutcome>, Error> {
        let work = move |store: Arc<dyn Store>| -> Work<Answers<CancelOutcome>> {
            Box::pin(async move { store.tasks().cancel(tasks, now).await })
        };
        let seen = |world: &Arc<World>, whose, answers: &Answers<CancelOutcome>| {
            answers.iter().flatten().for_each(|cancelled| saw_cancel(world, whose, cancelled));
        };
        self.call("cancel", work, seen).await
    }

    async fn bring_forward(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<BringForwardOutcome>, Error> {
        let work = move |store: Arc<dyn Store>| -> Work<Answers<BringForwardOutcome>> {
            Box::pin(async move { store.tasks().bring_forward(tasks, now).await })
        };
        let seen = |world: &Arc<World>, _, answers: &Answers<BringForwardOutcome>| {
            for answer in answers {
                if let Ok(BringForwardOutcome::Done(task)) = answer {
                    world.observer().model.waits(task);
                }
            }
        };
        self.call("bring_forward", work, seen).await
    }

    async fn replay(&self, tasks: Vec<TaskKey>, now: Timestamp) -> Result<Answers<ReplayOutcome>, Error> {
        let work = move |store: Arc<dyn Store>| -> Work<Answers<ReplayOutcome>> {
            Box::pin(async move { store.tasks().replay(tasks, now).await })
        };
        let seen = |world: &Arc<World>, _, answers: &Answers<ReplayOutcome>| {
            for answer in answers {
                if let Ok(ReplayOutcome::Done(task)) = answer {
                    world.observer().model.waits(task);
                }
            }
        };
        self.call("replay", work, seen).await
    }

    async fn suppress(&self, tasks: Vec<Suppression>, now: Timestamp) -> Result<Answers<SuppressOutcome>, Error> {
        let work = move |store: Arc<dyn Store>| -> Work<Answers<SuppressOutcome>> {
            Box::pin(async move { store.tasks().suppress(tasks, now).await })
        };
        let seen = |world: &Arc<World>, whose, answers: &Answers<SuppressOutcome>| {
            for answer in answers {
                if let Ok(SuppressOutcome::Done(task)) = answer {
                    world.observer().ended_suppressed(world.now(), whose, task);
                }
            }
        };
        self.call("suppress", work, seen).await
    }
}

#[async_trait]
impl Upkeep for Connection {
    async fn pending_lanes(&self, after: Option<(Lane, Class)>, limit: usize) -> Result<Vec<LaneDue>, Error> {
        let work = move |store: Arc<dyn Store>| -> Work<Vec<LaneDue>> {
            Box::pin(async move { store.upkeep().pending_lanes(after, limit).await })
        };
        self.call("pending_lanes", work, |_, _, _| ()).await
    }

    async fn expired_leases(&self, now: Timestamp, limit: usize) -> Result<Vec<ClaimedTask>, Error> {
        let left_behind = self.world.database.left_behind();
        let work = move |store: Arc<dyn Store>| -> Work<Vec<ClaimedTask>> {
            Box::pin(async move { expired(&store, now, limit, &left_behind).await })
        };
        self.call("expired_leases", work, |_, _, _| ()).await
    }

    async fn end_overdue(&self, now: Timestamp, limit: usize) -> Result<Overdue, Error> {
        let work = move |store: Arc<dyn Store>| -> Work<Overdue> {
            Box::pin(async move { store.upkeep().end_overdue(now, limit).await })
        };
        self.call("end_overdue", work, saw_overdue).await
    }

    async fn pending_alerts(&self, ended_before: Timestamp, limit: usize) -> Result<Vec<Task>, Error> {
        let work = move |store: Arc<dyn Store>| -> Work<Vec<Task>> {
            Box::pin(async move { store.upkeep().pending_alerts(ended_before, limit).await })
        };
        self.call("pending_alerts", work, |_, _, _| ()).await
    }

    async fn confirm_alerts(&self, alerts: Vec<RaisedAlert>) -> Result<(), Error> {
        let confirmed = alerts.clone();
        let work = move |store: Arc<dyn Store>| -> Work<()> {
            Box::pin(async move { store.upkeep().confirm_alerts(alerts).await })
        };
        let seen = move |world: &Arc<World>, whose, (): &()| {
            world.observer().alerts_confirmed(world.now(), whose, &confirmed);
        };
        self.call("confirm_alerts", work, seen).await
    }

    async fn clean(&self, ended_before: Timestamp, from: CleanFrom, limit: usize) -> Result<Cleaned, Error> {
        let work = move |store: Arc<dyn Store>| -> Work<Cleaned> {
            Box::pin(async move { store.upkeep().clean(ended_before, from, limit).await })
        };
        self.call("clean", work, |_, _, _| ()).await
    }

    async fn newest_task(&self) -> Result<Option<TaskId>, Error> {
        let work = |store: Arc<dyn Store>| -> Work<Option<TaskId>> {
            Box::pin(async move { store.upkeep().newest_task().await })
        };
        self.call("newest_task", work, |_, _, _| ()).await
    }
}

/// States of guards travel with the next call: here they are kept at once, as if that call had been made.
#[async_trait]
impl GuardStates for Connection {
    fn keep(&self, states: Vec<GuardState>) {
        if let Some(guards) = self.world.database.store().guard_states() {
            guards.keep(states);
        }
    }

    async fn kept(&self, after: Option<Lane>, limit: usize) -> Result<Vec<GuardState>, Error> {
        let work = move |store: Arc<dyn Store>| -> Work<Vec<GuardState>> {
            Box::pin(async move {
                match store.guard_states() {
                    Some(guards) => guards.kept(after, limit).await,
                    None => Ok(Vec::new()),
                }
            })
        };
        self.call("kept", work, |_, _, _| ()).await
    }
}

/// Implements every method as a call.
macro_rules! calls {
    ($($concept:ident of $of:ident { $($method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)* })*) => {
        $(#[async_trait]
        impl $concept for Connection {
            $(async fn $method(&self, $($argument: $type),*) -> Result<$answer, Error> {
                self.call(
                    stringify!($method),
                    move |store| Box::pin(async move { store.$of().$method($($argument),*).await }),
                    |_, _, _| (),
                )
                .await
            })*
        })*
    };
}

calls! {
    Reads of reads {
        task(tenant: TenantId, id: TaskId) -> Option<TaskDetail>;
        by_key(tenant: TenantId, key: IdempotencyKey) -> Option<(Task, Fingerprint)>;
        list(query: TaskQuery) -> TaskPage;
        counts(tenant: TenantId) -> Counts;
        backlogs(lanes: Vec<Lane>, now: Timestamp, most: u32) -> Vec<Backlog>;
        old_retries(lanes: Vec<Lane>, accepted_before: Timestamp, look_at: u32) -> Vec<u32>;
        attempts(tenant: TenantId, id: TaskId, after: u32, limit: usize) -> Option<Vec<Attempt>>;
    }
    Policies of policies {
        put(tenant: TenantId, id: PolicyId, spec: Spec, expected: Expected, now: Timestamp) -> PutPolicy;
        versions(tenant: TenantId, id: PolicyId) -> Vec<PolicyVersion>;
        version(tenant: TenantId, policy: PolicyRef) -> Option<PolicyVersion>;
        list(tenant: TenantId, after: Option<PolicyId>, limit: usize) -> Vec<PolicyVersion>;
        delete(tenant: TenantId, id: PolicyId, expected: Expected) -> DeletePolicy;
    }
    Blobs of blobs {
        adopt(tenant: TenantId, fresh: BodyRef, now: Timestamp) -> BodyRef;
        find(tenant: TenantId, hash: BodyHash) -> Option<BodyRef>;
        condemn(adopted_before: Timestamp, after: Option<Blob>, limit: usize) -> Condemned;
        forget(blobs: Vec<Blob>) -> ();
    }
    LaneControls of controls {
        replace(lane: Lane, expected: Controls, new: Controls) -> bool;
        list(after: Option<Lane>, limit: usize) -> Vec<(Lane, Controls)>;
    }
    Health of health {
        check() -> ();
    }
}

/// Leases that expired by the clock, and those that a process that is gone left behind.
async fn expired(
    store: &Arc<dyn Store>,
    now: Timestamp,
    limit: usize,
    left_behind: &BTreeSet<(TaskId, Token)>,
) -> Result<Vec<ClaimedTask>, Error> {
    if left_behind.is_empty() {
        return store.upkeep().expired_leases(now, limit).await;
    }
    let all = store.upkeep().expired_leases(Timestamp::MAX, usize::MAX).await?;
    let ran_out = |claimed: &ClaimedTask| {
        claimed.lease.until <= now || left_behind.contains(&(claimed.task.id, claimed.lease.token))
    };
    Ok(all.into_iter().filter(ran_out).take(limit).collect())
}

fn saw_submit(tasks: Vec<NewTask>) -> impl FnOnce(&Arc<World>, Whose, &Vec<Submitted>) + Send {
    move |world, whose, submitted| {
        for (new, submitted) in tasks.into_iter().zip(submitted) {
            if let Submitted::Created(_, lease) = submitted {
                let now = world.now();
                let mut observer = world.observer();
                observer.created(now, whose, &new);
                observer.model.waits(&new.task);
                if let Some(lease) = *lease {
                    let mut task = new.task;
                    task.attempt_number += 1;
                    observer.claimed(now, whose, &ClaimedTask { task, request: new.request, lease });
                }
            }
        }
    }
}

fn saw_claim(world: &Arc<World>, whose: Whose, claims: &Claims) {
    for claimed in &claims.claimed {
        world.observer().claimed(world.now(), whose, claimed);
    }
}

fn saw_settle(ends: Vec<Settlement>) -> impl FnOnce(&Arc<World>, Whose, &Vec<Settled>) + Send {
    move |world, whose, settled| {
        for (settlement, settled) in ends.iter().zip(settled) {
            world.observer().settled(world.now(), whose, settlement, *settled);
        }
    }
}

fn saw_cancel(world: &Arc<World>, whose: Whose, cancelled: &CancelOutcome) {
    let CancelOutcome::Done(task) = cancelled else { return };
    if task.status.is_ended() {
        world.observer().model.ended_unsent(task);
    } else {
        world.announce_cancel(whose, &task.lane.tenant, task.id);
    }
}

fn saw_overdue(world: &Arc<World>, whose: Whose, overdue: &Overdue) {
    for task in &overdue.ended {
        world.observer().ended_overdue(world.now(), whose, task);
    }
}
