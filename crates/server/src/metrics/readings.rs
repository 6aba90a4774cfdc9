//! What is read when metrics are scraped: the guards, the backlogs, the store, the process.

use std::sync::Arc;

use redrive_core::Timestamp;
use redrive_core::alerts::{Severity, Signal};
use redrive_engine::LaneReport;
use redrive_store::{Backlog, CommitCounts};

use super::Snapshot;
use super::process::Process;
use crate::app::App;
use crate::idempotency::TotalsSnapshot;

/// What was read.
#[derive(Debug)]
pub(crate) struct Readings {
    pub(super) now: Timestamp,
    /// For each lane with series of its own, in the order of the snapshot.
    pub(super) lanes: Vec<LaneReading>,
    pub(super) rows_set_aside: Option<u64>,
    pub(super) commits: Option<CommitCounts>,
    pub(super) in_flight: usize,
    pub(super) has_dead_loop: bool,
    pub(super) is_store_out: bool,
    pub(super) is_time_certain: bool,
    /// How many alerts of each rule fire.
    pub(super) alerts_firing: Vec<(Signal, Severity, usize)>,
    pub(super) connections: usize,
    pub(super) idempotency: TotalsSnapshot,
    pub(super) process: Option<Process>,
    pub(super) node: String,
    pub(super) spans: Option<SpanCounts>,
}

/// How many spans of traces were exported and dropped so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanCounts {
    /// Spans that the receiver took.
    pub exported: u64,
    /// Spans that did not fit into the queue, could not be sent, or were rejected by the receiver.
    pub dropped: u64,
}

/// Reads [`SpanCounts`].
pub type SpanCounter = Arc<dyn Fn() -> SpanCounts + Send + Sync>;

/// What was read of a lane.
#[derive(Debug)]
pub(super) struct LaneReading {
    /// `None` if the engine has forgotten the lane, because it has nothing to do.
    pub(super) report: Option<LaneReport>,
    /// `None` if the store did not answer.
    pub(super) backlog: Option<Backlog>,
}

impl Readings {
    /// Reads everything for a scrape, with the backlogs that were counted last.
    pub(crate) fn read(app: &App, snapshot: &Snapshot, connections: usize) -> Self {
        let counted = app.metrics.backlogs.last();
        let lanes = snapshot.named.iter().map(|(lane, _)| LaneReading {
            report: app.engine.lane_report(lane),
            backlog: counted.backlogs.get(lane).copied(),
        });
        Readings {
            now: app.engine.now(),
            lanes: lanes.collect(),
            rows_set_aside: counted.rows_set_aside,
            commits: app.engine.store().health().commits(),
            in_flight: app.engine.in_flight(),
            has_dead_loop: app.engine.dead().is_some(),
            is_store_out: app.engine.is_store_out(),
            is_time_certain: app.engine.clock_state().is_certain,
            alerts_firing: app.alerts.firing_counts(),
            connections,
            idempotency: app.totals.snapshot(),
            process: Process::read(),
            node: app.node.clone(),
            spans: app.span_counts.as_ref().map(|read| read()),
        }
    }
}
