//! Circuit breaker: stops calling a dependency that keeps failing.
//!
//! A budget bounds the retries, but first attempts go on, and each of them costs a caller its timeout and a
//! recovering dependency another call. The breaker stops all of them: `Closed` (calls flow) → `Open { until }` (calls
//! wait) → `Probing` (a few calls find out) → `Closed`, or `Open` again and longer.
//!
//! A value, not a task: callers pass `now`, outcomes and a random draw in, nothing sleeps here. An admitted call
//! gets a [`Ticket`] and returns it with the outcome. The ticket says in which *phase* the call began; every change of
//! state begins a new one. So a hundred calls that were under way when it opened, and fail one after the other, open it
//! once and not a hundred times, and a success that left before the outage does not end it.
//!
//! A clock that is set back does no harm: no call waits longer than the pause that was drawn.
//!
//! Not here: how long a task waits after its own failure (`backoff`), how many retries a dependency bears (`budget`),
//! and which of the waiting tasks become the probes (the first that ask; the engine asks for the oldest first).

mod settings;

pub use settings::Settings;

use std::time::Duration;

use crate::guards::health::Health;
use crate::guards::window::{self, Window};
use crate::time::Timestamp;

/// The breaker of one dependency.
#[derive(Debug, Clone, PartialEq)]
pub struct Breaker {
    settings: Settings,
    state: Inner,
    /// Counts the changes of state.
    phase: u32,
    /// How often it has opened since it was last closed for good.
    opened: u32,
    /// Hard failures since the last call that went well.
    in_a_row: u32,
    /// Calls, failures and slow calls, while it is closed.
    window: Window<3>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inner {
    Closed,
    Open { until: Timestamp, pause: Duration, why: OpenedBy },
    Probing { out: u32, succeeded: u32, since: Timestamp, why: OpenedBy },
}

/// Why a breaker opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenedBy {
    /// Too many calls in a row failed.
    FailuresInARow,
    /// Too large a part of the calls failed.
    FailureRate,
    /// Too large a part of the calls were slow.
    SlowCalls,
    /// A probe failed.
    FailedProbe,
    /// The retry budget was spent for too long while the dependency was not healthy.
    SpentBudget,
    /// An operator opened it.
    Operator,
}

impl OpenedBy {
    /// Every reason.
    pub const ALL: [OpenedBy; 6] = [
        OpenedBy::FailuresInARow,
        OpenedBy::FailureRate,
        OpenedBy::SlowCalls,
        OpenedBy::FailedProbe,
        OpenedBy::SpentBudget,
        OpenedBy::Operator,
    ];

    /// Its name on the wire and in the stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            OpenedBy::FailuresInARow => "failuresInARow",
            OpenedBy::FailureRate => "failureRate",
            OpenedBy::SlowCalls => "slowCalls",
            OpenedBy::FailedProbe => "failedProbe",
            OpenedBy::SpentBudget => "spentBudget",
            OpenedBy::Operator => "operator",
        }
    }

    /// The reason with this name.
    pub fn from_name(name: &str) -> Option<OpenedBy> {
        OpenedBy::ALL.into_iter().find(|why| why.as_str() == name)
    }
}

/// What one call showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// What it says about the dependency.
    pub health: Health,
    /// How long it took.
    pub took: Duration,
    /// The wait that the dependency asked for (Retry-After).
    pub retry_after: Option<Duration>,
}

/// The answer of a breaker to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// The call may be made.
    Pass(Ticket),
    /// The call may be made as a probe: its outcome decides about the state.
    Probe(Ticket),
    /// The call has to wait.
    Wait {
        /// When to ask again; earlier if a call under way changes the state.
        until: Timestamp,
    },
}

/// The permission for one call, to be returned with its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Ticket {
    phase: u32,
}

