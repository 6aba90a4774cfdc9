//! Invariant 8: what the guards let through, counted on the wire.
//!
//! The model knows less than the engine, so each rule is a bound that holds whatever it does not know. A retry that
//! succeeded counts as refunded unless the lane was certainly unhealthy. A breaker is certainly open only for the
//! shortest pause that can be drawn, and only after failures that the engine must have heard of in one life.
//!
//! Several nodes share their guards with a stated slack: a token is sent up to a bucket after the one that it is charged
//! to, and outcomes are known to the others a little later. So the model grants the slack, and takes every lane for one
//! that may be healthy. The breaker of several nodes is judged in `shared_breaker`.
//!
//! Worlds have a budget or a breaker, not both: a probe is charged and never held, and only the breaker knows which
//! attempts are probes.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use redrive_core::guards::{self, Health};
use redrive_core::{Lane, TaskId};
use redrive_engine::transport::Outbound;

use super::Model;
use super::facts::Whose;
use crate::moment::Moment;

/// The outcomes by which a lane is healthy or not.
const OUTCOMES: usize = 50;
/// With at least this many outcomes …
const CERTAIN: usize = 10;
/// … of which fewer than this percentage succeeded, no lane is healthy.
const UNHEALTHY_PERCENT: usize = 70;
/// A process that dies this soon after its breaker opened may not have kept that.
const KEPT_AFTER: Duration = Duration::from_secs(1);

/// How far the clocks of nodes differ that share a store whose time they read.
const CLOCKS_DIFFER: Duration = Duration::from_millis(500);

/// What is known of one lane.
#[derive(Debug, Default)]
pub(super) struct GuardedLane {
    firsts: VecDeque<Moment>,
    retries: BTreeMap<(TaskId, u32), Retry>,
    /// Whether the latest outcomes succeeded.
    outcomes: VecDeque<bool>,
    /// Whether the process was restarted: it may remember outcomes from before, or not.
    is_restarted: bool,
    breaker: Breaker,
    /// When each attempt on the wire began.
    on_wire: BTreeMap<(TaskId, u32), Moment>,
}

#[derive(Debug)]
struct Retry {
    at: Moment,
    may_be_refunded: bool,
}

#[derive(Debug, Default)]
struct Breaker {
    /// Outcomes of attempts that began earlier do not count.
    since: Moment,
    failures_in_a_row: u32,
    open: Option<Open>,
    /// After a restart the engine may know less than the model, until this many successes in a row have been seen.
    uncertain: u32,
    /// Whether the engine may count outcomes of attempts that began before `since`: it is known only after the model saw the
    /// breaker close.
    may_count_earlier: bool,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    from: Moment,
    /// It is open until then at least; attempts that begin later are probes.
    until: Moment,
    succeeded: u32,
}

impl Model {
    /// An attempt begins: the guards let it through.
    pub(super) fn lets_through(&mut self, whose: Whose, outbound: &Outbound) {
        let Some(settings) = self.rules.guards else { return };
        let (id, attempt, now) = (outbound.task, outbound.attempt, self.now);
        // A replay starts a new run, and the model may not know when.
        let is_certain = self.tasks.get(&id).is_none_or(|facts| facts.replays_asked == 0);
        let is_retry = attempt > 1 && is_certain;
        let is_shared = self.rules.are_guards_shared;
        let lane = self.guarded.entry(outbound.lane.clone()).or_default();
        let spent = settings.budget.and_then(|budget| lane.sends((id, attempt), is_retry, &budget, is_shared, now));
        let breaker = settings.breaker.filter(|_| !is_shared);
        let closed = breaker.and_then(|breaker| lane.passes(&breaker, now));
        lane.on_wire.insert((id, attempt), now);
        let held = self.passes_shared(whose, &outbound.lane, (id, attempt));
        if let Some(what) = spent.or(closed).or(held) {
            self.broken(8, Some(id), what);
        }
    }

    /// An attempt is over; `health` is what it says about the dependency.
    pub(super) fn guards_hear(&mut self, lane: &Lane, id: TaskId, attempt: u32, health: Option<Health>) {
        let now = self.now;
        let Some(settings) = self.rules.guards else { return };
        self.shared_breaker_hears(lane, (id, attempt), health);
        let Some(lane) = self.guarded.get_mut(lane) else { return };
        let Some(began) = lane.on_wire.remove(&(id, attempt)) else { return };
        let Some(health) = health else { return };
        lane.outcomes.push_front(health == Health::Well);
        lane.outcomes.truncate(OUTCOMES);
        let may_be_healthy = self.rules.are_guards_shared || !lane.is_certainly_unhealthy();
        if let (Some(retry), Health::Well) = (lane.retries.get_mut(&(id, attempt)), health) {
            retry.may_be_refunded = may_be_healthy;
        }
        if let Some(breaker) = settings.breaker {
            lane.breaker.hears(health, began, &breaker, now);
        }
    }

    /// An attempt was withdrawn before its first byte: it does not count.
    pub(super) fn counts_not(&mut self, lane: &Lane, id: TaskId, attempt: u32) {
        self.shared_breaker_hears(lane, (id, attempt), None);
        if let Some(lane) = self.guarded.get_mut(lane) {
            lane.retries.remove(&(id, attempt));
            lane.on_wire.remove(&(id, attempt));
        }
    }

