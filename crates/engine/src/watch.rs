//! A value that can be waited for.
//!
//! Why not tokio's `watch`: it spreads its waiters over several lists at random and wakes list after list, so a seed
//! would not decide which waiter runs first. Here they are woken in the order in which they began to wait.

use std::pin::pin;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// A value that can be waited for.
#[derive(Debug)]
pub struct Watch<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T: Copy> Watch<T> {
    /// A value that nothing waits for yet.
    pub fn new(value: T) -> Self {
        Watch { value: Mutex::new(value), changed: Notify::new() }
    }

    /// The value now.
    pub fn get(&self) -> T {
        *self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the value and wakes every waiter.
    pub fn change(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.value.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_waiters();
    }

    /// Waits until `holds` is true of the value.
    pub async fn until(&self, holds: impl Fn(T) -> bool) {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Registered before the last check: a change in between is not missed.
            changed.as_mut().enable();
            if holds(self.get()) {
                return;
            }
            changed.await;
        }
    }
}
