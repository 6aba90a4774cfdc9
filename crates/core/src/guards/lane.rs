//! The guards of one lane together: what the engine asks before it claims and before it sends.
//!
//! Two questions, because a claim is durable and takes time. Before a claim, [`LaneGuards::room`] says how many attempts
//! the lane may have in flight and how many retries it may claim; claimed retries are *reserved*, so that one grant is
//! not given twice. Just before the send, [`LaneGuards::begin`] decides for good, and counts. So the budget and the
//! breaker are exact on the wire, whatever happened between claim and send.
//!
//! An attempt that began returns its [`Permit`] with [`LaneGuards::end`], or with [`LaneGuards::withdraw`] if nothing was
//! sent.

mod sharing;

use std::time::Duration;

use crate::guards::breaker::{self, Admission, Breaker, Call, Change, State, Ticket};
use crate::guards::budget::{self, Budget, Charge};
use crate::guards::concurrency::{self, Concurrency, Signal};
use crate::guards::node_share::NodeShare;
use crate::guards::shared::BreakerChange;
use crate::guards::window::Entry;
use crate::guards::{GoneSign, GoneWatch, Health, Presence, RecentOutcomes, SharedFloor};
use crate::task::Class;
use crate::time::Timestamp;

/// An open breaker of a lane without work is forgotten when it could have sent its probes for this long.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);
/// A lane whose probes are another process's is looked at again after this time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The settings of a lane's guards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The retry budget; without it, retries are not limited.
    pub budget: Option<budget::Settings>,
    /// The circuit breaker; without it, a failing dependency is called on.
    pub breaker: Option<breaker::Settings>,
    /// The limit of attempts in flight.
    pub concurrency: concurrency::Settings,
    /// The breaker opens when retries have waited for the budget for this long while the lane is not healthy.
    pub spent_opens_after: Duration,
}

impl Settings {
    /// No guard holds anything back.
    pub fn off() -> Self {
        let concurrency = concurrency::Settings { is_adaptive: false, most: u32::MAX, ..Default::default() };
        Settings { budget: None, breaker: None, concurrency, spent_opens_after: Duration::MAX }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            budget: Some(budget::Settings::default()),
            breaker: Some(breaker::Settings::default()),
            concurrency: concurrency::Settings::default(),
            spent_opens_after: Duration::from_secs(10),
        }
    }
}

/// The guards of one lane.
#[derive(Debug, Clone, PartialEq)]
pub struct LaneGuards {
    pub(super) settings: Settings,
    pub(super) budget: Option<Budget>,
    pub(super) breaker: Option<Breaker>,
    concurrency: Concurrency,
    pub(super) recent: RecentOutcomes,
    /// Retries that are claimed, or about to be, and not sent yet.
    pub(super) reserved: u32,
    /// Attempts on the wire.
    in_flight: u32,
    /// Since when retries have waited for the budget while the lane was not healthy.
    spent_since: Option<Timestamp>,
    is_paused: bool,
    /// What it has taken of the floor that it shares.
    of_floor: Vec<Entry>,
    /// What this process has of guards that several processes share; `None` if it is the only one.
    share: Option<Box<NodeShare>>,
    pub(super) gone: GoneWatch,
}

/// Why a guard holds a lane, or its retries, back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// An operator paused the lane.
    Pause,
    /// The breaker is open, until this time at least; or its probes are under way.
    Breaker(Timestamp),
    /// The retry budget is spent: there is no more before this time, unless first attempts are made or retries succeed.
    Budget(Timestamp),
}

/// What a lane may claim now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// How many attempts may be in flight, those under way included.
    pub most_in_flight: u32,
    /// How many retries may be claimed beside those that are reserved.
    pub retries: u32,
    /// Why nothing may be claimed, if so.
    pub held: Option<Held>,
    /// Why no retry may be claimed, if so.
    pub held_retries: Option<Held>,
}

/// The permission for one attempt, to be returned with its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Permit {
    ticket: Option<Ticket>,
    /// Whether it is a probe of the breaker.
    is_probe: bool,
    charge: Option<Charge>,
    /// Whether it is a retry, and the second that it is charged to, if several processes share the budget.
    shared: Option<(Class, Timestamp)>,
}

