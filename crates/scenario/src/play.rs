//! Plays one contender: every client's request from its arrival to its end.
//!
//! A loop over the calendar. `classify` says what an answer means, `decide` what happens then, and the lane's guards
//! whether it may be sent now. Here is only the order in which they are called, the same as in the service.

use std::time::Duration;

use redrive_core::attempt::{Answer, ErrorType};
use redrive_core::classify::{self, Verdict};
use redrive_core::decide::{self, Decision, RunState, SendCheck};
use redrive_core::guards::concurrency::Signal;
use redrive_core::guards::{Health, Outcome, Permit};
use redrive_core::task::{Class, Reason, Status};
use redrive_core::{Body, Timestamp};

use crate::calendar::Calendar;
use crate::chance::{Chance, Purpose};
use crate::contender::Contender;
use crate::dependency::{CallEnd, CallOutcome, Dependency, millis};
use crate::lane::{Lane, LaneDecision};
use crate::latency::LatencyDistribution;
use crate::permits::Permits;
use crate::tally::{RequestEnd, Tally};
use crate::timeline::Level;
use crate::world::World;

/// The number of steps between two reports of progress.
const STEPS_PER_REPORT: u64 = 1 << 16;
/// The time of the quickest answer, in milliseconds. If a refusal took no time, a breaker would know of ten failures
/// before the eleventh of many simultaneous clients has called, and protect better than a real one.
const ROUND_TRIP: u32 = 1;

/// The state of a client's request. Small: there may be ten million.
#[derive(Debug, Clone, Copy)]
struct Client {
    arrived: u32,
    sent: u32,
    /// The wait before its last attempt, in milliseconds; [`NO_WAIT`] if there was none.
    previous: u32,
    attempt: u8,
    waits: bool,
    was_held: bool,
}

const NO_WAIT: u32 = u32::MAX;
/// Tells the draw for a breaker that a spent budget opens from that of the last outcome.
const SPENT_BUDGET: u64 = 1;

/// An event of the calendar: 8 bits for its kind, 24 bits for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Due(u32),
    Ended(u32, CallOutcome),
    Deadline(u32),
    Wake,
}

const WHOSE: u32 = (1 << 24) - 1;
const _: () = assert!(World::MAX_CLIENTS <= WHOSE, "a client's number must fit into its tag");

impl Event {
    fn tag(self) -> u32 {
        let (what, whose) = match self {
            Event::Due(client) => (0, client),
            Event::Deadline(client) => (1, client),
            Event::Wake => (2, 0),
            Event::Ended(client, CallOutcome::Served) => (3, client),
            Event::Ended(client, CallOutcome::Unavailable) => (4, client),
            Event::Ended(client, CallOutcome::Refused) => (5, client),
            Event::Ended(client, CallOutcome::Reset) => (6, client),
            Event::Ended(client, CallOutcome::TimedOut) => (7, client),
        };
        what << 24 | whose
    }

    fn of(tag: u32) -> Event {
        let client = tag & WHOSE;
        match tag >> 24 {
            0 => Event::Due(client),
            1 => Event::Deadline(client),
            2 => Event::Wake,
            3 => Event::Ended(client, CallOutcome::Served),
            4 => Event::Ended(client, CallOutcome::Unavailable),
            5 => Event::Ended(client, CallOutcome::Refused),
            6 => Event::Ended(client, CallOutcome::Reset),
            _ => Event::Ended(client, CallOutcome::TimedOut),
        }
    }
}

/// One contender in the world.
pub(crate) struct Play<'a> {
    contender: &'a Contender,
    chance: Chance,
    calendar: Calendar,
    clients: Vec<Client>,
    permits: Permits,
    dependency: Dependency,
    lane: Lane,
    in_flight: u32,
    waiting: u32,
    /// When the guards are to be asked again.
    wake_at: Option<u32>,
    /// How many outcomes have been recorded, each with a draw for a pause of the breaker.
    outcomes: u64,
    served: Answer,
    unavailable: Answer,
    tally: Tally,
    /// Every send, for tests.
    #[cfg(test)]
    pub(crate) sends: Vec<(u32, u32, u8)>,
    /// The clients whose last attempt succeeded, for tests.
    #[cfg(test)]
    pub(crate) successes: std::collections::BTreeSet<u32>,
}

