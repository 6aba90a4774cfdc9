//! Crashes, lost leases, failing stores and stops: the engine's guarantees under faults.

#![allow(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod world;

use std::sync::Arc;
use std::time::Duration;

use redrive_core::idempotency::{ExecutionId, RecordKey, RequestHash, Reserve};
use redrive_core::policy::Spec;
use redrive_core::{ErrorType, Outcome, Reason, RecordName, Status, Task};
use redrive_engine::clock::Clock;
use redrive_engine::{Options, Steps};
use redrive_store::{Next, Reservation, Settled, Settlement, Store, memory::MemoryStore};
use world::{
    FailingStore, Hold, PausedClock, Reply, World, attempts, claim_as_another, lane, tenant, unguarded,
    world_with_a_task_in_the_store,
};

#[tokio::test(start_paused = true)]
async fn an_attempt_whose_worker_died_is_taken_over_and_counts() {
    let (world, id) = world_with_a_task_in_the_store(attempts(3)).await;
    let lost = claim_as_another(&world.store, world::START).await;
    assert_eq!(lost.task.attempt_number, 1);
    let world = world.restarted().await;
    let ended = world.ended(id).await.task;
    assert_eq!((ended.status, ended.attempt_number), (Status::Succeeded, 2));
    let log = world.attempts(id).await;
    assert_eq!(log[0].outcome, Outcome::Unknown);
    assert_eq!(log[0].error.as_ref().unwrap().kind, ErrorType::Interrupted);
    assert_eq!(log[0].duration, None);
    let first = &world.dependency.sends()[0];
    assert!(first.at >= lost.lease.until, "not before the lease ran out");
    assert_eq!(first.outbound.attempt, 2);
}

