//! The guards of a lane in the running engine: what the dependency sees, counted at the dependency.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "tests")]

mod world;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use redrive_core::guards::{self, Controls, Note, breaker, budget};
use redrive_core::policy::Spec;
use redrive_core::{ErrorType, Status, TaskId};
use redrive_engine::Options;
use redrive_engine::clock::Clock;
use redrive_store::memory::MemoryStore;
use redrive_store::{Backlog, LaneControls, Store};
use world::{FailingStore, Log, PausedClock, Reply, World, attempts, lane};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Retries soon and often, for long.
fn eager(max_attempts: u32) -> Spec {
    Spec { initial_delay_ms: Some(100), max_delay_ms: Some(1_000), ..attempts(max_attempts) }
}

fn without_breaker() -> Options {
    Options { guards: guards::Settings { breaker: None, ..guards::Settings::default() }, ..Options::default() }
}

/// When each send arrived in milliseconds since the start, and whether it was a retry.
fn sends(world: &World) -> Vec<(u64, bool)> {
    let seen = world.dependency.sends();
    seen.iter().map(|send| (world.millis(send.at), send.outbound.attempt > 1)).collect()
}

/// The most retries beyond a fifth of the first attempts in any 30 s that end with a retry.
fn most_beyond_a_fifth(sends: &[(u64, bool)]) -> f64 {
    let mut most = f64::MIN;
    let (mut firsts, mut retries, mut from) = (0_u64, 0_u64, 0);
    for (at, is_retry) in sends {
        while sends[from].0 + 30_000 <= *at {
            if sends[from].1 {
                retries -= 1
            } else {
                firsts -= 1
            }
            from += 1;
        }
        if *is_retry {
            retries += 1;
            most = most.max(retries as f64 - 0.2 * firsts as f64);
        } else {
            firsts += 1;
        }
    }
    most
}

/// A uniform draw below `bound`, the same in every run.
struct Draw(AtomicU64);

impl Draw {
    fn below(&self, bound: u64) -> u64 {
        let next = |state: u64| state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let state = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| Some(next(state))).unwrap();
        (next(state) >> 33) % bound
    }
}

