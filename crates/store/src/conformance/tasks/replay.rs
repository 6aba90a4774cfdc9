//! Facts about replaying dead letters.

use std::time::Duration;

use redrive_core::{Class, Reason, Status, Task};

use crate::conformance::samples::*;
use crate::{
    CancelOutcome, ClaimedTask, CleanFrom, DeletePolicy, Expected, ReplayOutcome, Settled, Store, Submitted, TaskKey,
    Token,
};

/// A task that failed twice and ended EXHAUSTED at `at(50)`, and the claim that ended it.
async fn dead_letter(store: &dyn Store, sample: Sample) -> (Task, ClaimedTask) {
    let first = keep_and_claim(store, sample).await;
    settle(store, retry(&first, at(10), at(20))).await;
    let last = claim(store, first.task.lane.clone(), 1, at(20)).await.remove(0);
    settle(store, end(&last, Status::Exhausted, Some(Reason::Attempts), at(50))).await;
    (now_of(store, &last.task).await, last)
}

async fn replay(store: &dyn Store, task: &Task, now: u64) -> Task {
    match store.tasks().replay_one(task.lane.tenant.clone(), task.id, at(now)).await.unwrap() {
        ReplayOutcome::Done(task) => *task,
        other => panic!("a dead letter was not replayed: {other:?}"),
    }
}

pub(crate) async fn a_replayed_dead_letter_is_due_now_in_a_new_run(store: &dyn Store) {
    let (dead, _) = dead_letter(store, task(1)).await;
    assert!(detail(store, &dead).await.answer.is_some());
    let expected = Task {
        status: Status::Pending,
        reason: None,
        run: 2,
        attempts_before: 2,
        run_started_at: at(1_000),
        deadline_at: at(86_401_000),
        next_attempt_at: Some(at(1_000)),
        ended_at: None,
        backoff: None,
        ..dead.clone()
    };
    assert!(dead.last_error.is_some() && dead.backoff.is_some());
    assert_eq!(replay(store, &dead, 1_000).await, expected);
    let found = detail(store, &dead).await;
    assert_eq!(found.task, expected);
    assert_eq!(found.answer, None, "what was answered in the last run is no answer of this one");
    let lanes = store.upkeep().pending_lanes(None, 10).await.unwrap();
    assert_eq!(lanes, [lane_due(billing(), Class::First, Some(at(1_000)))]);
    assert!(claim(store, billing(), 1, at(999)).await.is_empty());
    assert_eq!(claim(store, billing(), 1, at(1_000)).await.len(), 1);
}

pub(crate) async fn both_kinds_of_dead_letter_are_replayed(store: &dyn Store) {
    for (n, status) in [(1, Status::Failed), (2, Status::Exhausted)] {
        let dead = keep_and_end(store, task(n), status, at(10)).await.task;
        let replayed = replay(store, &dead, 20).await;
        assert_eq!((replayed.status, replayed.run), (Status::Pending, 2));
    }
}

pub(crate) async fn attempt_numbers_and_tokens_go_on_growing_over_runs(store: &dyn Store) {
    let (dead, last) = dead_letter(store, task(1)).await;
    replay(store, &dead, 100).await;
    let again = claim(store, billing(), 1, at(100)).await.remove(0);
    assert_eq!((again.task.attempt_number, again.task.attempt_in_run(), again.task.run), (3, 1, 2));
    assert!(again.lease.token > last.lease.token);
    assert_eq!(settle(store, unsent(&again, at(110), at(120))).await, Settled::Done(Status::Pending));
    assert_eq!(now_of(store, &dead).await.attempt_number, 2, "what was not sent is taken back, to the run's beginning");
    let again = claim(store, billing(), 1, at(120)).await.remove(0);
    assert_eq!(again.task.attempt_number, 3);
    assert_eq!(again.lease.token, Token(4));
    settle(store, end(&again, Status::Failed, Some(Reason::NotRetryable), at(130))).await;
    let numbers: Vec<_> = attempts(store, &dead).await.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(now_of(store, &dead).await.last_error, failed_attempt(&again).error);
}

