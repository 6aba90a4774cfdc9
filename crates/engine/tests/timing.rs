//! Timing: a task is claimed before it is due and sent when it is; a cancel is final up to the first byte; deadlines
//! end tasks that wait.

#![allow(clippy::disallowed_methods, reason = "a test is its own caller, on a task of its own")]

mod world;

use std::time::Duration;

use redrive_core::policy::Spec;
use redrive_core::{Reason, Status};
use redrive_engine::Options;
use redrive_engine::clock::Clock;
use redrive_store::{BringForwardOutcome, CancelOutcome, Store};
use world::{Reply, START, World, attempts, tenant};

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The times of the sends, in milliseconds since the start.
fn sent(world: &World) -> Vec<u64> {
    world.dependency.sends().iter().map(|send| world.millis(send.at)).collect()
}

/// Waits, on simulated time, until the task is claimed.
async fn claimed(world: &World, task: redrive_core::TaskId) {
    while world.task(task).await.status != Status::InFlight {
        world.clock.sleep(ms(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_delayed_task_is_claimed_before_it_is_due_and_sent_at_that_very_moment() {
    let world = World::new().await;
    let task = world.submit_in(secs(1), "k", Spec::default()).await;
    claimed(&world, task.id).await;
    assert!(world.millis(world.clock.now()) < 1_000 && sent(&world).is_empty());
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.status, sent(&world)), (Status::Succeeded, vec![1_000]));
    assert_eq!(world.attempts(task.id).await[0].started_at, START.after(secs(1)));
}

#[tokio::test(start_paused = true)]
async fn a_lease_runs_from_the_due_time() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::Held(Box::new(Reply::Status(200)))]);
    let task = world.submit_in(secs(1), "k", Spec::default()).await;
    claimed(&world, task.id).await;
    let end = START.after(secs(1)).after(task.attempt_timeout).after(Options::default().lease_margin);
    assert_eq!(world.store.upkeep().expired_leases(end.before(ms(1)), 9).await.unwrap(), []);
    assert_eq!(world.store.upkeep().expired_leases(end, 9).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_before_its_time_when_the_clock_is_set_back() {
    for (back, by) in [(secs(3_600), "an hour"), (ms(500), "half a second")] {
        let world = World::new().await;
        world.clock.set_ahead(back);
        let task = world.submit_in(secs(1), "k", Spec::default()).await;
        let due = task.next_attempt_at.unwrap();
        claimed(&world, task.id).await;
        world.clock.set_ahead(Duration::ZERO);
        let ended = world.ended(task.id).await.task;
        assert_eq!((ended.status, ended.attempt_number), (Status::Succeeded, 1), "{by}");
        assert_eq!(sent(&world), [world.millis(due)], "{by}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_held_can_be_sent_now() {
    let world = World::new().await;
    let task = world.submit_in(secs(1), "k", Spec::default()).await;
    claimed(&world, task.id).await;
    let brought = world.engine.bring_forward(tenant(), task.id).await.unwrap();
    assert!(matches!(brought, BringForwardOutcome::Done(_)), "{brought:?}");
    world.ended(task.id).await;
    assert!(sent(&world)[0] < 1_000, "{:?}", sent(&world));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_held_lends_its_slot_unless_it_is_its_last_attempt() {
    for (max_attempts, is_lent) in [(2, true), (1, false)] {
        let world = World::with(Options { lane_concurrency: 1, ..Options::default() }).await;
        let quick = world.submit("quick", Spec::default()).await;
        world.ended(quick.id).await;
        let held = world.submit_in(secs(1), "held", attempts(max_attempts)).await;
        claimed(&world, held.id).await;
        let now = world.submit("now", Spec::default()).await;
        for task in [held.id, now.id] {
            world.ended(task).await;
        }
        let order: Vec<_> = world.dependency.sends().iter().map(|send| send.outbound.task).collect();
        let expected = if is_lent { [quick.id, now.id, held.id] } else { [quick.id, held.id, now.id] };
        assert_eq!(order, expected, "{max_attempts} attempts");
        let sent_at = sent(&world)[if is_lent { 2 } else { 1 }];
        assert_eq!(sent_at, 1_000, "{max_attempts} attempts");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_held_can_be_cancelled_and_costs_no_attempt() {
    let world = World::new().await;
    let task = world.submit_in(secs(1), "k", Spec::default()).await;
    claimed(&world, task.id).await;
    world.engine.cancel(tenant(), task.id).await.unwrap();
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.status, ended.attempt_number), (Status::Cancelled, 0));
    assert!(world.millis(ended.ended_at.unwrap()) < 1_000 && sent(&world).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cancel_stops_an_attempt_that_is_still_connecting() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::Connecting(Box::new(Reply::Status(200)))]);
    let task = world.submit("k", Spec::default()).await;
    world.dependency.asked().await;
    let cancelled = world.engine.cancel(tenant(), task.id).await.unwrap();
    let CancelOutcome::Done(answered) = cancelled else { panic!("{cancelled:?}") };
    assert_eq!((answered.status, answered.cancel_requested), (Status::InFlight, true), "it is not over yet");
    world.dependency.connect(1);
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.status, ended.attempt_number), (Status::Cancelled, 0), "nothing was sent, nothing counts");
    assert_eq!((world.dependency.withdrawn(), sent(&world)), (1, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_while_it_connects_holds_the_task_until_it_is_due() {
    let world = World::new().await;
    world.clock.set_ahead(secs(3_600));
    world.dependency.script("dependency", [Reply::Connecting(Box::new(Reply::Status(200)))]);
    let task = world.submit_in(secs(1), "k", attempts(1)).await;
    world.dependency.asked().await;
    world.clock.set_ahead(secs(3_590));
    world.dependency.connect(1);
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.status, ended.attempt_number), (Status::Succeeded, 1), "the first one was taken back");
    assert_eq!(
        (world.dependency.withdrawn(), sent(&world)),
        (1, vec![3_601_000]),
        "when the clock on the wall says so"
    );
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_while_it_connects_ends_the_task_unsent() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::Connecting(Box::new(Reply::Status(200)))]);
    let short = Spec { total_budget_ms: Some(5_000), attempt_timeout_ms: Some(5_000), ..Spec::default() };
    let task = world.submit("k", short).await;
    world.dependency.asked().await;
    world.clock.set_ahead(secs(6));
    world.dependency.connect(1);
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.status, ended.reason), (Status::Exhausted, Some(Reason::Deadline)));
    assert_eq!((ended.attempt_number, world.dependency.withdrawn()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_stop_gives_back_what_is_still_connecting_and_it_does_not_count() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::Connecting(Box::new(Reply::Status(200)))]);
    let task = world.submit("k", attempts(1)).await;
    world.dependency.asked().await;
    world.engine.stop().await;
    let returned = world.task(task.id).await;
    assert_eq!((returned.status, returned.attempt_number), (Status::Pending, 0));
    let world = world.restarted().await;
    assert_eq!(world.ended(task.id).await.task.status, Status::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_past_its_deadline_ends_within_seconds_though_its_lane_has_no_room() {
    let world = World::with(Options { lane_concurrency: 1, ..Options::default() }).await;
    let silent = Reply::After(secs(10_000), Box::new(Reply::Status(200)));
    world.dependency.script("dependency", [silent]);
    let patient = Spec { attempt_timeout_ms: Some(900_000), total_budget_ms: Some(80_000_000), ..Spec::default() };
    world.submit("hangs", patient).await;
    world.dependency.arrived(1).await;
    let short = Spec { total_budget_ms: Some(60_000), attempt_timeout_ms: Some(10_000), ..Spec::default() };
    let waiting = world.submit("waits", short.clone()).await;
    let later = world.submit_in(secs(30), "later", short).await;
    for task in [waiting, later] {
        let ended = world.ended(task.id).await.task;
        assert_eq!((ended.status, ended.reason), (Status::Exhausted, Some(Reason::Deadline)));
        assert_eq!(ended.attempt_number, 0);
        let late = ended.ended_at.unwrap().since(task.deadline_at);
        assert!(late <= secs(5), "{late:?} late");
    }
    assert_eq!((sent(&world).len(), world.engine.dead_letters()), (1, 2), "each raises its alert");
}

#[tokio::test(start_paused = true)]
async fn an_idle_engine_on_an_exclusive_store_asks_for_no_deadlines() {
    let world = World::new().await;
    let task = world.submit("k", Spec::default()).await;
    world.ended(task.id).await;
    let before = world.store.calls("end_overdue");
    world.clock.sleep(secs(3_600)).await;
    assert_eq!(world.store.calls("end_overdue"), before);
}
