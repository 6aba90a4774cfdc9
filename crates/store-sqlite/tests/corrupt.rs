//! Unreadable rows: each affects only itself, is set aside, and is taken back by a program that can read it.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use std::path::Path;

use redrive_core::task::PolicyRef;
use redrive_core::{Class, Status};
use redrive_store::conformance::samples::{
    acme, allow, at, billing, claim, counts, everything, id, ids, keep, keep_and_claim, keep_and_end, list, policy_id,
    request, retry, room, settle, stored, submit, succeed, task,
};
use redrive_store::{ClaimedTask, CleanFrom, Condemned, Error, Expected, Settled, Store, Submitted};
use rusqlite::Connection;

use support::{database, open};

/// Manual changes of a task's row, the problem that is then reported, and the change that repairs it.
const DAMAGES: [(&str, &str, &str); 16] = [
    ("UPDATE tasks SET lane = -lane WHERE id = ?1", "lane -1", "UPDATE tasks SET lane = -lane WHERE id = ?1"),
    ("UPDATE tasks SET policy = 77 WHERE id = ?1", "policy version 77", "UPDATE tasks SET policy = 1 WHERE id = ?1"),
    ("UPDATE tasks SET created_at = -1 WHERE id = ?1", "task", "UPDATE tasks SET created_at = 1 WHERE id = ?1"),
    ("UPDATE tasks SET max_attempts = -5 WHERE id = ?1", "task", "UPDATE tasks SET max_attempts = 5 WHERE id = ?1"),
    ("UPDATE tasks SET dns_failures = -1 WHERE id = ?1", "task", "UPDATE tasks SET dns_failures = 0 WHERE id = ?1"),
    ("UPDATE tasks SET reason = 'because' WHERE id = ?1", "task", "UPDATE tasks SET reason = NULL WHERE id = ?1"),
    (
        "UPDATE tasks SET error_kind = 'martian' WHERE id = ?1",
        "martian",
        "UPDATE tasks SET error_kind = NULL WHERE id = ?1",
    ),
    ("UPDATE tasks SET token = 'x' WHERE id = ?1", "task", "UPDATE tasks SET token = 9 WHERE id = ?1"),
    (
        "UPDATE tasks SET token = 9223372036854775807 WHERE id = ?1",
        "token 9223372036854775807",
        "UPDATE tasks SET token = 9 WHERE id = ?1",
    ),
    ("UPDATE tasks SET tail = 'x' WHERE id = ?1", "task", "UPDATE tasks SET tail = 9 WHERE id = ?1"),
    (
        "UPDATE tasks SET idempotency_key = '' WHERE id = ?1",
        "task",
        "UPDATE tasks SET idempotency_key = 'k' WHERE id = ?1",
    ),
    (
        "UPDATE tasks SET idempotency_key = x'FFFE' WHERE id = ?1",
        "task",
        "UPDATE tasks SET idempotency_key = 'k' WHERE id = ?1",
    ),
    (
        "UPDATE requests SET headers = '[[1]]' WHERE task = ?1",
        "request of task",
        "UPDATE requests SET headers = NULL WHERE task = ?1",
    ),
    (
        "UPDATE requests SET labels = '{' WHERE task = ?1",
        "request of task",
        "UPDATE requests SET labels = NULL WHERE task = ?1",
    ),
    (
        "UPDATE requests SET body = 'text' WHERE task = ?1",
        "request of task",
        "UPDATE requests SET body = x'00' WHERE task = ?1",
    ),
    (
        "UPDATE tasks SET deadline_at = 'tomorrow' WHERE id = ?1",
        "task",
        "UPDATE tasks SET deadline_at = 9999999999999 WHERE id = ?1",
    ),
];

fn change(directory: &Path, sql: &str, task: u64) {
    let connection = Connection::open(database(directory)).unwrap();
    assert_eq!(connection.execute(sql, [id(task).sequence().cast_signed()]).unwrap(), 1, "{sql}");
}