/// The state of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Closed: calls are made.
    Closed,
    /// Open: calls wait.
    Open {
        /// When it ends.
        until: Timestamp,
        /// Why it opened.
        why: OpenedBy,
    },
    /// Probing: a few calls test the dependency.
    Probing {
        /// Why it had opened.
        why: OpenedBy,
    },
}

/// A change of state by an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The breaker opened.
    Opened {
        /// When it ends.
        until: Timestamp,
        /// Why it opened.
        why: OpenedBy,
    },
    /// The breaker closed.
    Closed,
}

const CALLS: usize = 0;
const FAILURES: usize = 1;
const SLOW: usize = 2;

impl Breaker {
    /// A closed breaker without any calls.
    pub fn new(settings: Settings) -> Self {
        let window = Window::new(settings.bucket, window::buckets_of(settings.window, settings.bucket));
        Breaker { settings, state: Inner::Closed, phase: 0, opened: 0, in_a_row: 0, window }
    }

    /// Asks for a call.
    pub fn admit(&mut self, now: Timestamp) -> Admission {
        self.catch_up(now);
        match &mut self.state {
            Inner::Closed => Admission::Pass(Ticket { phase: self.phase }),
            Inner::Open { until, .. } if now < *until => Admission::Wait { until: *until },
            Inner::Open { why, .. } => {
                let why = *why;
                self.enter(Inner::Probing { out: 1, succeeded: 0, since: now, why });
                Admission::Probe(Ticket { phase: self.phase })
            }
            Inner::Probing { out, succeeded, since, .. } => {
                let lost = now.since(*since) >= self.settings.probe_patience;
                if lost {
                    *out = 0;
                }
                if out.saturating_add(*succeeded) >= self.settings.probes.max(1) {
                    return Admission::Wait { until: since.after(self.settings.probe_patience) };
                }
                *out += 1;
                *since = now;
                Admission::Probe(Ticket { phase: self.phase })
            }
        }
    }

    /// Records the outcome of a call; a pause is drawn with `unit` in [0, 1).
    pub fn record(&mut self, ticket: Ticket, call: Call, now: Timestamp, unit: f64) -> Option<Change> {
        self.catch_up(now);
        if let (Inner::Open { until, pause, .. }, Some(asked)) = (&mut self.state, call.retry_after) {
            // A Retry-After holds from now on, whenever the call began.
            let asked = asked.min(self.settings.longest_retry_after);
            if call.health != Health::Well && now.after(asked) > *until {
                (*until, *pause) = (now.after(asked), asked);
            }
        }
        if ticket.phase != self.phase {
            return None;
        }
        match self.state {
            Inner::Closed => self.record_call(call, now, unit),
            Inner::Open { .. } => None,
            Inner::Probing { .. } if call.health != Health::Well => {
                Some(self.open(OpenedBy::FailedProbe, call.retry_after, now, unit))
            }
            Inner::Probing { out, succeeded, since, why } => {
                let (out, succeeded) = (out.saturating_sub(1), succeeded + 1);
                self.state = Inner::Probing { out, succeeded, since, why };
                (succeeded >= self.settings.probes).then(|| self.close())
            }
        }
    }

    /// Returns a ticket whose call was not made, or ended without saying anything about the dependency.
    pub fn give_back(&mut self, ticket: Ticket) {
        if let Inner::Probing { out, .. } = &mut self.state
            && ticket.phase == self.phase
        {
            *out = out.saturating_sub(1);
        }
    }

    /// How many calls may be in flight; `None` if the breaker sets no limit.
    pub fn most_in_flight(&self, now: Timestamp) -> Option<u32> {
        match self.state {
            Inner::Closed => None,
            Inner::Open { until, .. } if now < until => Some(0),
            Inner::Open { .. } => Some(self.settings.probes.max(1)),
            Inner::Probing { succeeded, .. } => Some(self.settings.probes.max(1).saturating_sub(succeeded)),
        }
    }