    /// The only process died, or was stopped.
    pub(super) fn guards_restart(&mut self) {
        let now = self.now;
        for lane in self.guarded.values_mut() {
            // Outcomes are kept only together with something that holds the lane back.
            lane.outcomes.clear();
            lane.is_restarted = true;
            lane.breaker.restarts(now, self.rules.guards.as_ref().and_then(|guards| guards.breaker.as_ref()));
        }
    }
}

impl GuardedLane {
    /// Counts an attempt. Returns what is wrong if it is a retry beyond the budget.
    fn sends(
        &mut self,
        id: (TaskId, u32),
        is_retry: bool,
        budget: &guards::budget::Settings,
        is_shared: bool,
        now: Moment,
    ) -> Option<String> {
        let slack = if is_shared { budget.bucket + CLOCKS_DIFFER } else { Duration::ZERO };
        let is_in_window = |at: Moment| at.after(budget.window + 2 * slack) > now;
        self.firsts.retain(|at| is_in_window(*at));
        self.retries.retain(|_, retry| is_in_window(retry.at));
        if !is_retry {
            self.firsts.push_back(now);
            return None;
        }
        self.retries.insert(id, Retry { at: now, may_be_refunded: false });
        let refunded = self.retries.values().filter(|retry| retry.may_be_refunded).count();
        let is_charged = |retry: &&Retry| !retry.may_be_refunded && retry.at.after(budget.window - slack) > now;
        let charged = self.retries.values().filter(is_charged).count();
        let is_unhealthy = !is_shared && self.is_certainly_unhealthy();
        let earning = self.firsts.len() + if is_unhealthy { 0 } else { refunded };
        let allowed = 100 * budget.floor as usize + budget.percent as usize * earning;
        (100 * charged > allowed).then(|| {
            let seconds = budget.window.as_secs_f64();
            let firsts = self.firsts.len();
            format!("{charged} retries in {seconds} s beside {firsts} first attempts and {refunded} refunded retries")
        })
    }

    /// Returns what is wrong if an attempt begins that the breaker must hold back.
    fn passes(&mut self, settings: &guards::breaker::Settings, now: Moment) -> Option<String> {
        let open = self.breaker.open?;
        if now > open.from && now < open.until {
            return Some(format!("an attempt while the breaker, which opened at {}, is open", open.from));
        }
        let probes = self.on_wire.values().filter(|began| **began >= open.until).count() + 1;
        let most = settings.probes.saturating_sub(open.succeeded).max(1) as usize;
        (now >= open.until && probes > most).then(|| format!("{probes} probes at once, not {most}"))
    }

    fn is_certainly_unhealthy(&self) -> bool {
        let succeeded = self.outcomes.iter().filter(|succeeded| **succeeded).count();
        let needed = if self.is_restarted { OUTCOMES } else { CERTAIN };
        self.outcomes.len() >= needed && 100 * succeeded < UNHEALTHY_PERCENT * self.outcomes.len()
    }
}

impl Breaker {
    fn hears(&mut self, health: Health, began: Moment, settings: &guards::breaker::Settings, now: Moment) {
        if let Some(open) = &mut self.open {
            if began < open.until {
                return;
            }
            if health != Health::Well {
                return self.opens(settings, now);
            }
            open.succeeded += 1;
            if open.succeeded >= settings.probes {
                *self = Breaker { since: now, ..Breaker::default() };
            }
            return;
        }
        if began < self.since {
            // After a restart the engine may have counted it.
            match health {
                Health::Well => self.failures_in_a_row = 0,
                Health::Strained | Health::Failing if self.may_count_earlier => self.is_uncertain(settings, now),
                Health::Strained | Health::Failing => {}
            }
            return;
        }
        if self.uncertain > 0 {
            match health {
                // If it was open it has closed by now: outcomes of attempts that began before do not count.
                Health::Well => (self.uncertain, self.since) = (self.uncertain - 1, now),
                // It may have opened: outcomes of attempts that are on the wire would then not count.
                Health::Strained | Health::Failing => self.is_uncertain(settings, now),
            }
            return;
        }
        self.failures_in_a_row = match health {
            Health::Well => 0,
            Health::Strained => self.failures_in_a_row,
            Health::Failing => self.failures_in_a_row + 1,
        };
        if self.failures_in_a_row >= settings.failures_in_a_row {
            self.opens(settings, now);
        }
    }

    /// It may have opened, or not.
    fn is_uncertain(&mut self, settings: &guards::breaker::Settings, now: Moment) {
        *self = Breaker { since: now, uncertain: settings.probes + 1, may_count_earlier: true, ..Breaker::default() };
    }

    fn opens(&mut self, settings: &guards::breaker::Settings, now: Moment) {
        let shortest = settings.open.mul_f64(1.0 - settings.spread);
        self.failures_in_a_row = 0;
        self.open = Some(Open { from: now, until: now.after(shortest), succeeded: 0 });
    }

    fn restarts(&mut self, now: Moment, settings: Option<&guards::breaker::Settings>) {
        let probes = settings.map_or(0, |settings| settings.probes);
        if let Some(open) = &mut self.open
            && now > open.from.after(KEPT_AFTER)
            && now < open.until
        {
            // What it was is kept.
            open.succeeded = 0;
            return;
        }
        *self = Breaker { since: now, uncertain: probes + 1, may_count_earlier: true, ..Breaker::default() };
    }
}
