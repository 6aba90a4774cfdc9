//! Tests of the lanes, on a clock that the test sets.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};

use redrive_core::guards::concurrency::Signal;
use redrive_core::guards::{Health, Note, Outcome};
use redrive_core::{Dependency, IdempotencyKey, PolicyId, Status, Task, TaskId, TenantId, task};
use redrive_store::{LaneDue, LaneRoom, Lease, Token};

use super::names::REMEMBERED;
use super::*;
use crate::admission::pace::AttemptEnd;
use crate::clock::Sleep;
use crate::entropy::Entropy;
use crate::events::{HoldReason, Sink};

/// A clock that advances only when the test sets it.
#[derive(Default)]
struct Stopped(AtomicU64);

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        at(self.0.load(Ordering::Relaxed))
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, _: Duration) -> Sleep {
        Box::pin(std::future::pending())
    }
}

struct World {
    lanes: Arc<Lanes>,
    clock: Arc<Stopped>,
    held_back: Arc<HeldBack>,
}

/// The reasons for which lanes were reported as held back.
#[derive(Default)]
struct HeldBack(Mutex<Vec<HoldReason>>);

impl Sink for HeldBack {
    fn on(&self, event: &Event<'_>) {
        if let Event::HeldBack(_, reason) = event {
            self.0.lock().unwrap().push(*reason);
        }
    }
}

/// Draws nothing but the middle.
struct Middle;

impl Entropy for Middle {
    fn bits(&self) -> u64 {
        1 << 63
    }
}

const LEASE: LeaseTerms = LeaseTerms { margin: Duration::from_secs(15) };

impl World {
    fn new(lane_concurrency: usize, max_in_flight: usize) -> Self {
        let clock = Arc::<Stopped>::default();
        let options = Options { lane_concurrency, max_in_flight, ..Options::default() };
        let held_back = Arc::<HeldBack>::default();
        let events = Events::new(crate::options::LogOptions::default(), vec![held_back.clone()]);
        World { lanes: Lanes::new(&options, clock.clone(), Arc::new(Middle), events, false), clock, held_back }
    }

    fn set(&self, millis: u64) {
        self.clock.0.store(millis, Ordering::Relaxed);
    }

    fn reserve(&self, name: &str) -> Option<Reservation> {
        self.lanes.reserve(&lane(name), &request(0), false)
    }

    /// A new task that is on the wire.
    fn begin(&self, name: &str) -> Reservation {
        let mut reservation = self.reserve(name).unwrap();
        assert!(is_ready(pin!(reservation.slot())));
        reservation.begin(Class::First, || unreachable!("only retries and shared guards need it")).unwrap();
        reservation
    }

    fn due(&self, name: &str, class: Class, millis: u64) {
        self.lanes.note_due(&lane(name), class, at(millis));
    }

    /// Makes this many quick attempts in the lane, so that it is known as fast.
    fn learn(&self, name: &str, attempts: usize) {
        for _ in 0..attempts {
            let mut reservation = self.begin(name);
            reservation.end(AttemptEnd::Answered, None, well(), None);
        }
    }

    /// The rooms of the next claim, as (lane, class, slots, ahead).
    fn turns(&self) -> (Turns, Vec<(String, Class, usize, usize)>) {
        let (turns, request) = self.lanes.take_turns(LEASE).unwrap_or_else(|| {
            let now = self.clock.now();
            (Turns::default(), ClaimRequest { rooms: vec![], most: 0, due_by: now, lease: LEASE, now })
        });
        let room = |room: LaneRoom| (room.lane.dependency.to_string(), room.class, room.slots, room.ahead);
        (turns, request.rooms.into_iter().map(room).collect())
    }

    /// Ends turns: as many tasks were claimed in each room, and this is due next.
    fn claimed(&self, turns: &Turns, counts: &[usize], next_due: Option<u64>) -> Vec<Reservation> {
        let mut claims = Claims::default();
        for (room, count) in turns.rooms.iter().zip(counts) {
            claims.claimed.extend((0..*count).map(|_| task(room)));
            let LaneRoom { lane, class, .. } = room.clone();
            claims.lanes.push(LaneDue { lane, class, next_due: next_due.map(at) });
        }
        let reserved = self.lanes.claimed(turns, claims, Duration::ZERO);
        reserved.into_iter().map(|(_, reservation)| reservation).collect()
    }