    /// The current state.
    pub fn state(&self, now: Timestamp) -> State {
        match self.state {
            Inner::Closed => State::Closed,
            Inner::Open { until, why, .. } if now < until => State::Open { until, why },
            Inner::Open { why, .. } | Inner::Probing { why, .. } => State::Probing { why },
        }
    }

    /// Whether it is closed, and no failure counts towards opening it.
    pub(super) fn is_untroubled(&self) -> bool {
        self.state == Inner::Closed && self.in_a_row == 0 && self.window.sums()[FAILURES] == 0
    }

    /// Whether it is closed, or has waited for probes for longer than `for_long`.
    pub(super) fn is_stale(&self, for_long: Duration, now: Timestamp) -> bool {
        match self.state {
            Inner::Closed => true,
            Inner::Open { until: since, .. } | Inner::Probing { since, .. } => now.since(since) > for_long,
        }
    }

    /// Opens a closed breaker because the retry budget was spent for too long.
    pub fn budget_spent(&mut self, now: Timestamp, unit: f64) -> Option<Change> {
        (self.state == Inner::Closed).then(|| self.open(OpenedBy::SpentBudget, None, now, unit))
    }

    /// Opens it by hand, until a time or until it is closed by hand.
    pub fn open_by_hand(&mut self, until: Option<Timestamp>, now: Timestamp) -> Change {
        let until = until.unwrap_or(Timestamp::MAX);
        let why = OpenedBy::Operator;
        self.enter(Inner::Open { until, pause: until.since(now), why });
        Change::Opened { until, why }
    }

    /// Closes it by hand, with nothing counted. Returns nothing if it was closed.
    pub fn close_by_hand(&mut self) -> Option<Change> {
        let was_closed = self.state == Inner::Closed;
        let change = self.close();
        (!was_closed).then_some(change)
    }

    /// Opens it because another process did, or holds it open while another process probes.
    pub(super) fn follow_open(
        &mut self,
        until: Timestamp,
        pause: Duration,
        opened: u32,
        why: OpenedBy,
    ) -> Option<Change> {
        if self.open_until().is_some_and(|(open_until, _)| open_until == until) {
            return None;
        }
        let was_closed = self.state == Inner::Closed;
        self.opened = opened;
        self.enter(Inner::Open { until, pause, why });
        was_closed.then_some(Change::Opened { until, why })
    }

    /// Begins to probe, or goes on with probes of which `succeeded` were successful on other processes. Returns what that
    /// changes.
    pub(super) fn follow_probing(
        &mut self,
        succeeded: u32,
        opened: u32,
        why: OpenedBy,
        now: Timestamp,
    ) -> Option<Change> {
        if let Inner::Probing { succeeded: known, .. } = &mut self.state {
            *known = succeeded.max(*known);
            return None;
        }
        let was_closed = self.state == Inner::Closed;
        self.opened = opened;
        self.enter(Inner::Probing { out: 0, succeeded, since: now, why });
        was_closed.then_some(Change::Opened { until: now, why })
    }

    /// How many probes have succeeded; 0 if it does not probe.
    pub(super) fn successful_probes(&self) -> u32 {
        if let Inner::Probing { succeeded, .. } = self.state { succeeded } else { 0 }
    }

    /// Until when it is open, and why; also if that time is over and nothing was sent since.
    pub(super) fn open_until(&self) -> Option<(Timestamp, OpenedBy)> {
        if let Inner::Open { until, why, .. } = self.state { Some((until, why)) } else { None }
    }

    /// For how long it was opened, and how often since it was last closed.
    pub(super) fn pause_and_opened(&self) -> (Duration, u32) {
        let pause = if let Inner::Open { pause, .. } = self.state { pause } else { Duration::ZERO };
        (pause, self.opened)
    }