#[tokio::test(start_paused = true)]
async fn a_last_attempt_whose_worker_died_ends_as_unknown() {
    let (world, id) = world_with_a_task_in_the_store(attempts(1)).await;
    claim_as_another(&world.store, world::START).await;
    let world = world.restarted().await;
    let ended = world.ended(id).await.task;
    assert_eq!((ended.status, ended.reason), (Status::Exhausted, Some(Reason::OutcomeUnknown)));
    assert_eq!(world.dependency.sends().len(), 0, "the one send that was allowed may have happened");
    assert_eq!(world.engine.dead_letters(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_wakes_up_after_its_lease_changes_nothing() {
    let (world, id) = world_with_a_task_in_the_store(attempts(3)).await;
    let paused = claim_as_another(&world.store, world::START).await;
    let world = world.restarted().await;
    world.ended(id).await;
    let late = Settlement {
        tenant: tenant(),
        id,
        token: paused.lease.token,
        attempt: None,
        next: Next::End { status: Status::Failed, reason: None, answer: None },
        at: world.engine.now(),
    };
    assert_eq!(world.store.tasks().settle(vec![late]).await.unwrap(), [Settled::LeaseLost]);
    assert_eq!(world.task(id).await.status, Status::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_restart_finds_all_pending_work_in_the_store() {
    let world = World::new().await;
    world.engine.stop().await;
    let mut ids = Vec::new();
    for number in 0..300 {
        let mut draft = world.draft(&format!("k{number}"), Spec::default()).await;
        draft.lane = lane(&format!("dependency-{}", number % 7));
        draft.not_before = Some(world::START.after(Duration::from_secs(number % 50)));
        ids.push(world.submit_draft(draft).await.id);
    }
    let world = world.restarted().await;
    for id in ids {
        assert_eq!(world.ended(id).await.task.status, Status::Succeeded);
    }
    assert_eq!(world.dependency.sends().len(), 300);
}

#[tokio::test(start_paused = true)]
async fn a_settle_is_tried_again_until_the_store_recovers() {
    let world = World::new().await;
    world.store.fail("settle", 10);
    let task = world.submit("k", Spec::default()).await;
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.status, ended.attempt_number), (Status::Succeeded, 1));
    assert_eq!(world.dependency.sends().len(), 1, "the dependency is not asked again for a slow store");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_long_costs_an_attempt_but_no_task() {
    let world = World::new().await;
    world.store.fail("settle", 1_000);
    let task = world.submit("k", Spec::default()).await;
    let ended = world.ended(task.id).await.task;
    assert_eq!(ended.status, Status::Succeeded);
    let sends = world.dependency.sends();
    assert!((2..=6).contains(&sends.len()), "the lease ran out and the rescuer took over: {}", sends.len());
    assert_eq!(ended.attempt_number as usize, sends.len());
}

#[tokio::test(start_paused = true)]
async fn claims_go_on_when_the_store_recovers() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::Status(503)]);
    world.store.fail("claim", 20);
    let task = world.submit("k", Spec::default()).await;
    assert_eq!(world.ended(task.id).await.task.status, Status::Succeeded);
    assert_eq!(world.store.failures_left("claim"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_submit_that_failed_leaves_nothing_behind() {
    let world = World::with(Options { lane_concurrency: 1, ..Options::default() }).await;
    world.store.fail("submit", 1);
    let draft = world.draft("k", Spec::default()).await;
    assert!(world.engine.submit(vec![draft.clone()]).await.is_err());
    let task = world.submit_draft(draft).await;
    assert_eq!(task.status, Status::InFlight, "the room of the failed submit was given back");
    world.ended(task.id).await;
    assert_eq!(world.dependency.sends().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_start_is_tried_again_until_the_store_can_be_read() {
    let (world, id) = world_with_a_task_in_the_store(Spec::default()).await;
    world.store.fail("pending_lanes", 5);
    world.store.fail("expired_leases", 5);
    let world = world.restarted().await;
    assert_eq!(world.ended(id).await.task.status, Status::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_attempts_finish() {
    let world = World::new().await;
    let slow = Reply::After(Duration::from_secs(9), Box::new(Reply::Status(200)));
    world.dependency.script("dependency", [slow]);
    let task = world.submit("k", Spec::default()).await;
    world.dependency.arrived(1).await;
    world.engine.stop().await;
    assert_eq!(world.task(task.id).await.status, Status::Succeeded);
    assert_eq!(world.engine.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stop_returns_what_does_not_finish_in_time() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::Held(Box::new(Reply::Status(200)))]);
    let task = world.submit("k", Spec::default()).await;
    world.dependency.arrived(1).await;
    world.engine.stop().await;
    assert_eq!(world.millis(world.engine.now()), 10_000, "the grace, and not the attempt's timeout");
    assert_eq!(world.task(task.id).await.status, Status::Pending);
    assert_eq!(world.attempts(task.id).await[0].outcome, Outcome::Unknown);
    let world = world.restarted().await;
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.status, ended.attempt_number), (Status::Succeeded, 2));
}

#[tokio::test(start_paused = true)]
async fn a_stopping_engine_claims_nothing() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::Status(503)]);
    let task = world.submit("k", Spec::default()).await;
    world.dependency.arrived(1).await;
    world.engine.stop().await;
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert_eq!(world.dependency.sends().len(), 1);
    assert_eq!(world.task(task.id).await.status, Status::Pending);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waited_past_its_deadline_is_not_sent() {
    let world = World::with(Options { lane_concurrency: 1, ..Options::default() }).await;
    let slow = Reply::After(Duration::from_secs(20), Box::new(Reply::Status(200)));
    world.dependency.script("dependency", [slow]);
    let first = world.submit("slow", Spec::default()).await;
    let short = Spec { total_budget_ms: Some(5_000), ..Spec::default() };
    let second = world.submit("short", short).await;
    world.ended(first.id).await;
    let ended = world.ended(second.id).await.task;
    assert_eq!((ended.status, ended.reason), (Status::Exhausted, Some(Reason::Deadline)));
    assert_eq!(ended.attempt_number, 0, "nothing was sent, so no attempt is counted");
    assert_eq!(world.dependency.sends().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn ended_tasks_are_removed_after_their_retention() {
    let world = World::new().await;
    let task = world.submit("k", Spec::default()).await;
    world.ended(task.id).await;
    let day = Duration::from_secs(24 * 3600);
    world.clock.sleep(day * 6).await;
    assert!(world.store.reads().task(tenant(), task.id).await.unwrap().is_some());
    world.clock.sleep(day * 2).await;
    assert!(world.store.reads().task(tenant(), task.id).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn records_that_have_expired_are_removed() {
    let world = World::new().await;
    let hour = Duration::from_secs(3600);
    let key = RecordKey {
        tenant: tenant(),
        operation: "pay".parse().unwrap(),
        name: RecordName::try_new("order-7").unwrap(),
    };
    let ask = Reserve {
        request_hash: RequestHash([1; 32]),
        execution: ExecutionId::from_u128(1),
        lease: hour,
        retention: 24 * hour,
        is_complete: false,
    };
    world.store.records().reserve_one(key.clone(), ask, world.engine.now()).await.unwrap();
    world.clock.sleep(24 * hour).await;
    assert!(world.store.records().read(key, world.engine.now()).await.unwrap().is_some());
    world.clock.sleep(3 * hour).await;
    let left = world.store.records().clean(world.engine.now(), 10).await.unwrap();
    assert_eq!(left, 0, "the engine has removed it already");
}

#[tokio::test(start_paused = true)]
async fn ended_tasks_are_removed_while_there_are_more_expired_records_than_one_pass_takes() {
    let steps = Steps { clean: 1, ..Steps::default() };
    let world = World::with(Options { steps, ..unguarded() }).await;
    let task = world.submit("k", Spec::default()).await;
    world.ended(task.id).await;
    let (second, week) = (Duration::from_secs(1), Duration::from_secs(7 * 24 * 3600));
    let reservation = |at: u128| Reservation {
        key: RecordKey {
            tenant: tenant(),
            operation: "pay".parse().unwrap(),
            name: RecordName::try_new(format!("order-{at}")).unwrap(),
        },
        ask: Reserve {
            request_hash: RequestHash([1; 32]),
            execution: ExecutionId::from_u128(at),
            lease: second,
            retention: week - second,
            is_complete: false,
        },
    };
    world.store.records().reserve((0..1_500).map(reservation).collect(), world.engine.now()).await.unwrap();
    world.clock.sleep(week).await;
    let mut seconds = 0;
    while world.store.reads().task(tenant(), task.id).await.unwrap().is_some() {
        world.clock.sleep(second).await;
        seconds += 1;
        assert!(seconds < 1_000, "the task is not removed");
    }
    let counts = async || world.store.records().counts(tenant(), None, 1, 10_000).await.unwrap();
    // One pass takes 1,000, and the next one may have begun.
    let left = counts().await[0].in_progress;
    assert!((1..=500).contains(&left), "the task waited for all records, or a pass is shorter: {left}");
    // The rest follows without the pause between two passes.
    world.clock.sleep(second * 60).await;
    assert!(counts().await.is_empty(), "{:?}", counts().await);
}

#[tokio::test(start_paused = true)]
async fn a_configuration_without_a_lease_margin_does_not_start() {
    let clock = PausedClock::start();
    let store = Arc::new(FailingStore::new(MemoryStore::new()));
    let parts = redrive_engine::Parts {
        clock: redrive_engine::CommonClock::new(clock.clone(), &*store),
        entropy: Arc::new(world::Half::default()),
        spawner: Arc::new(redrive_engine::spawner::TokioSpawner),
        store,
        transport: Arc::new(world::Wire(Arc::new(world::Scripted::new(clock)))),
        bodies: None,
        sinks: Vec::new(),
        alert_relay: None,
    };
    let options = Options { lease_margin: Duration::ZERO, ..Options::default() };
    let error = redrive_engine::start(parts, options).await.err().unwrap().to_string();
    assert!(error.starts_with("lease_margin must be at least 1s"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn all_due_work_settles_once_the_faults_stop() {
    let world = World::with(world::unguarded()).await;
    let mut ids = Vec::new();
    for number in 0..200 {
        let reply = match number % 4 {
            0 => Reply::Status(503),
            1 => Reply::Error(ErrorType::ConnectionReset),
            2 => Reply::After(Duration::from_secs(60), Box::new(Reply::Status(200))),
            _ => Reply::Status(200),
        };
        world.dependency.script("dependency", [reply]);
        for method in ["claim", "settle", "expired_leases"] {
            world.store.fail(method, number % 3);
        }
        ids.push(world.submit(&format!("k{number}"), Spec::default()).await.id);
    }
    for id in ids {
        assert_eq!(world.ended(id).await.task.status, Status::Succeeded);
    }
    assert!(world.engine.now() < world::START.after(Duration::from_secs(600)), "{:?}", world.engine.now());
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_does_not_strand_its_task() {
    let world = World::new().await;
    let draft = world.draft("k", Spec::default()).await;
    {
        let mut submitting = std::pin::pin!(world.engine.submit(vec![draft.clone()]));
        // Polled once, so the call is under way, then dropped.
        assert!(
            std::future::poll_fn(|context| std::task::Poll::Ready(submitting.as_mut().poll(context)))
                .await
                .is_pending()
        );
    }
    world.dependency.arrived(1).await;
    let replayed = world.engine.submit(vec![draft]).await.unwrap();
    let redrive_store::Submitted::Replayed(task) = &replayed[0] else { panic!("{replayed:?}") };
    assert_eq!(world.ended(task.id).await.task.status, Status::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_is_lost_is_read_from_the_store_again() {
    let world = World::new().await;
    let mut draft = world.draft("later", attempts(1)).await;
    draft.not_before = Some(world.engine.now().after(Duration::from_secs(60)));
    let task = world.submit_draft(draft).await;
    world.store.fail("pending_lanes", 2);
    world.engine.rebuild_schedule();
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.status, world.millis(ended.ended_at.unwrap())), (Status::Succeeded, 60_000));
    assert_eq!(world.store.failures_left("pending_lanes"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_retry_whose_settle_lost_its_answer_is_sent_when_it_is_due() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::Status(503)]);
    world.store.lose_answers("settle", 1);
    let task = world.submit("k", Spec::default()).await;
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.status, ended.attempt_number), (Status::Succeeded, 2));
    let sent: Vec<u64> = world.dependency.sends().iter().map(|send| world.millis(send.at)).collect();
    assert_eq!(sent, [0, 500]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_not_forgotten_if_the_store_fails_from_its_settle_until_the_lease_runs_out() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::Status(503)]);
    world.store.lose_answers("settle", 1);
    // The waits between the tries add up to more than the lease lasts.
    world.store.fail("settle", 18);
    let task = world.submit("k", Spec::default()).await;
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.status, ended.last_error.unwrap().kind), (Status::Succeeded, ErrorType::HttpStatus));
    let second = world.millis(world.dependency.sends()[1].at);
    assert!((45_000..50_000).contains(&second), "once the lease of 45 s has run out: {second}");
}

#[tokio::test(start_paused = true)]
async fn a_takeover_whose_settle_lost_its_answer_is_followed_up() {
    let (world, id) = world_with_a_task_in_the_store(attempts(3)).await;
    let lost = claim_as_another(&world.store, world::START).await;
    world.clock.sleep(lost.lease.until.since(world::START)).await;
    world.store.lose_answers("settle", 1);
    // On an exclusive store no periodic look finds what was missed.
    world.store.own();
    let world = world.restarted().await;
    assert_eq!(world.ended(id).await.task.status, Status::Succeeded);
    assert_eq!(world.attempts(id).await[0].outcome, Outcome::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_replay_of_a_dead_letter_survives_a_restart() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::Status(400)]);
    let task = world.submit("k", Spec::default()).await;
    world.ended(task.id).await;
    world.engine.stop().await;
    world.engine.replay(tenant(), task.id).await.unwrap();
    assert_eq!(world.task(task.id).await.status, Status::Pending);
    let world = world.restarted().await;
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.status, ended.run, ended.attempt_number), (Status::Succeeded, 2, 2));
}

/// A task that is due in 1 s and that the store has claimed; the answer to the claim is held back.
async fn claim_held_back(world: &World, spec: Spec) -> (Task, Arc<Hold>) {
    let mut draft = world.draft("held-back", spec).await;
    draft.not_before = Some(world.engine.now().after(Duration::from_secs(1)));
    let hold = world.store.hold_answer("claim");
    let task = world.submit_draft(draft).await;
    hold.reached().await;
    (task, hold)
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_came_late_is_given_back_if_its_lease_could_run_out_during_the_attempt() {
    // Claimed 3 ms before it was due at 1 s. The margin is 15 s from there; half of it is for the settlement. The cases
    // are: seconds of delay, when it was sent.
    for (late, sent_at) in [(7, 7_997), (8, 8_997)] {
        let world = World::new().await;
        let (task, hold) = claim_held_back(&world, attempts(1)).await;
        world.clock.sleep(Duration::from_secs(late)).await;
        hold.release();
        let ended = world.ended(task.id).await.task;
        assert_eq!((ended.status, ended.attempt_number), (Status::Succeeded, 1), "the claim given back does not count");
        let sends: Vec<u64> = world.dependency.sends().iter().map(|send| world.millis(send.at)).collect();
        assert_eq!(sends, [sent_at], "{late} s late");
        let attempt = &world.attempts(task.id).await[0];
        assert_eq!(world.millis(attempt.started_at), sent_at, "{late} s late");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_came_after_its_lease_is_taken_over_however_late_it_is() {
    // The lease lasts for 45 s. Nothing else is going on that could make the rescuer look.
    for late in [46, 100, 10_000] {
        let world = World::new().await;
        let (task, hold) = claim_held_back(&world, attempts(2)).await;
        world.clock.sleep(Duration::from_secs(late)).await;
        hold.release();
        let ended = world.ended(task.id).await.task;
        assert_eq!((ended.status, ended.attempt_number), (Status::Succeeded, 2), "{late} s late");
        assert_eq!(world.attempts(task.id).await[0].outcome, Outcome::Unknown, "{late} s late");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_cannot_be_taken_over_holds_up_no_other() {
    let (world, first) = world_with_a_task_in_the_store(attempts(1)).await;
    let second = world.submit("second", attempts(1)).await.id;
    for _ in 0..2 {
        claim_as_another(&world.store, world::START).await;
    }
    let world = world.restarted().await;
    world.clock.sleep(Duration::from_secs(40)).await;
    world.store.fail("settle", 1);
    let (first, second) = (world.ended(first).await.task, world.ended(second).await.task);
    assert_eq!([first.reason, second.reason], [Some(Reason::OutcomeUnknown); 2]);
    let apart = first.ended_at.unwrap().since(second.ended_at.unwrap());
    assert_eq!(apart, Duration::from_secs(5), "the second was not kept waiting until the next look");
}

#[tokio::test(start_paused = true)]
async fn an_embedded_store_takes_over_what_was_left_and_nothing_that_is_still_being_worked_on() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::Held(Box::new(Reply::Status(200)))]);
    let under_way = world.submit("under-way", attempts(2)).await;
    world.dependency.arrived(1).await;
    let (left, hold) = claim_held_back(&world, attempts(1)).await;
    // Both leases have expired by the wall clock.
    world.clock.set_ahead(Duration::from_secs(3_600));
    hold.release();
    assert_eq!(world.ended(left.id).await.task.reason, Some(Reason::OutcomeUnknown));
    world.dependency.release(1);
    let ended = world.ended(under_way.id).await.task;
    assert_eq!((ended.status, ended.attempt_number), (Status::Succeeded, 1));
}
