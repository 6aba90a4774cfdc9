//! The lane: the guards of one contender, and the requests that they hold back.
//!
//! All of a contender's requests go through one set of guards, as one tenant's work for one dependency does in the
//! service. Who is held back keeps its attempt and its place: the oldest due goes first. First attempts do not wait
//! behind retries that only the budget holds back: it is first attempts that refill it.

use std::collections::VecDeque;
use std::time::Duration;

use redrive_core::breaker::{Admission, Breaker, Health, Ticket};
use redrive_core::budget::{Budget, Spent};
use redrive_core::{Latency, Timestamp};

use crate::contender::Contender;

/// How long what a call took says something about the next one; as in the engine's lanes.
const ESTIMATE_FOR: Duration = Duration::from_secs(30);

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// This client's attempt goes.
    Send(u32, Option<Ticket>),
    /// This client's retry is not paid for, and somebody waits for its answer.
    Suppress(u32),
    /// This client's attempt would have to wait for the breaker, and somebody waits for its answer.
    TurnAway(u32),
    /// Everybody waits: until an attempt ends, or until this time.
    Wait(Option<Timestamp>),
    /// Nobody waits.
    Idle,
}

/// The guards, and who waits for them.
#[derive(Debug)]
pub(crate) struct Lane {
    budget: Option<Budget>,
    breaker: Option<Breaker>,
    concurrency: u32,
    gives_up: bool,
    /// First attempts that wait: when they were due, and whose they are.
    firsts: VecDeque<(u32, u32)>,
    retries: VecDeque<(u32, u32)>,
    latency: Latency,
    called_at: Timestamp,
}

impl Lane {
    pub(crate) fn new(contender: &Contender) -> Self {
        Lane {
            budget: contender.guards.budget.map(Budget::new),
            breaker: contender.guards.breaker.map(Breaker::new),
            concurrency: contender.guards.concurrency.unwrap_or(u32::MAX),
            gives_up: contender.gives_up_when_held(),
            firsts: VecDeque::new(),
            retries: VecDeque::new(),
            latency: Latency::default(),
            called_at: Timestamp::default(),
        }
    }

    /// Puts a client's attempt at the end of those that wait.
    pub(crate) fn line_up(&mut self, client: u32, due: u32, is_retry: bool) {
        if is_retry { &mut self.retries } else { &mut self.firsts }.push_back((due, client));
    }

    /// Who goes next while `in_flight` attempts are under way; passes over whoever no longer waits.
    pub(crate) fn next(&mut self, now: Timestamp, in_flight: u32, waits: impl Fn(u32) -> bool) -> Next {
        drop_gone(&mut self.firsts, &waits);
        drop_gone(&mut self.retries, &waits);
        if self.firsts.is_empty() && self.retries.is_empty() {
            return Next::Idle;
        }
        if in_flight >= self.concurrency {
            return Next::Wait(None);
        }
        let spent = if self.retries.is_empty() { None } else { self.spent(now) };
        if spent.is_some() && self.gives_up {
            return self.retries.pop_front().map_or(Next::Idle, |(_, client)| Next::Suppress(client));
        }
        let is_retry = match (self.firsts.front(), self.retries.front()) {
            (Some((first, _)), Some((retry, _))) => spent.is_none() && retry < first,
            (Some(_), None) => false,
            (None, _) => true,
        };
        if let (true, Some(Spent { ask_again_at })) = (is_retry, spent) {
            return Next::Wait(Some(ask_again_at));
        }
        match self.breaker.as_mut().map(|breaker| breaker.admit(now)) {
            Some(Admission::Wait { .. }) if self.gives_up => self.pop(is_retry).map_or(Next::Idle, Next::TurnAway),
            Some(Admission::Wait { until }) => Next::Wait(Some(until)),
            Some(Admission::Pass(ticket) | Admission::Probe(ticket)) => self.go(is_retry, Some(ticket), now),
            None => self.go(is_retry, None, now),
        }
    }

    /// Whether a retry would have to be paid for and cannot be, and somebody waits for its answer.
    pub(crate) fn would_suppress(&mut self, now: Timestamp) -> bool {
        self.gives_up && self.spent(now).is_some()
    }

    /// Takes in what became of an attempt.
    pub(crate) fn ended(
        &mut self,
        ticket: Ticket,
        health: Health,
        retry_after: Option<Duration>,
        now: Timestamp,
        unit: f64,
    ) {
        if let Some(breaker) = &mut self.breaker {
            breaker.record(ticket, health, retry_after, now, unit);
        }
    }

    /// Takes the breaker's ticket back for an attempt that says nothing about the dependency.
    pub(crate) fn not_sent(&mut self, ticket: Option<Ticket>) {
        if let (Some(breaker), Some(ticket)) = (&mut self.breaker, ticket) {
            breaker.give_back(ticket);
        }
    }

    /// Notes what a call took.
    pub(crate) fn took(&mut self, took: Duration, now: Timestamp) {
        if now.since(self.called_at) > ESTIMATE_FOR {
            self.latency = Latency::default();
        }
        self.latency.record(took);
        self.called_at = now;
    }

    /// What a call has been taking lately.
    pub(crate) fn estimate(&self, now: Timestamp) -> Duration {
        if now.since(self.called_at) > ESTIMATE_FOR { Duration::ZERO } else { self.latency.estimate() }
    }

    fn spent(&mut self, now: Timestamp) -> Option<Spent> {
        self.budget.as_mut().and_then(|budget| budget.spent(now))
    }

    fn go(&mut self, is_retry: bool, ticket: Option<Ticket>, now: Timestamp) -> Next {
        match &mut self.budget {
            Some(budget) if is_retry => {
                if let Err(Spent { ask_again_at }) = budget.try_retry(now) {
                    return Next::Wait(Some(ask_again_at));
                }
            }
            Some(budget) => budget.first(now),
            None => {}
        }
        self.pop(is_retry).map_or(Next::Idle, |client| Next::Send(client, ticket))
    }

    fn pop(&mut self, is_retry: bool) -> Option<u32> {
        if is_retry { &mut self.retries } else { &mut self.firsts }.pop_front().map(|(_, client)| client)
    }
}

fn drop_gone(queue: &mut VecDeque<(u32, u32)>, waits: impl Fn(u32) -> bool) {
    while queue.front().is_some_and(|(_, client)| !waits(*client)) {
        queue.pop_front();
    }
}