pub(crate) async fn every_run_has_its_whole_number_of_attempts_and_its_whole_time(store: &dyn Store) {
    let mut sample = task(1);
    sample.0.task.max_attempts = 2;
    sample.0.task.deadline_at = at(700);
    let (mut dead, _) = dead_letter(store, sample).await;
    for run in 2..5 {
        let begun = u64::from(run) * 10_000;
        let replayed = replay(store, &dead, begun).await;
        assert_eq!((replayed.run, replayed.attempt_in_run(), replayed.max_attempts), (run, 0, 2));
        assert_eq!(replayed.deadline_at.since(replayed.run_started_at), Duration::from_millis(700));
        for attempt in 1..=2 {
            let claimed = claim(store, billing(), 1, at(begun + 500)).await.remove(0);
            assert_eq!(claimed.task.attempt_in_run(), attempt);
            let next = match attempt {
                1 => retry(&claimed, at(begun + 10), at(begun + 20)),
                _ => end(&claimed, Status::Exhausted, Some(Reason::Attempts), at(begun + 600)),
            };
            settle(store, next).await;
        }
        dead = now_of(store, &dead).await;
    }
    assert_eq!(dead.attempt_number, 8);
    assert_eq!(attempts(store, &dead).await.len(), 8);
}

pub(crate) async fn a_replayed_task_may_succeed_and_leaves_no_trace_of_its_failure_but_its_log(store: &dyn Store) {
    let (dead, _) = dead_letter(store, task(1)).await;
    replay(store, &dead, 100).await;
    let again = claim(store, billing(), 1, at(100)).await.remove(0);
    assert_eq!(settle(store, succeed(&again, at(110))).await, Settled::Done(Status::Succeeded));
    let found = detail(store, &dead).await;
    assert_eq!((found.task.status, found.task.reason, found.task.ended_at), (Status::Succeeded, None, Some(at(110))));
    assert_eq!(found.answer, Some(*answer(200)));
    assert_eq!(attempts(store, &dead).await.len(), 3);
}

pub(crate) async fn a_replayed_task_that_ends_without_an_answer_has_none(store: &dyn Store) {
    let (dead, _) = dead_letter(store, task(1)).await;
    replay(store, &dead, 100).await;
    let again = claim(store, billing(), 1, at(100)).await.remove(0);
    let next = crate::Next::End { status: Status::Exhausted, reason: Some(Reason::Deadline), answer: None };
    settle(store, settlement(&again, None, next, at(110))).await;
    assert_eq!(detail(store, &dead).await.answer, None);
}

pub(crate) async fn what_is_no_dead_letter_is_not_replayed(store: &dyn Store) {
    keep_and_end(store, task(1), Status::Succeeded, at(10)).await;
    keep_and_claim(store, task(2)).await;
    keep(store, [task(3), task(4).due(at(5_000))]).await;
    store.tasks().cancel_one(acme(), id(3), at(10)).await.unwrap();
    let before = crate::conformance::snapshot(store, [acme()]).await;
    for n in 1..=4 {
        let found = now_of(store, &task(n).0.task).await;
        let replayed = store.tasks().replay_one(acme(), id(n), at(20)).await.unwrap();
        assert_eq!(replayed, ReplayOutcome::NotDead(Box::new(found)));
    }
    crate::conformance::snapshot(store, [acme()]).await.assert_is(&before, "after replays of what is no dead letter");
}

pub(crate) async fn a_dead_letter_is_replayed_once_until_it_is_one_again(store: &dyn Store) {
    let (dead, _) = dead_letter(store, task(1)).await;
    let replayed = replay(store, &dead, 100).await;
    let again = store.tasks().replay_one(acme(), id(1), at(200)).await.unwrap();
    assert_eq!(again, ReplayOutcome::NotDead(Box::new(replayed.clone())));
    assert_eq!(now_of(store, &dead).await, replayed);
    let claimed = claim(store, billing(), 1, at(200)).await.remove(0);
    settle(store, end(&claimed, Status::Failed, Some(Reason::NotRetryable), at(300))).await;
    let third = replay(store, &dead, 400).await;
    assert_eq!((third.run, third.attempts_before), (3, 3));
}

