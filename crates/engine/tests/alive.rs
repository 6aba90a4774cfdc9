//! No failure is silent and no wait is endless: loops that panic, policies that are lost, a store that is unavailable.

#![allow(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod world;

use std::time::Duration;

use redrive_core::policy::Spec;
use redrive_core::{Reason, Status};
use redrive_engine::Options;
use redrive_engine::clock::Clock;
use redrive_store::{ReplayOutcome, Store};
use world::{Reply, World, attempts, tenant, unguarded};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_loop_that_panics_is_told_by_its_name() {
    for (method, name) in [
        ("claim", "claimer"),
        ("pending_lanes", "rebuilder"),
        ("expired_leases", "rescuer"),
        ("end_overdue", "overdue"),
        ("clean", "cleaner"),
        ("confirm_alerts", "announcer"),
    ] {
        let world = World::new().await;
        assert_eq!(world.engine.dead(), None);
        // On a shared store every loop queries it by itself.
        world.store.share();
        world.store.panic_in(method);
        world.engine.rebuild_schedule();
        world.submit_in(SECOND, "k", Spec::default()).await;
        world.dependency.script("other", [Reply::Status(400)]);
        world.submit_to("other", "l", Spec::default()).await;
        assert_eq!(world.engine.died().await, format!("the engine's {name}"));
        assert_eq!(world.engine.dead(), Some(name));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_no_death() {
    let world = World::new().await;
    world.submit("k", Spec::default()).await;
    world.engine.stop().await;
    world.clock.sleep(SECOND).await;
    assert_eq!(world.engine.dead(), None);
}

#[tokio::test(start_paused = true)]
async fn a_task_with_an_invalid_policy_is_a_dead_letter_and_can_be_replayed() {
    let world = World::new().await;
    world.store.damage("version", 1);
    let task = world.submit_in(SECOND, "k", attempts(1)).await;
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.status, ended.reason), (Status::Failed, Some(Reason::PolicyLost)));
    assert_eq!((ended.attempt_number, world.dependency.sends().len()), (0, 0), "nothing was sent, nothing counts");
    assert_eq!(world.engine.dead_letters(), 1);
    assert!(matches!(world.engine.replay(tenant(), task.id).await.unwrap(), ReplayOutcome::Done(_)));
    assert_eq!(world.ended(task.id).await.task.status, Status::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_cannot_be_read_just_now_costs_no_attempt_and_holds_up_no_other_task() {
    let world = World::new().await;
    world.store.fail("version", 5);
    let waiting = world.submit_in(SECOND, "k", attempts(1)).await;
    world.dependency.script("other", [Reply::Status(200)]);
    let other = world.submit_to("other", "l", Spec::default()).await;
    assert_eq!(world.ended(other.id).await.task.status, Status::Succeeded);
    let ended = world.ended(waiting.id).await.task;
    assert_eq!((ended.status, ended.attempt_number), (Status::Succeeded, 1));
    assert_eq!(world.store.failures_left("version"), 0);
}

#[tokio::test(start_paused = true)]
async fn many_lost_policies_at_the_head_do_not_stop_the_rescuer() {
    let world = World::with(Options { lane_concurrency: 400, ..unguarded() }).await;
    let silent = Reply::After(1_000 * SECOND, Box::new(Reply::Status(200)));
    // Quick first, so that the lane has slots for all of them.
    let quick = std::iter::repeat_n(Reply::Status(200), 500);
    world.dependency.script("dependency", quick.chain(std::iter::repeat_n(silent, 301)));
    for number in 0..500 {
        let task = world.submit(&format!("quick-{number}"), Spec::default()).await;
        world.ended(task.id).await;
    }
    let mut tasks = Vec::new();
    for number in 0..301 {
        tasks.push(world.submit(&format!("k{number}"), attempts(3)).await.id);
    }
    world.dependency.arrived(500 + 301).await;
    world.store.damage("version", 300);
    // A second engine: the first one counts as dead, because its attempts outlive their leases.
    world.store.share();
    let other = world.restarted().await;
    let (mut lost, mut succeeded) = (0, 0);
    for id in tasks {
        match other.ended(id).await.task {
            task if task.reason == Some(Reason::PolicyLost) => lost += 1,
            task if task.status == Status::Succeeded => succeeded += 1,
            task => panic!("{task:?}"),
        }
    }
    assert_eq!((lost, succeeded), (300, 1));
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_soon_after_its_grace_though_the_store_is_away() {
    for is_hanging in [false, true] {
        let world = World::new().await;
        world.dependency.script("dependency", [Reply::After(2 * SECOND, Box::new(Reply::Status(200)))]);
        let task = world.submit("k", Spec::default()).await;
        world.dependency.arrived(1).await;
        match is_hanging {
            true => drop(world.store.hold_answer("settle")),
            false => world.store.fail("settle", usize::MAX),
        }
        let begun = world.clock.elapsed();
        world.engine.stop().await;
        let took = world.clock.elapsed() - begun;
        assert!(took <= 16 * SECOND, "it took {took:?}, hanging: {is_hanging}");
        world.store.fail("settle", 0);
        // As a store does whose other owner is gone: it lets leases expire.
        world.store.share();
        let world = world.restarted().await;
        assert_eq!(world.ended(task.id).await.task.status, Status::Succeeded, "and nothing was lost");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_store_is_not_made_worse_by_those_who_wait_for_it() {
    let world = World::new().await;
    world.dependency.script("dependency", std::iter::repeat_n(Reply::Status(200), 1_000));
    for number in 0..200 {
        let task = world.submit(&format!("quick-{number}"), Spec::default()).await;
        world.ended(task.id).await;
    }
    let settled = world.store.calls("settle");
    world.store.fail("settle", usize::MAX);
    for number in 0..100 {
        world.submit(&format!("k{number}"), Spec::default()).await;
    }
    world.clock.sleep(10 * SECOND).await;
    let tried = world.store.calls("settle") - settled;
    assert!((100..=1_000).contains(&tried), "{tried} tries of 100 settlements in 10 s");
    world.store.fail("settle", 0);
    world.clock.sleep(10 * SECOND).await;
    assert_eq!(world.store.reads().counts(tenant()).await.unwrap().get(&Status::Succeeded), Some(&300));
}