impl<'a> Play<'a> {
    /// Everything before the first request arrives.
    pub(crate) fn new(world: &World, contender: &'a Contender, chance: Chance) -> Self {
        let over = millis(world.over);
        let arrival = |client: u32| (chance.unit(Purpose::Arrival, u64::from(client), 0) * f64::from(over)) as u32;
        let client = |client| Client {
            arrived: arrival(client),
            sent: 0,
            previous: NO_WAIT,
            attempt: 0,
            waits: false,
            was_held: false,
        };
        let clients: Vec<Client> = (0..world.clients).map(client).collect();
        let mut calendar = Calendar::new();
        for (number, client) in (0..).zip(&clients) {
            calendar.put(client.arrived, Event::Due(number).tag());
        }
        let permits = Permits::new(clients.len());
        Play {
            contender,
            chance,
            calendar,
            clients,
            permits,
            dependency: Dependency::new(world),
            lane: Lane::new(contender),
            in_flight: 0,
            waiting: 0,
            wake_at: None,
            outcomes: 0,
            served: answer(200, None),
            unavailable: answer(503, world.retry_after),
            tally: Tally::new(world.clients, world.outages.last().map(|outage| millis(outage.to))),
            #[cfg(test)]
            sends: Vec::new(),
            #[cfg(test)]
            successes: std::collections::BTreeSet::new(),
        }
    }

    /// Plays to the end; `report` hears now and then how many requests have ended, and how many calls were made.
    pub(crate) fn play_out(&mut self, mut report: impl FnMut(u64, u64)) {
        let requests = self.clients.len() as u64;
        for step in 1_u64.. {
            let Some((now, tag)) = self.calendar.take() else { break };
            self.tally.come_to(now);
            match Event::of(tag) {
                Event::Due(client) => self.due(client, now),
                Event::Ended(client, how) => self.attempt_ended(client, how, now),
                Event::Deadline(client) => self.deadline(client, now),
                Event::Wake => self.wake_at = self.wake_at.filter(|at| *at > now),
            }
            if self.waiting > 0 {
                self.let_go(now);
            }
            let level = Level { held: self.waiting, in_flight: self.in_flight, open: self.tally.open() };
            self.tally.timeline.level(now, level);
            if self.tally.ended() == requests {
                break;
            }
            if step.is_multiple_of(STEPS_PER_REPORT) {
                report(self.tally.ended(), self.tally.calls());
            }
        }
        report(self.tally.ended(), self.tally.calls());
    }

    /// What was counted, and what the dependency saw.
    pub(crate) fn finish(self) -> (Tally, crate::dependency::DependencyCounts) {
        (self.tally, self.dependency.seen)
    }

    /// Whether no attempt is in flight and no permit was lost, in here or in the guards.
    #[cfg(test)]
    pub(crate) fn has_all_permits_back(&mut self) -> bool {
        // By then all windows are empty, and an open breaker could have probed.
        self.in_flight == 0 && self.permits.count() == 0 && self.lane.is_forgettable(moment(u32::MAX))
    }

    /// A client's attempt is due: it goes, or gets in line.
    fn due(&mut self, client: u32, now: u32) {
        let state = &mut self.clients[client as usize];
        if state.attempt == 0 {
            self.tally.arrived();
        }
        if self.contender.guards.any() {
            state.waits = true;
            self.waiting += 1;
            let class = if state.attempt == 0 { Class::First } else { Class::Retry };
            self.lane.enqueue(client, now, class);
            self.let_go(now);
            self.note_held(client);
        } else {
            self.send(client, None, now);
        }
    }