/// What an attempt showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// What it says about the dependency; `None` if nothing.
    pub health: Option<Health>,
    /// What it says about the load that the dependency bears.
    pub signal: Signal,
    /// How long it took.
    pub took: Duration,
    /// The wait that the dependency asked for.
    pub retry_after: Option<Duration>,
}

impl LaneGuards {
    /// The guards of a lane that has sent nothing yet.
    pub fn new(settings: Settings) -> Self {
        LaneGuards {
            settings,
            budget: settings.budget.map(Budget::new),
            breaker: settings.breaker.map(Breaker::new),
            concurrency: Concurrency::new(settings.concurrency),
            recent: RecentOutcomes::default(),
            reserved: 0,
            in_flight: 0,
            spent_since: None,
            is_paused: false,
            of_floor: Vec::new(),
            share: None,
            gone: GoneWatch::default(),
        }
    }

    /// What the lane may claim now. `floor` is the one that it shares with the other lanes of its origin.
    pub fn room(&mut self, floor: Option<&mut SharedFloor>, now: Timestamp) -> Room {
        let nothing = |held| Room { most_in_flight: 0, retries: 0, held: Some(held), held_retries: Some(held) };
        if self.is_paused {
            return nothing(Held::Pause);
        }
        match self.breaker.as_ref().map(|breaker| (breaker.most_in_flight(now), breaker.state(now))) {
            Some((_, State::Open { until, .. })) => nothing(Held::Breaker(until)),
            // Another process probes, or it is not known yet which one does.
            Some((Some(_), _)) if !self.may_probe(now) => nothing(Held::Breaker(now.after(LOOK_AGAIN))),
            // Probes are charged and never held by the budget.
            Some((Some(probes), _)) => {
                Room { most_in_flight: probes, retries: u32::MAX, held: None, held_retries: None }
            }
            Some((None, _)) | None => {
                let (retries, spent) = self.retries_left(floor, now);
                let most_in_flight = self.concurrency.limit().max(1);
                Room { most_in_flight, retries, held: None, held_retries: spent.map(Held::Budget) }
            }
        }
    }

    /// Reserves retries for a claim.
    pub fn reserve(&mut self, retries: u32) {
        self.reserved = self.reserved.saturating_add(retries);
    }

    /// Gives reserved retries back that will not be sent.
    pub fn release(&mut self, retries: u32) {
        self.reserved = self.reserved.saturating_sub(retries);
    }

    /// Decides whether an attempt is sent now, and counts it if so. A reserved retry is no longer reserved, whatever the
    /// decision.
    pub fn begin(&mut self, class: Class, floor: Option<&mut SharedFloor>, now: Timestamp) -> Result<Permit, Held> {
        if class == Class::Retry {
            self.release(1);
        }
        if self.is_paused {
            return Err(Held::Pause);
        }
        if matches!(self.breaker_state(now), State::Probing { .. }) && !self.may_probe(now) {
            return Err(Held::Breaker(now.after(LOOK_AGAIN)));
        }
        let (ticket, is_probe) = match self.breaker.as_mut().map(|breaker| breaker.admit(now)) {
            Some(Admission::Pass(ticket)) => (Some(ticket), false),
            Some(Admission::Probe(ticket)) => (Some(ticket), true),
            Some(Admission::Wait { until }) => return Err(Held::Breaker(until)),
            None => (None, false),
        };
        let charged = self.charge_shared(class, is_probe, now).and_then(|shared| {
            // The token of a shared budget decides; what this process counts itself is shown.
            let is_granted = is_probe || shared.is_some();
            Ok((shared, self.charge(class, is_granted, floor, now)?))
        });
        let (shared, charge) = match charged {
            Ok(charged) => charged,
            Err(held) => {
                self.give_back(ticket);
                return Err(held);
            }
        };
        self.in_flight += 1;
        Ok(Permit { ticket, is_probe, charge, shared })
    }

