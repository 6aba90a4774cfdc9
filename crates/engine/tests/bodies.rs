//! Tasks whose stored body cannot be read: what counts as an attempt, and what does not.

#![allow(clippy::disallowed_methods, reason = "a test is its own caller, on a task of its own")]

mod world;

use redrive_core::policy::Spec;
use redrive_core::{ErrorType, Outcome, Reason, Status};
use world::{Reply, World, attempts};

fn unavailable(times: usize) -> Vec<Reply> {
    vec![Reply::Error(ErrorType::BodyUnavailable); times]
}

/// When the transport was called, in milliseconds, and with which attempt number.
fn asked(world: &World) -> Vec<(u64, u32)> {
    world.dependency.sends().iter().map(|send| (world.millis(send.at), send.outbound.attempt)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_body_out_of_reach_costs_no_attempt_however_long_it_takes() {
    let world = World::new().await;
    // Ten minutes, for a task that has two attempts.
    world.dependency.script("dependency", unavailable(40));
    world.dependency.script("dependency", [Reply::Status(503)]);
    let task = world.submit("k", attempts(2)).await;
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.status, ended.attempt_number), (Status::Succeeded, 2));
    let asked = asked(&world);
    let pauses: Vec<_> = (0..=40).map(|n| (n * 15_000, 1)).collect();
    assert_eq!(asked[..41], pauses, "every 15 seconds, always the first attempt");
    assert_eq!(asked[41..], [(600_500, 2)], "the backoff is that of a first retry");
    let log = world.attempts(task.id).await;
    let outcomes: Vec<_> = log.iter().map(|attempt| (attempt.number, attempt.outcome)).collect();
    assert_eq!(outcomes, [(1, Outcome::Retryable), (2, Outcome::Success)]);
}

#[tokio::test(start_paused = true)]
async fn while_its_body_is_out_of_reach_a_task_is_pending_with_nothing_counted() {
    let world = World::new().await;
    world.dependency.script("dependency", unavailable(1));
    let task = world.submit("k", Spec::default()).await;
    while world.task(task.id).await.status != Status::Pending {
        tokio::task::yield_now().await;
    }
    let waiting = world.task(task.id).await;
    assert_eq!((waiting.attempt_number, waiting.backoff), (0, None));
    assert_eq!(waiting.next_attempt_at.map(|at| world.millis(at)), Some(15_000));
    assert_eq!(world.ended(task.id).await.task.status, Status::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_a_task_whose_body_stays_out_of_reach_and_the_log_says_why() {
    let world = World::new().await;
    world.dependency.script("dependency", unavailable(1_000));
    let budget = Spec { total_budget_ms: Some(60_000), ..attempts(2) };
    let task = world.submit("k", budget).await;
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.status, ended.reason), (Status::Exhausted, Some(Reason::Deadline)));
    assert_eq!(ended.last_error.unwrap().kind, ErrorType::BodyUnavailable);
    let times: Vec<_> = asked(&world).into_iter().map(|(at, _)| at).collect();
    assert_eq!(times, [0, 15_000, 30_000, 45_000, 52_500, 56_250, 58_125, 59_125]);
    assert_eq!(world.millis(ended.ended_at.unwrap()), 59_125, "the next look would come too late");
    let log = world.attempts(task.id).await;
    assert_eq!((log.len(), ended.attempt_number), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_broke_off_counts_like_any_other_failure() {
    let world = World::new().await;
    world.dependency.script("dependency", (0..9).map(|_| Reply::Error(ErrorType::BodyIncomplete)));
    let task = world.submit("k", attempts(3)).await;
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.status, ended.reason), (Status::Exhausted, Some(Reason::Attempts)));
    assert_eq!(world.dependency.sends().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_gone_or_damaged_ends_its_task_at_once() {
    let world = World::new().await;
    for kind in [ErrorType::BodyMissing, ErrorType::BodyDamaged] {
        world.dependency.script("dependency", [Reply::Error(kind)]);
        let task = world.submit(kind.as_str(), Spec::default()).await;
        let ended = world.ended(task.id).await.task;
        assert_eq!((ended.status, ended.reason), (Status::Failed, Some(Reason::BodyLost)), "{kind:?}");
    }
}
