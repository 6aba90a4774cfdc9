use std::time::Duration;

use redrive_core::alerts::{self, Alert, Severity, Signal, Subject, Transition};
use redrive_core::attempt::LastError;
use redrive_core::guards::Gone;
use redrive_core::guards::breaker::{Change, OpenedBy};
use redrive_core::task::PolicyRef;
use redrive_core::{
    Attempt, Body, Dependency, ErrorType, IdempotencyKey, Lane, Outcome, PolicyId, Reason, Request, Status, Task,
    TaskId, TenantId, Timestamp,
};
use redrive_engine::clock::Sleep;
use redrive_engine::events::EndedBy;
use redrive_store::{ClaimedTask, Lease, Next, Settlement, Token};

use super::reader::{BATCH, LOOKED_AT};
use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_000);

struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        NOW
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> Sleep {
        Box::pin(std::future::pending())
    }
}

/// Always the same number.
struct Constant(u64);

impl Entropy for Constant {
    fn bits(&self) -> u64 {
        self.0
    }
}

/// Keeps events, at a time that never moves.
pub(crate) fn keeping(kept: usize) -> Arc<LiveEvents> {
    LiveEvents::new(kept, Arc::new(StoppedClock), &Constant(7))
}

pub(crate) fn lane(tenant: &str, dependency: &str) -> Lane {
    Lane { tenant: TenantId::try_new(tenant).unwrap(), dependency: Dependency::try_new(dependency).unwrap() }
}

/// A task whose second run has made two attempts.
pub(crate) fn task(lane: Lane) -> Task {
    Task {
        id: TaskId::from_parts(1, 2),
        lane,
        idempotency_key: IdempotencyKey::try_new("key").unwrap(),
        correlation_id: None,
        trace_parent: None,
        policy: PolicyRef { id: PolicyId::default_policy(), version: 1 },
        status: Status::InFlight,
        reason: None,
        attempt_number: 5,
        run: 2,
        attempts_before: 3,
        max_attempts: 3,
        attempt_timeout: Duration::from_secs(30),
        created_at: NOW,
        run_started_at: NOW,
        deadline_at: NOW,
        next_attempt_at: None,
        ended_at: None,
        backoff: None,
        dns_failures: 0,
        cancel_requested: false,
        last_error: None,
    }
}

fn attempt() -> Attempt {
    Attempt {
        number: 5,
        number_in_run: 2,
        started_at: NOW,
        duration: Some(Duration::from_millis(20)),
        outcome: Outcome::Permanent,
        response_status: Some(404),
        error: Some(LastError { kind: ErrorType::HttpStatus, message: "a secret".into() }),
        backoff: None,
    }
}

fn settlement(attempt: Option<Attempt>, next: Next) -> Settlement {
    let task = task(lane("acme", "a"));
    Settlement { tenant: task.lane.tenant, id: task.id, token: Token(1), attempt, next, at: NOW }
}