    /// What is kept across a restart. A call that was on the wire is not: its ticket is gone.
    pub(super) fn kept(&self) -> Kept {
        let open = match self.state {
            Inner::Closed => None,
            Inner::Open { until, pause, why } => Some((until, pause, why)),
            Inner::Probing { since, why, .. } => Some((since, Duration::ZERO, why)),
        };
        Kept { open, opened: self.opened, in_a_row: self.in_a_row, calls: self.window.buckets().collect() }
    }

    /// A breaker as it was before a restart. One that was probing begins its probes again.
    pub(super) fn restore(settings: Settings, kept: Kept, now: Timestamp) -> Self {
        let mut breaker = Breaker::new(settings);
        (breaker.opened, breaker.in_a_row) = (kept.opened, kept.in_a_row);
        match kept.open {
            Some((until, pause, why)) => breaker.state = Inner::Open { until, pause, why },
            None => breaker.window.restore(kept.calls, now),
        }
        breaker.catch_up(now);
        breaker
    }

    fn record_call(&mut self, call: Call, now: Timestamp, unit: f64) -> Option<Change> {
        self.window.advance(now);
        self.window.count(CALLS);
        if call.health != Health::Well {
            self.window.count(FAILURES);
        }
        if call.took >= self.settings.slow_call {
            self.window.count(SLOW);
        }
        self.in_a_row = match call.health {
            Health::Well => 0,
            Health::Strained => self.in_a_row,
            Health::Failing => self.in_a_row.saturating_add(1),
        };
        let why = self.reason_to_open(call.health)?;
        Some(self.open(why, call.retry_after, now, unit))
    }

    fn reason_to_open(&self, health: Health) -> Option<OpenedBy> {
        let Settings { failures_in_a_row, failure_percent, slow_percent, least_calls, .. } = self.settings;
        let [calls, failures, slow] = self.window.sums();
        let is_too_much = |part: u64, percent: u32| {
            part > 0
                && calls >= u64::from(least_calls)
                && u128::from(part) * 100 >= u128::from(calls) * u128::from(percent)
        };
        match () {
            () if health == Health::Failing && self.in_a_row >= failures_in_a_row => Some(OpenedBy::FailuresInARow),
            () if is_too_much(failures, failure_percent) => Some(OpenedBy::FailureRate),
            () if is_too_much(slow, slow_percent) => Some(OpenedBy::SlowCalls),
            () => None,
        }
    }

    fn open(&mut self, why: OpenedBy, retry_after: Option<Duration>, now: Timestamp, unit: f64) -> Change {
        self.opened = self.opened.saturating_add(1);
        let asked = retry_after.unwrap_or_default().min(self.settings.longest_retry_after);
        let pause = self.settings.pause(self.opened, unit).max(asked);
        let until = now.after(pause);
        self.enter(Inner::Open { until, pause, why });
        Change::Opened { until, why }
    }

    fn close(&mut self) -> Change {
        self.opened = 0;
        self.enter(Inner::Closed);
        Change::Closed
    }

    /// Begins a new phase, with nothing counted.
    fn enter(&mut self, state: Inner) {
        self.state = state;
        self.phase = self.phase.wrapping_add(1);
        self.in_a_row = 0;
        self.window.clear();
    }

    /// If the clock was set back, no call waits longer than the pause that was drawn.
    fn catch_up(&mut self, now: Timestamp) {
        match &mut self.state {
            Inner::Open { until, pause, .. } => *until = (*until).min(now.after(*pause)),
            Inner::Probing { since, .. } => *since = (*since).min(now),
            Inner::Closed => {}
        }
    }
}

/// What is kept of a breaker across a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// Until when it is open, for how long it was opened, and why.
    pub(super) open: Option<(Timestamp, Duration, OpenedBy)>,
    pub(super) opened: u32,
    pub(super) in_a_row: u32,
    pub(super) calls: Vec<(Timestamp, [u32; 3])>,
}

impl Default for Breaker {
    fn default() -> Self {
        Breaker::new(Settings::default())
    }
}

#[cfg(test)]
mod tests;