#[tokio::test(start_paused = true)]
async fn retries_wait_for_the_budget_without_losing_an_attempt_while_first_attempts_go_on() {
    let world = World::with(without_breaker()).await;
    world.dependency.behave("dependency", |_, _| Reply::Status(500));
    let mut tasks = Vec::new();
    for number in 0..50 {
        tasks.push(world.submit(&format!("k{number}"), eager(100)).await.id);
    }
    world.clock.sleep(secs(29)).await;
    let (firsts, retries): (Vec<_>, Vec<_>) = sends(&world).into_iter().partition(|(_, is_retry)| !is_retry);
    assert_eq!((firsts.len(), retries.len()), (50, 20), "10 and a fifth of 50");
    let mut counted = 0;
    for id in tasks {
        let task = world.task(id).await;
        assert_eq!(task.status, Status::Pending);
        counted += task.attempt_number;
    }
    assert_eq!(counted, 50 + 20, "waiting costs no attempt");
    let begun = world.clock.elapsed();
    let late = world.submit("late", attempts(1)).await;
    world.ended(late.id).await;
    assert!(world.clock.elapsed() - begun < Duration::from_millis(100), "a first attempt does not wait");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_the_budget_ends_with_its_deadline() {
    let world = World::with(without_breaker()).await;
    world.dependency.behave("dependency", |_, _| Reply::Status(500));
    let mut tasks = Vec::new();
    for number in 0..30 {
        let spec = Spec { total_budget_ms: Some(20_000), ..eager(100) };
        tasks.push(world.submit(&format!("k{number}"), spec).await.id);
    }
    for id in tasks {
        let task = world.ended(id).await.task;
        assert_eq!((task.status, task.reason), (Status::Exhausted, Some(redrive_core::Reason::Deadline)));
    }
    assert_eq!(sends(&world).len(), 30 + 16);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_waits_gets_the_error_at_once_when_the_budget_is_spent() {
    let world = World::with(without_breaker()).await;
    world.dependency.behave("dependency", |_, _| Reply::Status(500));
    let sync = || Spec { initial_delay_ms: None, max_delay_ms: None, ..sync(3) };
    let mut tasks = Vec::new();
    for number in 0..30 {
        tasks.push(world.submit(&format!("k{number}"), sync()).await.id);
    }
    let mut suppressed = 0;
    for id in tasks {
        let detail = world.ended(id).await;
        assert_eq!(detail.task.status, Status::Exhausted);
        let took = detail.task.ended_at.unwrap().since(detail.task.created_at);
        assert!(took < secs(5), "it waited for {took:?}");
        if detail.task.reason == Some(redrive_core::Reason::Budget) {
            let answered = detail.answer.map(|answer| answer.status);
            assert!(answered.is_none_or(|status| status == 500), "the dependency's own answer");
            assert!(detail.task.last_error.is_some(), "or its error, if the retry was scheduled before");
            suppressed += u32::from(answered.is_some());
        }
    }
    assert!(sends(&world).len() <= 30 + 16, "no more than the floor and a fifth");
    assert!(suppressed > 0);
}

/// A synchronous call whose retry comes after ten seconds or so.
fn sync(max_attempts: u32) -> Spec {
    let delay = Some(20_000);
    let context = Some(redrive_core::policy::Context::Sync);
    Spec { context, initial_delay_ms: delay, max_delay_ms: delay, ..attempts(max_attempts) }
}

/// Spends the retry budget with tasks that wait for it.
async fn spend_the_budget(world: &World) {
    for number in 0..20 {
        world.submit(&format!("spender-{number}"), eager(100)).await;
    }
    world.clock.sleep(secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_scheduled_retry_that_a_caller_waits_for_ends_when_it_is_due_and_the_budget_is_spent() {
    let world = World::with(without_breaker()).await;
    world.dependency.behave("dependency", |_, _| Reply::Status(500));
    let task = world.submit("waited-for", sync(3)).await;
    spend_the_budget(&world).await;
    assert_eq!(world.task(task.id).await.status, Status::Pending, "its retry was scheduled before");
    let detail = world.ended(task.id).await;
    assert_eq!((detail.task.status, detail.task.reason), (Status::Exhausted, Some(redrive_core::Reason::Budget)));
    assert_eq!(detail.task.attempt_number, 1);
    assert_eq!(detail.task.last_error.unwrap().message, "the dependency answered 500", "the error is kept");
    let took = detail.task.ended_at.unwrap().since(detail.task.created_at);
    assert!((secs(10)..secs(11)).contains(&took), "when it is due, not at its deadline: {took:?}");
    let log = world.events.all();
    assert!(log.contains(&"ended waited-for EXHAUSTED by Budget".to_owned()));
    assert!(log.contains(&"dead letter waited-for".to_owned()));
    let waiting = world.store.reads().counts(world::tenant()).await.unwrap()[&Status::Pending];
    assert_eq!(waiting, 20, "the others wait for the budget");
}

#[tokio::test(start_paused = true)]
async fn a_scheduled_retry_that_a_caller_waits_for_waits_while_its_dependency_is_paused() {
    let world = World::with(without_breaker()).await;
    world.dependency.behave("dependency", |out, _| Reply::Status(if out.attempt < 2 { 500 } else { 200 }));
    let task = world.submit("waited-for", sync(3)).await;
    world.clock.sleep(secs(1)).await;
    let pause = async |is_paused: bool| {
        let note = Note { at: world.clock.now(), by: "test".into(), reason: None };
        let note = is_paused.then_some(note);
        let change = move |controls: &mut Controls| controls.pause.clone_from(&note);
        world.engine.change_controls(lane("dependency"), change).await.unwrap()
    };
    pause(true).await;
    world.clock.sleep(secs(14)).await;
    assert_eq!(world.task(task.id).await.status, Status::Pending, "it was due after 10 s");
    pause(false).await;
    assert_eq!(world.ended(task.id).await.task.status, Status::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_a_caller_waits_for_is_sent_while_there_is_budget() {
    let world = World::with(without_breaker()).await;
    world.dependency.behave("dependency", |out, _| Reply::Status(if out.attempt < 3 { 500 } else { 200 }));
    let task = world.submit("waited-for", Spec { total_budget_ms: Some(60_000), ..sync(3) }).await;
    let detail = world.ended(task.id).await;
    assert_eq!((detail.task.status, detail.task.attempt_number), (Status::Succeeded, 3));
}

#[tokio::test(start_paused = true)]
async fn a_suppression_whose_answer_is_lost_ends_the_task_once_and_raises_its_alert() {
    for (lost, failed) in [(1, 0), (0, 2)] {
        let world = World::with(without_breaker()).await;
        world.dependency.behave("dependency", |_, _| Reply::Status(500));
        let task = world.submit("waited-for", sync(3)).await;
        spend_the_budget(&world).await;
        world.store.lose_answers("suppress", lost);
        world.store.fail("suppress", failed);
        let detail = world.ended(task.id).await;
        assert_eq!(detail.task.reason, Some(redrive_core::Reason::Budget));
        world.clock.sleep(secs(120)).await;
        let alerts = world.events.all().into_iter().filter(|line| line == "dead letter waited-for").count();
        assert!(alerts >= 1, "{lost} answers lost, {failed} calls failed");
    }
}

/// Requests per second that a dependency sees which fails half of its calls: 1,000 new requests per second with three
/// retries each, from the 31st second on.
async fn amplified(options: Options) -> f64 {
    const SECONDS: u64 = 50;
    let world = World::with(options).await;
    let draw = Draw(AtomicU64::new(7));
    world.dependency.behave("dependency", move |_, _| Reply::Status(if draw.below(2) == 0 { 500 } else { 200 }));
    for number in 0..SECONDS * 100 {
        for part in 0..10 {
            world.submit(&format!("k{number}-{part}"), eager(4)).await;
        }
        world.clock.sleep(Duration::from_millis(10)).await;
    }
    let steady = sends(&world).into_iter().filter(|(at, _)| (31_000..SECONDS * 1_000).contains(at)).count();
    steady as f64 / (SECONDS - 31) as f64
}

#[tokio::test(start_paused = true)]
async fn a_dependency_that_fails_half_of_its_calls_sees_a_fifth_more_with_a_budget() {
    let without = amplified(world::unguarded()).await;
    // 1,000 × (1 + 1/2 + 1/4 + 1/8). The standard has 2,500: it counts three retries for each of 500 that fail.
    assert!((1_860.0..1_890.0).contains(&without), "{without} requests/s without a budget");
    let with = amplified(without_breaker()).await;
    assert!((1_190.0..1_201.0).contains(&with), "{with} requests/s with a budget");
}

#[tokio::test(start_paused = true)]
async fn a_dependency_that_dies_under_a_thousand_waiting_tasks_sees_floor_and_probes() {
    for breaker in [None, Some(breaker::Settings::default())] {
        let guards = guards::Settings { breaker, ..guards::Settings::default() };
        let world = World::with(Options { guards, ..Options::default() }).await;
        let is_dead = Arc::new(AtomicBool::new(false));
        let dead = is_dead.clone();
        let dies = move |_: &_, _| if dead.load(Ordering::Relaxed) { Reply::Status(503) } else { Reply::Status(200) };
        world.dependency.behave("dependency", dies);
        // A thousand tasks that failed once, and wait for their second attempt.
        world.dependency.script("dependency", std::iter::repeat_n(Reply::Status(500), 1_000));
        let unlimited = Options { guards: guards::Settings::off(), ..Options::default() };
        let before = World::over(world.store.clone(), world.clock.clone(), unlimited).await;
        before.dependency.behave("dependency", |_, _| Reply::Status(500));
        world.engine.drain();
        for number in 0..1_000 {
            let spec = Spec { initial_delay_ms: Some(60_000), max_delay_ms: Some(60_000), ..attempts(50) };
            before.submit(&format!("k{number}"), spec).await;
        }
        before.dependency.arrived(1_000).await;
        before.engine.stop().await;
        world.engine.stop().await;
        is_dead.store(true, Ordering::Relaxed);
        let world =
            World::over(world.store.clone(), world.clock.clone(), Options { guards, ..Options::default() }).await;
        world.dependency.behave("dependency", |_, _| Reply::Status(503));
        world.clock.sleep(secs(600)).await;
        let sends = sends(&world);
        let most = most_beyond_a_fifth(&sends);
        let probes = if breaker.is_some() { 3.0 } else { 0.0 };
        assert!(sends.len() > 10, "it is tried again: {}", sends.len());
        assert!(most <= 10.0 + probes, "{most} retries in 30 s");
    }
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_stops_everything_and_probes_the_oldest_first() {
    let world = World::new().await;
    let is_down = Arc::new(AtomicBool::new(true));
    let down = is_down.clone();
    let replies = move |_: &_, _| if down.load(Ordering::Relaxed) { Reply::Status(500) } else { Reply::Status(200) };
    world.dependency.behave("dependency", replies);
    let mut tasks: Vec<TaskId> = Vec::new();
    for number in 0..40 {
        tasks.push(world.submit(&format!("k{number:02}"), eager(50)).await.id);
        world.clock.sleep(Duration::from_millis(1)).await;
    }
    world.clock.sleep(secs(10)).await;
    assert_eq!(sends(&world).len(), 10, "ten failures in a row");
    let claims = world.store.calls("claim");
    world.clock.sleep(secs(4)).await;
    assert_eq!(world.store.calls("claim"), claims, "nothing is claimed while it is open");
    is_down.store(false, Ordering::Relaxed);
    for id in tasks {
        assert_eq!(world.ended(id).await.task.status, Status::Succeeded);
    }
    let probes: Vec<String> =
        world.dependency.sends()[10..13].iter().map(|send| send.outbound.idempotency_key.to_string()).collect();
    assert_eq!(probes, ["k10", "k11", "k12"], "what has been due for longest");
    let log = world.events.all();
    let breaker: Vec<&String> = log.iter().filter(|line| line.starts_with("breaker")).collect();
    assert_eq!(breaker.len(), 2, "{breaker:?}");
    assert!(breaker[0].contains("FailuresInARow") && breaker[1].contains("Closed"), "{breaker:?}");
}

#[tokio::test(start_paused = true)]
async fn guards_survive_a_restart() {
    let world = World::with(without_breaker()).await;
    world.dependency.behave("dependency", |_, _| Reply::Status(500));
    for number in 0..20 {
        world.submit(&format!("k{number}"), eager(100)).await;
    }
    world.clock.sleep(secs(5)).await;
    assert_eq!(sends(&world).len(), 20 + 14);
    // The process dies: nothing is stopped in an orderly way.
    let after = world.restarted().await;
    world.engine.drain();
    after.dependency.behave("dependency", |_, _| Reply::Status(500));
    after.clock.sleep(secs(20)).await;
    assert_eq!(sends(&after), [], "the budget is still spent");
    after.clock.sleep(secs(20)).await;
    assert!(!sends(&after).is_empty(), "and is refilled when the window has passed");

    let world = World::new().await;
    world.dependency.behave("dependency", |_, _| Reply::Error(ErrorType::ConnectionRefused));
    for number in 0..20 {
        world.submit(&format!("k{number}"), eager(100)).await;
    }
    world.clock.sleep(secs(10)).await;
    let after = world.restarted().await;
    world.engine.drain();
    after.clock.sleep(secs(1)).await;
    assert_eq!(sends(&after), [], "the breaker is still open");
}

#[tokio::test(start_paused = true)]
async fn invented_names_do_not_multiply_the_floor() {
    let world = World::with(without_breaker()).await;
    for lane in 0..30 {
        let name = format!("name-{lane}");
        world.dependency.behave(&name, |_, _| Reply::Status(500));
        for number in 0..10 {
            world.submit_to(&name, &format!("{name}-{number}"), eager(100)).await;
        }
    }
    world.clock.sleep(secs(29)).await;
    let (firsts, retries): (Vec<_>, Vec<_>) = sends(&world).into_iter().partition(|(_, is_retry)| !is_retry);
    assert_eq!((firsts.len(), retries.len()), (300, 60 + 10), "a fifth of each lane's, and one floor");
}

#[tokio::test(start_paused = true)]
async fn a_restart_is_not_a_new_floor_for_invented_names() {
    let world = World::with(without_breaker()).await;
    let fails = |world: &World| {
        for name in ["used", "unused"] {
            world.dependency.behave(name, |_, _| Reply::Status(500));
        }
    };
    fails(&world);
    for number in 0..20 {
        world.submit_to("used", &format!("used-{number}"), eager(100)).await;
    }
    world.clock.sleep(secs(5)).await;
    assert_eq!(sends(&world).len(), 20 + 14, "the floor and a fifth");
    let after = world.restarted().await;
    world.engine.drain();
    fails(&after);
    after.submit_to("unused", "unused", eager(100)).await;
    after.clock.sleep(secs(10)).await;
    assert_eq!(sends(&after).len(), 1, "its first attempt: the floor of the origin is spent");
}

#[tokio::test(start_paused = true)]
async fn the_store_keeps_no_state_of_lanes_that_have_nothing_to_do() {
    let world = World::new().await;
    for lane in 0..200 {
        let name = format!("name-{lane}");
        world.dependency.behave(&name, |_, _| Reply::Status(500));
        let task = world.submit_to(&name, &name, eager(2)).await;
        world.ended(task.id).await;
    }
    let kept = || async { world.store.guard_states().unwrap().kept(None, 1_000).await.unwrap().len() };
    assert!(kept().await > 0, "retries that were sent count for a while");
    // Longer than an open breaker without work is remembered.
    world.clock.sleep(secs(900)).await;
    let other = world.submit_to("other", "other", attempts(1)).await;
    world.ended(other.id).await;
    assert_eq!(kept().await, 0, "the next commit removes what is not needed");
}

/// A dependency of some workers with a queue: each call takes a worker for a while.
struct Workers {
    /// When each worker is free again, in milliseconds.
    free_at: Mutex<Vec<u64>>,
    service: u64,
    most_waiting: AtomicU64,
}

impl Workers {
    fn new(workers: usize, service: u64) -> Self {
        Workers { free_at: Mutex::new(vec![0; workers]), service, most_waiting: AtomicU64::new(0) }
    }

    /// How long a call that arrives at `now` takes.
    fn serve(&self, now: u64) -> Duration {
        let mut free_at = self.free_at.lock().unwrap();
        let first = free_at.iter_mut().min().unwrap();
        let begins = (*first).max(now);
        *first = begins + self.service;
        let ends = *first;
        let waiting = free_at.iter().map(|free| free.saturating_sub(now).div_ceil(self.service)).sum::<u64>();
        self.most_waiting.fetch_max(waiting.saturating_sub(free_at.len() as u64), Ordering::Relaxed);
        Duration::from_millis(ends - now)
    }
}

/// 10,000 tasks wait for a dependency of 10 workers and 500 calls/s, which is down for five minutes and returns with
/// this percentage of failures. Returns the time from the breaker's closing to the last delivery, the longest queue at
/// the dependency, and how many tasks ended as dead letters.
async fn outage(options: Options, failing_percent: u64) -> (Duration, u64, usize) {
    const DOWN_UNTIL: u64 = 300_000;
    let world = World::with(options).await;
    let workers = Arc::new(Workers::new(10, 20));
    let (draw, queue) = (Draw(AtomicU64::new(3)), workers.clone());
    world.dependency.behave("dependency", move |_, now| {
        let now = now.since(world::START).as_millis() as u64;
        if now < DOWN_UNTIL {
            return Reply::Error(ErrorType::ConnectionRefused);
        }
        let status = if draw.below(100) < failing_percent { 503 } else { 200 };
        Reply::After(queue.serve(now), Box::new(Reply::Status(status)))
    });
    let mut tasks = Vec::new();
    for number in 0..10_000 {
        tasks.push(world.submit(&format!("k{number}"), attempts(14)).await.id);
    }
    let mut dead = 0;
    for id in tasks {
        dead += usize::from(world.ended(id).await.task.status != Status::Succeeded);
    }
    let back = sends(&world).into_iter().find(|(at, _)| *at >= DOWN_UNTIL).unwrap().0;
    let took = world.clock.elapsed().saturating_sub(Duration::from_millis(back));
    (took, workers.most_waiting.load(Ordering::Relaxed), dead)
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_a_backlog_of_ten_thousand_drains_at_the_pace_of_the_dependency() {
    for failing_percent in [0, 5] {
        let (took, most_waiting, dead) = outage(Options::default(), failing_percent).await;
        // 10,000 calls at 500/s, and a twentieth again for those that fail.
        let capacity = Duration::from_millis(20_000 * (100 + failing_percent) / 100);
        assert!(took <= 2 * capacity, "{took:?} with {failing_percent} % failures");
        assert!(most_waiting <= 40, "{most_waiting} calls waited at the dependency");
        assert_eq!(dead, 0);
    }
}

/// A node over a store that other processes share, and the interval at which it reads the store again.
async fn node_over_a_shared_store() -> (World, Duration) {
    let store = Arc::new(FailingStore::new(MemoryStore::new()));
    store.share();
    let options = Options::default();
    let look_around_every = options.look_around_every;
    (World::over(store, PausedClock::start(), options).await, look_around_every)
}

fn paused() -> Controls {
    let pause = Note { at: world::START, by: "operator".into(), reason: None };
    Controls { pause: Some(pause), ..Controls::default() }
}

/// Sets the controls of the lane as another process would.
async fn set_elsewhere(world: &World, controls: Controls) {
    let before = world.engine.lane_report(&lane("dependency")).map(|report| report.controls).unwrap_or_default();
    assert!(LaneControls::replace(&*world.store, lane("dependency"), before, controls).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_another_process_sets_holds_the_lane_back_within_one_look_around() {
    let (world, look_around_every) = node_over_a_shared_store().await;
    world.dependency.script("dependency", [Reply::Status(500)]);
    // Due after half of this: after the look that finds the pause.
    let delay_ms = Some(4 * look_around_every.as_millis() as u64);
    let retried = Spec { initial_delay_ms: delay_ms, max_delay_ms: delay_ms, ..attempts(2) };
    let waiting = world.submit("failed-once", retried).await;
    world.dependency.arrived(1).await;
    set_elsewhere(&world, paused()).await;
    world.clock.sleep(look_around_every).await;
    let new = world.submit("new", attempts(2)).await;
    world.clock.sleep(10 * look_around_every).await;
    assert_eq!(sends(&world).len(), 1, "neither a first attempt nor a retry is sent");
    let other = world.submit_to("other", "other", attempts(1)).await;
    assert_eq!(world.ended(other.id).await.task.status, Status::Succeeded, "other lanes go on");

    set_elsewhere(&world, Controls::default()).await;
    let resumed = world.clock.elapsed();
    for id in [waiting.id, new.id] {
        assert_eq!(world.ended(id).await.task.status, Status::Succeeded);
    }
    assert!(world.clock.elapsed() - resumed <= look_around_every);
}

#[tokio::test(start_paused = true)]
async fn controls_that_cannot_be_read_are_reported_and_read_by_the_next_look() {
    let log = Log::watch();
    let (world, look_around_every) = node_over_a_shared_store().await;
    world.clock.sleep(look_around_every).await;
    world.store.fail("list", 1);
    set_elsewhere(&world, paused()).await;
    world.clock.sleep(look_around_every).await;
    assert_eq!(world.store.failures_left("list"), 0);
    let lines = log.lines();
    assert!(lines.len() == 1 && lines[0].contains("reading lane controls"), "{lines:#?}");
    world.clock.sleep(look_around_every).await;
    world.submit("k", attempts(1)).await;
    world.clock.sleep(look_around_every).await;
    assert_eq!(sends(&world), []);
    assert!(log.lines().iter().any(|line| line.contains("the store works again")), "{:#?}", log.lines());
}

#[tokio::test(start_paused = true)]
async fn a_look_that_read_older_controls_does_not_undo_a_change_made_here() {
    let (world, look_around_every) = node_over_a_shared_store().await;
    let held = world.store.hold_answer("list");
    tokio::time::timeout(2 * look_around_every, held.reached()).await.unwrap();
    let change = world.engine.change_controls(lane("dependency"), |controls| *controls = paused());
    let release = async {
        world.clock.sleep(secs(1)).await;
        held.release();
    };
    let (changed, ()) = tokio::join!(change, release);
    assert_eq!(changed.unwrap(), paused());
    world.submit("k", attempts(1)).await;
    world.clock.sleep(3 * look_around_every).await;
    assert_eq!(sends(&world), []);
}

fn limited(concurrency: u32, controls: Controls) -> Controls {
    let limits = guards::Limits { concurrency: Some(concurrency), ..guards::Limits::default() };
    Controls { limits: Some(limits), ..controls }
}

#[tokio::test(start_paused = true)]
async fn a_change_that_another_process_makes_at_the_same_time_is_kept() {
    let world = World::new().await;
    let held = world.store.hold_answer("list");
    let change = world.engine.change_controls(lane("dependency"), |controls| *controls = limited(3, controls.clone()));
    let elsewhere = async {
        held.reached().await;
        set_elsewhere(&world, paused()).await;
        held.release();
    };
    let (changed, ()) = tokio::join!(change, elsewhere);
    let both = limited(3, paused());
    assert_eq!(changed.unwrap(), both);
    assert_eq!(world.store.controls().list(None, 10).await.unwrap(), [(lane("dependency"), both.clone())]);
    assert_eq!(world.engine.lane_report(&lane("dependency")).unwrap().controls, both);
}

#[tokio::test(start_paused = true)]
async fn a_change_gives_up_if_other_processes_change_the_same_controls_all_the_time() {
    let world = World::new().await;
    let mut held = world.store.hold_answer("list");
    let change = world.engine.change_controls(lane("dependency"), |controls| controls.pause = paused().pause);
    let elsewhere = async {
        let mut set = Controls::default();
        for n in 1..=20 {
            held.reached().await;
            let new = limited(n, Controls::default());
            assert!(LaneControls::replace(&*world.store, lane("dependency"), set, new.clone()).await.unwrap());
            set = new;
            let next = if n < 20 { world.store.hold_answer("list") } else { held.clone() };
            held.release();
            held = next;
        }
    };
    let (changed, ()) = tokio::join!(change, elsewhere);
    let error = changed.unwrap_err().to_string();
    assert!(error.contains("other processes changed the controls"), "{error}");
    let set = limited(20, Controls::default());
    assert_eq!(world.store.controls().list(None, 10).await.unwrap(), [(lane("dependency"), set)]);
}

#[tokio::test(start_paused = true)]
async fn a_backlog_that_the_store_does_not_count_in_time_is_left_out() {
    let world = World::new().await;
    let counted = async || world.engine.backlogs(vec![lane("dependency")], 10).await;
    assert_eq!(counted().await, Some(vec![Backlog::default()]));
    world.store.slow_down("backlogs", secs(3));
    let before = world.clock.elapsed();
    assert_eq!(counted().await, None);
    assert_eq!(world.clock.elapsed() - before, secs(2));
    world.store.slow_down("backlogs", secs(1));
    assert_eq!(counted().await, Some(vec![Backlog::default()]));
    world.store.fail("backlogs", 1);
    assert_eq!(counted().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_store_with_one_owner_is_not_read_for_controls_again() {
    let world = World::new().await;
    let before = world.store.calls("list");
    world.clock.sleep(secs(600)).await;
    assert_eq!(world.store.calls("list"), before);
}

#[test]
fn the_defaults_are_on() {
    let guards = Options::default().guards;
    assert_eq!(guards.budget, Some(budget::Settings::default()));
    assert_eq!(guards.breaker, Some(breaker::Settings::default()));
}
