//! Ends tasks that waited past their deadline, whether or not their lane ever has room for them.
//!
//! On an exclusive store this process knows the deadline of every waiting task, so it queries the store only when one
//! has passed. On a shared store other processes queue tasks as well, so it queries every few seconds.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive_core::Timestamp;
use redrive_store::{Error, Overdue};
use tokio::sync::Notify;

use crate::engine_state::{EngineState, Phase};
use crate::events::{EndedBy, Report};

/// The longest time between two looks on a shared store: a task ends within 5 s of its deadline.
const LOOK_EVERY: Duration = Duration::from_secs(4);
/// The shortest time between two looks, and the wait after one that failed.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest sleep before the wall clock is read again, which may have jumped meanwhile.
const LONGEST_NAP: Duration = Duration::from_secs(30);

/// The earliest deadline of the waiting tasks, as far as this process knows.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    earliest: Mutex<Option<Timestamp>>,
    /// Notified when there is an earlier deadline.
    changed: Notify,
}

impl Deadlines {
    /// Notes that a task with this deadline waits.
    pub(crate) fn note(&self, deadline: Timestamp) {
        let mut earliest = self.lock();
        if earliest.is_none_or(|known| deadline < known) {
            *earliest = Some(deadline);
            drop(earliest);
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Timestamp>> {
        self.earliest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs until the engine drains.
pub(crate) async fn run(shared: Arc<EngineState>) {
    let mut is_first = true;
    loop {
        let wait = match end_overdue(&shared).await {
            Ok(None) => next_look(&shared),
            Ok(Some(ended)) => {
                shared.store_worked("ending overdue tasks");
                if ended > 0 && is_first {
                    shared.events.report(Report::OverdueAtStart(ended));
                }
                is_first = false;
                next_look(&shared)
            }
            Err(error) => {
                shared.store_failed("ending overdue tasks", &error);
                Some(PAUSE)
            }
        };
        tokio::select! {
            biased;
            () = shared.reached(Phase::Draining) => return,
            () = look_again(&shared, wait) => {}
        }
    }
}

/// Waits for `wait` or until there is an earlier deadline, whichever comes first, but at least for [`PAUSE`].
async fn look_again(shared: &EngineState, wait: Option<Duration>) {
    shared.clock.sleep(PAUSE).await;
    let mut left = wait.map(|wait| wait.saturating_sub(PAUSE));
    loop {
        let changed = shared.deadlines.changed.notified();
        if left.is_some_and(|left| left.is_zero()) {
            return;
        }
        match left {
            Some(left) => tokio::select! {
                biased;
                () = changed => {}
                () = shared.clock.sleep(left) => return,
            },
            None => changed.await,
        }
        left = next_look(shared);
    }
}

/// The time until a task can be overdue; `None` if no task waits.
fn next_look(shared: &EngineState) -> Option<Duration> {
    let now = shared.clock.now();
    let earliest = shared.deadlines.lock().map(|deadline| deadline.since(now).min(LONGEST_NAP));
    match shared.store.is_exclusive() {
        true => earliest,
        false => Some(earliest.map_or(LOOK_EVERY, |earliest| earliest.min(LOOK_EVERY))),
    }
}

/// Ends every task that is overdue now. Returns how many there were, or `None` if it did not look.
async fn end_overdue(shared: &EngineState) -> Result<Option<usize>, Error> {
    // While the time is uncertain, a task may only seem overdue. The next look comes soon enough.
    if !shared.clock.is_certain() {
        return Ok(None);
    }
    let mut count = 0;
    loop {
        let step = shared.options.steps.overdue;
        // A deadline noted during the call may be in the answer or not: the earlier of both is safe.
        *shared.deadlines.lock() = None;
        let outcome = shared.store.upkeep().end_overdue(shared.clock.now(), step).await;
        let Overdue { ended, next_deadline } = match outcome {
            Ok(overdue) => overdue,
            Err(error) => {
                // The call may have taken effect, and its answer been lost.
                shared.alerts.doubt();
                shared.deadlines.note(shared.clock.now());
                return Err(error);
            }
        };
        next_deadline.into_iter().for_each(|deadline| shared.deadlines.note(deadline));
        let is_last = ended.len() < step;
        for task in &ended {
            shared.task_ended(task, task.status, EndedBy::Deadline, || Cow::Borrowed(task));
        }
        count += ended.len();
        if is_last {
            return Ok(Some(count));
        }
    }
}