/// What is kept of these events of the engine.
fn kept(events: &[Event<'_>]) -> Vec<Happening> {
    let live = keeping(100);
    events.iter().for_each(|event| live.on(event));
    let tenant = TenantId::try_new("acme").unwrap();
    let mut reader = EventReader::open(&live, tenant, EventFilter::default(), StartAt::Past, false).unwrap();
    reader.read().events.into_iter().map(|(_, event)| event.happening).collect()
}

#[test]
fn an_end_is_told_once_with_the_reason_and_the_attempts_that_count() {
    let task = task(lane("acme", "a"));
    let claimed = ClaimedTask {
        task: task.clone(),
        request: Arc::new(Request {
            method: "GET".into(),
            target_url: "https://a.test/".into(),
            headers: Vec::new(),
            body: Body::default(),
            overrides: None,
            labels: Default::default(),
        }),
        lease: Lease { token: Token(1), since: NOW, until: NOW },
    };
    let end = |status, reason| Next::End { status, reason, answer: None };
    let retry = Next::RetryAt { at: NOW, backoff: None, dns_failures: 0 };
    let attempts = |number, in_run| AttemptNumbers { number, in_run, run: 2 };
    for (settlement, status, reason, attempts, is_dead) in [
        (settlement(Some(attempt()), end(Status::Succeeded, None)), Status::Succeeded, None, attempts(5, 2), false),
        (
            settlement(Some(attempt()), end(Status::Failed, Some(Reason::NotRetryable))),
            Status::Failed,
            Some(Reason::NotRetryable),
            attempts(5, 2),
            true,
        ),
        // The deadline passed before anything was sent.
        (
            settlement(None, end(Status::Exhausted, Some(Reason::Deadline))),
            Status::Exhausted,
            Some(Reason::Deadline),
            attempts(4, 1),
            true,
        ),
        // Cancelled while the attempt was under way.
        (settlement(Some(attempt()), retry), Status::Cancelled, Some(Reason::Cancelled), attempts(5, 2), false),
    ] {
        let facts = EndFacts { status, reason, attempts };
        let mut expected = vec![Happening::Ended(facts)];
        expected.extend(is_dead.then_some(Happening::DeadLetter(facts)));
        let events = [Event::Settled(&claimed, &settlement, status), Event::Ended(&task, status, EndedBy::Settlement)];
        assert_eq!(kept(&events), expected, "{status:?}");
    }
    // It waited, so there is no settlement.
    for (by, status, reason) in [
        (EndedBy::Deadline, Status::Exhausted, Reason::Deadline),
        (EndedBy::Budget, Status::Failed, Reason::NotRetryable),
        (EndedBy::Cancel, Status::Cancelled, Reason::Cancelled),
    ] {
        let waited = Task { status, reason: Some(reason), ..task.clone() };
        let facts = EndFacts { status, reason: Some(reason), attempts: attempts(5, 2) };
        let mut expected = vec![Happening::Ended(facts)];
        expected.extend(status.is_dead_letter().then_some(Happening::DeadLetter(facts)));
        assert_eq!(kept(&[Event::Ended(&waited, status, by)]), expected, "{status:?}");
    }
}

#[test]
fn what_is_not_an_end_is_told_as_it_is() {
    let task = task(lane("acme", "a"));
    let numbers = AttemptNumbers { number: 5, in_run: 2, run: 2 };
    let facts = AttemptFacts {
        numbers,
        max_attempts: 3,
        outcome: Outcome::Permanent,
        error: Some(ErrorType::HttpStatus),
        response_status: Some(404),
        duration: Some(Duration::from_millis(20)),
        backoff: None,
    };
    for (event, expected) in [
        (Event::Accepted(&task), Some(Happening::Accepted { due_at: None })),
        (Event::AttemptEnded(&task, &attempt()), Some(Happening::Attempt(facts))),
        (Event::Retried(&task, NOW), Some(Happening::RetryScheduled { due_at: NOW })),
        (Event::TakenOver(&task), Some(Happening::LeaseTakenOver(numbers))),
        (
            Event::Breaker(&task.lane, Change::Opened { until: NOW, why: OpenedBy::FailureRate }),
            Some(Happening::BreakerOpened { until: NOW, why: OpenedBy::FailureRate }),
        ),
        (Event::Breaker(&task.lane, Change::Closed), Some(Happening::BreakerClosed)),
        (Event::DependencyGone(&task, Gone::Answered), Some(Happening::DependencyGone(Gone::Answered))),
        (Event::PausedOnGone(&task), Some(Happening::Paused)),
        // The alert may be raised more than once; the end has told of it.
        (Event::DeadLetter(&task), None),
        (Event::LeaseLost(&task), None),
    ] {
        assert_eq!(kept(&[event]), expected.as_slice());
    }
}

/// An alert that has begun to fire, about this subject.
fn fired(signal: Signal, subject: Subject) -> Transition {
    let alert = Alert {
        signal,
        subject,
        severity: Severity::Critical,
        value: 2.0,
        why: "because".into(),
        fired_at: NOW,
        resolved_at: None,
    };
    Transition { change: alerts::Change::Fired, alert }
}

#[test]
fn an_alert_is_told_to_the_tenant_of_its_dependency_and_others_to_the_operator() {
    let live = keeping(100);
    let (operator, system) = (TenantId::try_new("operator").unwrap(), lane("redrive", "on-call"));
    for (signal, subject) in [
        (Signal::BreakerOpen, Subject::Lane(lane("acme", "a"))),
        (Signal::BreakerOpen, Subject::Lane(lane("operator", "b"))),
        (Signal::StoreUnavailable, Subject::Service),
        (Signal::SinkFailing, Subject::Lane(system)),
    ] {
        live.tell_alert(&fired(signal, subject), &operator);
    }
    let told = |tenant: &str, wanted: Option<&str>| {
        let dependency = wanted.map(|wanted| Dependency::try_new(wanted).unwrap());
        let filter = EventFilter { dependency, kinds: vec![Kind::Alert], ..EventFilter::default() };
        let tenant = TenantId::try_new(tenant).unwrap();
        let mut reader = EventReader::open(&live, tenant, filter, StartAt::Past, false).unwrap();
        let events = reader.read().events.into_iter().map(|(_, event)| {
            let Happening::Alert(facts) = event.happening else { panic!("{event:?}") };
            assert_eq!((event.at, facts.value, facts.why.as_str()), (NOW, 2.0, "because"));
            (facts.signal.as_str(), event.dependency.map(|dependency| dependency.as_str().to_owned()))
        });
        events.collect::<Vec<_>>()
    };
    let of = |name: &str| Some(name.to_owned());
    assert_eq!(told("acme", None), [("breaker-open", of("a"))]);
    assert_eq!(
        told("operator", None),
        [("breaker-open", of("b")), ("store-unavailable", None), ("sink-failing", of("on-call"))]
    );
    assert_eq!(told("operator", Some("b")), [("breaker-open", of("b"))]);
    assert_eq!(told("redrive", None), []);
}

#[test]
fn an_event_takes_as_much_memory_as_is_documented() {
    assert!(size_of::<LiveEvent>() <= 144, "{}", size_of::<LiveEvent>());
}

/// A generator of random numbers (xorshift), so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// A reader, and what it should see: the model is the list of all events ever.
struct Watched {
    reader: EventReader,
    /// All numbers up to this one were read or told to be missing.
    accounted: u64,
}

impl Watched {
    /// Reads a batch, and checks it against `all`, the dependencies of all events by their numbers.
    fn check(&mut self, all: &[bool], kept: u64, seed: u64) {
        let batch = self.reader.read();
        let gone = (all.len() as u64).saturating_sub(kept);
        let missed = batch.gap.map_or(0, |(_, gap)| gap.missed.unwrap());
        assert_eq!(missed, gone.saturating_sub(self.accounted), "seed {seed}");
        if let Some((id, _)) = batch.gap {
            assert_eq!(id.number, self.accounted + missed, "seed {seed}: it resumes after what is missing");
        }
        let from = self.accounted + missed;
        let to = self.reader.position().number;
        let wanted: Vec<u64> = (from + 1..=to).filter(|number| all[*number as usize - 1]).collect();
        let seen: Vec<u64> = batch.events.iter().map(|(id, _)| id.number).collect();
        assert_eq!(seen, wanted, "seed {seed}");
        assert!(seen.len() <= BATCH, "seed {seed}");
        let is_all = to == all.len() as u64;
        assert_eq!(batch.progress == Progress::CaughtUp, is_all, "seed {seed}");
        assert!(is_all || to > from, "seed {seed}: it gets on");
        self.accounted = to;
    }
}

#[test]
fn every_event_that_is_wanted_is_read_once_or_told_to_be_missing() {
    let lanes = [lane("acme", "a"), lane("acme", "b"), lane("other", "a")];
    for seed in 1..60 {
        let mut random = Random(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed));
        let kept = 1 + random.below(400);
        let live = keeping(kept as usize);
        let open = |start| {
            let filter = EventFilter { dependency: Some(lanes[0].dependency.clone()), ..EventFilter::default() };
            EventReader::open(&live, lanes[0].tenant.clone(), filter, start, true).unwrap()
        };
        let mut all: Vec<bool> = Vec::new();
        let mut readers = [0, 1].map(|_| Watched { reader: open(StartAt::Past), accounted: 0 });
        for _ in 0..200 {
            match random.below(4) {
                0 => readers[random.below(2) as usize].check(&all, kept, seed),
                1 => {
                    // A reader loses its connection and comes back: what it missed is told at once.
                    let watched = &mut readers[random.below(2) as usize];
                    watched.reader = open(StartAt::After(watched.reader.position()));
                    let gone = (all.len() as u64).saturating_sub(kept);
                    if gone > watched.accounted {
                        let (id, gap) = watched.reader.read().gap.unwrap();
                        let expected = Gap { reason: GapReason::TooOld, missed: Some(gone - watched.accounted) };
                        assert_eq!((id.number, gap), (gone, expected), "seed {seed}");
                        watched.accounted = gone;
                    }
                }
                _ => {
                    for _ in 0..random.below(150) {
                        let at = random.below(3) as usize;
                        live.on(&Event::Accepted(&task(lanes[at].clone())));
                        all.push(at == 0);
                    }
                }
            }
        }
    }
}

