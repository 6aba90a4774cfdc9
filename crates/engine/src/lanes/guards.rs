//! The guards of each lane, under the lanes' lock: what they allow is applied to the schedule and the slots.
//!
//! A guard that holds a whole lane back sets its limit of slots to zero: nothing of it is claimed, and it costs nothing.
//! A spent budget hides only the lane's retries from the schedule; first attempts go on. A lane that is held back until a
//! time is looked at again then, by elapsed time, which never jumps.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use redrive_core::guards::breaker::{Change, State as BreakerState};
use redrive_core::guards::{
    self, Controls, GoneSign, Held, LaneGuards, Outcome, Permit, Presence, SharedFloor, Snapshot,
};
use redrive_core::request::origin_of;
use redrive_core::{Class, Dependency, Lane, TenantId, Timestamp};

use super::report::AttemptCounts;
use super::state::{Now, State};
use crate::events::HoldReason;
use crate::schedule::LaneId;

/// A lane without work whose guards still count something is looked at again after this time: the budget's window.
const LOOK_AGAIN: Duration = Duration::from_secs(31);
/// From this many origins on, those without a recent retry are forgotten.
const MANY_ORIGINS: usize = 1_024;
/// Retries wait for the budget unless it has this many left: a lane with less takes turns with its own backlog.
const PLENTY: u32 = 8;

/// What all lanes' guards share.
#[derive(Debug)]
pub(super) struct GuardRegistry {
    pub(super) settings: guards::Settings,
    /// One floor for each tenant and origin.
    floors: BTreeMap<Origin, SharedFloor>,
    /// Lanes that are looked at again at this elapsed time.
    wakes: BTreeSet<(Duration, LaneId)>,
    /// Lanes whose guards changed since their states were last taken to be kept.
    changed: BTreeSet<LaneId>,
    /// Lanes of which the store keeps a state that is not needed any more.
    unneeded: Vec<Lane>,
    /// Changes of breakers since events were last emitted.
    pub(super) breakers: Vec<(Lane, Change)>,
    /// What operators have set for lanes.
    controls: BTreeMap<Lane, Controls>,
    /// Whether the processes over the store share their guards.
    is_shared: bool,
    /// Whether this process sends no more retries, because it ends.
    pub(super) is_ending: bool,
    /// Lanes that exchange with the other processes at this elapsed time.
    pub(super) exchanges: BTreeSet<(Duration, LaneId)>,
}

/// A tenant and the origin that it calls.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Origin {
    pub(crate) tenant: TenantId,
    pub(crate) origin: Box<str>,
}

impl Origin {
    /// The origin of this URL, called by this lane's tenant.
    pub(crate) fn new(lane: &Lane, url: &str) -> Self {
        // A name with a dot behind it is the same name.
        let origin = origin_of(url).replace(".:", ":");
        Origin { tenant: lane.tenant.clone(), origin: origin.trim_end_matches('.').into() }
    }
}

/// One lane's guards.
#[derive(Debug, Clone, Default)]
pub(super) struct GuardedLane {
    /// Nothing before the lane's first attempt.
    pub(super) guards: Option<Box<LaneGuards>>,
    /// The origin of its latest retry; shared guards know it from the first attempt on.
    pub(super) origin: Option<Origin>,
    /// The origin that the tokens of a shared budget were granted for.
    pub(super) tokens_for: Option<Origin>,
    wakes_at: Option<Duration>,
    pub(super) exchanges_at: Option<Duration>,
    /// Why it, or its retries, were held back when it was last placed.
    pub(super) held: Option<Held>,
    pub(super) held_retries: Option<Held>,
    /// What was counted since this process first saw the lane.
    pub(super) totals: AttemptCounts,
    /// Whether the store keeps a state of its guards.
    is_kept: bool,
}

/// The state of a lane's guards, to be kept by the store; `None` removes it.
pub(crate) type KeptState = (Lane, Option<Snapshot>);

