//! The attempts that this process is working on.
//!
//! Shutdown waits until there are none. A cancel stops an attempt here, up to the moment before its first byte is sent.
//! Bringing a task forward releases an attempt that is held until it is due.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive_core::TaskId;
use tokio::sync::Notify;

/// The most early cancels that are remembered. Each is for a claim that is committed and not entered here yet.
const MAX_EARLY: usize = 10_000;

/// No byte of the attempt has been sent.
const UNSENT: u8 = 0;
/// The attempt is on the wire, or about to be: it can no longer be stopped.
const SENT: u8 = 1;
/// The attempt was stopped: no byte of it is sent.
const STOPPED: u8 = 2;

/// The attempts of this process.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    attempts: Mutex<Attempts>,
    emptied: Notify,
}

#[derive(Debug, Default)]
struct Attempts {
    by_task: HashMap<TaskId, Arc<Signals>>,
    /// Tasks that were cancelled between the commit of their claim and its entry here.
    cancelled_early: BTreeSet<TaskId>,
}

/// The signals to one attempt (cancelled, released), and its progress.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    progress: AtomicU8,
    is_cancelled: AtomicBool,
    is_held: AtomicBool,
    is_released: AtomicBool,
    changed: Notify,
}

/// An attempt's entry. Dropping it removes the attempt, however it ended.
#[derive(Debug)]
pub(crate) struct Entry {
    in_flight: Arc<InFlight>,
    task: TaskId,
    pub(crate) signals: Arc<Signals>,
}

impl InFlight {
    /// Adds an attempt.
    pub(crate) fn enter(self: &Arc<Self>, task: TaskId) -> Entry {
        let signals = Arc::<Signals>::default();
        let mut attempts = self.lock();
        if attempts.cancelled_early.remove(&task) {
            signals.cancel();
        }
        attempts.by_task.insert(task, signals.clone());
        Entry { in_flight: self.clone(), task, signals }
    }

    /// Notes that this process has committed a cancel of this task in flight: an attempt that is not on the wire is
    /// stopped.
    pub(crate) fn cancel(&self, task: TaskId) {
        let mut attempts = self.lock();
        if let Some(signals) = attempts.by_task.get(&task) {
            return signals.cancel();
        }
        attempts.cancelled_early.insert(task);
        if attempts.cancelled_early.len() > MAX_EARLY {
            attempts.cancelled_early.pop_first();
        }
    }

    /// Notes that another process has committed a cancel of this task, if this process has an attempt of it.
    pub(crate) fn cancel_if_here(&self, task: TaskId) {
        if let Some(signals) = self.lock().by_task.get(&task) {
            signals.cancel();
        }
    }

    /// Releases an attempt that is held until its due time. Returns whether there was one.
    pub(crate) fn release(&self, task: TaskId) -> bool {
        self.lock().by_task.get(&task).is_some_and(|signals| signals.release())
    }

    /// Whether this process has an attempt of the task.
    pub(crate) fn has(&self, task: TaskId) -> bool {
        self.lock().by_task.contains_key(&task)
    }

    /// How many attempts there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().by_task.len()
    }

    /// Waits until there is no attempt.
    pub(crate) async fn empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.count() == 0 {
                return;
            }
            emptied.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Signals {
    /// Whether the task has been cancelled since it was claimed.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    /// Whether the task was brought forward: it is sent now, due or not.
    pub(crate) fn is_released(&self) -> bool {
        self.is_released.load(Ordering::Acquire)
    }

    /// Sets whether the attempt is held until its due time.
    pub(crate) fn set_held(&self, is_held: bool) {
        self.is_held.store(is_held, Ordering::Release);
    }

    /// Marks the attempt as sent, just before its first byte. Returns whether it may be sent: either this or a cancel
    /// comes first, never both.
    pub(crate) fn depart(&self) -> bool {
        match self.progress.compare_exchange(UNSENT, SENT, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            // Called again, because not one byte was sent on the first connection.
            Err(SENT) => !self.is_cancelled(),
            Err(_) => false,
        }
    }

    /// Waits for a signal to the attempt that comes after this call.
    pub(crate) fn changed(&self) -> impl Future<Output = ()> + '_ {
        self.changed.notified()
    }

    fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
        // If it is already sent, the cancel takes effect once the attempt has ended.
        self.progress.compare_exchange(UNSENT, STOPPED, Ordering::AcqRel, Ordering::Acquire).ok();
        self.changed.notify_one();
    }

    fn release(&self) -> bool {
        let is_held = self.is_held.load(Ordering::Acquire);
        if is_held {
            self.is_released.store(true, Ordering::Release);
            self.changed.notify_one();
        }
        is_held
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let by_task = &mut self.in_flight.lock().by_task;
        // A takeover may have entered the same task again: that entry stays.
        if by_task.get(&self.task).is_some_and(|current| Arc::ptr_eq(current, &self.signals)) {
            by_task.remove(&self.task);
        }
        if by_task.is_empty() {
            self.in_flight.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> TaskId {
        TaskId::from_parts(1, 2)
    }

    #[test]
    fn either_the_cancel_or_the_first_byte_comes_first() {
        let in_flight = Arc::<InFlight>::default();
        let entry = in_flight.enter(task());
        assert!(entry.signals.depart());
        assert!(entry.signals.depart(), "on another connection, because nothing left on the first");
        in_flight.cancel(task());
        assert!(entry.signals.is_cancelled() && !entry.signals.depart());

        let entry = in_flight.enter(task());
        in_flight.cancel(task());
        assert!(!entry.signals.depart());
    }

    #[test]
    fn a_cancel_before_the_entry_is_found_by_it() {
        let in_flight = Arc::<InFlight>::default();
        in_flight.cancel_if_here(task());
        assert!(in_flight.enter(task()).signals.depart(), "another process said so of a task that is not here");
        in_flight.cancel(task());
        assert!(!in_flight.enter(task()).signals.depart());
        assert!(in_flight.enter(task()).signals.depart(), "it was for that claim only");
    }

    #[test]
    fn only_an_attempt_that_is_held_can_be_released() {
        let in_flight = Arc::<InFlight>::default();
        let entry = in_flight.enter(task());
        assert!(!in_flight.release(task()) && !entry.signals.is_released());
        entry.signals.set_held(true);
        assert!(in_flight.release(task()) && entry.signals.is_released());
        drop(entry);
        assert!(!in_flight.release(task()));
    }
}