    /// Sends every attempt that the guards allow.
    fn let_go(&mut self, now: u32) {
        loop {
            let clients = &self.clients;
            let unit = self.chance.unit(Purpose::Pause, self.outcomes, SPENT_BUDGET);
            let next = self.lane.next(moment(now), self.in_flight, unit, |client| clients[client as usize].waits);
            match next {
                LaneDecision::Send(client, permit) => {
                    self.no_longer_waits(client);
                    self.send(client, Some(permit), now);
                }
                LaneDecision::Suppress(client) => self.give_up(client, RequestEnd::Suppressed, now),
                LaneDecision::TurnAway(client) => self.give_up(client, RequestEnd::TurnedAway, now),
                LaneDecision::Wait(until) => return self.wake(until),
                LaneDecision::Idle => return,
            }
        }
    }

    fn give_up(&mut self, client: u32, end: RequestEnd, now: u32) {
        self.no_longer_waits(client);
        self.end(client, end, now);
    }

    fn no_longer_waits(&mut self, client: u32) {
        self.clients[client as usize].waits = false;
        self.waiting -= 1;
    }

    /// A request that has to wait is counted once, and does not wait beyond its deadline.
    fn note_held(&mut self, client: u32) {
        let state = &mut self.clients[client as usize];
        if state.waits && !state.was_held {
            state.was_held = true;
            let deadline = state.arrived.saturating_add(millis(self.contender.policy.total_budget));
            self.calendar.put(deadline, Event::Deadline(client).tag());
            self.tally.held();
        }
    }

    fn deadline(&mut self, client: u32, now: u32) {
        if self.clients[client as usize].waits {
            self.give_up(client, RequestEnd::Dead(Some(Reason::Deadline)), now);
            // Perhaps no retry waits for the budget any more, which the guards have to know.
            self.let_go(now);
        }
    }

    /// Has the guards asked again at this time.
    fn wake(&mut self, until: Option<Timestamp>) {
        let Some(until) = until else { return };
        let at = u32::try_from(until.as_millis()).unwrap_or(u32::MAX);
        if self.wake_at.is_none_or(|earlier| at < earlier) {
            self.wake_at = Some(at);
            self.calendar.put(at, Event::Wake.tag());
        }
    }

    fn send(&mut self, client: u32, permit: Option<Permit>, now: u32) {
        let policy = &self.contender.policy;
        let state = &mut self.clients[client as usize];
        let deadline = moment(state.arrived).after(policy.total_budget);
        let fit = decide::before_send(deadline, self.lane.estimate(moment(now)), policy.attempt_timeout, moment(now));
        let SendCheck::SendNow { timeout } = fit else {
            if let Some(permit) = permit {
                self.lane.not_sent(permit);
            }
            return self.end(client, RequestEnd::Dead(Some(Reason::Deadline)), now);
        };
        state.attempt += 1;
        state.sent = now;
        let attempt = state.attempt;
        if let Some(permit) = permit {
            self.permits.put(client, permit);
        }
        #[cfg(test)]
        self.sends.push((now, client, attempt));
        self.in_flight += 1;
        self.tally.sent(now, attempt > 1);
        let chance = self.chance;
        let latency = |latencies: &LatencyDistribution| latencies.draw(&chance, client, u32::from(attempt));
        let CallEnd { at, how } = self.dependency.call(now, millis(timeout), latency);
        self.calendar.put(at.max(now.saturating_add(ROUND_TRIP)), Event::Ended(client, how).tag());
    }

