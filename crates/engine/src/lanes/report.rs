//! What the lanes show to operators: the state of each guard, and why work waits.

use std::collections::BTreeSet;

use redrive_core::guards::{BudgetState, Controls, Held, breaker};
use redrive_core::{Class, Dependency, Lane, Task, TenantId, Timestamp};

use super::quantiles::Latencies;
use super::state::{Now, State};
use crate::events::HoldReason;
use crate::schedule::LaneId;

/// The state of a lane, as this process sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct LaneReport {
    /// The lane.
    pub lane: Lane,
    /// What operators have set.
    pub controls: Controls,
    /// The state of the circuit breaker; `None` if there is none.
    pub breaker: Option<breaker::State>,
    /// The state of the retry budget; `None` if there is none.
    pub budget: Option<BudgetState>,
    /// Whether the latest outcomes show a healthy dependency.
    pub is_healthy: bool,
    /// How many of the latest outcomes are remembered, and how many of them failed.
    pub outcomes: (u32, u32),
    /// Attempts on the wire.
    pub in_flight: usize,
    /// How many attempts may be in flight, apart from the breaker.
    pub concurrency_limit: u32,
    /// What was counted since this process first saw the lane.
    pub totals: AttemptCounts,
    /// The latency of the latest calls.
    pub latency: Option<Latencies>,
    /// When the first task that has not been sent is due.
    pub first_attempt_due: Option<Timestamp>,
    /// When the first retry is due.
    pub retry_due: Option<Timestamp>,
    /// The first attempt without success since the last success.
    pub failing_since: Option<Timestamp>,
    /// Why due work waits, if it does.
    pub waiting: Option<Waiting>,
}

/// Counts since this process first saw a lane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttemptCounts {
    /// Attempts that ended.
    pub attempts: u64,
    /// Those of them that show a dependency in trouble.
    pub failures: u64,
}

/// Why a task or a lane waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// What it waits for.
    pub what: WaitingFor,
    /// Until when, if that is known.
    pub until: Option<Timestamp>,
}

/// What a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitingFor {
    /// Its own due time.
    Backoff,
    /// The retry budget.
    Budget,
    /// The circuit breaker.
    Breaker,
    /// Other attempts of its lane, which has as many in flight as it may have.
    Concurrency,
    /// An operator, who paused the lane.
    Pause,
    /// The capacity of this process, which lanes share.
    Capacity,
}

impl WaitingFor {
    /// Everything that a task may wait for.
    pub const ALL: [WaitingFor; 6] = [
        WaitingFor::Backoff,
        WaitingFor::Budget,
        WaitingFor::Breaker,
        WaitingFor::Concurrency,
        WaitingFor::Pause,
        WaitingFor::Capacity,
    ];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            WaitingFor::Backoff => "backoff",
            WaitingFor::Budget => "budget",
            WaitingFor::Breaker => "breaker",
            WaitingFor::Concurrency => "concurrency",
            WaitingFor::Pause => "pause",
            WaitingFor::Capacity => "capacity",
        }
    }
}

impl From<HoldReason> for WaitingFor {
    fn from(reason: HoldReason) -> Self {
        match reason {
            HoldReason::LaneLimit => WaitingFor::Concurrency,
            HoldReason::Capacity | HoldReason::TenantShare | HoldReason::Memory | HoldReason::StartRate => {
                WaitingFor::Capacity
            }
            HoldReason::Breaker => WaitingFor::Breaker,
            HoldReason::Budget => WaitingFor::Budget,
            HoldReason::Pause => WaitingFor::Pause,
        }
    }
}

impl From<Held> for Waiting {
    fn from(held: Held) -> Self {
        let until = match held {
            // A breaker that is held open has no end of its own.
            Held::Breaker(until) => Some(until).filter(|until| *until < Timestamp::MAX),
            Held::Budget(until) => Some(until),
            Held::Pause => None,
        };
        Waiting { what: HoldReason::from(held).into(), until }
    }
}

