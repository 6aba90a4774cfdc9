//! No dependency delays another: many slow, silent or refusing lanes beside a healthy one, as counts on simulated time.

#![allow(clippy::disallowed_methods, reason = "a test is its own caller, on a task of its own")]
#![allow(clippy::unwrap_used, reason = "what cannot be set up is a failed test")]

mod world;

use std::time::Duration;

use redrive_core::policy::Spec;
use redrive_core::{ErrorType, Status, TaskId};
use redrive_engine::Options;
use redrive_engine::clock::Clock;
use redrive_store::Store;
use world::{Reply, World, attempts, tenant, unguarded};

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Gives each of `lanes` dependencies a backlog of `tasks`; `reply` is the result of each of their calls.
async fn burden(world: &World, lanes: usize, tasks: usize, reply: &Reply) {
    for lane in 0..lanes {
        let name = format!("bad-{lane}");
        world.dependency.script(&name, std::iter::repeat_n(reply.clone(), tasks * 10));
    }
    burden_scripted(world, lanes, tasks).await;
}

/// Gives each of `lanes` dependencies, which have their scripts, a backlog of `tasks`.
async fn burden_scripted(world: &World, lanes: usize, tasks: usize) {
    for task in 0..tasks {
        let mut drafts = Vec::new();
        for lane in 0..lanes {
            let mut draft = world.draft(&format!("bad-{lane}-{task}"), Spec::default()).await;
            draft.lane = world::lane(&format!("bad-{lane}"));
            drafts.push(draft);
        }
        world.engine.submit(drafts).await.unwrap();
    }
}

/// The number of sends to bad dependencies so far.
fn bad_sends(world: &World) -> usize {
    world.dependency.sends().iter().filter(|send| send.outbound.lane.dependency.as_str().starts_with("bad")).count()
}

/// Submits `count` tasks to `dependency`, each when the one before has ended. Returns the longest time that one took.
async fn one_by_one(world: &World, dependency: &str, count: usize) -> Duration {
    let mut longest = Duration::ZERO;
    for number in 0..count {
        let begun = world.clock.elapsed();
        let task = world
            .submit_to(dependency, &format!("{dependency}-{number}-{:?}", world.clock.elapsed()), Spec::default())
            .await;
        assert_eq!(world.ended(task.id).await.task.status, Status::Succeeded);
        longest = longest.max(world.clock.elapsed() - begun);
    }
    longest
}

#[tokio::test(start_paused = true)]
async fn slow_and_silent_dependencies_cost_a_healthy_one_nothing_however_many_they_are() {
    let slow = Reply::After(secs(4), Box::new(Reply::Status(200)));
    let silent = Reply::After(secs(100), Box::new(Reply::Status(200)));
    for (lanes, tasks, reply) in [(40, 50, &slow), (40, 50, &silent), (1_000, 4, &slow), (1_000, 4, &silent)] {
        let world = World::new().await;
        assert_eq!(one_by_one(&world, "healthy", 20).await, Duration::ZERO);
        burden(&world, lanes, tasks, reply).await;
        for _ in 0..5 {
            world.clock.sleep(secs(3)).await;
            let longest = one_by_one(&world, &format!("new-at-{:?}", world.clock.elapsed()), 5).await;
            assert_eq!(longest, Duration::ZERO, "a new dependency beside {lanes} lanes, {reply:?}");
            let longest = one_by_one(&world, "healthy-again", 20).await;
            assert_eq!(longest, Duration::ZERO, "a known dependency beside {lanes} lanes, {reply:?}");
        }
        assert!(bad_sends(&world) >= lanes, "they are being worked on: {}", bad_sends(&world));
    }
}

#[tokio::test(start_paused = true)]
async fn dependencies_that_were_quick_and_fall_silent_cost_a_healthy_one_nothing() {
    // How many lanes, and whether all fall silent at one moment or one after the other.
    for (lanes, at_once) in [(40, true), (40, false), (200, true), (200, false), (1_000, true)] {
        let world = World::new().await;
        let silent = Reply::After(secs(100), Box::new(Reply::Status(200)));
        for lane in 0..lanes {
            let quick = if at_once { 40 } else { 10 + lane };
            let quick = std::iter::repeat_n(Reply::Status(200), quick);
            world.dependency.script(&format!("bad-{lane}"), quick.chain(std::iter::repeat_n(silent.clone(), 1_000)));
        }
        assert_eq!(one_by_one(&world, "healthy", 20).await, Duration::ZERO);
        burden_scripted(&world, lanes, if lanes < 1_000 { 240 } else { 60 }).await;
        for _ in 0..8 {
            world.clock.sleep(secs(1)).await;
            let longest = one_by_one(&world, "healthy", 20).await;
            assert_eq!(longest, Duration::ZERO, "beside {lanes} lanes, at once: {at_once}");
        }
        assert!(bad_sends(&world) > 40 * lanes.min(40), "they fell silent under load: {}", bad_sends(&world));
    }
}