    fn attempt_ended(&mut self, client: u32, how: CallOutcome, now: u32) {
        self.in_flight -= 1;
        let (verdict, health) = self.meaning(how, moment(now));
        let state = self.clients[client as usize];
        let took = Duration::from_millis(u64::from(now - state.sent));
        if matches!(how, CallOutcome::Served | CallOutcome::Unavailable | CallOutcome::TimedOut) {
            self.lane.took(took, moment(now));
        }
        let outcome = Outcome { health, signal: signal(how), took, retry_after: retry_after(&verdict) };
        self.tell_guards(client, outcome, now);
        self.tally.answered(now, verdict == Verdict::Success);
        #[cfg(test)]
        if verdict == Verdict::Success {
            self.successes.insert(client);
        }
        let policy = &self.contender.policy;
        let run = RunState {
            attempt: u32::from(state.attempt),
            max_attempts: policy.max_attempts,
            deadline_at: moment(state.arrived).after(policy.total_budget),
            previous_backoff: (state.previous != NO_WAIT).then(|| Duration::from_millis(u64::from(state.previous))),
            estimate: self.lane.estimate(moment(now)),
            // A dependency of a scenario has no name to resolve.
            dns_failures: 0,
        };
        let unit = self.chance.unit(Purpose::Jitter, u64::from(client), u64::from(state.attempt));
        match decide::after_attempt(policy, &run, &verdict, moment(now), unit) {
            Decision::End(Status::Succeeded, _) => self.end(client, RequestEnd::Succeeded, now),
            Decision::End(_, reason) => self.end(client, RequestEnd::Dead(reason), now),
            Decision::Retry { .. } if self.lane.would_suppress(moment(now)) => {
                self.end(client, RequestEnd::Suppressed, now);
            }
            Decision::Retry { at, backoff, .. } => {
                self.clients[client as usize].previous = millis(backoff);
                self.put_due(client, at);
            }
            Decision::PutOff { until } => self.put_due(client, until),
        }
    }

    fn put_due(&mut self, client: u32, at: Timestamp) {
        let at = u32::try_from(at.as_millis()).unwrap_or(u32::MAX);
        self.calendar.put(at, Event::Due(client).tag());
    }

    /// What an ending means for the request, and what it says about the dependency.
    fn meaning(&self, how: CallOutcome, now: Timestamp) -> (Verdict, Option<Health>) {
        let answered = |answer: &Answer| {
            (classify::answer(&self.contender.policy, answer, now), Some(Health::of_status(answer.status)))
        };
        let failed = |kind| (classify::error(kind), Health::of_error(kind));
        match how {
            CallOutcome::Served => answered(&self.served),
            CallOutcome::Unavailable => answered(&self.unavailable),
            CallOutcome::Refused => failed(ErrorType::ConnectionRefused),
            CallOutcome::Reset => failed(ErrorType::ConnectionReset),
            CallOutcome::TimedOut => failed(ErrorType::ReadTimeout),
        }
    }

    fn tell_guards(&mut self, client: u32, outcome: Outcome, now: u32) {
        let Some(permit) = self.permits.take(client) else { return };
        self.outcomes += 1;
        let unit = self.chance.unit(Purpose::Pause, self.outcomes, 0);
        self.lane.ended(permit, outcome, moment(now), unit);
    }

    fn end(&mut self, client: u32, how: RequestEnd, now: u32) {
        self.tally.end(self.clients[client as usize].arrived, now, how);
    }
}

/// What an ending says about the load that the dependency bears.
fn signal(how: CallOutcome) -> Signal {
    match how {
        CallOutcome::Served => Signal::Answered,
        CallOutcome::Unavailable | CallOutcome::TimedOut => Signal::Unavailable,
        CallOutcome::Refused | CallOutcome::Reset => Signal::Neutral,
    }
}

/// The wait that the dependency asked for.
fn retry_after(verdict: &Verdict) -> Option<Duration> {
    match verdict {
        Verdict::Retry { after, .. } | Verdict::Overloaded { after } => *after,
        _ => None,
    }
}

fn moment(millis: u32) -> Timestamp {
    Timestamp::from_millis(u64::from(millis))
}

fn answer(status: u16, retry_after: Option<Duration>) -> Answer {
    let seconds = |asked: Duration| asked.as_nanos().div_ceil(1_000_000_000).to_string();
    let headers = retry_after.map(|asked| ("Retry-After".to_owned(), seconds(asked)));
    Answer { status, headers: headers.into_iter().collect(), body: Body::default(), truncated: false }
}
