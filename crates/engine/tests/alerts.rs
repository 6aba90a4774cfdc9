//! Every dead letter raises its alert, at least once, whatever crashes (invariant 9).

#![allow(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod world;

use std::time::Duration;

use redrive_core::policy::Spec;
use redrive_core::{Class, Reason, Status, Timestamp};
use redrive_engine::clock::Clock;
use redrive_store::{ClaimRequest, LaneRoom, LeaseTerms, Next, Settlement, Store};
use world::{Log, Reply, World, attempts, claim_as_another, lane, tenant, world_with_a_task_in_the_store};

/// How many dead letters have an alert that is not confirmed.
async fn unconfirmed(world: &World) -> usize {
    world.store.upkeep().pending_alerts(Timestamp::MAX, 100_000).await.unwrap().len()
}

/// Waits until every alert is confirmed, for `at_most` of paused time.
async fn all_confirmed(world: &World, at_most: Duration) {
    let until = world.engine.now().after(at_most);
    while unconfirmed(world).await > 0 {
        assert!(world.engine.now() < until, "not confirmed within {at_most:?}");
        world.clock.sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_raises_one_alert_with_all_its_fields_and_confirms_it() {
    let (log, world) = (Log::watch(), World::new().await);
    world.dependency.script("dependency", [Reply::Status(503), Reply::Status(400)]);
    let task = world.submit("k", attempts(3)).await;
    world.ended(task.id).await;
    all_confirmed(&world, Duration::from_secs(1)).await;
    world.clock.sleep(Duration::from_secs(3600)).await;
    world.restarted().await;
    let alerts = log.alerts();
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    let id = task.id.to_string();
    for (field, expected) in [
        ("alert", "dead-letter"),
        ("correlation_id", id.as_str()),
        ("tenant", "default"),
        ("dependency", "dependency"),
        ("status", "FAILED"),
        ("reason", "not-retryable"),
        ("attempt", "2"),
        ("run", "1"),
        ("max_attempts", "3"),
        ("idempotency_key", "k"),
        ("message", "dead letter"),
    ] {
        assert_eq!(alerts[0].get(field).map(String::as_str), Some(expected), "{field}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_alert_that_a_crash_cut_off_is_raised_at_the_next_start() {
    let (log, world) = (Log::watch(), World::new().await);
    world.dependency.script("dependency", [Reply::Status(400)]);
    // The commit happens, and the process that waits for it never continues.
    let hold = world.store.hold_answer("settle");
    let task = world.submit("k", Spec::default()).await;
    hold.reached().await;
    assert_eq!((world.task(task.id).await.status, log.alerts().len()), (Status::Failed, 0));
    let next = world.restarted().await;
    assert_eq!(next.engine.dead_letters(), 1);
    assert_eq!(log.alerts()[0]["correlation_id"], task.id.to_string());
    all_confirmed(&next, Duration::from_secs(1)).await;
    assert_eq!(next.restarted().await.engine.dead_letters(), 0, "once confirmed, never again");
    assert_eq!(log.alerts().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_dead_letter_of_a_worker_that_died_on_its_last_attempt_raises_the_same_alert() {
    let log = Log::watch();
    let (world, id) = world_with_a_task_in_the_store(attempts(1)).await;
    claim_as_another(&world.store, world::START).await;
    let world = world.restarted().await;
    world.ended(id).await;
    let alerts = log.alerts();
    assert_eq!((alerts.len(), alerts[0]["reason"].as_str()), (1, "outcome-unknown"));
    all_confirmed(&world, Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn an_alert_whose_confirmation_fails_is_confirmed_later_and_not_raised_twice() {
    let (log, world) = (Log::watch(), World::new().await);
    world.store.fail("confirm_alerts", 20);
    world.dependency.script("dependency", [Reply::Status(400), Reply::Status(400)]);
    for key in ["a", "b"] {
        let task = world.submit(key, Spec::default()).await;
        world.ended(task.id).await;
    }
    assert_eq!((log.alerts().len(), unconfirmed(&world).await), (2, 2));
    all_confirmed(&world, Duration::from_secs(60)).await;
    world.clock.sleep(Duration::from_secs(3600)).await;
    assert_eq!(log.alerts().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_alert_that_was_never_confirmed_is_raised_again_rather_than_lost() {
    let (log, world) = (Log::watch(), World::new().await);
    world.store.fail("confirm_alerts", usize::MAX);
    world.dependency.script("dependency", [Reply::Status(400)]);
    let task = world.submit("k", Spec::default()).await;
    world.ended(task.id).await;
    world.engine.stop().await;
    assert_eq!((log.alerts().len(), unconfirmed(&world).await), (1, 1), "a stop does not wait for a store that fails");
    world.store.fail("confirm_alerts", 0);
    let next = world.restarted().await;
    all_confirmed(&next, Duration::from_secs(1)).await;
    assert_eq!(log.alerts().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_stop_confirms_the_alerts_of_the_last_attempts() {
    let (log, world) = (Log::watch(), World::new().await);
    let slow = Reply::After(Duration::from_secs(5), Box::new(Reply::Status(400)));
    world.dependency.script("dependency", [Reply::Status(400), slow]);
    // The first alert's confirmation takes long: the second one's has to wait for it.
    let hold = world.store.hold_answer("confirm_alerts");
    for key in ["a", "b"] {
        world.submit(key, Spec::default()).await;
    }
    hold.reached().await;
    let slow_store = async {
        world.clock.sleep(Duration::from_secs(8)).await;
        assert_eq!((log.alerts().len(), unconfirmed(&world).await), (2, 1));
        hold.release();
    };
    tokio::join!(world.engine.stop(), slow_store);
    assert_eq!(unconfirmed(&world).await, 0);
    world.restarted().await;
    assert_eq!(log.alerts().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_whose_settle_lost_its_answer_still_raises_its_alert() {
    let (log, world) = (Log::watch(), World::new().await);
    let slow = Reply::After(Duration::from_secs(1), Box::new(Reply::Status(400)));
    world.dependency.script("dependency", [slow]);
    world.store.lose_answers("settle", 1);
    let task = world.submit("k", Spec::default()).await;
    assert_eq!(world.ended(task.id).await.task.status, Status::Failed);
    assert_eq!(
        world.millis(world.engine.now()),
        1_150,
        "the caller that waited was told when the second try was answered"
    );
    world.clock.sleep(Duration::from_secs(3600)).await;
    assert_eq!((log.alerts().len(), world.engine.dead_letters()), (1, 1));
    assert_eq!(world.store.calls("pending_alerts"), 2, "at the start, and once because of the doubt");
    assert_eq!(unconfirmed(&world).await, 0);
}

#[tokio::test(start_paused = true)]
async fn what_another_process_left_without_its_alert_is_found_on_a_shared_store() {
    let log = Log::watch();
    let slow = Spec { attempt_timeout_ms: Some(100_000), ..Spec::default() };
    let (world, id) = world_with_a_task_in_the_store(slow).await;
    let held = claim_as_another(&world.store, world::START).await;
    let world = world.restarted().await;
    // Ten seconds before the next look.
    world.clock.sleep(Duration::from_secs(50)).await;
    let end = Settlement {
        tenant: tenant(),
        id,
        token: held.lease.token,
        attempt: None,
        next: Next::End { status: Status::Exhausted, reason: Some(Reason::Deadline), answer: None },
        at: world.engine.now(),
    };
    world.store.tasks().settle(vec![end]).await.unwrap();
    world.clock.sleep(Duration::from_secs(29)).await;
    assert_eq!(log.alerts().len(), 0, "the node that ended it may be about to say so");
    all_confirmed(&world, Duration::from_secs(90)).await;
    world.clock.sleep(Duration::from_secs(3600)).await;
    let alerts = log.alerts();
    assert_eq!((alerts.len(), alerts[0]["reason"].as_str(), alerts[0]["attempt"].as_str()), (1, "deadline", "0"));
}

#[tokio::test(start_paused = true)]
async fn an_idle_engine_on_an_exclusive_store_looks_for_no_alerts() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::Status(400)]);
    let task = world.submit("k", Spec::default()).await;
    world.ended(task.id).await;
    world.clock.sleep(Duration::from_secs(24 * 3600)).await;
    assert_eq!((world.store.calls("pending_alerts"), world.store.calls("confirm_alerts")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn alerts_are_looked_for_until_the_store_can_be_read() {
    let (log, world) = (Log::watch(), World::new().await);
    world.dependency.script("dependency", [Reply::Status(400)]);
    let hold = world.store.hold_answer("settle");
    world.submit("k", Spec::default()).await;
    hold.reached().await;
    world.store.fail("pending_alerts", 3);
    let next = world.restarted().await;
    world.clock.sleep(Duration::from_secs(70)).await;
    assert_eq!((next.store.failures_left("pending_alerts"), log.alerts().len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn more_alerts_than_the_queue_holds_are_all_raised() {
    const MANY: u64 = 10_700;
    let world = World::new().await;
    world.engine.stop().await;
    let mut drafts = Vec::new();
    for number in 0..MANY {
        drafts.push(world.draft(&format!("k{number}"), Spec::default()).await);
    }
    world.engine.submit(drafts).await.unwrap();
    let rooms = vec![LaneRoom { lane: lane("dependency"), class: Class::First, slots: MANY as usize, ahead: 0 }];
    let (lease, now) = (LeaseTerms { margin: Duration::from_secs(15) }, world.engine.now());
    let request = ClaimRequest { rooms, most: MANY as usize, due_by: now, lease, now };
    let claimed = world.store.tasks().claim(request).await.unwrap().claimed;
    let ends = claimed.iter().map(|claimed| Settlement {
        tenant: tenant(),
        id: claimed.task.id,
        token: claimed.lease.token,
        attempt: None,
        next: Next::End { status: Status::Failed, reason: Some(Reason::NotRetryable), answer: None },
        at: world.engine.now(),
    });
    world.store.tasks().settle(ends.collect()).await.unwrap();
    let world = world.restarted().await;
    assert_eq!(world.engine.dead_letters(), 10_000);
    all_confirmed(&world, Duration::from_secs(90)).await;
    assert_eq!(world.engine.dead_letters(), MANY);
}

#[tokio::test(start_paused = true)]
async fn an_alert_that_a_crash_cut_off_is_raised_even_if_the_clock_was_set_back_since() {
    let (log, world) = (Log::watch(), World::new().await);
    world.clock.set_ahead(Duration::from_secs(600));
    world.dependency.script("dependency", [Reply::Status(400)]);
    let hold = world.store.hold_answer("settle");
    world.submit("k", Spec::default()).await;
    hold.reached().await;
    world.clock.set_ahead(Duration::ZERO);
    // The first look fails, and the next one comes when the dead letter has, by the clock, not ended yet.
    world.store.fail("pending_alerts", 1);
    let next = world.restarted().await;
    assert_eq!(log.alerts().len(), 0);
    all_confirmed(&next, Duration::from_secs(120)).await;
    assert_eq!(log.alerts().len(), 1);
}