    fn held(&self) -> usize {
        self.lanes.lock().slots.held()
    }
}

/// The outcome of an attempt that went well.
fn well() -> Outcome {
    let signal = Signal::Answered;
    Outcome { health: Some(Health::Well), signal, took: Duration::from_millis(1), retry_after: None }
}

fn is_ready(future: Pin<&mut impl Future<Output = ()>>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

fn lane(name: &str) -> Lane {
    Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new(name).unwrap() }
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn request(bytes: usize) -> Request {
    Request {
        target_url: "http://a.test/".into(),
        method: "POST".into(),
        headers: Vec::new(),
        body: vec![0; bytes].into(),
        overrides: None,
        labels: Default::default(),
    }
}

fn task(room: &LaneRoom) -> ClaimedTask {
    let task = Task {
        id: TaskId::from_parts(1, 1),
        lane: room.lane.clone(),
        idempotency_key: IdempotencyKey::try_new("key").unwrap(),
        policy: task::PolicyRef { id: PolicyId::default_policy(), version: 1 },
        status: Status::InFlight,
        reason: None,
        attempt_number: if room.class == Class::First { 1 } else { 2 },
        run: 1,
        attempts_before: 0,
        max_attempts: 6,
        attempt_timeout: Duration::from_secs(30),
        created_at: at(0),
        run_started_at: at(0),
        deadline_at: at(1_000_000),
        next_attempt_at: Some(at(0)),
        ended_at: None,
        backoff: None,
        dns_failures: 0,
        cancel_requested: false,
        correlation_id: None,
        trace_parent: None,
        last_error: None,
    };
    let lease = Lease { token: Token(1), since: at(0), until: at(45_000) };
    ClaimedTask { task, request: Arc::new(request(0)), lease }
}

#[test]
fn a_new_lane_has_two_slots_and_claims_nothing_ahead() {
    let world = World::new(20, 1_000);
    let reservations: Vec<_> = (0..3).map(|_| world.reserve("a")).collect();
    assert_eq!(reservations.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false]);
    assert!(world.reserve("b").unwrap().has_slot(), "a full lane costs the others nothing");
    drop(reservations);
    assert_eq!(world.held(), 0);
}

#[test]
fn a_fast_lane_claims_ahead_and_hands_its_slots_on_in_order() {
    let world = World::new(1, 1_000);
    world.learn("a", 5);
    let mut first = world.begin("a");
    let [mut second, mut third] = [(); 2].map(|()| world.reserve("a").unwrap());
    assert!(!second.has_slot() && !third.has_slot());
    {
        let mut waits = pin!(second.slot());
        assert!(!is_ready(waits.as_mut()));
        let mut later = pin!(third.slot());
        assert!(!is_ready(later.as_mut()));
        first.end(AttemptEnd::Answered, None, well(), None);
        assert!(!is_ready(later.as_mut()), "it is not its turn");
        assert!(is_ready(waits.as_mut()));
    }
    assert!(second.has_slot() && !third.has_slot());
    drop(second);
    assert!(third.has_slot(), "a slot that was given while nothing waited for it is found");
    drop((first, third));
    assert_eq!(world.held(), 0);
}

#[test]
fn a_task_without_a_second_attempt_is_claimed_only_into_a_slot() {
    let world = World::new(1, 1_000);
    world.learn("a", 5);
    let last = || world.lanes.reserve(&lane("a"), &request(0), true);
    let mut reservation = last().unwrap();
    assert!(reservation.has_slot() && last().is_none());
    assert!(world.reserve("a").is_some(), "one that has a second attempt may go ahead");
    drop(reservation);
    assert!(last().is_some());
}

#[test]
fn a_new_task_does_not_overtake_first_attempts_that_have_been_due_for_long() {
    let world = World::new(4, 100);
    world.set(1_000);
    world.due("a", Class::First, 1_000);
    world.due("b", Class::Retry, 1_000);
    world.set(2_000);
    assert!(world.reserve("a").is_some(), "the claimer is about to take it");
    world.set(2_001);
    assert!(world.reserve("a").is_none());
    assert!(world.reserve("b").is_some(), "retries do not stand in front of first attempts");
}

