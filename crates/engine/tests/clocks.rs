//! Nodes over one store work on the store's time, whatever the clocks of their machines show.

#![allow(clippy::disallowed_methods, reason = "a test is its own caller, on a task of its own")]

mod world;

use std::sync::Arc;
use std::time::Duration;

use redrive_core::guards::{Controls, HeldOpen, Note};
use redrive_core::policy::Spec;
use redrive_core::{Status, Task};
use redrive_engine::clock::Clock;
use redrive_engine::{ClockState, Options};
use redrive_store::memory::MemoryStore;
use world::{FailingStore, PausedClock, Peers, Reply, START, World, lane};

const HOUR: i64 = 3_600_000;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A store for several nodes, and its clock.
fn store() -> (Arc<FailingStore>, Arc<Peers>) {
    let peers = Peers::start();
    (Arc::new(FailingStore::of_several(MemoryStore::new(), peers.clone())), peers)
}

/// A node over this store whose machine's clock is off by this many milliseconds.
async fn node(store: &Arc<FailingStore>, off_ms: i64) -> World {
    let clock = PausedClock::start();
    clock.set_off(off_ms);
    World::over(store.clone(), clock, Options::default()).await
}

/// A task that is due after `wait`, by the node's time.
async fn submit_in(world: &World, wait: Duration, key: &str, spec: Spec) -> Task {
    let mut draft = world.draft(key, spec).await;
    draft.not_before = Some(world.engine.now().after(wait));
    world.submit_draft(draft).await
}