#[tokio::test]
async fn a_damaged_task_that_waits_is_set_aside_and_the_others_are_claimed() {
    for (damage, problem, mended) in DAMAGES {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        keep(&store, [task(1), task(2), task(3).to("https://b.example")]).await;
        change(directory.path(), damage, 1);

        let backlogs =
            store.reads().backlogs(vec![billing(), task(3).to("https://b.example").0.task.lane], at(0), 9).await;
        let due = backlogs.unwrap().iter().map(|backlog| backlog.due).collect::<Vec<_>>();
        assert!([[1, 1], [2, 1]].contains(&due[..].try_into().unwrap()), "{damage}: {due:?}");
        let claimed = claim(&store, billing(), 5, at(0)).await;
        assert_eq!(ids(&claimed), [id(2)], "{damage}");
        assert_eq!(settle(&store, succeed(&claimed[0], at(1))).await, Settled::Done(Status::Succeeded), "{damage}");
        store.upkeep().end_overdue(at(u64::MAX >> 2), 10).await.unwrap();
        let shown = list(&store, everything(acme())).await;
        assert_eq!(shown.iter().map(|shown| shown.task.id).collect::<Vec<_>>(), [id(3), id(2)], "{damage}");
        store.upkeep().clean(at(0), CleanFrom::Start, 10).await.unwrap();
        let aside = store.health().set_aside(9).await.unwrap();
        assert_eq!((aside.count, aside.rows.len()), (1, 1), "{damage}");
        assert!(aside.rows[0].problem.contains(problem), "{damage}: {aside:?}");
        assert!(matches!(store.reads().task(acme(), id(1)).await, Err(Error::Corrupt(_)) | Ok(None)), "{damage}");
        store.close().await;

        let store = open(directory.path());
        assert_eq!(
            store.health().set_aside(9).await.unwrap(),
            aside,
            "{damage}: this program understands it no better"
        );
        store.close().await;
        change(directory.path(), mended, 1);
        let store = open(directory.path());
        assert_eq!(store.health().set_aside(9).await.unwrap().count, 0, "{damage}");
        let taken_back = claim(&store, billing(), 5, at(0)).await;
        assert_eq!(taken_back.len(), 1, "{damage}");
        assert_eq!(taken_back[0].task.attempt_number, 1, "{damage}: it was not counted before");
    }
}

/// A regression test: such a row was set aside, and then the store could not be opened again.
#[tokio::test]
async fn a_task_whose_status_is_no_number_is_set_aside_and_taken_back() {
    for status in ["'martian'", "x'00'", "2.5"] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        keep(&store, [task(1), task(2)]).await;
        change(directory.path(), &format!("UPDATE tasks SET status = {status} WHERE id = ?1"), 1);
        assert_eq!(list(&store, everything(acme())).await.len(), 1, "{status}");
        assert_eq!(store.health().set_aside(9).await.unwrap().count, 1, "{status}");
        store.close().await;

        let store = open(directory.path());
        assert_eq!(
            store.health().set_aside(9).await.unwrap().count,
            1,
            "{status}: this program understands it no better"
        );
        assert_eq!(ids(&claim(&store, billing(), 5, at(0)).await), [id(2)], "{status}");
        store.close().await;
        // A repair must also change the recorded status, because that is what the status is restored to.
        let connection = Connection::open(database(directory.path())).unwrap();
        assert_eq!(connection.execute("UPDATE set_aside SET was = 2", []).unwrap(), 1, "{status}");
        drop(connection);
        let store = open(directory.path());
        assert_eq!(ids(&claim(&store, billing(), 5, at(0)).await), [id(1)], "{status}");
    }
}

#[tokio::test]
async fn a_damaged_task_in_flight_is_set_aside_and_the_other_leases_are_found() {
    for (damage, problem, mended) in DAMAGES {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        keep(&store, [task(1).claimed(at(0)), task(2).claimed(at(0))]).await;
        change(directory.path(), damage, 1);
        store.close().await;

        let store = open(directory.path());
        let expired = store.upkeep().expired_leases(at(0), 1).await.unwrap();
        assert_eq!(ids(&expired), [id(2)], "{damage}: one that stands before it does not take its place");
        let aside = store.health().set_aside(9).await.unwrap();
        assert!(aside.count == 1 && aside.rows[0].problem.contains(problem), "{damage}: {aside:?}");
        assert_eq!(settle(&store, retry(&expired[0], at(1), at(2))).await, Settled::Done(Status::Pending), "{damage}");
        store.close().await;
        change(directory.path(), mended, 1);
        let store = open(directory.path());
        assert_eq!(store.upkeep().expired_leases(at(0), 9).await.unwrap().len(), 1, "{damage}");
    }
}

