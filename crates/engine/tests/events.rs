//! The events that the engine emits.

#![allow(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod world;

use std::time::Duration;

use redrive_core::policy::Spec;
use redrive_engine::Options;
use redrive_engine::clock::Clock;
use redrive_store::Store;
use world::{Reply, World, attempts, claim_as_another, tenant, world_with_a_task_in_the_store};

#[tokio::test(start_paused = true)]
async fn a_task_that_is_retried_and_delivered_says_every_step_once_and_in_order() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::Status(503), Reply::Status(200)]);
    let task = world.submit("k", Spec::default()).await;
    world.ended(task.id).await;
    let expected = [
        "accepted k",
        "claimed k 1",
        "sent 1 to dependency",
        "attempt 1 of k: retryable",
        "settled k PENDING",
        "retried k",
        "claimed k 2",
        "sent 2 to dependency",
        "attempt 2 of k: success",
        "settled k SUCCEEDED",
        "ended k SUCCEEDED by Settlement",
    ];
    assert_eq!(world.events.all(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_is_said_after_its_end() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::Status(400)]);
    let task = world.submit("k", attempts(3)).await;
    world.ended(task.id).await;
    let events = world.events.all();
    assert_eq!(events[events.len() - 2..], ["ended k FAILED by Settlement", "dead letter k"]);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_and_a_deadline_end_a_task_without_an_attempt() {
    let world = World::new().await;
    let waiting = world.submit_in(Duration::from_secs(60), "cancelled", Spec::default()).await;
    world.engine.cancel(tenant(), waiting.id).await.unwrap();
    assert_eq!(world.events.all(), ["accepted cancelled", "ended cancelled CANCELLED by Cancel"]);
    // The only slot is taken until after the deadline of the task behind it.
    let world = World::with(Options { lane_concurrency: 1, ..Options::default() }).await;
    world.dependency.script("dependency", [Reply::After(Duration::from_secs(20), Box::new(Reply::Status(200)))]);
    world.submit("first", Spec::default()).await;
    let short = Spec { total_budget_ms: Some(5_000), attempt_timeout_ms: Some(1_000), ..Spec::default() };
    let late = world.submit("late", short).await;
    world.ended(late.id).await;
    let events = world.events.all();
    assert!(events.contains(&"held back dependency: LaneLimit".to_owned()), "{events:?}");
    assert_eq!(events[events.len() - 2..], ["ended late EXHAUSTED by Deadline", "dead letter late"]);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_whose_worker_died_is_taken_over_and_settled_once() {
    let (stopped, id) = world_with_a_task_in_the_store(attempts(1)).await;
    claim_as_another(&stopped.store, stopped.clock.now()).await;
    let world = stopped.restarted().await;
    world.ended(id).await;
    let expected = [
        "taken over k",
        "attempt 1 of k: unknown",
        "settled k EXHAUSTED",
        "ended k EXHAUSTED by Settlement",
        "dead letter k",
    ];
    assert_eq!(world.events.all(), expected);
    assert_eq!(world.store.reads().attempts(tenant(), id, 0, 9).await.unwrap().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_panics_is_said_by_its_name() {
    let world = World::new().await;
    world.store.panic_in("end_overdue");
    world.submit_in(Duration::from_secs(1), "k", Spec::default()).await;
    world.engine.died().await;
    assert!(world.events.all().contains(&"loop failed overdue".to_owned()), "{:?}", world.events.all());
}
