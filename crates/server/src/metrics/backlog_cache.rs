//! The backlogs that were counted last. Counting them reads the store, so that scraping often must not count often, and a
//! store that is slow must not hold scrapes up.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive_core::{Lane, Timestamp};
use redrive_store::Backlog;

use crate::app::App;

/// How long counts are used. Without scrapes nothing is counted.
const FRESH: Duration = Duration::from_secs(15);

/// How long the store may take for all counts. It counts on behind that, and counts that come late are not used.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The number up to which the tasks of each lane are counted at first.
const SMALL: u32 = 1_000;

/// How many tasks of each kind are counted in all lanes together that have more than [`SMALL`].
const LARGE_IN_ALL: u32 = 100_000;

/// The last counts, and whether a count is in progress.
#[derive(Debug, Default)]
pub(crate) struct BacklogCache {
    last: Mutex<Counted>,
    counted_at: Mutex<Option<Timestamp>>,
    is_counting: AtomicBool,
}

/// What was counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Counted {
    /// Empty if the store did not answer in time.
    pub(super) backlogs: BTreeMap<Lane, Backlog>,
    /// `None` if the store did not answer in time.
    pub(super) rows_set_aside: Option<u64>,
}

impl BacklogCache {
    /// What was counted last.
    pub(super) fn last(&self) -> Counted {
        lock(&self.last).clone()
    }

    /// Whether the caller has to count: the last count is not fresh, and no count is in progress.
    pub(crate) fn begin(&self, now: Timestamp) -> bool {
        let is_fresh = lock(&self.counted_at).is_some_and(|at| now.since(at) < FRESH);
        !is_fresh && !self.is_counting.swap(true, Ordering::AcqRel)
    }

    /// Counts, after [`begin`](BacklogCache::begin).
    pub(crate) async fn count(&self, app: &App, lanes: Vec<Lane>) {
        let counted = tokio::select! {
            biased;
            counted = count(app, lanes) => counted,
            () = app.engine.sleep(TIMEOUT) => Counted::default(),
        };
        *lock(&self.last) = counted;
        // From its end on: a store that takes longer than the counts are fresh has a rest in between.
        *lock(&self.counted_at) = Some(app.engine.now());
        self.is_counting.store(false, Ordering::Release);
    }
}

/// Counts in the store. A failure is not reported as an outage: nothing but metrics depends on it.
async fn count(app: &App, lanes: Vec<Lane>) -> Counted {
    let store = app.engine.store();
    let set_aside = store.health().set_aside(0).await;
    Counted {
        backlogs: backlogs(app, lanes).await.unwrap_or_default(),
        rows_set_aside: set_aside.ok().map(|set_aside| set_aside.count),
    }
}

async fn backlogs(app: &App, lanes: Vec<Lane>) -> Result<BTreeMap<Lane, Backlog>, redrive_store::Error> {
    let (reads, now) = (app.engine.store().reads(), app.engine.now());
    let small = reads.backlogs(lanes.clone(), now, SMALL).await?;
    let mut backlogs: BTreeMap<Lane, Backlog> = lanes.into_iter().zip(small).collect();
    let is_large = |backlog: &Backlog| backlog.due.max(backlog.waiting) >= SMALL;
    let large: Vec<Lane> =
        backlogs.iter().filter(|(_, backlog)| is_large(backlog)).map(|(lane, _)| lane.clone()).collect();
    let each = u32::try_from(large.len()).ok().and_then(|lanes| LARGE_IN_ALL.checked_div(lanes)).unwrap_or_default();
    if each > SMALL {
        let counted = reads.backlogs(large.clone(), now, each).await?;
        backlogs.extend(large.into_iter().zip(counted));
    }
    Ok(backlogs)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
