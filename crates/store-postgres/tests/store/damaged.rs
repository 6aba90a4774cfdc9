//! Unreadable rows: each affects only itself, is set aside, and is taken back by a program that can read it.

use std::sync::Arc;

use crate::support::{Opened, neighbour, open, plain};
use redrive_core::guards::{Controls, Limits};
use redrive_core::task::PolicyRef;
use redrive_core::{Class, Status};
use redrive_store::conformance::samples::*;
use redrive_store::{ClaimKnownRequest, CleanFrom, Condemned, Error, Expected, KnownTask, Store, Submitted, Token};
use redrive_store_postgres::PostgresStore;
use tokio_postgres::Client;

/// Manual changes of a task's rows, the problem that is then reported, and the change that repairs it.
const DAMAGES: [(&str, &str, &str); 16] = [
    ("live SET dependency = 'bad dep'", "bad dep", "live SET dependency = 'https://billing.example'"),
    ("tasks SET dependency = 'bad dep'", "bad dep", "tasks SET dependency = 'https://billing.example'"),
    ("live SET token = 9223372036854775807", "token 9223372036854775807", "live SET token = 9"),
    ("live SET token = -1", "token", "live SET token = 9"),
    ("live SET due_at = -1", "due_at", "live SET due_at = 1"),
    ("live SET deadline_at = -1", "column", "live SET deadline_at = 9999999999999"),
    ("live SET dns_failures = -1", "column", "live SET dns_failures = 0"),
    ("live SET error_kind = 'martian'", "martian", "live SET error_kind = NULL"),
    ("live SET attempt_number = 4294967296", "column attempt_number", "live SET attempt_number = attempts_before"),
    ("tasks SET policy = 'bad policy'", "bad policy", "tasks SET policy = 'default'"),
    ("tasks SET max_attempts = -5", "max_attempts", "tasks SET max_attempts = 5"),
    ("tasks SET idempotency_key = ''", "idempotency_key", "tasks SET idempotency_key = 'k'"),
    ("tasks SET headers = '[[1]]'", "headers", "tasks SET headers = NULL"),
    ("tasks SET correlation_id = ''", "correlation_id", "tasks SET correlation_id = NULL"),
    ("tasks SET trace_parent = '00-'", "trace_parent", "tasks SET trace_parent = NULL"),
    ("tasks SET labels = '{'", "labels", "tasks SET labels = NULL"),
];

/// Changes the rows of one task by hand.
async fn change(client: &Client, change: &str, task: u64) {
    let sql = format!("UPDATE redrive.{change} WHERE id = '{}'", id(task));
    assert_eq!(client.execute(&sql, &[]).await.unwrap(), 1, "{sql}");
}

async fn aside(store: &PostgresStore) -> u64 {
    store.health().set_aside(9).await.unwrap().count
}

/// Tasks 1 and 2 of one lane and 3 of another, and a separate connection to the database.
async fn world() -> (Opened, Arc<PostgresStore>, Client) {
    let opened = open("one").await;
    let client = plain(opened.database.url()).await;
    keep(&*opened.store, [task(1), task(2), task(3).to("https://z.example")]).await;
    let store = opened.store.clone();
    (opened, store, client)
}

#[tokio::test]
async fn a_damaged_task_that_waits_is_set_aside_and_the_others_are_claimed() {
    for (damage, problem, mended) in DAMAGES {
        let (opened, store, client) = world().await;
        change(&client, damage, 1).await;
        let lanes = store.upkeep().pending_lanes(None, 2).await.unwrap();
        assert_eq!(lanes.len(), 2, "{damage}: {lanes:?}");
        store.shared().unwrap().waiting(None, 1).await.unwrap();
        let backlogs = store.reads().backlogs(vec![billing(), lane(TENANT, "https://z.example")], at(0), 9).await;
        let due = backlogs.unwrap().iter().map(|backlog| backlog.due).collect::<Vec<_>>();
        assert!([[1, 1], [2, 1]].contains(&due[..].try_into().unwrap()), "{damage}: {due:?}");
        let claimed = claim(&*store, billing(), 5, at(0)).await;
        assert_eq!(ids(&claimed), [id(2)], "{damage}");
        settle(&*store, succeed(&claimed[0], at(1))).await;
        let shown = list(&*store, everything(acme())).await;
        assert_eq!(shown.iter().map(|shown| shown.task.id).collect::<Vec<_>>(), [id(3), id(2)], "{damage}");
        let set_aside = store.health().set_aside(9).await.unwrap();
        assert_eq!((set_aside.count, set_aside.rows.len()), (1, 1), "{damage}");
        assert!(set_aside.rows[0].problem.contains(problem), "{damage}: {set_aside:?}");
        assert!(set_aside.rows[0].row.contains(&id(1).to_string()), "{damage}: {set_aside:?}");
        assert_eq!(counts(&*store, acme()).await, [2, 0, 1, 0, 0, 0], "{damage}: it counts as what it was");

        let started = neighbour(&opened, "two").await;
        assert_eq!(
            started.health().set_aside(9).await.unwrap(),
            set_aside,
            "{damage}: this program understands it no better"
        );
        change(&client, mended, 1).await;
        let started = neighbour(&opened, "three").await;
        assert_eq!(aside(&started).await, 0, "{damage}");
        let taken_back = claim(&*started, billing(), 5, at(2)).await;
        assert_eq!(ids(&taken_back), [id(1)], "{damage}");
        assert_eq!(taken_back[0].task.attempt_number, 1, "{damage}: it was not counted before");
    }
}

