//! Announcer: raises the alert of every dead letter at least once, whatever crashes.
//!
//! The store notes a dead letter in the transaction that makes it one. The attempt that settles it raises the alert at
//! once and hands the task to the loop here. The loop confirms alerts in batches, and a confirmation removes the note.
//! A note that stays was left behind: the process died between the commit and the alert, or the answer of the settle
//! was lost. The announcer looks for such notes and raises their alerts:
//!
//! - at the start. On an exclusive store this is before anything else runs, so every note was left behind;
//! - periodically on a shared store, for notes that other processes left;
//! - on an exclusive store otherwise only after a doubt: an idle engine does not query the store.
//!
//! If alerts go to people (`AlertRelay`), they are confirmed only once a notification is durable.
//!
//! An alert may be raised twice (a crash between alert and confirmation). It is never lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redrive_core::{Task, Timestamp};
use redrive_store::{Error, RaisedAlert};
use tokio::sync::{Notify, mpsc};

use crate::engine_state::{EngineState, Phase};
use crate::events::{Event, Events, Report};

/// How old a dead letter's note is before another process raises its alert: the time for the process that ended the
/// task to raise and confirm it.
const GRACE: Duration = Duration::from_secs(30);
/// The time between two looks on a shared store, and between a doubt and the look that resolves it. Longer than
/// [`GRACE`], so that a dead letter in doubt is old enough to be found.
const LOOK_AFTER: Duration = Duration::from_secs(60);
/// How long a stop waits until the dead letters so far are told of.
const RELAY_AT_STOP: Duration = Duration::from_secs(3);
/// The wait before a call that the store refused is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// Raises alerts.
#[derive(Debug)]
pub(crate) struct Alerts {
    unconfirmed: mpsc::Sender<RaisedAlert>,
    /// Notified when a dead letter may have been left without its alert.
    doubt: Notify,
    raised: AtomicU64,
    events: Events,
}

/// The raised alerts that are to be confirmed.
pub(crate) type Unconfirmed = mpsc::Receiver<RaisedAlert>;

impl Alerts {
    /// Makes a channel with room for this many alerts that wait for their confirmation.
    pub(crate) fn new(unconfirmed: usize, events: Events) -> (Self, Unconfirmed) {
        let (sender, receiver) = mpsc::channel(unconfirmed.max(1));
        (Alerts { unconfirmed: sender, doubt: Notify::new(), raised: AtomicU64::new(0), events }, receiver)
    }

    /// Raises the alert of a dead letter and queues it for confirmation.
    pub(crate) fn raise(&self, dead_letter: &Task) {
        self.emit(dead_letter);
        if self.unconfirmed.try_send(announced(dead_letter)).is_err() {
            self.doubt();
        }
    }

    /// Notes that a dead letter may have been left without its alert: the store's notes are read again after
    /// [`LOOK_AFTER`].
    pub(crate) fn doubt(&self) {
        self.doubt.notify_one();
    }

    /// How many alerts were raised.
    pub(crate) fn raised(&self) -> u64 {
        self.raised.load(Ordering::Relaxed)
    }

    /// Raises the alert without queueing it for confirmation.
    fn emit(&self, task: &Task) {
        self.raised.fetch_add(1, Ordering::Relaxed);
        self.events.emit(Event::DeadLetter(task));
    }
}

/// Raises the alerts that an earlier process left, before the engine's loops start. [`run`] confirms them.
pub(crate) async fn start(shared: &EngineState) {
    if !shared.store.is_exclusive() {
        // Another process may be about to raise them: the loop looks, with its grace.
        return;
    }
    let most = shared.options.steps.unconfirmed;
    match shared.store.upkeep().pending_alerts(Timestamp::MAX, most).await {
        Ok(left) => {
            if !left.is_empty() {
                shared.events.report(Report::AlertsFound(left.len()));
            }
            if left.len() >= most {
                shared.alerts.doubt();
            }
            left.iter().for_each(|task| shared.alerts.raise(task));
        }
        Err(error) => {
            shared.store_failed("looking for dead letters without their alert", &error);
            shared.alerts.doubt();
        }
    }
}

/// Runs until no attempt is left that could raise an alert, and confirms all alerts that were raised until then.
pub(crate) async fn run(shared: Arc<EngineState>, mut unconfirmed: Unconfirmed) {
    let is_exclusive = shared.store.is_exclusive();
    let mut next_look = if is_exclusive { None } else { Some(shared.clock.elapsed()) };
    loop {
        tokio::select! {
            biased;
            () = shared.reached(Phase::Confirming) => break,
            // Before new alerts: under a stream of dead letters, those that were left behind would never be read.
            () = sleep_until(&shared, next_look) => {
                // What is queued would be found as well, and raised twice.
                confirm_queued(&shared, &mut unconfirmed).await;
                let again = look_again(&shared).await;
                next_look = again.or((!is_exclusive).then_some(LOOK_AFTER)).map(|wait| shared.clock.elapsed() + wait);
            }
            () = shared.alerts.doubt.notified(), if next_look.is_none() => {
                next_look = Some(shared.clock.elapsed() + LOOK_AFTER);
            }
            Some(first) = unconfirmed.recv() => confirm_with_queued(&shared, first, &mut unconfirmed).await,
        }
    }
    confirm_queued(&shared, &mut unconfirmed).await;
}

/// Confirms the alerts that are queued now.
async fn confirm_queued(shared: &EngineState, unconfirmed: &mut Unconfirmed) {
    if let Ok(first) = unconfirmed.try_recv() {
        confirm_with_queued(shared, first, unconfirmed).await;
    }
}