#[tokio::test]
async fn a_task_that_is_damaged_while_it_is_in_flight_is_not_settled_and_its_neighbours_are() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    allow(&store, acme()).await;
    let (damaged, whole) = (keep_and_claim(&store, task(1)).await, keep_and_claim(&store, task(2)).await);
    change(directory.path(), "UPDATE tasks SET attempts_before = 'x' WHERE id = ?1", 1);
    let both = vec![retry(&damaged, at(1), at(2)), retry(&whole, at(1), at(2))];
    assert_eq!(store.tasks().settle(both).await.unwrap(), [Settled::LeaseLost, Settled::Done(Status::Pending)]);
    assert_eq!(store.health().set_aside(9).await.unwrap().count, 1);
    assert_eq!(counts(&store, acme()).await[..2], [1, 1], "it still counts as what it was");
}

#[tokio::test]
async fn a_token_that_was_set_back_does_not_keep_others_from_being_settled() {
    for end in [succeed, |claimed: &ClaimedTask, at| retry(claimed, at, at)] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        allow(&store, acme()).await;
        let first = keep_and_claim(&store, task(1)).await;
        settle(&store, retry(&first, at(1), at(1))).await;
        change(directory.path(), "UPDATE tasks SET token = token - 1 WHERE id = ?1", 1);
        keep(&store, [task(2)]).await;
        let rooms = [Class::First, Class::Retry].map(|class| room(billing(), class, 5, 0));
        let claimed = store.tasks().claim(request(rooms, at(2))).await.unwrap().claimed;
        assert_eq!(claimed.len(), 2);
        let settled = store.tasks().settle(claimed.iter().map(|claimed| end(claimed, at(3))).collect()).await.unwrap();
        assert!(settled.iter().all(|settled| matches!(settled, Settled::Done(_))), "{settled:?}");
    }
}

#[tokio::test]
async fn a_damaged_dead_letter_is_not_announced_and_the_next_one_is() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    allow(&store, acme()).await;
    for n in [1, 2] {
        keep_and_end(&store, task(n), Status::Failed, at(n)).await;
    }
    change(directory.path(), "UPDATE tasks SET error_kind = 'martian' WHERE id = ?1", 1);
    let unannounced = store.upkeep().pending_alerts(at(9), 1).await.unwrap();
    assert_eq!(unannounced.iter().map(|task| task.id).collect::<Vec<_>>(), [id(2)]);
    change(directory.path(), "UPDATE answers SET status = 99999 WHERE task = ?1", 2);
    assert_eq!(list(&store, everything(acme())).await.len(), 0);
    assert_eq!(
        store.upkeep().clean(at(9), CleanFrom::Start, 10).await.unwrap().removed,
        0,
        "what is set aside is kept"
    );
    assert_eq!(store.health().set_aside(1).await.unwrap().count, 2);
}

#[tokio::test]
async fn many_damaged_tasks_at_the_head_do_not_hide_the_one_behind_them() {
    const MANY: u64 = 3_000;
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    keep(&store, (1..=MANY + 1).map(task)).await;
    let connection = Connection::open(database(directory.path())).unwrap();
    let last = id(MANY + 1).sequence().cast_signed();
    connection.execute("UPDATE tasks SET error_kind = 'martian' WHERE id <> ?1", [last]).unwrap();
    let (mut found, mut calls) = (Vec::new(), 0);
    while found.is_empty() {
        let claims = store.tasks().claim(request([room(billing(), Class::First, 8, 0)], at(0))).await.unwrap();
        assert!(claims.claimed.len() == 1 || claims.lanes[0].next_due.is_some(), "there is more");
        found = claims.claimed;
        calls += 1;
    }
    assert_eq!((ids(&found), calls), (vec![id(MANY + 1)], 3), "a claim sets about a thousand aside at most");
    assert_eq!(store.health().set_aside(7).await.unwrap().count, MANY);
}