impl State {
    /// The state of one lane.
    pub(super) fn report(&mut self, id: LaneId, now: Now) -> Option<LaneReport> {
        let lane = self.names.lane(id)?.clone();
        self.apply_guards(id, now);
        let waiting = self.lane_waits(id, now);
        let controls = self.guards.controls(&lane);
        let state = &mut self.lanes[id];
        let latency = state.latencies.latencies(now.elapsed);
        // A lane that has sent nothing has no guards yet.
        let mut fresh = state.guarded.guards.is_none().then(|| self.guards.fresh(Some(&lane), now.wall));
        let guards = state.guarded.guards.as_deref_mut().or(fresh.as_deref_mut())?;
        Some(LaneReport {
            controls,
            breaker: self.guards.settings.breaker.map(|_| guards.breaker_state(now.wall)),
            budget: guards.budget_state(now.wall),
            is_healthy: guards.is_healthy(),
            outcomes: (guards.recent().count(), guards.recent().failures()),
            in_flight: self.slots.on_wire(id),
            concurrency_limit: guards.concurrency_limit(),
            totals: state.guarded.totals,
            latency,
            first_attempt_due: self.schedule.due(id, Class::First),
            retry_due: self.schedule.due(id, Class::Retry),
            failing_since: guards.failing_since(),
            waiting,
            lane,
        })
    }

    /// The state of a lane that this process knows, or that operators have set something for.
    pub(super) fn report_of(&mut self, lane: &Lane, now: Now) -> Option<LaneReport> {
        if let Some(id) = self.names.find(lane) {
            return self.report(id, now);
        }
        if self.guards.controls(lane).is_empty() {
            return None;
        }
        let id = self.id(lane);
        let report = self.report(id, now);
        // It has nothing to do, and may be forgotten again.
        self.place(id, now);
        report
    }

    /// The states of a tenant's lanes, by dependency after `after`, at most `limit`.
    pub(super) fn reports(
        &mut self,
        tenant: &TenantId,
        after: Option<&Dependency>,
        limit: usize,
        now: Now,
    ) -> Vec<LaneReport> {
        // There may be very many, and claims and attempts wait: no more are looked at than may be returned.
        let named = self.names.dependencies(tenant, after).take(limit);
        let controlled = self.guards.controlled_dependencies(tenant, after).take(limit);
        let listed: BTreeSet<&Dependency> = named.chain(controlled).collect();
        let lane = |dependency: &Dependency| Lane { tenant: tenant.clone(), dependency: dependency.clone() };
        let lanes: Vec<Lane> = listed.into_iter().take(limit).map(lane).collect();
        lanes.iter().filter_map(|lane| self.report_of(lane, now)).collect()
    }

    /// What a pending task waits for; `None` if it is about to be sent.
    pub(super) fn task_waits(&mut self, task: &Task, now: Now) -> Option<Waiting> {
        let due = task.next_attempt_at?;
        if due > now.wall {
            return Some(Waiting { what: WaitingFor::Backoff, until: Some(due) });
        }
        let id = self.names.find(&task.lane)?;
        self.apply_guards(id, now);
        let guarded = &self.lanes[id].guarded;
        let held = guarded.held.or(guarded.held_retries.filter(|_| task.class() == Class::Retry));
        held.map(Waiting::from).or_else(|| self.capacity_wait(id, now))
    }

    fn lane_waits(&self, id: LaneId, now: Now) -> Option<Waiting> {
        let is_due = |class| self.schedule.due(id, class).is_some_and(|due| due <= now.wall);
        let guarded = &self.lanes[id].guarded;
        let held = guarded.held.or(guarded.held_retries.filter(|_| is_due(Class::Retry)));
        held.map(Waiting::from).or_else(|| self.capacity_wait(id, now))
    }

    /// Why the lane got no slot when it was last placed, if a limit of slots was the reason.
    fn capacity_wait(&self, id: LaneId, now: Now) -> Option<Waiting> {
        let what = match WaitingFor::from(self.lanes[id].held_back()?) {
            // While the breaker probes, the limit is the number of probes.
            WaitingFor::Concurrency if self.is_held_or_probing(id, now) => WaitingFor::Breaker,
            what @ (WaitingFor::Concurrency | WaitingFor::Capacity) => what,
            _ => return None,
        };
        Some(Waiting { what, until: None })
    }
}