#[test]
fn a_turn_comes_shortly_before_the_earliest_task_is_due() {
    let world = World::new(4, 1_000);
    for (name, due) in [("a", 2_000), ("a", 1_000), ("a", 3_000), ("b", 1_002), ("c", 1_006)] {
        world.due(name, Class::First, due);
    }
    assert_eq!(world.lanes.next_look(), NextLook::At(Some(at(997)), None));
    world.set(994);
    assert_eq!(world.turns().1, []);
    world.set(997);
    let (_, rooms) = world.turns();
    let first = |name: &str| (name.to_owned(), Class::First, 2, 0);
    assert_eq!(rooms, [first("a"), first("b")], "all that is due within the window of 5 ms");
}

#[test]
fn room_is_split_between_first_attempts_and_retries() {
    let world = World::new(9, 1_000);
    world.learn("a", 10);
    world.due("a", Class::First, 0);
    world.due("a", Class::Retry, 1);
    world.set(10);
    let (turns, rooms) = world.turns();
    assert_eq!(rooms, [("a".into(), Class::First, 4, 0), ("a".into(), Class::Retry, 4, 0)]);
    assert_eq!(world.claimed(&turns, &[4, 1], Some(10)).len(), 5);
    let (_, rooms) = world.turns();
    assert_eq!(rooms.iter().map(|room| room.1).collect::<Vec<_>>(), [Class::First, Class::Retry]);
}

#[test]
fn a_lane_asks_for_more_while_it_finds_all_that_it_asks_for() {
    let world = World::new(1_000, 100_000);
    world.learn("a", 1_000);
    let mut asked = Vec::new();
    for _ in 0..7 {
        world.due("a", Class::First, 0);
        let (turns, rooms) = world.turns();
        asked.push(rooms[0].2 + rooms[0].3);
        drop(world.claimed(&turns, &[rooms[0].2 + rooms[0].3], None));
    }
    assert_eq!(asked, [8, 16, 32, 64, 128, 256, 256]);
    world.due("a", Class::First, 0);
    let (turns, _) = world.turns();
    drop(world.claimed(&turns, &[20], None));
    let falls = [224, 196, 172].map(|_| {
        world.due("a", Class::First, 0);
        let (turns, rooms) = world.turns();
        drop(world.claimed(&turns, &[20], None));
        rooms[0].2 + rooms[0].3
    });
    assert_eq!(falls, [224, 196, 172], "by an eighth each time");
}

#[test]
fn a_lane_without_room_is_not_asked_until_it_has_some() {
    let world = World::new(1, 1_000);
    let mut reservation = world.reserve("a").unwrap();
    reservation.begin(Class::First, || unreachable!("only retries and shared guards need it")).unwrap();
    world.due("a", Class::First, 0);
    assert_eq!((world.lanes.next_look(), world.turns().1.len()), (NextLook::At(None, None), 0));
    reservation.end(AttemptEnd::Answered, None, well(), None);
    assert_eq!((world.lanes.next_look(), world.turns().1.len()), (NextLook::Now, 1));
}

#[test]
fn a_lane_whose_next_task_is_its_last_attempt_waits_for_a_slot() {
    let world = World::new(1, 1_000);
    world.learn("a", 5);
    let mut reservation = world.begin("a");
    world.due("a", Class::First, 0);
    let (turns, rooms) = world.turns();
    assert_eq!((rooms[0].2, rooms[0].3 > 0), (0, true), "room ahead only");
    assert!(world.claimed(&turns, &[0], Some(0)).is_empty(), "the store found nothing that may go ahead");
    assert_eq!((world.lanes.next_look(), world.turns().1.len()), (NextLook::At(None, None), 0));
    reservation.end(AttemptEnd::Answered, None, well(), None);
    assert_eq!(world.turns().1[0].2, 1);
}

#[test]
fn room_that_a_claim_did_not_need_or_that_failed_is_given_back() {
    let world = World::new(8, 100);
    world.learn("a", 8);
    world.due("a", Class::First, 0);
    let (turns, _) = world.turns();
    let reservations = world.claimed(&turns, &[1], Some(0));
    assert_eq!((reservations.len(), world.held()), (1, 1));
    drop(reservations);
    let (turns, _) = world.turns();
    world.lanes.claim_failed(&turns);
    assert_eq!((world.held(), world.lanes.next_look()), (0, NextLook::Now), "as much is due as before");
}

