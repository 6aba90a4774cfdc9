//! Settling: stores an attempt's end, and updates what depends on it in memory.

use std::borrow::Cow;
use std::time::Duration;

use redrive_core::{Status, Task, Timestamp};
use redrive_store::{ClaimedTask, Error, Next, Settled, Settlement, rules};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::engine_state::{EngineState, Phase};
use crate::events::{EndedBy, Event, Report};
use crate::guard_upkeep;
use crate::store_backoff;

/// An attempt that this process gave up: its lease expires, and the rescuer takes it over.
pub(crate) struct Abandoned;

/// Who settles a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettledBy {
    /// The process that claimed it.
    Worker,
    /// A process that found its lease expired. Several may find it: only the one that settles it reports it.
    Rescuer,
}

/// Settles an attempt of this process. If that fails for as long as the lease lasts, the attempt is left to the
/// rescuer.
pub(crate) async fn settle_or_abandon(
    shared: &EngineState,
    claimed: &ClaimedTask,
    settlement: Settlement,
) -> Result<(), Abandoned> {
    settle(shared, claimed, settlement, SettledBy::Worker).await.map_err(|error| {
        shared.store_failed("settling", &error);
        shared.events.report(Report::Unsettled(claimed.task.id, &error));
        Abandoned
    })
}

/// A limit on how many attempts that took long are settled at a time.
///
/// Slow lanes that began together end together: thousands of settlements at one moment, and those of healthy lanes
/// would wait behind all of them. An attempt that took seconds can wait for a few milliseconds more.
pub(crate) struct SlowSettles(Semaphore);

impl SlowSettles {
    /// How many at a time: as many as fit into one short commit.
    const MOST: usize = 64;
    /// An attempt took long from this duration on.
    const LONG: Duration = Duration::from_secs(1);

    pub(crate) fn new() -> Self {
        SlowSettles(Semaphore::new(Self::MOST))
    }

    /// Waits for a permit, if the attempt took long.
    async fn turn(&self, settlement: &Settlement) -> Option<SemaphorePermit<'_>> {
        let took = settlement.attempt.as_ref().and_then(|attempt| attempt.duration)?;
        match took >= Self::LONG {
            // The semaphore is never closed.
            true => self.0.acquire().await.ok(),
            false => None,
        }
    }
}

/// Settles, and retries for as long as the store fails, the lease lasts and the process does not end. Wakes the callers
/// that wait for the end, and notes when the next attempt is due. A lost lease is not an error: another process, or the
/// rescuer, settles the task.
pub(crate) async fn settle(
    shared: &EngineState,
    claimed: &ClaimedTask,
    settlement: Settlement,
    by: SettledBy,
) -> Result<(), Error> {
    // Whether an earlier try failed: its answer may have been lost after its commit.
    let mut is_in_doubt = false;
    for times in 0.. {
        let turn = shared.slow_settles.turn(&settlement).await;
        guard_upkeep::keep(shared);
        let outcome = shared.store.tasks().settle(vec![settlement.clone()]).await;
        drop(turn);
        match outcome {
            Ok(settled) => {
                shared.store_worked("settling");
                match settled.first() {
                    Some(Settled::Done(status)) => {
                        if by == SettledBy::Rescuer {
                            report_takeover(shared, claimed, &settlement);
                        }
                        follow_up(shared, claimed, *status, &settlement);
                    }
                    Some(Settled::LeaseLost) | None => {
                        if by == SettledBy::Worker {
                            shared.events.emit(Event::LeaseLost(&claimed.task));
                        }
                        if is_in_doubt {
                            follow_up_in_doubt(shared, claimed, &settlement);
                        }
                    }
                }
                return Ok(());
            }
            Err(error) if shared.clock.now() < claimed.lease.until && shared.phase() < Phase::Returning => {
                shared.store_failed("settling", &error);
                is_in_doubt = true;
                tokio::select! {
                    biased;
                    () = shared.reached(Phase::Returning) => {}
                    () = shared.clock.sleep(store_backoff::wait(times, shared.entropy.unit())) => {}
                }
            }
            Err(error) => {
                follow_up_in_doubt(shared, claimed, &settlement);
                return Err(error);
            }
        }
    }
    Ok(())
}

fn report_takeover(shared: &EngineState, claimed: &ClaimedTask, settlement: &Settlement) {
    shared.events.emit(Event::TakenOver(&claimed.task));
    if let Some(attempt) = &settlement.attempt {
        shared.events.emit(Event::AttemptEnded(&claimed.task, attempt));
    }
}

fn follow_up(shared: &EngineState, claimed: &ClaimedTask, status: Status, settlement: &Settlement) {
    let task = &claimed.task;
    shared.events.emit(Event::Settled(claimed, settlement, status));
    if let (Status::Pending, Next::RetryAt { at, .. }) = (status, &settlement.next) {
        if settlement.attempt.is_some() {
            shared.events.emit(Event::Retried(task, *at));
        }
        waits_again(shared, task, settlement, *at);
    }
    if status.is_ended() {
        shared.task_ended(task, status, EndedBy::Settlement, || Cow::Owned(dead_letter(task, status, settlement)));
    }
}

/// Does the follow-up of a settlement that may have taken effect although its call failed. Each step is harmless if it
/// has not: the lane is read without result, callers that were woken read the task and wait again, and the store notes
/// which dead letters have no alert yet.
fn follow_up_in_doubt(shared: &EngineState, claimed: &ClaimedTask, settlement: &Settlement) {
    shared.missed_work.note();
    match &settlement.next {
        Next::RetryAt { at, .. } => waits_again(shared, &claimed.task, settlement, *at),
        Next::End { status, .. } if status.is_dead_letter() => shared.alerts.doubt(),
        Next::End { .. } => {}
    }
    // A cancel may have turned a retry into an end.
    shared.waiters.ended(claimed.task.id);
}

/// Schedules the task, which is pending again and due at `at`.
fn waits_again(shared: &EngineState, task: &Task, settlement: &Settlement, at: Timestamp) {
    let class = after_settlement(task, settlement).class();
    shared.lanes.note_due(&task.lane, class, at);
    shared.deadlines.note(task.deadline_at);
}

/// The task with the number of attempts that counts once it is settled.
fn after_settlement(task: &Task, settlement: &Settlement) -> Task {
    let attempt_number = rules::attempts_after(task.attempt_number, settlement.attempt.is_some());
    Task { attempt_number, ..task.clone() }
}

/// The task after the settlement.
fn dead_letter(task: &Task, status: Status, settlement: &Settlement) -> Task {
    let reason = match &settlement.next {
        Next::End { reason, .. } => *reason,
        Next::RetryAt { .. } => None,
    };
    Task { status, reason, next_attempt_at: None, ended_at: Some(settlement.at), ..after_settlement(task, settlement) }
}
