//! A bound on the tasks that were submitted and have not arrived.
//!
//! With it there is always work to do, and a service that does not deliver is not flooded: callers submit only as fast
//! as tasks are delivered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::deliveries::Deliveries;

/// How often deliveries are counted. Once for all callers, so that waiting costs them nothing.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Admits submissions while fewer than a number of tasks are outstanding.
#[derive(Debug)]
pub struct Bound {
    permits: Semaphore,
    deliveries: Arc<Deliveries>,
    /// The deliveries that have been turned into permits.
    seen: AtomicU64,
}

impl Bound {
    /// At most `outstanding` tasks from now on.
    pub fn new(outstanding: usize, deliveries: Arc<Deliveries>) -> Self {
        let seen = AtomicU64::new(deliveries.count());
        Bound { permits: Semaphore::new(outstanding), deliveries, seen }
    }

    /// Waits until one more task may be submitted; false if that was not before `end`.
    pub async fn enter(&self, end: Instant) -> bool {
        if Instant::now() >= end {
            return false;
        }
        let entered = tokio::time::timeout_at(end.into(), self.permits.acquire()).await;
        match entered {
            Ok(Ok(permit)) => {
                permit.forget();
                true
            }
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// Turns deliveries into permits until it is aborted.
    pub async fn refill(self: Arc<Self>) {
        loop {
            self.look();
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn look(&self) {
        let count = self.deliveries.count();
        let seen = self.seen.swap(count, Ordering::AcqRel);
        self.permits.add_permits(count.saturating_sub(seen) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a task is admitted without waiting.
    async fn is_open(bound: &Bound, end: Instant) -> bool {
        tokio::time::timeout(Duration::ZERO, bound.enter(end)).await.unwrap_or(false)
    }

    #[tokio::test]
    async fn only_deliveries_let_further_tasks_in() {
        let deliveries = Arc::new(Deliveries::default());
        let bound = Bound::new(2, Arc::clone(&deliveries));
        let end = Instant::now() + Duration::from_secs(600);
        assert!(is_open(&bound, end).await && is_open(&bound, end).await);
        assert!(!is_open(&bound, end).await, "two are outstanding");
        deliveries.record(0, 1);
        assert!(!is_open(&bound, end).await, "the delivery has not been looked at");
        bound.look();
        assert!(is_open(&bound, end).await);
        assert!(!is_open(&bound, end).await);
    }

    #[tokio::test]
    async fn nothing_is_let_in_after_the_end() {
        let bound = Bound::new(2, Arc::default());
        assert!(!is_open(&bound, Instant::now()).await);
        assert_eq!(bound.permits.available_permits(), 2, "and no permit is used up");
    }
}