impl GuardRegistry {
    pub(super) fn new(settings: guards::Settings, is_shared: bool) -> Self {
        GuardRegistry {
            settings,
            floors: BTreeMap::new(),
            wakes: BTreeSet::new(),
            changed: BTreeSet::new(),
            unneeded: Vec::new(),
            breakers: Vec::new(),
            controls: BTreeMap::new(),
            is_shared,
            is_ending: false,
            exchanges: BTreeSet::new(),
        }
    }

    /// The guards of a lane that has none yet, with what operators have set for it.
    pub(super) fn fresh(&self, lane: Option<&Lane>, now: Timestamp) -> Box<LaneGuards> {
        let guards = LaneGuards::new(self.settings);
        let mut guards = Box::new(if self.is_shared { guards.shared() } else { guards });
        if let Some(controls) = lane.and_then(|lane| self.controls.get(lane)) {
            control(&mut guards, &self.settings, None, Some(controls), now);
        }
        guards
    }

    /// What operators have set for this lane.
    pub(super) fn controls(&self, lane: &Lane) -> Controls {
        self.controls.get(lane).cloned().unwrap_or_default()
    }

    /// The lanes that operators have set something for.
    pub(super) fn controlled(&self) -> impl Iterator<Item = &Lane> {
        self.controls.keys()
    }

    /// The dependencies of a tenant that operators have set something for, those after `after`, in order.
    pub(super) fn controlled_dependencies(
        &self,
        tenant: &TenantId,
        after: Option<&Dependency>,
    ) -> impl Iterator<Item = &Dependency> {
        let after = after.map(|after| Lane { tenant: tenant.clone(), dependency: after.clone() });
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let lanes = self.controls.range((from, Bound::Unbounded)).map(|(lane, _)| lane);
        // Without `after`, the lanes of the tenants before it are passed, once for the whole list.
        let of_tenant = lanes.skip_while(|lane| lane.tenant < *tenant).take_while(|lane| lane.tenant == *tenant);
        of_tenant.map(|lane| &lane.dependency)
    }

    /// Whether guards changed since their states were last taken.
    pub(super) fn has_changed(&self) -> bool {
        !self.changed.is_empty() || !self.unneeded.is_empty()
    }

    /// When the next lane is to be looked at again.
    pub(super) fn next_wake(&self) -> Option<Duration> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// When the next lane is to exchange with the other processes.
    pub(super) fn next_exchange(&self) -> Option<Duration> {
        self.exchanges.first().map(|(at, _)| *at)
    }

    fn floor(&mut self, origin: Option<&Origin>, now: Timestamp) -> Option<&mut SharedFloor> {
        if self.is_shared {
            // The floor is shared as well, and is part of the exchange.
            return None;
        }
        let (origin, budget) = (origin?, self.settings.budget.as_ref()?);
        if !self.floors.contains_key(origin) && self.floors.len() >= MANY_ORIGINS {
            self.floors.retain(|_, floor| !floor.is_unused(now));
        }
        Some(self.floors.entry(origin.clone()).or_insert_with(|| SharedFloor::new(budget)))
    }
}