pub(crate) async fn a_tenant_cannot_replay_tasks_of_another(store: &dyn Store) {
    let (dead, _) = dead_letter(store, task(1)).await;
    keep_and_end(store, task(2).of("other"), Status::Failed, at(10)).await;
    for (tenant, task) in [(tenant("other"), id(1)), (tenant("nobody"), id(1)), (acme(), id(77)), (acme(), id(2))] {
        assert_eq!(store.tasks().replay_one(tenant, task, at(60)).await.unwrap(), ReplayOutcome::NotFound);
    }
    assert_eq!(now_of(store, &dead).await, dead);
}

pub(crate) async fn a_worker_of_an_earlier_run_settles_nothing(store: &dyn Store) {
    let (dead, last) = dead_letter(store, task(1)).await;
    let replayed = replay(store, &dead, 100).await;
    assert_eq!(settle(store, succeed(&last, at(110))).await, Settled::LeaseLost);
    assert_eq!(now_of(store, &dead).await, replayed);
    let current = claim(store, billing(), 1, at(100)).await.remove(0);
    for stale in [succeed(&last, at(120)), retry(&last, at(120), at(130)), unsent(&last, at(120), at(130))] {
        assert_eq!(settle(store, stale).await, Settled::LeaseLost);
    }
    assert_eq!(now_of(store, &dead).await, current.task);
    assert_eq!(attempts(store, &dead).await.len(), 2);
}

pub(crate) async fn a_replayed_task_keeps_its_key(store: &dyn Store) {
    let (dead, _) = dead_letter(store, task(1).key("k")).await;
    let replayed = replay(store, &dead, 100).await;
    let (found, _) =
        store.reads().by_key(acme(), dead.idempotency_key.clone()).await.unwrap().expect("the key is taken");
    assert_eq!(found, replayed);
    let same = submit(store, [task(2).key("k")]).await;
    assert_eq!(same, [Submitted::Replayed(Box::new(replayed))]);
    assert_eq!(submit(store, [task(2).key("k").body("other")]).await, [Submitted::KeyReused(id(1))]);
}

pub(crate) async fn a_replayed_task_is_not_cleaned_away(store: &dyn Store) {
    let (dead, _) = dead_letter(store, task(1)).await;
    let replayed = replay(store, &dead, 100).await;
    let cleaned = store.upkeep().clean(at(9_000_000), CleanFrom::Start, 100).await.unwrap();
    assert_eq!(cleaned.removed, 0);
    assert_eq!(now_of(store, &dead).await, replayed);
    assert_eq!(attempts(store, &dead).await.len(), 2);
}

pub(crate) async fn counts_and_lists_follow_a_replay(store: &dyn Store) {
    let (dead, _) = dead_letter(store, task(1)).await;
    let dead_letters = || {
        let statuses = vec![Status::Failed, Status::Exhausted];
        list(store, crate::TaskQuery { statuses, ..everything(acme()) })
    };
    assert_eq!((counts(store, acme()).await, dead_letters().await.len()), ([0, 0, 0, 0, 1, 0], 1));
    replay(store, &dead, 100).await;
    assert_eq!((counts(store, acme()).await, dead_letters().await.len()), ([1, 0, 0, 0, 0, 0], 0));
    let claimed = claim(store, billing(), 1, at(100)).await.remove(0);
    assert_eq!(counts(store, acme()).await, [0, 1, 0, 0, 0, 0]);
    settle(store, end(&claimed, Status::Failed, Some(Reason::NotRetryable), at(110))).await;
    assert_eq!((counts(store, acme()).await, dead_letters().await.len()), ([0, 0, 0, 1, 0, 0], 1));
}