#[test]
fn a_task_that_a_store_has_under_another_class_is_not_lost() {
    let world = World::new(8, 100);
    world.learn("a", 8);
    world.due("a", Class::First, 0);
    let (turns, _) = world.turns();
    let retry = LaneRoom { class: Class::Retry, ..turns.rooms[0].clone() };
    let left = LaneDue { lane: lane("a"), class: Class::First, next_due: None };
    let claims = Claims { claimed: vec![task(&retry); 20], lanes: vec![left] };
    let reserved = world.lanes.claimed(&turns, claims, Duration::ZERO);
    assert_eq!((reserved.len(), world.held()), (20, 8), "also if they are more than was asked for");
    drop(reserved);
    assert_eq!((world.held(), world.lanes.lock().is_full()), (0, false));
}

#[test]
fn what_is_noted_during_a_claim_is_not_lost() {
    let world = World::new(3, 100);
    world.due("a", Class::First, 0);
    let (turns, _) = world.turns();
    world.due("a", Class::First, 700);
    world.claimed(&turns, &[0], Some(900));
    assert_eq!(world.lanes.next_look(), NextLook::At(Some(at(697)), None));
}

#[test]
fn lanes_with_a_backlog_take_turns() {
    let world = World::new(1_000, 10);
    world.due("a", Class::First, 0);
    world.due("b", Class::First, 0);
    let mut order = Vec::new();
    for _ in 0..2 {
        let (turns, rooms) = world.turns();
        order.extend(rooms.into_iter().map(|room| room.0));
        drop(world.claimed(&turns, &vec![1; turns.rooms.len()], Some(0)));
    }
    assert_eq!(order, ["a", "b", "a", "b"]);
}

#[test]
fn an_estimate_is_forgotten_after_half_a_minute_without_a_call() {
    let world = World::new(1, 10);
    let call = |took| {
        let mut reservation = world.reserve("a").unwrap();
        reservation.begin(Class::First, || unreachable!("only retries and shared guards need it")).unwrap();
        reservation.end(AttemptEnd::Answered, Some(Duration::from_secs(took)), well(), None);
    };
    call(20);
    world.set(30_000);
    assert_eq!(world.lanes.estimate(&lane("a")), Duration::from_secs(20));
    world.set(30_001);
    assert_eq!(world.lanes.estimate(&lane("a")), Duration::ZERO);
    call(1);
    assert_eq!(world.lanes.estimate(&lane("a")), Duration::from_secs(1), "an old estimate does not weigh on a new one");
}

#[test]
fn lanes_without_work_are_forgotten_in_the_end() {
    let world = World::new(1, 10);
    for number in 0..REMEMBERED + 50 {
        drop(world.reserve(&format!("dependency-{number}")));
    }
    assert_eq!(world.lanes.lock().names.count(), REMEMBERED);
}

#[test]
fn all_lanes_are_listed_in_pieces_that_look_at_no_others() {
    const PIECE: usize = 64;
    let world = World::new(1, 10);
    for number in 0..REMEMBERED {
        drop(world.reserve(&format!("dependency-{number}")));
    }
    let tenant = lane("a").tenant;
    let mut listed: Vec<Dependency> = Vec::new();
    loop {
        let piece = world.lanes.reports(&tenant, listed.last(), PIECE);
        let looked_at = world.lanes.lock().names.looked_at.take();
        assert!(looked_at <= PIECE, "{looked_at} after {}", listed.len());
        let is_end = piece.len() < PIECE;
        listed.extend(piece.into_iter().map(|report| report.lane.dependency));
        if is_end {
            break;
        }
    }
    assert_eq!(listed.len(), REMEMBERED);
    assert!(listed.is_sorted_by(|before, after| before < after));
}