/// Overrides with one attempt and this time budget.
fn within(budget: Duration) -> Spec {
    Spec { max_attempts: Some(1), total_budget_ms: Some(budget.as_millis() as u64), ..Spec::default() }
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_clock_is_an_hour_off_sends_at_the_right_time() {
    for off in [0, HOUR, -HOUR] {
        let (store, _) = store();
        let world = node(&store, off).await;
        let began = tokio::time::Instant::now();
        let task = submit_in(&world, secs(30), "k", within(secs(60))).await;
        world.dependency.arrived(1).await;
        assert_eq!(began.elapsed().as_millis(), 30_000, "off by {off} ms");
        let ended = world.ended(task.id).await.task;
        assert_eq!((ended.status, ended.attempt_number), (Status::Succeeded, 1), "off by {off} ms");
        let started = world.attempts(task.id).await[0].started_at.since(START);
        assert!(started.as_millis().abs_diff(30_000) <= 1, "off by {off} ms: {started:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_clock_is_off_takes_nothing_from_the_others() {
    for off in [HOUR, -HOUR] {
        let (store, _) = store();
        let right = node(&store, 0).await;
        let wrong = node(&store, off).await;
        let slow = Reply::After(secs(8), Box::new(Reply::Status(200)));
        right.dependency.script("dependency", std::iter::repeat_n(slow, 10));
        let mut tasks = Vec::new();
        for n in 0..10 {
            // Those in flight have one attempt; the others wait, for less than the hour by which the clock is off.
            tasks.push(right.submit(&format!("sent-{n}"), within(secs(60))).await);
            tasks.push(submit_in(&right, secs(30), &format!("waits-{n}"), within(secs(120))).await);
        }
        for task in &tasks {
            let ended = right.ended(task.id).await.task;
            assert_eq!((ended.status, ended.attempt_number), (Status::Succeeded, 1), "off by {off} ms: {ended:?}");
        }
        let sends = right.dependency.sends().len() + wrong.dependency.sends().len();
        assert_eq!(sends, 20, "nothing was sent twice");
    }
}

#[tokio::test(start_paused = true)]
async fn setting_the_machines_clock_while_the_node_runs_changes_nothing_and_is_shown() {
    let (store, _) = store();
    let world = node(&store, 0).await;
    let began = tokio::time::Instant::now();
    let task = submit_in(&world, secs(100), "k", within(secs(200))).await;
    for off in [HOUR, -HOUR, 90_000] {
        world.clock.set_off(off);
        world.clock.sleep(secs(20)).await;
        let ClockState { is_certain, ahead_ms, stepped_ms } = world.engine.clock_state();
        assert!(is_certain && ahead_ms.abs_diff(off) <= 1 && stepped_ms.is_none(), "{ahead_ms}");
    }
    assert_eq!(world.ended(task.id).await.task.status, Status::Succeeded);
    assert!((100_000..101_000).contains(&began.elapsed().as_millis()));
}

#[tokio::test(start_paused = true)]
async fn a_store_whose_clock_steps_is_not_followed_until_the_machines_clock_agrees() {
    let (store, peers) = store();
    let world = node(&store, 0).await;
    peers.set_ahead(HOUR);
    world.clock.sleep(secs(10)).await;
    assert_eq!(world.engine.clock_state().stepped_ms, Some(HOUR));
    let waits = world.submit("waits", within(secs(1_800))).await;
    world.clock.sleep(secs(600)).await;
    assert_eq!(world.task(waits.id).await.status, Status::Pending, "nothing is claimed, and nothing ends");
    assert!(!world.engine.clock_state().is_certain);
    // The store was wrong, and is right again.
    peers.set_ahead(0);
    assert_eq!(world.ended(waits.id).await.task.status, Status::Succeeded);
    // Or the store was right, and the machine's clock is set right as well.
    peers.set_ahead(HOUR);
    world.clock.sleep(secs(10)).await;
    let waits = world.submit("waits-too", within(secs(86_400))).await;
    world.clock.set_off(HOUR);
    assert_eq!(world.ended(waits.id).await.task.status, Status::Succeeded);
    assert!(world.engine.now().since(START) > secs(3_600));
}

#[tokio::test(start_paused = true)]
async fn no_retry_is_suppressed_while_the_time_is_uncertain() {
    let (store, peers) = store();
    let world = node(&store, 0).await;
    world.dependency.behave("dependency", |_, _| Reply::Status(500));
    let context = Some(redrive_core::policy::Context::Sync);
    let delay = Some(20_000);
    let spec = Spec { context, max_attempts: Some(3), initial_delay_ms: delay, max_delay_ms: delay, ..Spec::default() };
    let task = world.submit("waited-for", spec).await;
    // Its retry is due after ten seconds, and the breaker is open by then.
    let until = world.engine.now().after(secs(3_600));
    let note = Note { at: until, by: "test".into(), reason: None };
    let open = HeldOpen { note, until: Some(until) };
    let change = move |controls: &mut Controls| controls.open = Some(open.clone());
    world.engine.change_controls(lane("dependency"), change).await.unwrap();
    peers.set_ahead(HOUR);
    world.clock.sleep(secs(20)).await;
    assert!(!world.engine.clock_state().is_certain);
    assert_eq!(world.task(task.id).await.status, Status::Pending, "nothing ends");
    peers.set_ahead(0);
    assert_eq!(world.ended(task.id).await.task.reason, Some(redrive_core::Reason::Budget));
}

#[tokio::test(start_paused = true)]
async fn without_the_stores_time_a_node_goes_on_with_what_it_knows_and_then_claims_nothing() {
    let (store, peers) = store();
    let world = node(&store, HOUR).await;
    peers.fail(true);
    // For a while the reading of the store's clock is recent enough.
    world.clock.sleep(secs(600)).await;
    let task = world.submit("k", within(secs(60))).await;
    assert_eq!(world.ended(task.id).await.task.status, Status::Succeeded);
    // Then it is too old.
    world.clock.sleep(secs(7_200)).await;
    assert!(!world.engine.clock_state().is_certain);
    let task = world.submit("later", within(secs(600))).await;
    assert_eq!(world.task(task.id).await.status, Status::Pending);
    peers.fail(false);
    assert_eq!(world.ended(task.id).await.task.status, Status::Succeeded);
}