    /// Records the outcome of an attempt; a pause of the breaker is drawn with `unit` in [0, 1). `elapsed` is time since
    /// some fixed point, which never jumps.
    pub fn end(
        &mut self,
        permit: Permit,
        outcome: Outcome,
        now: Timestamp,
        elapsed: Duration,
        unit: f64,
    ) -> Option<Change> {
        let Outcome { health, signal, took, retry_after } = outcome;
        self.concurrency.record(signal, took, self.in_flight, elapsed);
        self.in_flight = self.in_flight.saturating_sub(1);
        let Some(health) = health else {
            // The attempt may have reached the dependency: what it cost stays charged.
            self.give_back(permit.ticket);
            return None;
        };
        self.recent.record(health == Health::Well);
        if let Some(share) = &mut self.share {
            share.outcomes.record(health == Health::Well);
        }
        // A probe that succeeds is refunded, too: lanes of one origin would otherwise spend their floor on probes, and never
        // show that they are healthy.
        if health == Health::Well && (self.recent.is_healthy() || permit.is_probe) {
            self.spent_since = None;
            if let (Some(budget), Some(charge)) = (&mut self.budget, permit.charge) {
                budget.refund(charge);
            }
            if let (Some(share), Some((Class::Retry, second))) = (&mut self.share, permit.shared) {
                share.refund(second);
            }
        }
        let (breaker, ticket) = (self.breaker.as_mut()?, permit.ticket?);
        let before = (breaker.open_until(), breaker.successful_probes());
        let change = breaker.record(ticket, Call { health, took, retry_after }, now, unit);
        let after = (breaker.open_until(), breaker.successful_probes());
        match (change, after) {
            (Some(change), _) => {
                self.changed(change);
                self.publish(change, false);
            }
            // A longer Retry-After extends it.
            (None, (Some((until, why)), _)) if after.0 != before.0 => {
                self.publish(Change::Opened { until, why }, false);
            }
            (None, (None, succeeded)) if succeeded > before.1 => {
                if let Some(share) = &mut self.share {
                    share.publish(BreakerChange::Probe { succeeded });
                }
            }
            (None, _) => {}
        }
        change
    }

    /// Records what an attempt says about the presence of the dependency. Returns whether it seems to be gone.
    pub fn watch_presence(&mut self, presence: Presence, now: Timestamp) -> Option<GoneSign> {
        if let Some(share) = &mut self.share {
            share.watch_presence(presence, now);
        }
        self.gone.record(presence, now)
    }

    /// The first attempt without success since the last success.
    pub fn failing_since(&self) -> Option<Timestamp> {
        self.gone.failing_since()
    }

    /// Whether no attempt has succeeded for so long that this is to be kept across a restart.
    pub fn is_long_failing(&self, now: Timestamp) -> bool {
        self.gone.is_kept(now)
    }