impl State {
    /// Applies what the lane's guards allow now to its slots and to the schedule. Returns how many retries may be claimed.
    pub(super) fn apply_guards(&mut self, lane: LaneId, now: Now) -> u32 {
        let guarded = &mut self.lanes[lane].guarded;
        let Some(guards) = &mut guarded.guards else { return u32::MAX };
        let floor = self.guards.floor(guarded.origin.as_ref(), now.wall);
        let room = guards.room(floor, now.wall);
        guarded.held = room.held;
        guarded.held_retries = room.held_retries;
        // Probes, and nothing else, are claimed for a lane whose breaker is not closed.
        let is_closed = guards.breaker_state(now.wall) == BreakerState::Closed && !guards.is_paused();
        let most = usize::try_from(room.most_in_flight).unwrap_or(usize::MAX);
        self.slots.set_guard_limit(lane, most, is_closed, now.elapsed);
        self.schedule.hold_retries(lane, matches!(room.held_retries, Some(Held::Budget(_))));
        // A lane without tokens of a shared budget is placed again when it gets some.
        let wakes = match room.held.or(room.held_retries) {
            Some(Held::Breaker(until)) => Some(until),
            Some(Held::Budget(until)) => Some(until).filter(|_| !self.guards.is_shared),
            Some(Held::Pause) | None => None,
        };
        if let Some(until) = wakes {
            self.wake_at(lane, now.elapsed + until.since(now.wall));
        }
        if self.guards.is_shared {
            self.plan_exchange(lane, now);
        }
        room.retries
    }

    /// Notes whether due retries of the lane wait for its budget, which opens its breaker after a while.
    pub(super) fn watch_budget(&mut self, lane: LaneId, retries: u32, now: Now) {
        let is_due = self.schedule.due(lane, Class::Retry).is_some_and(|due| due <= now.wall);
        let guarded = &mut self.lanes[lane].guarded;
        let Some(guards) = &mut guarded.guards else { return };
        let left = match guards.is_shared() {
            false => u64::from(retries),
            // It has not asked for tokens yet.
            true => match guards.left_for_all(now.wall) {
                Some(left) => left,
                None => return,
            },
        };
        let is_waiting = match guarded.held_retries {
            // It has no tokens, and there are enough for all.
            Some(Held::Budget(_)) if left >= u64::from(PLENTY) => false,
            Some(Held::Budget(_)) => is_due,
            None if is_due && left < u64::from(PLENTY) => return,
            _ => false,
        };
        if !is_waiting && !guards.do_retries_wait() {
            return;
        }
        if let Some(change) = guards.retries_wait(is_waiting, now.wall, self.entropy.unit()) {
            self.breaker_changed(lane, change);
            self.apply_guards(lane, now);
        }
    }

    /// Decides whether an attempt is sent now. `origin` says where it goes.
    pub(super) fn begin_guarded(
        &mut self,
        lane: LaneId,
        class: Class,
        origin: impl FnOnce() -> Origin,
        now: Now,
    ) -> Result<Permit, Held> {
        let guarded = &mut self.lanes[lane].guarded;
        let fresh = || self.guards.fresh(self.names.lane(lane), now.wall);
        let guards = guarded.guards.get_or_insert_with(fresh);
        let needs_origin = class == Class::Retry || (self.guards.is_shared && guarded.origin.is_none());
        let origin = needs_origin.then(origin);
        // Tokens of a shared budget were granted for one origin: a retry to another one returns them, and the next ones are
        // asked for its origin. Retries that find none then leave that as it is, so that each origin has its turn.
        let has_other_tokens = || guarded.tokens_for != origin;
        let is_other = match (self.guards.is_shared, class) {
            (true, Class::Retry) => guards.holds_tokens(now.wall) && has_other_tokens(),
            (true, Class::First) | (false, _) => true,
        };
        if origin.is_some() && guarded.origin != origin && (is_other || guarded.origin.is_none()) {
            guarded.origin.clone_from(&origin);
            guards.leave_floor();
        }
        let floor = self.guards.floor(origin.as_ref(), now.wall);
        let permit = guards.begin(class, floor, now.wall);
        if class == Class::Retry {
            self.guards.changed.insert(lane);
        }
        if permit.is_err() || self.lanes[lane].guarded.held_retries.is_some() {
            self.place(lane, now);
        }
        permit
    }