#[tokio::test]
async fn a_damaged_task_in_flight_is_set_aside_and_the_other_leases_are_found() {
    for (damage, problem, mended) in DAMAGES {
        let opened = open("one").await;
        let (store, client) = (&*opened.store, plain(opened.database.url()).await);
        keep(store, [task(1).claimed(at(0)), task(2).claimed(at(0))]).await;
        change(&client, damage, 1).await;
        let late = at(9_000_000);
        let expired = store.upkeep().expired_leases(late, 1).await.unwrap();
        // A rescue reads the lane from `tasks`: a task with a wrong lane in `live` alone can still be rescued.
        let is_harmless = damage == "live SET dependency = 'bad dep'";
        assert_eq!(ids(&expired), [id(if is_harmless { 1 } else { 2 })], "{damage}");
        if !is_harmless {
            let set_aside = store.health().set_aside(9).await.unwrap();
            assert!(set_aside.count == 1 && set_aside.rows[0].problem.contains(problem), "{damage}: {set_aside:?}");
            settle(store, retry(&expired[0], late, late)).await;
            change(&client, mended, 1).await;
            let started = neighbour(&opened, "two").await;
            assert_eq!(ids(&started.upkeep().expired_leases(late, 9).await.unwrap()), [id(1)], "{damage}");
        }
    }
}

#[tokio::test]
async fn leases_that_cannot_be_read_do_not_hide_the_one_behind_them() {
    const MANY: u64 = 300;
    let opened = open("one").await;
    let store = &*opened.store;
    keep(store, (1..=MANY + 1).map(|n| task(n).claimed(at(n)))).await;
    let client = plain(opened.database.url()).await;
    let damage = format!("UPDATE redrive.tasks SET policy = 'bad policy' WHERE id <> '{}'", id(MANY + 1));
    client.batch_execute(&damage).await.unwrap();
    let expired = store.upkeep().expired_leases(at(9_000_000), 16).await.unwrap();
    assert_eq!(ids(&expired), [id(MANY + 1)]);
    assert_eq!(aside(store).await, MANY);
}

#[tokio::test]
async fn a_lane_whose_claim_fails_is_left_out_and_the_others_are_claimed() {
    let opened = open("one").await;
    let (store, client) = (&*opened.store, plain(opened.database.url()).await);
    let names: Vec<String> = (0..5).map(|n| format!("https://{n}.example")).collect();
    let tasks = (0..15).map(|n| task(n + 1).to(&names[usize::try_from(n % 5).unwrap()]));
    keep(store, tasks).await;
    // The row itself is readable: a trigger that was added by hand refuses changes of one task.
    client
        .batch_execute(&format!(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 IF NEW.token > OLD.token THEN RAISE EXCEPTION 'not this one'; END IF; RETURN NEW;
             END $$;
             CREATE TRIGGER refuse BEFORE UPDATE ON redrive.live FOR EACH ROW WHEN (NEW.id = '{}') EXECUTE FUNCTION refuse()",
            id(3)
        ))
        .await
        .unwrap();
    let rooms = || names.iter().map(|name| room(lane("acme", name), Class::First, 5, 0));
    let claims = store.tasks().claim(request(rooms(), at(0))).await.unwrap();
    assert_eq!(claims.claimed.len(), 14);
    assert_eq!(claims.lanes.iter().map(|due| due.lane.dependency.to_string()).collect::<Vec<_>>(), names);
    let set_aside = store.health().set_aside(9).await.unwrap();
    assert!(set_aside.count == 1 && set_aside.rows[0].problem.contains("not this one"), "{set_aside:?}");
    assert_eq!(store.tasks().claim(request(rooms(), at(0))).await.unwrap().claimed, []);
    client.batch_execute("DROP TRIGGER refuse ON redrive.live").await.unwrap();
    let started = neighbour(&opened, "two").await;
    assert_eq!(ids(&started.tasks().claim(request(rooms(), at(0))).await.unwrap().claimed), [id(3)]);
}