pub(crate) async fn a_replayed_task_can_be_cancelled(store: &dyn Store) {
    let (dead, _) = dead_letter(store, task(1)).await;
    replay(store, &dead, 100).await;
    assert!(matches!(store.tasks().cancel_one(acme(), id(1), at(110)).await.unwrap(), CancelOutcome::Done(_)));
    let found = now_of(store, &dead).await;
    assert_eq!((found.status, found.run), (Status::Cancelled, 2));
    assert!(matches!(store.tasks().replay_one(acme(), id(1), at(120)).await.unwrap(), ReplayOutcome::NotDead(_)));
}

pub(crate) async fn a_replayed_task_pins_its_policy_again(store: &dyn Store) {
    let hooks = policy_id("hooks");
    let delete = || store.policies().delete(acme(), policy_id("hooks"), Expected::Anything);
    let spec = redrive_core::policy::Spec::default();
    store.policies().put(acme(), hooks, spec, Expected::Anything, at(0)).await.unwrap();
    let (dead, _) = dead_letter(store, task(1).policy("hooks", 1)).await;
    replay(store, &dead, 100).await;
    assert_eq!(delete().await.unwrap(), DeletePolicy::Pinned(1));
    let claimed = claim(store, billing(), 1, at(100)).await.remove(0);
    settle(store, end(&claimed, Status::Failed, Some(Reason::NotRetryable), at(110))).await;
    assert_eq!(delete().await.unwrap(), DeletePolicy::Done);
}

pub(crate) async fn a_dead_letter_whose_policy_was_deleted_stays_one(store: &dyn Store) {
    let (hooks, spec) = (policy_id("hooks"), redrive_core::policy::Spec::default());
    store.policies().put(acme(), hooks.clone(), spec.clone(), Expected::Anything, at(0)).await.unwrap();
    let (dead, _) = dead_letter(store, task(1).policy("hooks", 1)).await;
    store.policies().delete(acme(), hooks.clone(), Expected::Anything).await.unwrap();
    let gone = ReplayOutcome::PolicyGone(Box::new(dead.clone()));
    assert_eq!(store.tasks().replay_one(acme(), id(1), at(100)).await.unwrap(), gone);
    // A new policy with the same name is not the one that the task was accepted with.
    store.policies().put(acme(), hooks, spec, Expected::Absent, at(100)).await.unwrap();
    assert_eq!(store.tasks().replay_one(acme(), id(1), at(110)).await.unwrap(), gone);
    assert_eq!(now_of(store, &dead).await, dead);
    assert_eq!(counts(store, acme()).await, [0, 0, 0, 0, 1, 0]);
    assert!(claim(store, billing(), 1, at(9_000_000)).await.is_empty());
}

pub(crate) async fn many_dead_letters_are_replayed_in_one_call_and_answered_in_order(store: &dyn Store) {
    for n in [1, 2] {
        keep_and_end(store, task(n), Status::Failed, at(10)).await;
    }
    keep(store, [task(3).due(at(500))]).await;
    let keys = [2, 3, 8, 1, 2].map(|n| TaskKey { tenant: acme(), id: id(n) }).to_vec();
    let answers = store.tasks().replay(keys, at(40)).await.unwrap();
    let replayed: Vec<_> = answers
        .iter()
        .map(|answer| match answer.as_ref().unwrap() {
            ReplayOutcome::Done(task) => ("done", Some((task.id, task.run))),
            ReplayOutcome::NotDead(task) => ("not dead", Some((task.id, task.run))),
            ReplayOutcome::PolicyGone(_) => ("policy gone", None),
            ReplayOutcome::NotFound => ("not found", None),
        })
        .collect();
    let expected = [
        ("done", Some((id(2), 2))),
        ("not dead", Some((id(3), 1))),
        ("not found", None),
        ("done", Some((id(1), 2))),
        ("not dead", Some((id(2), 2))),
    ];
    assert_eq!(replayed, expected);
    assert_eq!(counts(store, acme()).await, [3, 0, 0, 0, 0, 0]);
}