#[test]
fn a_reader_that_does_not_follow_ends_with_the_newest_event_of_its_beginning() {
    let live = keeping(10);
    let accept = || live.on(&Event::Accepted(&task(lane("acme", "a"))));
    accept();
    let tenant = TenantId::try_new("acme").unwrap();
    let mut reader = EventReader::open(&live, tenant, EventFilter::default(), StartAt::Past, false).unwrap();
    accept();
    let batch = reader.read();
    assert_eq!((batch.events.len(), batch.progress), (1, Progress::Ended));
    drop(reader);
    assert_eq!(live.readers(), 0);
}

#[test]
fn a_read_looks_at_few_events_also_if_it_wants_none_of_them() {
    let live = keeping(1_000);
    (0..2 * LOOKED_AT + 7).for_each(|_| live.on(&Event::Accepted(&task(lane("acme", "a")))));
    let tenant = TenantId::try_new("other").unwrap();
    let mut reader = EventReader::open(&live, tenant, EventFilter::default(), StartAt::Past, true).unwrap();
    for (position, progress) in
        [(LOOKED_AT, Progress::Behind), (2 * LOOKED_AT, Progress::Behind), (2 * LOOKED_AT + 7, Progress::CaughtUp)]
    {
        let batch = reader.read();
        assert_eq!((batch.events, batch.gap, batch.progress), (vec![], None, progress));
        assert_eq!(reader.position().number, position as u64);
    }
}

#[test]
fn a_reader_that_does_not_follow_ends_with_the_gap_if_all_that_it_was_to_read_is_gone() {
    let live = keeping(2);
    let accept = || live.on(&Event::Accepted(&task(lane("acme", "a"))));
    accept();
    let tenant = TenantId::try_new("acme").unwrap();
    let mut reader = EventReader::open(&live, tenant, EventFilter::default(), StartAt::Past, false).unwrap();
    (0..5).for_each(|_| accept());
    let batch = reader.read();
    let gap = Gap { reason: GapReason::SlowReader, missed: Some(4) };
    assert_eq!((batch.gap, batch.events, batch.progress), (Some((reader.position(), gap)), vec![], Progress::Ended));
    assert_eq!(reader.position(), EventId { start: 7, number: 4 });
}