#[tokio::test]
async fn known_tasks_are_claimed_around_one_that_fails() {
    let (_opened, store, client) = world().await;
    change(&client, "live SET token = 9223372036854775807", 1).await;
    let known = |n, token| KnownTask { tenant: acme(), id: id(n), token: Token(token), has_slot: true };
    let known = vec![known(1, i64::MAX as u64), known(2, 0), known(3, 0)];
    let request = ClaimKnownRequest { known, due_by: at(0), lease: TERMS, now: at(0) };
    let claimed = store.shared().unwrap().claim_known(request).await.unwrap();
    assert_eq!((ids(&claimed), aside(&store).await), (vec![id(2), id(3)], 1));
}

#[tokio::test]
async fn an_invalid_overdue_task_does_not_end_and_the_others_do() {
    for damage in
        ["live SET error_kind = 'martian'", "live SET token = 9223372036854775807", "live SET deadline_at = -7"]
    {
        let (_opened, store, client) = world().await;
        change(&client, damage, 1).await;
        let overdue = store.upkeep().end_overdue(at(u64::MAX >> 24), 10).await.unwrap();
        assert_eq!(overdue.ended.iter().map(|task| task.id).collect::<Vec<_>>(), [id(2), id(3)], "{damage}");
        assert_eq!((overdue.next_deadline, aside(&store).await), (None, 1), "{damage}");
    }
}

/// Makes PostgreSQL refuse every change of the tasks up to this one, including setting them aside.
async fn freeze(client: &Client, up_to: u64) {
    let sql = format!(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'frozen'; END $$;
         CREATE TRIGGER refuse BEFORE UPDATE OR DELETE ON redrive.live FOR EACH ROW WHEN (OLD.id <= '{}')
         EXECUTE FUNCTION refuse()",
        id(up_to)
    );
    client.batch_execute(&sql).await.unwrap();
}

#[tokio::test]
async fn a_task_that_can_be_neither_claimed_nor_set_aside_holds_up_no_other_and_is_not_asked_for_all_the_time() {
    let (_opened, store, client) = world().await;
    freeze(&client, 1).await;
    let rooms = || [billing(), lane("acme", "https://z.example")].map(|lane| room(lane, Class::First, 5, 0));
    let claims = store.tasks().claim(request(rooms(), at(0))).await.unwrap();
    assert_eq!((ids(&claims.claimed), aside(&store).await), (vec![id(2), id(3)], 0));
    let again = claims.lanes.iter().find(|due| due.lane == billing()).unwrap().next_due;
    assert_eq!(again, Some(at(1_000)), "every claim from its lane fails as a whole: they must be few");
}

#[tokio::test]
async fn tasks_that_can_be_neither_ended_nor_set_aside_do_not_keep_the_others() {
    const FROZEN: u64 = 40;
    let opened = open("one").await;
    let (store, client) = (&*opened.store, plain(opened.database.url()).await);
    keep(store, (1..=FROZEN + 2).map(task)).await;
    freeze(&client, FROZEN).await;
    // The tasks behind them are on another page.
    let late = at(u64::MAX >> 24);
    let overdue = store.upkeep().end_overdue(late, 16).await.unwrap();
    let ended: Vec<_> = overdue.ended.iter().map(|task| task.id).collect();
    assert_eq!((ended, aside(store).await), (vec![id(FROZEN + 1), id(FROZEN + 2)], 0));
    assert!(overdue.next_deadline.is_some_and(|next| next > late), "not at once again: {overdue:?}");
    client.batch_execute("DROP TRIGGER refuse ON redrive.live").await.unwrap();
    assert_eq!(store.upkeep().end_overdue(late, 64).await.unwrap().ended.len(), 40);
}

