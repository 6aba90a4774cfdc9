//! Dependencies that seem to be gone for good: an event, and a pause where the policy says so.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "tests")]

mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use redrive_core::Status;
use redrive_core::guards::{Controls, Note};
use redrive_core::policy::Spec;
use redrive_engine::clock::Clock;
use redrive_store::Store;
use world::{Reply, World, attempts, lane};

const HOUR: Duration = Duration::from_secs(3_600);

/// Retries every half hour, for two days.
fn patient() -> Spec {
    Spec {
        initial_delay_ms: Some(3_600_000),
        max_delay_ms: Some(3_600_000),
        total_budget_ms: Some(2 * 24 * 3_600_000),
        ..attempts(100)
    }
}

fn pausing(spec: Spec) -> Spec {
    Spec { pause_on_gone: Some(true), ..spec }
}

/// What was told of gone and of paused dependencies.
fn told(world: &World) -> Vec<String> {
    world.events.all().into_iter().filter(|line| line.starts_with("gone") || line.starts_with("paused")).collect()
}

async fn pause_of(world: &World) -> Option<Note> {
    let all = world.store.controls().list(None, 10).await.unwrap();
    all.into_iter().next().and_then(|(_, Controls { pause, .. })| pause)
}

#[tokio::test(start_paused = true)]
async fn a_410_raises_an_event_and_pauses_nothing_by_itself() {
    let world = World::new().await;
    world.dependency.behave("dependency", |_, _| Reply::Status(410));
    for number in 0..3 {
        let task = world.submit(&format!("k{number}"), attempts(5)).await;
        assert_eq!(world.ended(task.id).await.task.status, Status::Failed, "a 410 is not retried");
    }
    assert_eq!(told(&world), ["gone dependency: answered-410"], "not for each task");
    assert_eq!(pause_of(&world).await, None);
    world.clock.sleep(HOUR).await;
    let task = world.submit("later", attempts(5)).await;
    world.ended(task.id).await;
    assert_eq!(told(&world).len(), 2, "again after an hour");
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_says_so_pauses_a_dependency_that_answers_410() {
    let world = World::new().await;
    world.dependency.behave("dependency", |_, _| Reply::Status(410));
    let task = world.submit("first", pausing(attempts(5))).await;
    world.ended(task.id).await;
    world.clock.sleep(HOUR).await;
    let note = pause_of(&world).await.unwrap();
    assert!(note.by.starts_with("policy "), "{note:?}");
    assert_eq!(note.reason.as_deref(), Some("it answered 410 Gone (pauseOnGone)"));
    assert_eq!(told(&world), ["gone dependency: answered-410", "paused dependency"]);
    let waiting = world.submit("second", attempts(5)).await;
    world.clock.sleep(HOUR).await;
    assert_eq!(world.task(waiting.id).await.status, Status::Pending);
    assert_eq!(world.dependency.sends().len(), 1, "nothing is sent to a paused dependency");
    world.dependency.behave("dependency", |_, _| Reply::Status(200));
    world.engine.change_controls(lane("dependency"), |controls| controls.pause = None).await.unwrap();
    assert_eq!(world.ended(waiting.id).await.task.status, Status::Succeeded, "an operator resumes it");
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_the_store_refuses_is_stored_later() {
    let world = World::new().await;
    world.dependency.behave("dependency", |_, _| Reply::Status(410));
    world.store.fail("list", 3);
    let task = world.submit("first", pausing(attempts(5))).await;
    world.ended(task.id).await;
    world.clock.sleep(Duration::from_secs(5)).await;
    assert_eq!(world.store.failures_left("list"), 0);
    assert!(pause_of(&world).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_day_of_attempts_without_a_success_raises_an_event_also_across_a_restart() {
    let world = World::new().await;
    let fails = |world: &World| world.dependency.behave("dependency", |_, _| Reply::Status(404));
    fails(&world);
    let refused = async |world: &World, name: String| {
        let task = world.submit(&name, attempts(5)).await;
        world.ended(task.id).await;
    };
    for hour in 0..20 {
        refused(&world, format!("before-{hour}")).await;
        world.clock.sleep(HOUR).await;
    }
    let after = world.restarted().await;
    world.engine.drain();
    fails(&after);
    for hour in 20..24 {
        refused(&after, format!("after-{hour}")).await;
        after.clock.sleep(HOUR).await;
    }
    assert_eq!((told(&world), told(&after)), (vec![], vec![]));
    refused(&after, "day".to_owned()).await;
    refused(&after, "day-and-a-task".to_owned()).await;
    assert_eq!(told(&after), ["gone dependency: no-success"]);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_says_so_pauses_a_dependency_that_was_down_for_a_day() {
    let world = World::new().await;
    let is_up = Arc::new(AtomicBool::new(false));
    world.dependency.behave("dependency", {
        let is_up = is_up.clone();
        move |_, _| Reply::Status(if is_up.load(Ordering::Relaxed) { 200 } else { 503 })
    });
    let task = world.submit("task", pausing(patient())).await;
    world.clock.sleep(23 * HOUR).await;
    assert_eq!((told(&world), pause_of(&world).await), (vec![], None));
    world.clock.sleep(2 * HOUR).await;
    assert_eq!(told(&world), ["gone dependency: no-success", "paused dependency"]);
    is_up.store(true, Ordering::Relaxed);
    world.engine.change_controls(lane("dependency"), |controls| controls.pause = None).await.unwrap();
    assert_eq!(world.ended(task.id).await.task.status, Status::Succeeded, "it waited, and was not lost");
}

#[tokio::test(start_paused = true)]
async fn one_success_a_day_is_enough() {
    let world = World::new().await;
    let count = AtomicU64::new(0);
    world.dependency.behave("dependency", move |_, _| {
        Reply::Status(if count.fetch_add(1, Ordering::Relaxed).is_multiple_of(20) { 200 } else { 404 })
    });
    for number in 0..72 {
        let task = world.submit(&format!("k{number}"), attempts(1)).await;
        world.ended(task.id).await;
        world.clock.sleep(HOUR).await;
    }
    assert_eq!(told(&world), [] as [&str; 0]);
}
