//! The life of a task in the engine, from its submission to its end.

#![allow(clippy::disallowed_methods, reason = "a test is its own caller, on a task of its own")]

mod world;

use std::time::Duration;

use redrive_core::policy::{JitterKind, Spec};
use redrive_core::trace::span_of_attempt;
use redrive_core::{Body, ErrorType, Outcome, Reason, Status};
use redrive_engine::Options;
use redrive_store::{CancelOutcome, ReplayOutcome, Store, Submitted};
use world::{Reply, World, attempts, lane, tenant};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[tokio::test(start_paused = true)]
async fn a_task_is_delivered_once_and_keeps_the_answer() {
    let world = World::new().await;
    let task = world.submit("k", Spec::default()).await;
    assert_eq!((task.status, task.attempt_number), (Status::InFlight, 1), "due now, and the lane has room");
    let ended = world.ended(task.id).await;
    assert_eq!((ended.task.status, ended.task.reason, ended.task.attempt_number), (Status::Succeeded, None, 1));
    assert_eq!(ended.answer.unwrap().body, Body::from("done"));
    assert_eq!(world.dependency.sends().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn retries_wait_as_the_policy_says() {
    let world = World::new().await;
    world.dependency.script("dependency", [500, 502, 503, 504].map(Reply::Status));
    let task = world.submit("k", Spec::default()).await;
    assert_eq!(world.ended(task.id).await.task.status, Status::Succeeded);
    let sent: Vec<u64> = world.dependency.sends().iter().map(|send| world.millis(send.at)).collect();
    assert_eq!(sent, [0, 500, 1_500, 3_500, 7_500], "half of 1, 2, 4 and 8 seconds in between");
    let log = world.attempts(task.id).await;
    let backoffs: Vec<_> = log.iter().map(|attempt| attempt.backoff).collect();
    assert_eq!(backoffs, [Some(ms(500)), Some(ms(1_000)), Some(ms(2_000)), Some(ms(4_000)), None]);
    let outcomes: Vec<_> = log.iter().map(|attempt| (attempt.outcome, attempt.response_status)).collect();
    assert_eq!(outcomes[3..], [(Outcome::Retryable, Some(504)), (Outcome::Success, Some(200))]);
}

#[tokio::test(start_paused = true)]
async fn no_more_is_sent_than_the_attempts_allow() {
    let world = World::new().await;
    world.dependency.script("dependency", (0..50).map(|_| Reply::Status(503)));
    let task = world.submit("k", attempts(4)).await;
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.status, ended.reason), (Status::Exhausted, Some(Reason::Attempts)));
    assert_eq!(ended.attempt_number, 4);
    assert_eq!(world.dependency.sends().len(), 4);
    assert_eq!(world.engine.dead_letters(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_never_retried_fails_at_once() {
    let world = World::new().await;
    for (number, reply) in
        [Reply::Status(400), Reply::Status(409), Reply::Status(302), Reply::Error(ErrorType::TlsCertificate)]
            .into_iter()
            .enumerate()
    {
        world.dependency.script("dependency", [reply.clone()]);
        let task = world.submit(&format!("k{number}"), Spec::default()).await;
        let ended = world.ended(task.id).await.task;
        assert_eq!((ended.status, ended.reason), (Status::Failed, Some(Reason::NotRetryable)), "{reply:?}");
        assert_eq!(ended.attempt_number, 1, "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_does_not_resolve_is_tried_twice() {
    let world = World::new().await;
    world.dependency.script("dependency", (0..9).map(|_| Reply::Error(ErrorType::Dns)));
    let task = world.submit("k", Spec::default()).await;
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.status, ended.attempt_number), (Status::Exhausted, 2));
    assert_eq!(ended.last_error.unwrap().kind, ErrorType::Dns);
}

#[tokio::test(start_paused = true)]
async fn every_send_carries_the_same_key_target_and_body() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::Status(500), Reply::Error(ErrorType::ConnectionReset)]);
    let task = world.submit("the-key", Spec::default()).await;
    world.ended(task.id).await;
    let sends = world.dependency.sends();
    assert_eq!(sends.iter().map(|send| send.outbound.attempt).collect::<Vec<_>>(), [1, 2, 3]);
    for send in &sends {
        assert_eq!(send.outbound.idempotency_key.as_str(), "the-key");
        assert_eq!(send.outbound.task, task.id);
        assert_eq!(send.outbound.request, sends[0].outbound.request);
        assert_eq!(send.outbound.request.body, Body::from("body of the-key"));
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_waited_for_when_it_is_longer() {
    let world = World::new().await;
    let with = |seconds: &str| Reply::With(429, vec![("retry-after", seconds.to_owned())]);
    world.dependency.script("dependency", [with("60"), with("0"), with("soon")]);
    let task = world.submit("k", Spec::default()).await;
    world.ended(task.id).await;
    let sent: Vec<u64> = world.dependency.sends().iter().map(|send| world.millis(send.at)).collect();
    assert_eq!(sent, [0, 60_000, 61_000, 65_000], "without one that can be read, twice the backoff");
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_that_does_not_fit_ends_the_task_now() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::With(503, vec![("retry-after", "3600".into())])]);
    let budget = Spec { total_budget_ms: Some(600_000), ..Spec::default() };
    let task = world.submit("k", budget).await;
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.status, ended.reason), (Status::Exhausted, Some(Reason::RetryAfter)));
    assert_eq!(world.millis(ended.ended_at.unwrap()), 0);
}