#[tokio::test]
async fn a_key_of_a_damaged_task_is_refused_alone() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    keep(&store, [task(1).key("k")]).await;
    change(directory.path(), "UPDATE tasks SET error_kind = 'martian' WHERE id = ?1", 1);
    let submitted = submit(&store, [task(2).key("k"), task(3).key("l")]).await;
    assert_eq!(submitted[0], Submitted::KeyUnreadable(id(1)));
    assert!(matches!(submitted[1], Submitted::Created(_, None)), "{submitted:?}");
}

#[tokio::test]
async fn an_invalid_policy_version_affects_only_its_own_tasks() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    keep(&store, [task(1)]).await;
    let put = |n| {
        let spec = redrive_core::policy::Spec { max_attempts: Some(n), ..Default::default() };
        store.policies().put(acme(), policy_id("hooks"), spec, Expected::Anything, at(0))
    };
    for n in [3, 4] {
        put(n).await.unwrap();
    }
    let connection = Connection::open(database(directory.path())).unwrap();
    let damage = |version: u32| {
        let sql =
            "UPDATE policy_versions SET spec = '{\"maxAttempts\": \"many\"}' WHERE policy = 'hooks' AND version = ?1";
        assert_eq!(connection.execute(sql, [version]).unwrap(), 1);
    };
    damage(1);
    let versions = store.policies().versions(acme(), policy_id("hooks")).await.unwrap();
    assert_eq!(versions.iter().map(|version| version.version).collect::<Vec<_>>(), [2]);
    let pinned = |version| store.policies().version(acme(), PolicyRef { id: policy_id("hooks"), version });
    assert!(matches!(pinned(1).await, Err(Error::Corrupt(_))));
    assert_eq!(pinned(2).await.unwrap().unwrap().version, 2);
    assert_eq!(pinned(9).await.unwrap(), None);
    damage(2);
    assert!(
        matches!(store.policies().versions(acme(), policy_id("hooks")).await, Err(Error::Corrupt(_))),
        "no older one instead"
    );
    let ids: Vec<_> =
        store.policies().list(acme(), None, 9).await.unwrap().into_iter().map(|policy| policy.id).collect();
    assert!(!ids.is_empty() && !ids.contains(&policy_id("hooks")));
    assert_eq!(store.health().set_aside(9).await.unwrap().count, 2);
    put(5).await.unwrap();
    assert_eq!(
        store.policies().versions(acme(), policy_id("hooks")).await.unwrap().len(),
        1,
        "a new version is understood again"
    );
}

#[tokio::test]
async fn invalid_blobs_do_not_stop_the_pass_over_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    allow(&store, acme()).await;
    store.blobs().adopt(acme(), stored("whole", 1), at(0)).await.unwrap();
    let connection = Connection::open(database(directory.path())).unwrap();
    for n in 0..5 {
        let record = format!("!damaged {n}");
        connection.execute("INSERT INTO blobs (tenant, body, adopted_at) VALUES (1, ?1, 0)", [record]).unwrap();
    }
    let whole = |condemned: Condemned| condemned.blobs.into_iter().map(|blob| blob.body).collect::<Vec<_>>();
    assert_eq!(whole(store.blobs().condemn(at(9), None, 2).await.unwrap()), [stored("whole", 1)]);
    assert_eq!(store.health().set_aside(9).await.unwrap().count, 5);
    for odd in ["1, x'00', 0", "1, CAST(x'FF' AS TEXT), 0", "'acme', 'of nobody', 0"] {
        connection.execute(&format!("INSERT INTO blobs (tenant, body, adopted_at) VALUES ({odd})"), []).unwrap();
    }
    connection.execute("UPDATE blobs SET condemned = 'perhaps' WHERE body LIKE '!damaged%'", []).unwrap();
    assert_eq!(whole(store.blobs().condemn(at(9), None, 1).await.unwrap()), [stored("whole", 1)], "condemned before");
}