#[test]
fn a_lane_that_operators_control_is_listed_once_and_in_its_place() {
    let world = World::new(1, 10);
    for name in ["d", "a", "c"] {
        drop(world.reserve(name));
    }
    let pause = Note { at: at(0), by: "local".into(), reason: None };
    let paused = Controls { pause: Some(pause), ..Controls::default() };
    let elsewhere = ["another", "zebra"].map(|tenant| Lane { tenant: TenantId::try_new(tenant).unwrap(), ..lane("b") });
    let lanes = ["e", "b", "c"].map(lane).into_iter().chain(elsewhere);
    world.lanes.set_controls(lanes.map(|lane| (lane, paused.clone())).collect());
    for limit in 1..=6 {
        let mut listed: Vec<Dependency> = Vec::new();
        loop {
            let piece = world.lanes.reports(&lane("a").tenant, listed.last(), limit);
            let is_end = piece.len() < limit;
            listed.extend(piece.into_iter().map(|report| report.lane.dependency));
            if is_end {
                break;
            }
        }
        let names: Vec<&str> = listed.iter().map(Dependency::as_str).collect();
        assert_eq!(names, ["a", "b", "c", "d", "e"], "in pieces of {limit}");
    }
}

#[test]
fn room_given_back_rings_when_work_waits_for_it() {
    let world = World::new(1, 1_000);
    let reservation = world.reserve("a").unwrap();
    world.due("a", Class::First, 0);
    let mut rings = pin!(world.lanes.changed());
    assert!(!is_ready(rings.as_mut()));
    drop(reservation);
    assert!(is_ready(rings.as_mut()));
}

#[test]
fn large_bodies_in_memory_hold_claims_back() {
    let clock = Arc::<Stopped>::default();
    let options = Options { max_body_bytes: 16 * 1024 * 1024, ..Options::default() };
    let lanes = Lanes::new(
        &options,
        clock,
        Arc::new(Middle),
        Events::new(crate::options::LogOptions::default(), Vec::new()),
        false,
    );
    let large = request(1024 * 1024);
    let reservations: Vec<Reservation> =
        (0..100).map_while(|number| lanes.reserve(&lane(&format!("d{number}")), &large, false)).collect();
    assert_eq!(reservations.len(), 4, "unknown lanes have a quarter of it");
    drop(reservations);
    assert!(lanes.reserve(&lane("later"), &large, false).is_some());
}

#[test]
fn a_lost_schedule_keeps_no_slots_reserved() {
    let world = World::new(1, 4);
    let reservations: Vec<Reservation> = ["a", "b"].iter().filter_map(|name| world.reserve(name)).collect();
    for name in ["c", "d"] {
        world.due(name, Class::First, 0);
    }
    drop(reservations);
    world.lanes.forget_due();
    assert_eq!((world.held(), world.lanes.next_look()), (0, NextLook::At(None, None)));
}

#[test]
fn a_lane_is_reported_as_held_back_once_each_time_and_not_while_it_has_nothing_due() {
    let world = World::new(1, 100);
    let first = world.begin("a");
    world.due("a", Class::First, 0);
    world.due("a", Class::Retry, 0);
    assert_eq!(*world.held_back.0.lock().unwrap(), [HoldReason::LaneLimit], "once for as long as it lasts");
    // What was due is gone, and later there is something again.
    world.lanes.forget_due();
    world.due("a", Class::First, 60_000);
    assert_eq!(world.held_back.0.lock().unwrap().len(), 1, "a lane whose work is not due is not held back");
    world.due("a", Class::First, 0);
    assert_eq!(*world.held_back.0.lock().unwrap(), [HoldReason::LaneLimit; 2]);
    drop(first);
}

#[test]
fn a_lane_whose_breaker_opens_keeps_no_slot_for_a_claim() {
    let world = World::new(4, 100);
    world.learn("a", 10);
    let mut attempts: Vec<_> = (0..2).map(|_| world.begin("a")).collect();
    world.due("a", Class::Retry, 0);
    let failing = Outcome { health: Some(Health::Failing), ..well() };
    let breaker = || world.lanes.report(&lane("a")).unwrap().breaker.unwrap();
    while breaker() == redrive_core::guards::breaker::State::Closed {
        attempts.remove(0).end(AttemptEnd::Answered, None, failing, None);
        if breaker() == redrive_core::guards::breaker::State::Closed {
            attempts.push(world.begin("a"));
        }
    }
    assert_eq!(attempts.len(), 1, "an attempt is still on the wire");
    assert_eq!(world.turns().1, [], "nothing is claimed, not ahead of slots either");
    assert!(matches!(world.lanes.next_look(), NextLook::At(..)), "the claimer is not woken again and again");
}
