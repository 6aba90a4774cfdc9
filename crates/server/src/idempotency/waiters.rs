//! Lets callers wait for a change of a record.
//!
//! A change by this process wakes them. A store that other processes change must be polled as well: of all callers that wait
//! for a record, one has the turn to poll, so a thousand duplicates of one request cost the store as much as one. It tells
//! the others what it finds, and the turn goes to the next one when its wait ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use redrive_core::Timestamp;
use redrive_core::idempotency::RecordKey;
use tokio::sync::futures::OwnedNotified;
use tokio::sync::{AcquireError, Notify, OwnedSemaphorePermit, Semaphore};

/// The callers that wait, by record.
#[derive(Debug, Default)]
pub struct Waiters {
    by_record: Mutex<BTreeMap<RecordKey, Entry>>,
}

#[derive(Debug)]
struct Entry {
    waiting: usize,
    awaited: Arc<Awaited>,
}

/// What the callers that wait for one record share.
#[derive(Debug)]
struct Awaited {
    changed: Arc<Notify>,
    /// One permit.
    turn_to_poll: Arc<Semaphore>,
    /// The latest end of its lease that one of them has seen.
    lease_until: Mutex<Timestamp>,
}

impl Default for Awaited {
    fn default() -> Self {
        let lease_until = Mutex::new(Timestamp::from_millis(0));
        Awaited { changed: Arc::default(), turn_to_poll: Arc::new(Semaphore::new(1)), lease_until }
    }
}

/// One caller's wait; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Waiter<'a> {
    waiters: &'a Waiters,
    key: RecordKey,
    awaited: Arc<Awaited>,
}

/// Wakes the callers that wait for a record when it is dropped.
#[derive(Debug)]
pub(crate) struct WakeOnDrop<'a> {
    waiters: &'a Waiters,
    key: RecordKey,
}

impl Waiters {
    /// Begins to wait. Decide about the record once *after* this: it may have changed before.
    pub(crate) fn wait_for(&self, key: &RecordKey) -> Waiter<'_> {
        let mut by_record = self.by_record.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = by_record.entry(key.clone()).or_insert_with(|| Entry { waiting: 0, awaited: Arc::default() });
        entry.waiting += 1;
        Waiter { waiters: self, key: key.clone(), awaited: entry.awaited.clone() }
    }

    /// Wakes every caller that waits for this record when the guard is dropped: after the call that changes it, also if
    /// that call fails or its caller goes away. Callers decide again themselves, so a wrong wake-up does no harm.
    pub(crate) fn wake_on_drop(&self, key: &RecordKey) -> WakeOnDrop<'_> {
        WakeOnDrop { waiters: self, key: key.clone() }
    }
}

impl Waiter<'_> {
    /// A future of the next change. It misses changes that are signalled before this call.
    pub(crate) fn changed(&self) -> OwnedNotified {
        self.awaited.changed.clone().notified_owned()
    }

    /// Ends when this caller is the one that polls, until the permit is dropped.
    pub(crate) async fn turn_to_poll(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.awaited.turn_to_poll.clone().acquire_owned().await
    }

    /// Wakes every caller that waits for the record, this one included.
    pub(crate) fn wake_all(&self) {
        self.awaited.changed.notify_waiters();
    }

    /// The end of the record's lease, as far as the callers that wait for it know.
    pub(crate) fn lease_until(&self) -> Timestamp {
        *self.awaited.lease_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the callers that wait for the record when its lease ends.
    pub(crate) fn set_lease_until(&self, lease_until: Timestamp) {
        *self.awaited.lease_until.lock().unwrap_or_else(PoisonError::into_inner) = lease_until;
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut by_record = self.waiters.by_record.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = by_record.get_mut(&self.key) {
            entry.waiting -= 1;
            if entry.waiting == 0 {
                by_record.remove(&self.key);
            }
        }
    }
}

impl Drop for WakeOnDrop<'_> {
    fn drop(&mut self) {
        let by_record = self.waiters.by_record.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = by_record.get(&self.key) {
            entry.awaited.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use redrive_core::idempotency::Operation;
    use redrive_core::{RecordName, TenantId};

    use super::*;

    fn key(name: &str) -> RecordKey {
        let operation: Operation = "pay".parse().unwrap();
        RecordKey { tenant: TenantId::default_tenant(), operation, name: RecordName::try_new(name).unwrap() }
    }

    #[tokio::test]
    async fn a_change_wakes_those_who_wait_for_this_record_and_nothing_is_kept_after_them() {
        let waiters = Waiters::default();
        let (one, two) = (waiters.wait_for(&key("a")), waiters.wait_for(&key("a")));
        let other = waiters.wait_for(&key("b"));
        let (first, second, elsewhere) = (one.changed(), two.changed(), other.changed());
        drop(waiters.wake_on_drop(&key("a")));
        first.await;
        second.await;
        let is_woken = elsewhere.now_or_never().is_some();
        assert!(!is_woken);
        drop((one, two, other));
        assert!(waiters.by_record.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn one_of_those_who_wait_for_a_record_polls_until_it_goes_away() {
        let waiters = Waiters::default();
        let (one, two) = (waiters.wait_for(&key("a")), waiters.wait_for(&key("a")));
        let other = waiters.wait_for(&key("b"));
        let turn = one.turn_to_poll().await.unwrap();
        assert!(two.turn_to_poll().now_or_never().is_none());
        assert!(other.turn_to_poll().now_or_never().is_some(), "each record has its own");
        drop((turn, one));
        assert!(two.turn_to_poll().now_or_never().is_some());
    }
}