    /// Records the outcome of an attempt. Returns whether the dependency seems to be gone.
    pub(super) fn end_guarded(
        &mut self,
        lane: LaneId,
        permit: Permit,
        outcome: Outcome,
        presence: Option<Presence>,
        now: Now,
    ) -> Option<GoneSign> {
        let GuardedLane { guards: Some(guards), totals, .. } = &mut self.lanes[lane].guarded else { return None };
        totals.attempts += 1;
        totals.failures += u64::from(outcome.health.is_some_and(|health| health != guards::Health::Well));
        let change = guards.end(permit, outcome, now.wall, now.elapsed, self.entropy.unit());
        let gone = presence.and_then(|presence| guards.watch_presence(presence, now.wall));
        let is_news = outcome.health != Some(guards::Health::Well) || guards.is_long_failing(now.wall);
        if is_news || self.lanes[lane].guarded.is_kept {
            self.guards.changed.insert(lane);
        }
        if let Some(change) = change {
            self.breaker_changed(lane, change);
        }
        self.apply_guards(lane, now);
        gone
    }

    /// Returns the permit of an attempt of which nothing was sent.
    pub(super) fn withdraw_guarded(&mut self, lane: LaneId, permit: Permit, now: Now) {
        let Some(guards) = &mut self.lanes[lane].guarded.guards else { return };
        guards.withdraw(permit);
        self.apply_guards(lane, now);
    }

    /// Reserves retries of the lane for a claim.
    pub(super) fn reserve_retries(&mut self, lane: LaneId, retries: usize, now: Now) {
        let fresh = || self.guards.fresh(self.names.lane(lane), now.wall);
        let guards = self.lanes[lane].guarded.guards.get_or_insert_with(fresh);
        guards.reserve(u32::try_from(retries).unwrap_or(u32::MAX));
        self.guards.changed.insert(lane);
    }

    /// Gives reserved retries back.
    pub(super) fn release_retries(&mut self, lane: LaneId, retries: usize) {
        if let Some(guards) = &mut self.lanes[lane].guarded.guards {
            guards.release(u32::try_from(retries).unwrap_or(u32::MAX));
        }
    }

    /// Whether the lane's retries wait for the budget.
    pub(super) fn is_budget_spent(&mut self, lane: LaneId, now: Now) -> bool {
        let guarded = &mut self.lanes[lane].guarded;
        let Some(guards) = &mut guarded.guards else { return false };
        let floor = self.guards.floor(guarded.origin.as_ref(), now.wall);
        guards.is_budget_spent(floor, now.wall)
    }

    /// Whether the lane's breaker is closed.
    pub(super) fn is_breaker_closed(&self, lane: LaneId, now: Now) -> bool {
        let guards = self.lanes[lane].guarded.guards.as_ref();
        guards.is_none_or(|guards| guards.breaker_state(now.wall) == BreakerState::Closed)
    }

    /// Whether nothing of the lane may be sent, or nothing but probes.
    pub(super) fn is_held_or_probing(&self, lane: LaneId, now: Now) -> bool {
        let guards = self.lanes[lane].guarded.guards.as_ref();
        guards.is_some_and(|guards| guards.is_paused() || guards.breaker_state(now.wall) != BreakerState::Closed)
    }

    /// Places the lanes that are to be looked at again by now.
    pub(super) fn wake_guarded(&mut self, now: Now) {
        while let Some((at, lane)) = self.guards.wakes.first().copied()
            && at <= now.elapsed
        {
            self.guards.wakes.pop_first();
            self.lanes[lane].guarded.wakes_at = None;
            if self.names.lane(lane).is_some() {
                self.place(lane, now);
            }
        }
    }

    /// Whether a lane without work can be forgotten together with its guards. If not, it is looked at again later.
    pub(super) fn can_forget_guards(&mut self, lane: LaneId, now: Now) -> bool {
        let GuardedLane { guards: Some(guards), .. } = &mut self.lanes[lane].guarded else { return true };
        if !guards.is_forgettable(now.wall) {
            self.wake_at(lane, now.elapsed + LOOK_AGAIN);
            return false;
        }
        // As long as the lane is remembered.
        if !guards.is_long_failing(now.wall) {
            self.drop_kept_state(lane);
        }
        true
    }