#[tokio::test]
async fn no_invalid_overdue_task_ends_however_many_there_are() {
    let opened = open("one").await;
    let (store, client) = (&*opened.store, plain(opened.database.url()).await);
    keep(store, (1..=41).map(task)).await;
    let damage = format!("UPDATE redrive.live SET error_kind = 'martian' WHERE id <> '{}'", id(41));
    client.batch_execute(&damage).await.unwrap();
    let ended = store.upkeep().end_overdue(at(u64::MAX >> 24), 16).await.unwrap().ended;
    assert_eq!(ended.iter().map(|task| task.id).collect::<Vec<_>>(), [id(41)]);
    assert_eq!((aside(store).await, counts(store, acme()).await), (40, [40, 0, 0, 0, 1, 0]));
}

#[tokio::test]
async fn a_row_that_cannot_be_taken_back_does_not_keep_the_others() {
    let (opened, store, client) = world().await;
    for task in 1..=3 {
        change(&client, "live SET error_kind = 'martian'", task).await;
    }
    let rooms = [billing(), lane("acme", "https://z.example")].map(|lane| room(lane, Class::First, 5, 0));
    assert_eq!(store.tasks().claim(request(rooms, at(0))).await.unwrap().claimed, []);
    assert_eq!(aside(&store).await, 3);
    client.batch_execute("UPDATE redrive.live SET error_kind = NULL").await.unwrap();
    freeze(&client, 1).await;
    let started = neighbour(&opened, "two").await;
    assert_eq!(aside(&started).await, 1);
}