#[tokio::test(start_paused = true)]
async fn no_send_begins_that_cannot_end_within_the_budget() {
    let world = World::new().await;
    // Each call takes 2 s; the estimate learns that.
    let slow = || Reply::After(ms(2_000), Box::new(Reply::Status(503)));
    world.dependency.script("dependency", (0..50).map(|_| slow()));
    let spec = Spec {
        total_budget_ms: Some(10_000),
        initial_delay_ms: Some(1_000),
        backoff: Some(redrive_core::policy::BackoffKind::Fixed),
        jitter_type: Some(JitterKind::None),
        max_attempts: Some(50),
        ..Spec::default()
    };
    let task = world.submit("k", spec).await;
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.status, ended.reason), (Status::Exhausted, Some(Reason::Deadline)));
    let sent: Vec<u64> = world.dependency.sends().iter().map(|send| world.millis(send.at)).collect();
    assert_eq!(sent, [0, 3_000, 6_000], "a fourth at 9 s would end at 11 s");
    assert_eq!(world.millis(ended.ended_at.unwrap()), 8_000, "it ends as soon as that is clear");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_gets_no_longer_than_the_deadline_leaves() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::Held(Box::new(Reply::Status(200)))]);
    let spec = Spec { total_budget_ms: Some(5_000), attempt_timeout_ms: Some(4_000), ..Spec::default() };
    let mut draft = world.draft("k", spec).await;
    draft.not_before = Some(world::START.after(ms(3_000)));
    let task = world.submit_draft(draft).await;
    let ended = world.ended(task.id).await.task;
    assert_eq!(world.dependency.sends()[0].outbound.attempt_timeout, ms(2_000));
    assert_eq!((ended.status, ended.reason), (Status::Exhausted, Some(Reason::Deadline)));
}

#[tokio::test(start_paused = true)]
async fn a_delayed_task_is_sent_when_it_is_due_and_not_before() {
    let world = World::new().await;
    let mut draft = world.draft("k", Spec::default()).await;
    draft.not_before = Some(world::START.after(ms(90_000)));
    let task = world.submit_draft(draft).await;
    assert_eq!((task.status, task.attempt_number), (Status::Pending, 0));
    world.ended(task.id).await;
    assert_eq!(world.millis(world.dependency.sends()[0].at), 90_000);
}