    /// Has the store remove the state that it keeps of a lane's guards.
    fn drop_kept_state(&mut self, lane: LaneId) {
        if std::mem::take(&mut self.lanes[lane].guarded.is_kept) {
            self.guards.changed.remove(&lane);
            self.guards.unneeded.extend(self.names.lane(lane).cloned());
        }
    }

    /// Forgets the guards of a lane, which is forgotten.
    pub(super) fn forget_guards(&mut self, lane: LaneId) {
        self.drop_kept_state(lane);
        let GuardedLane { wakes_at, exchanges_at, .. } = std::mem::take(&mut self.lanes[lane].guarded);
        if let Some(at) = wakes_at {
            self.guards.wakes.remove(&(at, lane));
        }
        if let Some(at) = exchanges_at {
            self.guards.exchanges.remove(&(at, lane));
        }
        self.guards.changed.remove(&lane);
    }

    /// The states of the guards that changed since the last call, to be kept by the store.
    pub(super) fn take_changed_guards(&mut self, now: Now) -> Vec<KeptState> {
        let unneeded = std::mem::take(&mut self.guards.unneeded).into_iter().map(|lane| (lane, None));
        let mut states: Vec<KeptState> = unneeded.collect();
        for lane in std::mem::take(&mut self.guards.changed) {
            let guarded = &mut self.lanes[lane].guarded;
            let snapshot = guarded.guards.as_mut().and_then(|guards| guards.snapshot(now.wall));
            let origin = guarded.origin.as_ref().map(|origin| origin.origin.to_string());
            let snapshot = snapshot.map(|snapshot| snapshot.with_origin(origin));
            let was_kept = std::mem::replace(&mut guarded.is_kept, snapshot.is_some());
            if let Some(name) = self.names.lane(lane)
                && (was_kept || snapshot.is_some())
            {
                states.push((name.clone(), snapshot));
            }
        }
        states
    }

    /// Restores the guards of a lane from what the store kept.
    pub(super) fn restore_guards(&mut self, lane: LaneId, mut snapshot: Snapshot, now: Now) {
        let tenant = self.names.lane(lane).map(|lane| lane.tenant.clone());
        let origin = snapshot.origin.take().zip(tenant);
        let origin = origin.map(|(origin, tenant)| Origin { tenant, origin: origin.into() });
        let mut guards = LaneGuards::restore(self.guards.settings, snapshot, now.wall);
        if let Some(floor) = self.guards.floor(origin.as_ref(), now.wall) {
            guards.rejoin_floor(floor, now.wall);
        }
        if let Some(controls) = self.names.lane(lane).and_then(|lane| self.guards.controls.get(lane)) {
            control(&mut guards, &self.guards.settings, None, Some(controls), now.wall);
        }
        let guarded = &mut self.lanes[lane].guarded;
        guarded.guards = Some(Box::new(guards));
        guarded.origin = origin;
        guarded.is_kept = true;
        self.place(lane, now);
    }

    /// Applies what operators have set: for these lanes, and for no other.
    pub(super) fn set_controls(&mut self, all: BTreeMap<Lane, Controls>, now: Now) {
        let before = std::mem::replace(&mut self.guards.controls, all);
        let lanes: BTreeSet<Lane> = before.keys().chain(self.guards.controls.keys()).cloned().collect();
        for name in lanes {
            let (old, new) = (before.get(&name), self.guards.controls.get(&name).cloned());
            if old == new.as_ref() {
                continue;
            }
            let lane = self.id(&name);
            let guards = match self.lanes[lane].guarded.guards.take() {
                Some(mut guards) => {
                    control(&mut guards, &self.guards.settings, old, new.as_ref(), now.wall);
                    guards
                }
                None => self.guards.fresh(Some(&name), now.wall),
            };
            self.lanes[lane].guarded.guards = Some(guards);
            self.guards.changed.insert(lane);
            self.place(lane, now);
        }
    }