/// Confirms this alert and those that are queued now. All of them were raised before, so that one wait is enough. If they are not
/// told of in time, their notes stay.
async fn confirm_with_queued(shared: &EngineState, first: RaisedAlert, unconfirmed: &mut Unconfirmed) {
    let queued = unconfirmed.len();
    let more = std::iter::from_fn(|| unconfirmed.try_recv().ok()).take(queued);
    let raised: Vec<RaisedAlert> = std::iter::once(first).chain(more).collect();
    if is_relayed(shared).await {
        confirm_all(shared, &raised).await;
    }
}

/// Confirms alerts step by step.
async fn confirm_all(shared: &EngineState, raised: &[RaisedAlert]) {
    for step in raised.chunks(shared.options.steps.announce.max(1)) {
        confirm(shared, step.to_vec()).await;
    }
}

/// Looks once for notes that are old enough. Returns the wait before the next try if it failed.
async fn look_again(shared: &EngineState) -> Option<Duration> {
    let ended_before = match shared.store.is_exclusive() {
        // No other process is about to raise them, and the clock may have been set back since they ended.
        true => Timestamp::MAX,
        false => shared.clock.now().before(GRACE),
    };
    let error = look(shared, ended_before).await.err()?;
    shared.store_failed("looking for dead letters without their alert", &error);
    Some(PAUSE)
}

/// Raises the alert of every dead letter that ended before this moment and is still noted.
async fn look(shared: &EngineState, ended_before: Timestamp) -> Result<(), Error> {
    // Many at once: people are told of all of them together, which takes seconds.
    let most = shared.options.steps.unconfirmed;
    loop {
        let left = shared.store.upkeep().pending_alerts(ended_before, most).await?;
        left.iter().for_each(|task| shared.alerts.emit(task));
        let is_last = left.len() < most;
        if !left.is_empty() {
            shared.events.report(Report::AlertsFound(left.len()));
            if is_relayed(shared).await {
                let raised: Vec<RaisedAlert> = left.iter().map(announced).collect();
                confirm_all(shared, &raised).await;
            }
        }
        // Alerts that could not be confirmed would be found and raised again and again.
        if is_last || shared.phase() >= Phase::Confirming {
            return Ok(());
        }
    }
}

/// Confirms alerts, and retries for as long as the store fails. If the engine stops first, they are raised again at the
/// next start.
async fn confirm(shared: &EngineState, dead_letters: Vec<RaisedAlert>) {
    if dead_letters.is_empty() {
        return;
    }
    while let Err(error) = shared.store.upkeep().confirm_alerts(dead_letters.clone()).await {
        shared.events.report(Report::AlertsUnconfirmed(dead_letters.len(), &error));
        tokio::select! {
            biased;
            () = shared.reached(Phase::Confirming) => return,
            () = shared.clock.sleep(PAUSE) => {}
        }
    }
}

/// Waits until the dead letters so far are told of. Returns false if the engine stops before: their notes stay, and the next
/// process raises their alerts again.
async fn is_relayed(shared: &EngineState) -> bool {
    let Some(relay) = &shared.alert_relay else { return true };
    tokio::select! {
        biased;
        () = relay.relayed(false) => return true,
        () = shared.reached(Phase::Confirming) => {}
    }
    tokio::select! {
        biased;
        () = relay.relayed(true) => true,
        () = shared.clock.sleep(RELAY_AT_STOP) => false,
    }
}

fn announced(task: &Task) -> RaisedAlert {
    RaisedAlert { tenant: task.lane.tenant.clone(), id: task.id, run: task.run }
}

/// Sleeps until `wake`, or without end if it is `None`.
async fn sleep_until(shared: &EngineState, wake: Option<Duration>) {
    match wake {
        Some(wake) => shared.clock.sleep(wake.saturating_sub(shared.clock.elapsed())).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use redrive_core::task::PolicyRef;
    use redrive_core::{Dependency, IdempotencyKey, Lane, PolicyId, Reason, Status, TaskId, TenantId};

    use super::*;

    const QUEUE: usize = 100;

    fn dead_letter() -> Task {
        let at = Timestamp::from_millis(0);
        Task {
            id: TaskId::from_parts(1, 2),
            lane: Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new("billing").unwrap() },
            idempotency_key: IdempotencyKey::try_new("key").unwrap(),
            correlation_id: None,
            trace_parent: None,
            policy: PolicyRef { id: PolicyId::default_policy(), version: 1 },
            status: Status::Failed,
            reason: Some(Reason::NotRetryable),
            attempt_number: 1,
            run: 1,
            attempts_before: 0,
            max_attempts: 3,
            attempt_timeout: Duration::from_secs(30),
            created_at: at,
            run_started_at: at,
            deadline_at: at,
            next_attempt_at: None,
            ended_at: Some(at),
            backoff: None,
            dns_failures: 0,
            cancel_requested: false,
            last_error: None,
        }
    }

    #[test]
    fn an_alert_that_finds_the_queue_full_is_raised_all_the_same_and_looked_for_later() {
        let (alerts, mut unconfirmed) =
            Alerts::new(QUEUE, Events::new(crate::options::LogOptions::default(), Vec::new()));
        for _ in 0..QUEUE {
            alerts.raise(&dead_letter());
        }
        assert!(alerts.doubt.notified().now_or_never().is_none());
        alerts.raise(&dead_letter());
        assert!(alerts.doubt.notified().now_or_never().is_some());
        assert_eq!(alerts.raised(), QUEUE as u64 + 1);
        assert_eq!(std::iter::from_fn(|| unconfirmed.try_recv().ok()).count(), QUEUE);
    }
}