#[tokio::test]
async fn a_task_whose_request_is_gone_is_set_aside() {
    let (_opened, store, client) = world().await;
    client.execute(&format!("DELETE FROM redrive.tasks WHERE id = '{}'", id(1)), &[]).await.unwrap();
    assert_eq!(ids(&claim(&*store, billing(), 5, at(0)).await), [id(2)]);
    assert_eq!(aside(&store).await, 1);
    assert_eq!(store.upkeep().expired_leases(at(9_000_000), 5).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_view_for_people_shows_what_is_set_aside() {
    let (_opened, store, client) = world().await;
    change(&client, "tasks SET headers = 'none'", 1).await;
    assert_eq!(ids(&claim(&*store, billing(), 5, at(0)).await), [id(2)]);
    let view = "SELECT status FROM redrive.task_overview ORDER BY created, task";
    let shown: Vec<String> = client.query(view, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(shown, ["SET_ASIDE", "IN_FLIGHT", "PENDING"]);
}

#[tokio::test]
async fn a_damaged_dead_letter_is_not_announced_until_it_is_repaired() {
    let opened = open("one").await;
    let (store, client) = (&*opened.store, plain(opened.database.url()).await);
    allow(store, acme()).await;
    for n in [1, 2] {
        keep_and_end(store, task(n), Status::Failed, at(n)).await;
    }
    change(&client, "log SET reason = 'because'", 1).await;
    let unannounced = store.upkeep().pending_alerts(at(9), 1).await.unwrap();
    assert_eq!(unannounced.iter().map(|task| task.id).collect::<Vec<_>>(), [id(2)]);
    assert_eq!(
        store.upkeep().clean(at(9), CleanFrom::Start, 10).await.unwrap().removed,
        1,
        "what is set aside is kept"
    );
    assert_eq!(aside(store).await, 1);
    change(&client, "log SET reason = 'not-retryable'", 1).await;
    let started = neighbour(&opened, "two").await;
    assert_eq!(started.upkeep().pending_alerts(at(9), 1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_key_of_a_damaged_task_is_refused_alone() {
    let (_opened, store, client) = world().await;
    change(&client, "tasks SET fingerprint = '\\x00'", 1).await;
    let submitted = submit(&*store, [task(7).key("key-1"), task(8).key("l")]).await;
    assert_eq!(submitted[0], Submitted::KeyUnreadable(id(1)));
    assert!(matches!(submitted[1], Submitted::Created(_, None)), "{submitted:?}");
}

#[tokio::test]
async fn an_invalid_policy_version_affects_only_its_own_tasks() {
    let (_opened, store, client) = world().await;
    let put = |n| {
        let spec = redrive_core::policy::Spec { max_attempts: Some(n), ..Default::default() };
        store.policies().put(acme(), policy_id("hooks"), spec, Expected::Anything, at(0))
    };
    for n in [3, 4] {
        put(n).await.unwrap();
    }
    let damage = async |version: i64| {
        let sql = "UPDATE redrive.policy_versions SET spec = '{\"maxAttempts\": \"many\"}'
                   WHERE policy = 'hooks' AND version = $1";
        assert_eq!(client.execute(sql, &[&version]).await.unwrap(), 1);
    };
    damage(1).await;
    let versions = store.policies().versions(acme(), policy_id("hooks")).await.unwrap();
    assert_eq!(versions.iter().map(|version| version.version).collect::<Vec<_>>(), [2]);
    let pinned = |version| store.policies().version(acme(), PolicyRef { id: policy_id("hooks"), version });
    assert!(matches!(pinned(1).await, Err(Error::Corrupt(_))));
    assert_eq!(pinned(2).await.unwrap().unwrap().version, 2);
    assert_eq!(pinned(9).await.unwrap(), None);
    damage(2).await;
    assert!(
        matches!(store.policies().versions(acme(), policy_id("hooks")).await, Err(Error::Corrupt(_))),
        "no older one instead"
    );
    let ids: Vec<_> =
        store.policies().list(acme(), None, 9).await.unwrap().into_iter().map(|policy| policy.id).collect();
    assert!(!ids.is_empty() && !ids.contains(&policy_id("hooks")));
    assert_eq!(aside(&store).await, 2);
    put(5).await.unwrap();
    assert_eq!(
        store.policies().versions(acme(), policy_id("hooks")).await.unwrap().len(),
        1,
        "a new version is understood again"
    );
}

#[tokio::test]
async fn invalid_blobs_do_not_stop_the_pass_over_the_others() {
    let (_opened, store, client) = world().await;
    store.blobs().adopt(acme(), stored("whole", 1), at(0)).await.unwrap();
    for n in 0..5 {
        let sql = "INSERT INTO redrive.blobs (tenant, body, hash, adopted_at) VALUES ('acme', $1, $1, 0)";
        client.execute(sql, &[&format!("!damaged {n}")]).await.unwrap();
    }
    let whole = |condemned: Condemned| condemned.blobs.into_iter().map(|blob| blob.body).collect::<Vec<_>>();
    assert_eq!(whole(store.blobs().condemn(at(9), None, 2).await.unwrap()), [stored("whole", 1)]);
    assert_eq!(aside(&store).await, 5);
}

#[tokio::test]
async fn a_task_that_has_changed_since_it_was_read_is_not_set_aside() {
    let (opened, store, client) = world().await;
    change(&client, "live SET error_kind = 'solar_flare'", 1).await;
    claim(&*store, billing(), 5, at(0)).await;
    assert_eq!(aside(&store).await, 1);
    // A newer program takes it back and works on it. Its attempt is settled under its own token.
    change(&client, "live SET error_kind = NULL", 1).await;
    let newer = neighbour(&opened, "newer").await;
    let claimed = claim(&*newer, billing(), 5, at(1)).await.remove(0);
    assert_eq!(claimed.task.id, id(1));
    settle(&*newer, succeed(&claimed, at(2))).await;
    assert_eq!((aside(&store).await, counts(&*store, acme()).await), (0, [1, 1, 1, 0, 0, 0]));
}

#[tokio::test]
async fn unreadable_controls_of_a_lane_are_skipped_and_the_others_fill_the_page() {
    let (opened, store, client) = world().await;
    let limits = Limits { concurrency: Some(3), ..Limits::default() };
    let controls = Controls { limits: Some(limits), ..Controls::default() };
    let lanes = ["b", "d", "f"].map(|name| lane("acme", name));
    for lane in lanes.clone() {
        set_controls(&*store, lane, controls.clone()).await;
    }
    for (dependency, text) in [("a", "{"), ("c", r#"{"pause": 5}"#), ("bad dep", "{}"), ("e", "")] {
        let sql = "INSERT INTO redrive.lane_controls (tenant, dependency, controls) VALUES ('acme', $1, $2)";
        client.execute(sql, &[&dependency, &text]).await.unwrap();
    }
    let expected = lanes.clone().map(|lane| (lane, controls.clone()));
    // Another store over the same database sees the same.
    for store in [store.clone(), neighbour(&opened, "two").await] {
        assert_eq!(store.controls().list(None, 10).await.unwrap(), expected);
        assert_eq!(store.controls().list(None, 2).await.unwrap(), expected[..2]);
        assert_eq!(store.controls().list(Some(lanes[1].clone()), 2).await.unwrap(), expected[2..]);
    }
    // A change replaces what cannot be read, as if nothing had been set.
    for name in ["a", "c", "e"] {
        let replace = async |expected: Controls| {
            store.controls().replace(lane("acme", name), expected, controls.clone()).await.unwrap()
        };
        assert!(!replace(controls.clone()).await, "{name}");
        assert!(replace(Controls::default()).await, "{name}");
        assert_eq!(controls_of(&*store, &lane("acme", name)).await, controls, "{name}");
    }
}
