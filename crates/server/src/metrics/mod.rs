//! Metrics of this process, for Prometheus.
//!
//! [`Metrics`] is a sink of the engine's events and counts them. A scrape (`rest/routes/metrics`) takes a [`Snapshot`]
//! of the counts, adds what is read at that moment ([`Readings`]), and `exposition` writes both as text.
//!
//! | file | its job |
//! | --- | --- |
//! | `catalogue` | every metric: its name, type, labels and meaning; `docs/metrics.md` is generated from it |
//! | `counts` | what is counted, by lane and for the whole process |
//! | `busiest` | which lanes have series of their own, because there may be any number of lanes |
//! | `histogram` | durations and sizes in buckets with fixed bounds |
//! | `readings` | what is read when metrics are scraped: guards, backlogs, the store, the process |
//! | `backlog_cache` | the backlogs of the last seconds: counting them reads the store |
//! | `process` | CPU time, memory and open files, from `/proc` |
//! | `series` | the series of every metric, with their labels |
//! | `dashboard` | a dashboard for Grafana |
//! | `exposition` | OpenMetrics, and the older text format of Prometheus |
//!
//! Not here: what leads to an event (`redrive-engine`), logs.

mod backlog_cache;
mod busiest;
mod catalogue;
mod counts;
mod dashboard;
mod exposition;
mod histogram;
mod process;
mod readings;
mod series;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redrive_core::{Lane, Timestamp};
use redrive_engine::events::{Event, Sink};

pub(crate) use backlog_cache::BacklogCache;
pub use catalogue::reference;
pub(crate) use counts::Snapshot;
pub use dashboard::dashboard;
pub(crate) use exposition::{Format, write};
pub(crate) use readings::Readings;
pub use readings::{SpanCounter, SpanCounts};

use counts::Counts;

/// Counts the engine's events. The same value is a sink of the engine and part of the server's `App`.
#[derive(Default)]
pub struct Metrics {
    counts: Mutex<Counts>,
    backlogs: BacklogCache,
}

impl Metrics {
    /// The counts so far. Lanes that the engine knows get free places, and then it is reviewed which lanes have series of
    /// their own: after the snapshot, so that what was counted of a lane that loses its place is shown once more.
    pub(crate) fn snapshot(&self, known: &[Lane], now: Timestamp) -> Snapshot {
        let mut counts = self.lock();
        known.iter().for_each(|lane| counts.adopt(lane));
        let snapshot = counts.snapshot();
        counts.review(now);
        snapshot
    }

    /// Whether another lane would get series of its own at once.
    pub(crate) fn has_free_places(&self) -> bool {
        self.lock().has_free_places()
    }

    /// The backlogs that metrics show.
    pub(crate) fn backlogs(&self) -> &BacklogCache {
        &self.backlogs
    }

    /// A panic elsewhere leaves counts that are still usable: each event changes them in one call.
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Metrics {
    fn on(&self, event: &Event<'_>) {
        if Counts::counts(event) {
            self.lock().on(event);
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
