//! State that the engine's loops share.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::{Status, Task, Timestamp};
use redrive_store::{ClaimedTask, LeaseTerms, Store};
use tokio::sync::Notify;

use crate::abandoned_leases::AbandonedLeases;
use crate::alert_relay::AlertRelay;
use crate::announcer::Alerts;
use crate::bodies::Bodies;
use crate::common_clock::CommonClock;
use crate::entropy::Entropy;
use crate::events::{EndedBy, Event, Events, Report};
use crate::guard_exchange::GuardExchange;
use crate::in_flight::InFlight;
use crate::lane_scan::MissedWork;
use crate::lanes::Lanes;
use crate::options::Options;
use crate::overdue::Deadlines;
use crate::policies::Policies;
use crate::settle::SlowSettles;
use crate::spawner::Spawner;
use crate::store_outage::{Report as Outage, StoreOutage};
use crate::suppressor::AwaitedRetries;
use crate::task_ids::TaskIds;
use crate::throttled_report::ThrottledReport;
use crate::transport::Transport;
use crate::waiters::Waiters;
use crate::watch::Watch;

/// State that the engine's loops share.
pub(crate) struct EngineState {
    pub(crate) events: Events,
    pub(crate) clock: Arc<CommonClock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) spawner: Arc<dyn Spawner>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) bodies: Option<Arc<dyn Bodies>>,
    pub(crate) options: Options,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) guard_exchange: GuardExchange,
    pub(crate) deadlines: Deadlines,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) waiters: Waiters,
    pub(crate) policies: Policies,
    pub(crate) ids: TaskIds,
    pub(crate) phase: Watch<Phase>,
    pub(crate) started_at: Timestamp,
    /// Notified when the due times were discarded and must be read from the store again.
    pub(crate) schedule_lost: Notify,
    pub(crate) missed_work: MissedWork,
    pub(crate) abandoned_leases: Arc<AbandonedLeases>,
    pub(crate) alerts: Alerts,
    pub(crate) alert_relay: Option<Arc<dyn AlertRelay>>,
    pub(crate) awaited_retries: AwaitedRetries,
    pub(crate) unread: ThrottledReport,
    /// Held while the controls of lanes are read and applied, or changed.
    pub(crate) changing_controls: tokio::sync::Mutex<()>,
    pub(crate) store_outage: StoreOutage,
    pub(crate) slow_settles: SlowSettles,
}

/// How far the engine's shutdown has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// The engine is not stopping.
    Running,
    /// Nothing new is claimed; attempts in flight finish.
    Draining,
    /// Attempts in flight are given up and returned to the store.
    Returning,
    /// No attempt is left; only the alerts that they raised are still to be confirmed.
    Confirming,
}

impl EngineState {
    pub(crate) fn lease_terms(&self) -> LeaseTerms {
        LeaseTerms { margin: self.options.lease_margin }
    }

    /// Schedules a pending task.
    pub(crate) fn note_due(&self, task: &Task) {
        if let Some(due) = task.next_attempt_at {
            self.lanes.note_due(&task.lane, task.class(), due);
            self.deadlines.note(task.deadline_at);
        }
    }

    /// Logs that a call of the store failed, unless an outage is already reported: it is logged once, and then once a
    /// minute.
    pub(crate) fn store_failed(&self, doing: &'static str, error: &dyn Display) {
        self.events.report(Report::StoreCallFailed(doing, error));
        self.missed_work.note();
        match self.store_outage.failed(doing, self.clock.elapsed()) {
            Some(Outage::Began) => self.events.report(Report::StoreOutageBegan(doing, error)),
            Some(Outage::GoesOn(times)) => self.events.report(Report::StoreOutageGoesOn(times, doing, error)),
            Some(Outage::Ended(..)) | None => {}
        }
    }

    /// Notes that a call of the store succeeded: it may be the end of an outage.
    pub(crate) fn store_worked(&self, doing: &'static str) {
        if let Some(Outage::Ended(times, lasted)) = self.store_outage.worked(doing, self.clock.elapsed()) {
            self.events.report(Report::StoreOutageEnded(times, lasted));
        }
    }

    /// Handles the end of a task: raises the alert of a dead letter, and wakes the callers that wait for the end.
    /// `as_ended` is the task in its final state, which is needed only for an alert.
    pub(crate) fn task_ended<'a>(
        &self,
        task: &Task,
        status: Status,
        by: EndedBy,
        as_ended: impl FnOnce() -> Cow<'a, Task>,
    ) {
        self.events.emit(Event::Ended(task, status, by));
        if status.is_dead_letter() {
            self.alerts.raise(&as_ended());
        }
        self.waiters.ended(task.id);
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// Advances to this phase, unless the engine is there or further.
    pub(crate) fn advance(&self, phase: Phase) {
        self.phase.change(|now| *now = (*now).max(phase));
    }

    /// Waits until the engine's shutdown has come at least this far.
    pub(crate) async fn reached(&self, phase: Phase) {
        self.phase.until(|now| now >= phase).await;
    }

    /// The recent latency of calls to this task's dependency.
    pub(crate) fn estimate(&self, claimed: &ClaimedTask) -> Duration {
        self.lanes.estimate(&claimed.task.lane)
    }
}