#[tokio::test(start_paused = true)]
async fn a_backlog_of_a_healthy_dependency_drains_beside_slow_ones_as_if_it_were_alone() {
    // Calls of 5 ms in 128 slots: 2,000 tasks take 80 ms once all slots are earned.
    let mut alone = Duration::ZERO;
    for lanes in [0, 100] {
        let world = World::new().await;
        burden(&world, lanes, 20, &Reply::After(secs(4), Box::new(Reply::Status(200)))).await;
        world.clock.sleep(secs(10)).await;
        let quick = Reply::After(Duration::from_millis(5), Box::new(Reply::Status(200)));
        world.dependency.script("healthy", std::iter::repeat_n(quick, 2_000));
        let begun = world.clock.elapsed();
        let mut tasks: Vec<TaskId> = Vec::new();
        for number in 0..2_000 {
            tasks.push(world.submit_to("healthy", &format!("h{number}"), Spec::default()).await.id);
        }
        for task in tasks {
            world.ended(task).await;
        }
        let took = world.clock.elapsed() - begun;
        assert!(took < Duration::from_millis(300), "{took:?} beside {lanes} lanes");
        if lanes == 0 {
            alone = took;
        }
        assert!(took <= alone * 11 / 10, "{took:?} beside {lanes} lanes, {alone:?} alone");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dependency_that_is_down_is_tried_twice_a_second_and_not_as_fast_as_it_refuses() {
    for kind in [ErrorType::ConnectionRefused, ErrorType::ConnectionReset, ErrorType::Dns] {
        let world = World::with(unguarded()).await;
        burden(&world, 40, 50, &Reply::Error(kind)).await;
        world.clock.sleep(secs(10)).await;
        let sent = bad_sends(&world);
        assert!(sent <= 40 * (8 + 2 * 10), "{sent} sends in 10 s, {kind:?}");
        assert!(sent >= 40 * 2 * 9, "{sent} sends in 10 s, {kind:?}: they go on");
        assert_eq!(one_by_one(&world, "healthy", 20).await, Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dependency_that_comes_back_gets_its_backlog_within_seconds() {
    let world = World::with(unguarded()).await;
    world.dependency.script("dependency", (0..100).map(|_| Reply::Error(ErrorType::ConnectionRefused)));
    let mut tasks = Vec::new();
    for number in 0..1_000 {
        tasks.push(world.submit(&format!("k{number}"), attempts(50)).await.id);
    }
    for task in tasks {
        assert_eq!(world.ended(task).await.task.status, Status::Succeeded);
    }
    // 100 refusals at two a second.
    assert!(world.clock.elapsed() < secs(60), "{:?}", world.clock.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_slot_is_not_claimed_and_costs_no_attempt_when_the_process_dies() {
    for max_attempts in [1, 2] {
        let world = World::with(Options { lane_concurrency: 3, ..Options::default() }).await;
        for number in 0..5 {
            let known = world.submit(&format!("known-{number}"), Spec::default()).await;
            world.ended(known.id).await;
        }
        let silent = Reply::After(secs(100), Box::new(Reply::Status(200)));
        world.dependency.script("dependency", std::iter::repeat_n(silent, 1_000));
        for number in 0..500 {
            world.submit(&format!("k{number}"), attempts(max_attempts)).await;
        }
        world.dependency.arrived(5 + 3).await;
        let claimed = || async { world.store.reads().counts(tenant()).await.unwrap()[&Status::InFlight] };
        if max_attempts == 1 {
            assert_eq!(claimed().await, 3, "a last attempt is claimed into a slot or not at all");
        }
        world.clock.sleep(secs(15)).await;
        assert_eq!(claimed().await, 3, "what was claimed ahead of a slot that did not come has been given back");
        assert_eq!(world.dependency.sends().len(), 5 + 3);
    }
}

#[tokio::test(start_paused = true)]
async fn in_steady_state_every_claim_is_sent() {
    let world = World::new().await;
    let quick = || Reply::After(Duration::from_millis(20), Box::new(Reply::Status(200)));
    world.dependency.script("dependency", std::iter::repeat_with(quick).take(20_000));
    let mut tasks = Vec::new();
    for number in 0..5_000 {
        tasks.push(world.submit(&format!("k{number}"), Spec::default()).await.id);
    }
    for task in tasks {
        world.ended(task).await;
    }
    assert_eq!(world.dependency.sends().len(), 5_000);
    assert_eq!(world.store.calls("settle"), 5_000, "nothing that was claimed was given back");
}

#[tokio::test(start_paused = true)]
async fn slow_attempts_that_end_at_one_moment_are_settled_few_at_a_time_and_a_quick_one_does_not_wait_for_them() {
    let world = World::new().await;
    burden(&world, 200, 2, &Reply::After(secs(4), Box::new(Reply::Status(200)))).await;
    world.clock.sleep(secs(4) - Duration::from_millis(1)).await;
    assert_eq!(bad_sends(&world), 400, "all of them are under way");
    world.store.slow_down("settle", Duration::from_millis(10));
    world.clock.sleep(Duration::from_millis(2)).await;
    assert_eq!(world.store.most_at_once("settle"), 64, "of 400 that have ended");
    assert_eq!(one_by_one(&world, "healthy", 1).await, Duration::from_millis(10));
    // Of seven rounds of ten milliseconds, one and a bit are over.
    world.clock.sleep(Duration::from_millis(60)).await;
    let ended = world.store.reads().counts(tenant()).await.unwrap()[&Status::Succeeded];
    assert_eq!(ended, 401);
}