#[tokio::test(start_paused = true)]
async fn the_same_key_is_one_task() {
    let world = World::new().await;
    let first = world.submit("k", Spec::default()).await;
    let same = world.draft("k", Spec::default()).await;
    let mut other = same.clone();
    other.fingerprint.hash[0] ^= 1;
    let answers = world.engine.submit(vec![same, other]).await.unwrap();
    assert!(matches!(&answers[0], Submitted::Replayed(task) if task.id == first.id), "{answers:?}");
    assert!(matches!(&answers[1], Submitted::KeyReused(id) if *id == first.id), "{answers:?}");
    world.ended(first.id).await;
    assert_eq!(world.dependency.sends().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_replayed_submit_gives_its_room_back() {
    let world = World::with(redrive_engine::Options { lane_concurrency: 1, ..Default::default() }).await;
    let first = world.submit("k", Spec::default()).await;
    world.ended(first.id).await;
    for _ in 0..3 {
        let same = world.draft("k", Spec::default()).await;
        assert!(matches!(world.engine.submit(vec![same]).await.unwrap()[0], Submitted::Replayed(_)));
    }
    let second = world.submit("k2", Spec::default()).await;
    assert_eq!(second.status, Status::InFlight);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_task_can_be_cancelled_and_is_never_sent_again() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::Status(503)]);
    let task = world.submit("k", Spec::default()).await;
    world.dependency.arrived(1).await;
    while world.task(task.id).await.status != Status::Pending {
        tokio::task::yield_now().await;
    }
    let cancelled = world.engine.cancel(tenant(), task.id).await.unwrap();
    assert!(matches!(cancelled, CancelOutcome::Done(task) if task.status == Status::Cancelled));
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert_eq!(world.dependency.sends().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_in_flight_allows_no_further_attempt() {
    for (reply, expected) in [(503, Status::Cancelled), (404, Status::Cancelled), (200, Status::Succeeded)] {
        let world = World::new().await;
        world.dependency.script("dependency", [Reply::Held(Box::new(Reply::Status(reply)))]);
        let task = world.submit("k", Spec::default()).await;
        world.dependency.arrived(1).await;
        let cancelled = world.engine.cancel(tenant(), task.id).await.unwrap();
        assert!(matches!(cancelled, CancelOutcome::Done(task) if task.status == Status::InFlight));
        world.dependency.release(1);
        let ended = world.ended(task.id).await;
        assert_eq!(ended.task.status, expected, "answered {reply}");
        assert_eq!(ended.answer.unwrap().status, reply, "the answer is kept whatever the end");
        assert_eq!(world.attempts(task.id).await[0].backoff, None, "nothing was planned after it");
        assert_eq!(world.dependency.sends().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_between_claim_and_send_keeps_the_task_off_the_wire() {
    for held in ["claim", "submit"] {
        let world = World::new().await;
        let hold = world.store.hold_answer(held);
        let mut draft = world.draft("k", Spec::default()).await;
        if held == "claim" {
            draft.not_before = Some(world::START.after(ms(1_000)));
        }
        let engine = world.engine.clone();
        let submitting = tokio::spawn(async move { engine.submit(vec![draft]).await });
        hold.reached().await;
        let id = world.store.upkeep().newest_task().await.unwrap().unwrap();
        let cancelled = world.engine.cancel(tenant(), id).await.unwrap();
        assert!(matches!(cancelled, CancelOutcome::Done(task) if task.status == Status::InFlight), "{held}");
        hold.release();
        submitting.await.unwrap().unwrap();
        let ended = world.ended(id).await.task;
        assert_eq!((ended.status, ended.attempt_number), (Status::Cancelled, 0), "{held}");
        assert_eq!(world.dependency.sends().len(), 0, "{held}");
        assert_eq!(world.attempts(id).await.len(), 0, "{held}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiting_task_can_be_brought_forward() {
    let world = World::new().await;
    let mut draft = world.draft("k", Spec::default()).await;
    draft.not_before = Some(world::START.after(ms(3_600_000)));
    let task = world.submit_draft(draft).await;
    tokio::time::advance(ms(1_000)).await;
    world.engine.bring_forward(tenant(), task.id).await.unwrap();
    world.ended(task.id).await;
    assert_eq!(world.millis(world.dependency.sends()[0].at), 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_task_keeps_the_policy_version_that_it_was_accepted_with() {
    let world = World::new().await;
    world.dependency.script("dependency", (0..9).map(|_| Reply::Status(503)));
    let mut draft = world.draft("k", Spec::default()).await;
    draft.not_before = Some(world::START.after(ms(1_000)));
    let task = world.submit_draft(draft).await;
    let stricter = attempts(2);
    let id = redrive_core::PolicyId::default_policy();
    world.engine.policies().put(tenant(), id, stricter, redrive_store::Expected::Anything).await.unwrap();
    let ended = world.ended(task.id).await.task;
    assert_eq!((ended.policy.version, ended.attempt_number), (1, 6));
    world.dependency.script("dependency", (0..9).map(|_| Reply::Status(503)));
    let later = world.submit("k2", Spec::default()).await;
    let ended = world.ended(later.id).await.task;
    assert_eq!((ended.policy.version, ended.attempt_number), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_an_end_gives_up_when_time_is_up() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::Held(Box::new(Reply::Status(200)))]);
    let task = world.submit("k", Spec::default()).await;
    let seen = world.engine.ended(tenant(), task.id, ms(5_000)).await.unwrap().unwrap();
    assert_eq!(seen.task.status, Status::InFlight);
    let stranger = redrive_core::TaskId::from_parts(1, 1);
    assert!(world.engine.ended(tenant(), stranger, ms(5_000)).await.unwrap().is_none());
}

/// Replays a dead letter. Returns the task as it is right after.
async fn replay(world: &World, id: redrive_core::TaskId) -> redrive_core::Task {
    match world.engine.replay(tenant(), id).await {
        Ok(ReplayOutcome::Done(task)) => *task,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_replayed_dead_letter_is_delivered_with_the_key_and_body_that_it_had() {
    let world = World::new().await;
    world.dependency.script("dependency", [Reply::Status(400)]);
    let task = world.submit("k", Spec::default()).await;
    assert_eq!(world.ended(task.id).await.task.status, Status::Failed);
    tokio::time::advance(ms(60_000)).await;
    let replayed = replay(&world, task.id).await;
    assert_eq!((replayed.status, replayed.run, replayed.attempts_before), (Status::Pending, 2, 1));
    let ended = world.ended(task.id).await;
    assert_eq!((ended.task.status, ended.task.reason, ended.task.attempt_number), (Status::Succeeded, None, 2));
    assert_eq!(ended.answer.unwrap().status, 200);
    let sends = world.dependency.sends();
    assert_eq!(world.millis(sends[1].at), 60_000, "at once");
    assert_eq!(sends.iter().map(|send| send.outbound.attempt).collect::<Vec<_>>(), [1, 2], "its number goes on");
    assert_eq!(sends[0].outbound.idempotency_key, sends[1].outbound.idempotency_key);
    assert_eq!(sends[0].outbound.request, sends[1].outbound.request);
}

#[tokio::test(start_paused = true)]
async fn every_run_has_its_attempts_and_its_backoff_from_the_beginning() {
    let world = World::new().await;
    world.dependency.script("dependency", (0..50).map(|_| Reply::Status(503)));
    let task = world.submit("k", attempts(3)).await;
    for run in 1..=3 {
        let ended = world.ended(task.id).await.task;
        assert_eq!((ended.status, ended.reason), (Status::Exhausted, Some(Reason::Attempts)));
        assert_eq!((ended.run, ended.attempt_number), (run, 3 * run));
        if run < 3 {
            tokio::time::advance(ms(100_000)).await;
            replay(&world, task.id).await;
        }
    }
    let sends: Vec<u64> = world.dependency.sends().iter().map(|send| world.millis(send.at)).collect();
    assert_eq!(sends.len(), 9, "three in each run");
    let since: Vec<u64> = sends.chunks(3).flat_map(|run| run.iter().map(|at| at - run[0])).collect();
    assert_eq!(since, [0, 500, 1_500, 0, 500, 1_500, 0, 500, 1_500]);
    assert_eq!(world.attempts(task.id).await.len(), 9);
    assert_eq!(world.engine.dead_letters(), 3, "each end is a dead letter of its own");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_does_not_resolve_is_tried_twice_in_every_run() {
    let world = World::new().await;
    world.dependency.script("dependency", (0..9).map(|_| Reply::Error(ErrorType::Dns)));
    let task = world.submit("k", Spec::default()).await;
    for run in 1..=2 {
        assert_eq!(world.ended(task.id).await.task.attempt_number, 2 * run);
        replay(&world, task.id).await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_run_has_its_whole_time() {
    let world = World::new().await;
    world.dependency.script("dependency", (0..50).map(|_| Reply::Status(503)));
    let short = Spec { total_budget_ms: Some(2_000), ..Spec::default() };
    let task = world.submit("k", short).await;
    let first = world.ended(task.id).await.task;
    assert_eq!((first.status, first.reason), (Status::Exhausted, Some(Reason::Deadline)));
    tokio::time::advance(ms(1_000_000)).await;
    let replayed = replay(&world, task.id).await;
    assert_eq!(replayed.deadline_at, world.engine.now().after(ms(2_000)));
    let second = world.ended(task.id).await.task;
    assert_eq!((second.reason, second.attempt_number), (Some(Reason::Deadline), 2 * first.attempt_number));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_dead_letter_is_not_replayed() {
    let world = World::new().await;
    let task = world.submit("k", Spec::default()).await;
    assert!(matches!(world.engine.replay(tenant(), task.id).await.unwrap(), ReplayOutcome::NotDead(_)));
    world.ended(task.id).await;
    assert!(matches!(world.engine.replay(tenant(), task.id).await.unwrap(), ReplayOutcome::NotDead(_)));
    let stranger = redrive_core::TaskId::from_parts(1, 1);
    assert_eq!(world.engine.replay(tenant(), stranger).await.unwrap(), ReplayOutcome::NotFound);
    assert_eq!(world.dependency.sends().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lane_sends_no_more_at_once_than_its_limit() {
    let world = World::with(redrive_engine::Options { lane_concurrency: 3, ..world::unguarded() }).await;
    world.dependency.script("dependency", [Reply::Status(200)]);
    let known = world.submit("known", Spec::default()).await;
    world.ended(known.id).await;
    world.dependency.script("dependency", (0..600).map(|_| Reply::Held(Box::new(Reply::Status(200)))));
    let mut tasks = Vec::new();
    for number in 0..600 {
        tasks.push(world.submit(&format!("k{number}"), Spec::default()).await);
    }
    world.dependency.arrived(1 + 3).await;
    assert!(world.store.reads().counts(tenant()).await.unwrap()[&Status::Pending] > 300, "most stay in the store");
    tokio::time::advance(ms(5_000)).await;
    assert_eq!(world.dependency.sends().len(), 1 + 3);
    for sent in 1 + 4..=1 + 600 {
        world.dependency.release(1);
        world.dependency.arrived(sent).await;
        assert_eq!(world.dependency.sends().len(), sent);
    }
    world.dependency.release(3);
    for task in tasks {
        let ended = world.ended(task.id).await.task;
        assert_eq!((ended.status, ended.attempt_number), (Status::Succeeded, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_long_for_its_turn_goes_back_to_the_store_uncounted() {
    let world = World::with(redrive_engine::Options { lane_concurrency: 1, ..Default::default() }).await;
    let slow = Reply::After(ms(25_000), Box::new(Reply::Status(200)));
    world.dependency.script("dependency", [Reply::Status(200), slow]);
    let quick = world.submit("quick", Spec::default()).await;
    world.ended(quick.id).await;
    world.submit("slow", Spec::default()).await;
    let waiting = world.submit("waiting", Spec::default()).await;
    assert_eq!((waiting.status, waiting.attempt_number), (Status::InFlight, 1));
    tokio::time::advance(ms(20_000)).await;
    while world.task(waiting.id).await.status == Status::InFlight {
        tokio::task::yield_now().await;
    }
    let returned = world.task(waiting.id).await;
    assert_eq!((returned.status, returned.attempt_number), (Status::Pending, 0));
    assert_eq!(returned.next_attempt_at, waiting.next_attempt_at, "it keeps its place");
    assert_eq!(world.ended(waiting.id).await.task.attempt_number, 1);
}

#[tokio::test(start_paused = true)]
async fn a_dead_lane_does_not_hold_up_another() {
    let world = World::with(redrive_engine::Options { lane_concurrency: 2, ..Default::default() }).await;
    world.dependency.script("dead", (0..100).map(|_| Reply::Held(Box::new(Reply::Status(200)))));
    for number in 0..100 {
        let mut draft = world.draft(&format!("dead{number}"), Spec::default()).await;
        draft.lane = lane("dead");
        world.submit_draft(draft).await;
    }
    let task = world.submit("alive", Spec::default()).await;
    let ended = world.ended(task.id).await.task;
    assert_eq!(world.millis(ended.ended_at.unwrap()), 0);
}

#[tokio::test(start_paused = true)]
async fn a_policy_read_while_it_is_changed_is_not_remembered() {
    let world = World::new().await;
    let id = redrive_core::PolicyId::default_policy();
    let hold = world.store.hold_answer("versions");
    let (engine, read) = (world.engine.clone(), id.clone());
    let reading = tokio::spawn(async move { engine.policies().current(&tenant(), &read).await });
    hold.reached().await;
    world.engine.policies().put(tenant(), id.clone(), attempts(2), redrive_store::Expected::Anything).await.unwrap();
    hold.release();
    reading.await.unwrap().unwrap();
    let current = world.engine.policies().current(&tenant(), &id).await.unwrap().unwrap();
    assert_eq!((current.reference.version, current.policy.max_attempts), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn every_attempt_has_its_own_span_in_the_one_trace_of_its_task_also_after_a_restart() {
    let world = World::new().await;
    world.dependency.script("dependency", [503, 503].map(Reply::Status));
    let mut draft = world.draft("k", Spec::default()).await;
    draft.trace_parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().ok();
    let task = world.submit_draft(draft).await;
    world.dependency.arrived(2).await;
    world.engine.stop().await;
    let restarted = world.restarted().await;
    assert_eq!(restarted.ended(task.id).await.task.status, Status::Succeeded);
    let sends: Vec<_> = world.dependency.sends().into_iter().chain(restarted.dependency.sends()).collect();
    let sent: Vec<_> = sends.iter().map(|send| send.outbound.trace.unwrap()).collect();
    let expected: Vec<_> = (1..=3)
        .map(|attempt| format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", span_of_attempt(task.id, attempt)))
        .collect();
    assert_eq!(sent.iter().map(|trace| trace.parent.to_string()).collect::<Vec<_>>(), expected);
    assert!(sent.iter().all(|trace| trace.keeps_state));
}

#[tokio::test(start_paused = true)]
async fn a_task_without_a_caller_has_a_trace_of_its_own_and_none_is_told_if_the_settings_say_so() {
    let world = World::new().await;
    let task = world.submit("k", Spec::default()).await;
    world.ended(task.id).await;
    let sent = world.dependency.sends()[0].outbound.trace.unwrap();
    assert_eq!(sent.parent.trace.as_u128(), task.id.as_u128());
    assert!(!sent.keeps_state && !sent.parent.flags.is_sampled, "nothing is recorded unless an export is configured");

    let mut options = Options::default();
    options.traces.propagators.trace_context = false;
    let silent = World::with(options).await;
    let task = silent.submit("k", Spec::default()).await;
    silent.ended(task.id).await;
    assert_eq!(silent.dependency.sends()[0].outbound.trace, None);
}