    /// The guards of a lane. They exist also before its first attempt here, if other processes share them.
    fn guards_of(&mut self, lane: LaneId, now: Now) -> &mut LaneGuards {
        let fresh = || self.guards.fresh(self.names.lane(lane), now.wall);
        self.lanes[lane].guarded.guards.get_or_insert_with(fresh)
    }

    /// Forgets what the lane's guards have counted; what operators have set stays.
    pub(super) fn reset_guards(&mut self, lane: LaneId, now: Now) {
        if let Some(change) = self.guards_of(lane, now).reset() {
            self.breaker_changed(lane, change);
        }
        self.guards.changed.insert(lane);
        self.place(lane, now);
    }

    /// Closes the lane's breaker.
    pub(super) fn close_breaker(&mut self, lane: LaneId, now: Now) {
        if let Some(change) = self.guards_of(lane, now).close_breaker() {
            self.breaker_changed(lane, change);
        }
        self.place(lane, now);
    }

    /// Why due work of the lane is held back by its guards, if it is.
    pub(super) fn guard_hold(&self, lane: LaneId, now: Timestamp) -> Option<HoldReason> {
        let is_due = |class| self.schedule.due(lane, class).is_some_and(|due| due <= now);
        let guarded = &self.lanes[lane].guarded;
        let of_lane = guarded.held.filter(|_| Class::ALL.into_iter().any(is_due));
        of_lane.or(guarded.held_retries.filter(|_| is_due(Class::Retry))).map(HoldReason::from)
    }

    pub(super) fn breaker_changed(&mut self, lane: LaneId, change: Change) {
        self.guards.changed.insert(lane);
        if let Some(name) = self.names.lane(lane) {
            self.guards.breakers.push((name.clone(), change));
        }
    }

    pub(super) fn wake_at(&mut self, lane: LaneId, at: Duration) {
        let wakes_at = &mut self.lanes[lane].guarded.wakes_at;
        if wakes_at.is_some_and(|earlier| earlier <= at) {
            return;
        }
        if let Some(later) = wakes_at.replace(at) {
            self.guards.wakes.remove(&(later, lane));
        }
        self.guards.wakes.insert((at, lane));
    }
}

/// Applies what operators have set to a lane's guards, which had these controls before.
fn control(
    guards: &mut LaneGuards,
    settings: &guards::Settings,
    old: Option<&Controls>,
    new: Option<&Controls>,
    now: Timestamp,
) {
    let nothing = Controls::default();
    let (old, new) = (old.unwrap_or(&nothing), new.unwrap_or(&nothing));
    guards.set_paused(new.pause.is_some());
    if old.limits != new.limits {
        guards.set_concurrency(new.limits.unwrap_or_default().apply(settings.concurrency));
    }
    match (&old.open, &new.open) {
        // One whose time is over has probed since, or does so now.
        (_, Some(open)) if open.until.is_some_and(|until| until <= now) => None,
        (before, Some(open)) if before.as_ref() != Some(open) => guards.open_breaker(open.until, now),
        (Some(_), None) => guards.close_breaker(),
        _ => None,
    };
}

#[cfg(test)]
mod tests {
    use redrive_core::Dependency;

    use super::*;

    #[test]
    fn no_spelling_of_a_name_is_another_origin() {
        let lane = Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new("a").unwrap() };
        let origin = |url| Origin::new(&lane, url);
        for same in ["https://a.test:443/b", "HTTPS://A.test.", "https://me@a.test.:443?x"] {
            assert_eq!(origin(same), origin("https://a.test/"), "{same}");
        }
        for other in ["http://a.test/", "https://a.test:8443/", "https://b.test/"] {
            assert_ne!(origin(other), origin("https://a.test/"), "{other}");
        }
    }
}
