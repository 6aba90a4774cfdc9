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
    /// Calls and failures, while it is closed.
    window: Window<2>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inner {
    Closed,
    Open { until: Timestamp, pause: Duration },
    Probing { out: u32, succeeded: u32, since: Timestamp },
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
    },
    /// Probing: a few calls test the dependency.
    Probing,
}

/// A change of state by an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The breaker opened.
    Opened {
        /// When it ends.
        until: Timestamp,
    },
    /// The breaker closed.
    Closed,
}

const CALLS: usize = 0;
const FAILURES: usize = 1;

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
            Inner::Open { .. } => {
                self.enter(Inner::Probing { out: 1, succeeded: 0, since: now });
                Admission::Probe(Ticket { phase: self.phase })
            }
            Inner::Probing { out, succeeded, since } => {
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

    /// Records the outcome of a call, with the wait that the dependency asked for (Retry-After); a pause is drawn with
    /// `unit` in [0, 1).
    pub fn record(
        &mut self,
        ticket: Ticket,
        health: Health,
        retry_after: Option<Duration>,
        now: Timestamp,
        unit: f64,
    ) -> Option<Change> {
        self.catch_up(now);
        if let (Inner::Open { until, pause }, Some(asked)) = (&mut self.state, retry_after) {
            // A Retry-After holds from now on, whenever the call began.
            let asked = asked.min(self.settings.longest_retry_after);
            if health != Health::Well && now.after(asked) > *until {
                (*until, *pause) = (now.after(asked), asked);
            }
        }
        if ticket.phase != self.phase {
            return None;
        }
        match self.state {
            Inner::Closed => self.record_call(health, retry_after, now, unit),
            Inner::Open { .. } => None,
            Inner::Probing { .. } if health != Health::Well => Some(self.open(retry_after, now, unit)),
            Inner::Probing { out, succeeded, since } => {
                let (out, succeeded) = (out.saturating_sub(1), succeeded + 1);
                self.state = Inner::Probing { out, succeeded, since };
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

    /// The current state.
    pub fn state(&self, now: Timestamp) -> State {
        match self.state {
            Inner::Closed => State::Closed,
            Inner::Open { until, .. } if now < until => State::Open { until },
            Inner::Open { .. } | Inner::Probing { .. } => State::Probing,
        }
    }

    fn record_call(
        &mut self,
        health: Health,
        retry_after: Option<Duration>,
        now: Timestamp,
        unit: f64,
    ) -> Option<Change> {
        self.window.advance(now);
        self.window.count(CALLS);
        if health != Health::Well {
            self.window.count(FAILURES);
        }
        self.in_a_row = match health {
            Health::Well => 0,
            Health::Strained => self.in_a_row,
            Health::Failing => self.in_a_row.saturating_add(1),
        };
        let [calls, failures] = self.window.sums();
        let too_many_in_a_row = health == Health::Failing && self.in_a_row >= self.settings.failures_in_a_row;
        let too_large_a_part = failures > 0
            && calls >= u64::from(self.settings.least_calls)
            && u128::from(failures) * 100 >= u128::from(calls) * u128::from(self.settings.failure_percent);
        (too_many_in_a_row || too_large_a_part).then(|| self.open(retry_after, now, unit))
    }

    fn open(&mut self, retry_after: Option<Duration>, now: Timestamp, unit: f64) -> Change {
        self.opened = self.opened.saturating_add(1);
        let asked = retry_after.unwrap_or_default().min(self.settings.longest_retry_after);
        let pause = self.settings.pause(self.opened, unit).max(asked);
        let until = now.after(pause);
        self.enter(Inner::Open { until, pause });
        Change::Opened { until }
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
            Inner::Open { until, pause } => *until = (*until).min(now.after(*pause)),
            Inner::Probing { since, .. } => *since = (*since).min(now),
            Inner::Closed => {}
        }
    }
}

impl Default for Breaker {
    fn default() -> Self {
        Breaker::new(Settings::default())
    }
}

#[cfg(test)]
mod tests;