    /// Returns the permit of an attempt of which nothing was sent.
    pub fn withdraw(&mut self, permit: Permit) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.give_back(permit.ticket);
        if let (Some(budget), Some(charge)) = (&mut self.budget, permit.charge) {
            budget.take_back(charge);
        }
        match (&mut self.share, permit.shared) {
            (Some(share), Some((Class::First, second))) => share.withdraw_first(second),
            (Some(share), Some((Class::Retry, second))) => share.withdraw_retry(second),
            _ => {}
        }
    }

    /// Takes of the floor what its retries need that were sent before a restart: a restart is not a new floor.
    pub fn rejoin_floor(&mut self, floor: &mut SharedFloor, now: Timestamp) {
        let is_healthy = self.recent.is_healthy();
        let needed = self.budget.as_mut().map_or(0, |budget| budget.beyond_earned(is_healthy, now));
        let taken = (0..needed.min(floor.left(now))).map(|_| floor.take(now));
        self.of_floor.extend(taken);
    }

    /// Forgets what it has taken of a floor, because it goes to another origin now. It is missing there for a window. Shared
    /// tokens of a lane that is not healthy were granted for the other origin, and are returned.
    pub fn leave_floor(&mut self) {
        self.of_floor.clear();
        let is_healthy = self.recent.is_healthy();
        if let Some(share) = self.share.as_mut().filter(|_| !is_healthy) {
            share.drop_tokens();
        }
    }

    /// Notes whether due retries wait for the budget. If they have waited for too long while the lane is not healthy, the
    /// breaker opens: the dependency fails more than retries can make up for.
    pub fn retries_wait(&mut self, is_waiting: bool, now: Timestamp, unit: f64) -> Option<Change> {
        if !is_waiting || self.recent.is_healthy() {
            self.spent_since = None;
            return None;
        }
        // The clock may have been set back.
        let since = self.spent_since.map_or(now, |since| since.min(now));
        self.spent_since = Some(since);
        if now.since(since) < self.settings.spent_opens_after {
            return None;
        }
        let change = self.breaker.as_mut()?.budget_spent(now, unit)?;
        self.changed(change);
        self.publish(change, false);
        Some(change)
    }

    /// Whether due retries were waiting for the budget when this was last noted.
    pub fn do_retries_wait(&self) -> bool {
        self.spent_since.is_some()
    }

    /// Pauses the lane, or resumes it.
    pub fn set_paused(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    /// Whether the lane is paused.
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Opens the breaker by hand, until a time or until it is closed by hand.
    pub fn open_breaker(&mut self, until: Option<Timestamp>, now: Timestamp) -> Option<Change> {
        let change = self.breaker.as_mut()?.open_by_hand(until, now);
        self.changed(change);
        self.publish(change, true);
        Some(change)
    }

    /// Closes the breaker by hand; the lane begins again with few attempts.
    pub fn close_breaker(&mut self) -> Option<Change> {
        // Another process may have opened it without this one knowing.
        self.publish(Change::Closed, true);
        let change = self.breaker.as_mut()?.close_by_hand()?;
        self.changed(change);
        Some(change)
    }

    /// Forgets everything that was counted, and closes the breaker. Attempts on the wire stay counted as in flight.
    pub fn reset(&mut self) -> Option<Change> {
        let (reserved, in_flight, is_paused) = (self.reserved, self.in_flight, self.is_paused);
        // The breaker itself stays: it tells the outcomes of calls that began before from later ones.
        let mut breaker = self.breaker.take();
        let change = breaker.as_mut().and_then(Breaker::close_by_hand);
        let share = self.share.take();
        *self = LaneGuards { breaker, reserved, in_flight, is_paused, share, ..LaneGuards::new(self.settings) };
        if let Some(share) = &mut self.share {
            share.reset();
            share.publish(BreakerChange::ClosedByHand);
        }
        change
    }

    /// Applies other limits of attempts in flight.
    pub fn set_concurrency(&mut self, settings: concurrency::Settings) {
        self.settings.concurrency = settings;
        self.concurrency.configure(settings);
    }

    /// The state of the breaker; closed if there is none.
    pub fn breaker_state(&self, now: Timestamp) -> State {
        self.breaker.as_ref().map_or(State::Closed, |breaker| breaker.state(now))
    }

    /// Whether the latest outcomes show a healthy dependency.
    pub fn is_healthy(&self) -> bool {
        self.recent.is_healthy()
    }

    /// The latest outcomes.
    pub fn recent(&self) -> &RecentOutcomes {
        &self.recent
    }

    /// The limit of attempts in flight that was found, apart from the breaker.
    pub fn concurrency_limit(&self) -> u32 {
        self.concurrency.limit()
    }

    /// The budget's counts, what is left, and the part that is used; `None` without a budget.
    pub fn budget_state(&mut self, now: Timestamp) -> Option<BudgetState> {
        let is_healthy = self.recent.is_healthy();
        let known = self.share.as_ref().and_then(|share| share.known(now));
        let held = self.share.as_mut().map_or(0, |share| share.claimable(0, now));
        let budget = self.budget.as_mut()?;
        if let Some(known) = known {
            let left = known.left + u64::from(held);
            let (charged, next_edge) = (known.counts.charged, budget.next_edge(now));
            let utilization = if charged + left == 0 { 1.0 } else { charged as f64 / (charged + left) as f64 };
            return Some(BudgetState { counts: known.counts, left, utilization, next_edge });
        }
        Some(BudgetState {
            counts: budget.counts(now),
            left: budget.left(is_healthy, now),
            utilization: budget.utilization(is_healthy, now),
            next_edge: budget.next_edge(now),
        })
    }

    /// Whether these guards hold nothing back and would not soon: a lane without work can be forgotten with them.
    pub fn is_forgettable(&mut self, now: Timestamp) -> bool {
        let charged = self.budget.as_mut().map_or(0, |budget| budget.counts(now).charged);
        let is_stale = self.breaker.as_ref().is_none_or(|breaker| breaker.is_stale(FORGOTTEN_AFTER, now));
        let is_quiet = self.share.as_mut().is_none_or(|share| share.is_quiet(now));
        charged == 0 && self.reserved == 0 && self.in_flight == 0 && is_stale && !self.is_paused && is_quiet
    }

    /// Whether retries have to wait because the budget is spent, or the breaker is not closed. A process that has only not
    /// asked for tokens yet does not know that it is spent. Work of a paused lane waits for an operator.
    pub fn is_budget_spent(&mut self, floor: Option<&mut SharedFloor>, now: Timestamp) -> bool {
        if self.is_paused {
            return false;
        }
        let is_known = self.share.as_ref().is_none_or(|share| share.is_spent(now));
        let room = self.room(floor, now);
        room.retries == 0 && (is_known || room.held.is_some())
    }

    fn retries_left(&mut self, floor: Option<&mut SharedFloor>, now: Timestamp) -> (u32, Option<Timestamp>) {
        let is_healthy = self.recent.is_healthy();
        let floor = self.settle_floor(floor, now);
        let Some(budget) = &mut self.budget else { return (u32::MAX, None) };
        if let Some(share) = &mut self.share {
            return match share.claimable(self.reserved, now) {
                0 => (0, Some(budget.next_edge(now))),
                left => (left, None),
            };
        }
        let mut left = budget.left(is_healthy, now);
        if let (false, Some(floor)) = (is_healthy, floor) {
            left = left.min(budget.left_without_floor(is_healthy, now) + floor.left(now));
        }
        let left = left.saturating_sub(u64::from(self.reserved));
        match u32::try_from(left).unwrap_or(u32::MAX) {
            0 => (0, Some(budget.next_edge(now))),
            left => (left, None),
        }
    }

    fn charge(
        &mut self,
        class: Class,
        is_probe: bool,
        floor: Option<&mut SharedFloor>,
        now: Timestamp,
    ) -> Result<Option<Charge>, Held> {
        let is_healthy = self.recent.is_healthy();
        let floor = self.settle_floor(floor, now);
        let Some(budget) = &mut self.budget else { return Ok(None) };
        if class == Class::First {
            return Ok(Some(budget.first(now)));
        }
        let mut floor = floor.filter(|_| !is_healthy && budget.needs_floor(is_healthy, now));
        let is_floor_spent = floor.as_mut().is_some_and(|floor| floor.left(now) == 0);
        if !is_probe && (is_floor_spent || budget.left(is_healthy, now) == 0) {
            return Err(Held::Budget(budget.next_edge(now)));
        }
        self.of_floor.extend(floor.map(|floor| floor.take(now)));
        Ok(Some(budget.charge(now)))
    }

    /// Gives back what it does not need any more of the shared floor: first attempts have earned its retries since, or they
    /// were refunded or forgotten.
    fn settle_floor<'a>(&mut self, floor: Option<&'a mut SharedFloor>, now: Timestamp) -> Option<&'a mut SharedFloor> {
        let is_healthy = self.recent.is_healthy();
        let (floor, budget) = (floor?, self.budget.as_mut()?);
        let needed = if is_healthy { 0 } else { budget.beyond_earned(is_healthy, now) };
        let needed = usize::try_from(needed).unwrap_or(usize::MAX);
        while self.of_floor.len() > needed {
            self.of_floor.pop().into_iter().for_each(|entry| floor.give_back(entry));
        }
        Some(floor)
    }

    fn changed(&mut self, change: Change) {
        self.spent_since = None;
        if change == Change::Closed {
            self.recent = RecentOutcomes::default();
            if let Some(share) = &mut self.share {
                share.outcomes = RecentOutcomes::default();
            }
            self.concurrency.ramp(self.settings.breaker.map_or(1, |breaker| breaker.probes));
        }
    }

    fn give_back(&mut self, ticket: Option<Ticket>) {
        if let (Some(breaker), Some(ticket)) = (&mut self.breaker, ticket) {
            breaker.give_back(ticket);
        }
    }
}

/// The state of a retry budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BudgetState {
    /// What its window counts.
    pub counts: budget::Counts,
    /// How many retries could be sent now.
    pub left: u64,
    /// The part that is used.
    pub utilization: f64,
    /// When the oldest second of the window is forgotten.
    pub next_edge: Timestamp,
}

#[cfg(test)]
mod tests;
