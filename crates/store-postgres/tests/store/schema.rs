//! Migrating the schema, and running beside a newer program.

use crate::support::{node, open, plain};
use redrive_core::guards::{Controls, Limits};
use redrive_core::policy::Spec;
use redrive_core::{Class, PolicyId, Status, TenantId, Timestamp};
use redrive_store::conformance::samples::*;
use redrive_store::conformance::shared_guards::{change, read_one, replace_one};
use redrive_store::{Error, Expected, GuardKey, Heartbeat, Store, Submitted, VersionedState};
use redrive_store_postgres::{Options, PostgresStore, migrate};
use redrive_testbed::{Database, Postgres};
use tokio_postgres::Client;

#[tokio::test(flavor = "multi_thread")]
async fn of_many_that_come_at_once_one_makes_the_schema() {
    let database = Postgres::shared().fresh_database();
    let opening = (0..8).map(|n| {
        let options = Options::new(database.url(), node(&format!("node-{n}")));
        tokio::spawn(async move { PostgresStore::open(options).await.map(drop) })
    });
    for opened in futures_util::future::join_all(opening).await {
        opened.unwrap().unwrap();
    }
    let versions = plain(database.url()).await.query("SELECT version FROM redrive.schema_versions", &[]).await.unwrap();
    assert_eq!(versions.len(), 7);
}

#[tokio::test]
async fn a_schema_that_is_made_by_hand_is_used_as_it_is() {
    let database = Postgres::shared().fresh_database();
    let by_hand = Options { migrate: false, ..Options::new(database.url(), node("one")) };
    let refused = PostgresStore::open(by_hand.clone()).await.unwrap_err().to_string();
    assert!(
        refused.contains("the database's schema is at version 0") && refused.contains("redrive migrate"),
        "{refused}"
    );
    let state = migrate(&by_hand).await.unwrap();
    assert_eq!((state.version, state.program), (0, 7));
    assert_eq!(migrate(&by_hand).await.unwrap().version, 7);
    PostgresStore::open(by_hand).await.unwrap();
}

/// The schema of version 1, as a program of that version made it.
const VERSION_1: &str = concat!(
    "CREATE SCHEMA redrive;
     CREATE TABLE redrive.schema_versions (
         version bigint PRIMARY KEY, oldest_program bigint NOT NULL, made_at timestamptz NOT NULL DEFAULT now()
     );
     INSERT INTO redrive.schema_versions (version, oldest_program) VALUES (1, 1);",
    include_str!("../../src/schema/v1.sql"),
    include_str!("../../src/schema/enqueue.sql"),
    "INSERT INTO redrive.policies VALUES ('default', 'default', 1);
     INSERT INTO redrive.policy_versions VALUES ('default', 'default', 1, 0, 3, 10000, 86400000, false, '{}');"
);

/// The statement of a version 1 program for a failed attempt: the existing row becomes pending again.
const RETRY_OF_VERSION_1: &str = "
INSERT INTO redrive.live (
    tenant, id, due_at, token, attempt_number, attempts_before, run, run_started_at, deadline_at, attempt_timeout_ms,
    backoff_us, policy_version, cancel_requested, dependency, policy, error_kind, error_message
)
SELECT tenant, id, 1, token, attempt_number, attempts_before, run, run_started_at, deadline_at, attempt_timeout_ms,
       5, policy_version, cancel_requested, dependency, policy, 'http-status', '503'
FROM redrive.live
WHERE lease_until IS NOT NULL
ON CONFLICT (tenant, id) DO UPDATE SET
    due_at = excluded.due_at, lease_since = NULL, lease_until = NULL, node = NULL,
    attempt_number = excluded.attempt_number, backoff_us = excluded.backoff_us,
    error_kind = excluded.error_kind, error_message = excluded.error_message";

/// The statement of a version 1 program that claims everything: all columns of the picked rows are inserted.
const CLAIM_OF_VERSION_1: &str = "
WITH picked AS MATERIALIZED (
    SELECT live.* FROM redrive.live WHERE live.lease_until IS NULL FOR UPDATE SKIP LOCKED
)
INSERT INTO redrive.live
SELECT DISTINCT ON (tenant, id) * FROM picked ORDER BY tenant, id
ON CONFLICT (tenant, id) DO UPDATE SET
    token = live.token + 1, attempt_number = live.attempt_number + 1, node = 'old', lease_since = 1, lease_until = 2";

/// The number of pending tasks of each class in the lane.
async fn classes(store: &PostgresStore, dependency: &str) -> Vec<(Class, usize)> {
    let lane = lane("default", dependency);
    let mut found = Vec::new();
    for class in Class::ALL {
        let claimed = claim_class(store, lane.clone(), class, 100, Timestamp::MAX.before(TERMS.margin * 100)).await;
        give_back(store, &claimed, at(0)).await;
        found.push((class, claimed.len()));
    }
    found
}

#[tokio::test]
async fn a_database_of_version_1_opens_and_goes_on_with_its_retries_apart() {
    let database = Postgres::shared().fresh_database();
    let client = plain(database.url()).await;
    client.batch_execute(VERSION_1).await.unwrap();
    for n in 0..10 {
        let enqueue = format!("SELECT redrive.enqueue('http://a.b/', idempotency_key => '{n}')");
        client.batch_execute(&enqueue).await.unwrap();
        // The first four tasks have been tried once.
        if n == 3 {
            client.batch_execute(CLAIM_OF_VERSION_1).await.unwrap();
            client.batch_execute(RETRY_OF_VERSION_1).await.unwrap();
        }
    }
    // One of them is in its second run, and one is in flight.
    let second_run = "UPDATE redrive.live SET run = 2, attempts_before = 1 WHERE id = (SELECT min(id::text)::uuid FROM redrive.live)";
    client.batch_execute(second_run).await.unwrap();
    let in_flight =
        "UPDATE redrive.live SET token = 2, attempt_number = 2, lease_since = 1, lease_until = 2, node = 'old'
                     WHERE id = (SELECT max(id::text)::uuid FROM redrive.live WHERE attempt_number = 1)";
    client.batch_execute(in_flight).await.unwrap();
    let store = PostgresStore::open(Options::new(database.url(), node("new"))).await.unwrap();
    assert_eq!(classes(&store, "http://a.b").await, [(Class::First, 7), (Class::Retry, 2)]);
    let expired = store.upkeep().expired_leases(at(0), 10).await.unwrap().remove(0);
    settle(&store, retry(&expired, at(0), at(0))).await;
    assert_eq!(classes(&store, "http://a.b").await, [(Class::First, 7), (Class::Retry, 3)]);
    let now = Timestamp::MAX.before(TERMS.margin * 100);
    // Three attempts in all: the task that was tried twice needs a slot, although its row in `live` has no maximum.
    let rooms = Class::ALL.map(|class| room(lane("default", "http://a.b"), class, 0, 100));
    assert_eq!(claim_rooms(&store, rooms, now).await.claimed.len(), 9);
}

#[tokio::test]
async fn what_a_program_of_version_1_writes_beside_this_one_has_its_class() {
    let opened = open("new").await;
    let store = &*opened.store;
    keep(store, (1..=3).map(|n| task(n).of("default").to("mail"))).await;
    let client = plain(opened.database.url()).await;
    assert_eq!(classes(store, "mail").await, [(Class::First, 3), (Class::Retry, 0)]);
    for _ in 0..2 {
        client.batch_execute(CLAIM_OF_VERSION_1).await.unwrap();
        client.batch_execute(RETRY_OF_VERSION_1).await.unwrap();
        assert_eq!(classes(store, "mail").await, [(Class::First, 0), (Class::Retry, 3)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_waits_for_an_open_transaction_and_delays_no_other_call() {
    let database = Postgres::shared().fresh_database();
    let mut client = plain(database.url()).await;
    client.batch_execute(VERSION_1).await.unwrap();
    let open = client.transaction().await.unwrap();
    open.query("SELECT redrive.enqueue('http://a.b/')", &[]).await.unwrap();
    let options = Options::new(database.url(), node("new"));
    let migrating = tokio::spawn(async move { migrate(&options).await });
    let other = plain(database.url()).await;
    let waits = "SELECT FROM pg_locks WHERE NOT granted AND relation = 'redrive.live'::regclass";
    while other.query(waits, &[]).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    // This call comes after the migration in the queue for the table, and is served before.
    other.query("SELECT redrive.enqueue('http://a.b/')", &[]).await.unwrap();
    open.commit().await.unwrap();
    assert_eq!(migrating.await.unwrap().unwrap().version, 1);
    assert_eq!(other.query("SELECT FROM redrive.live WHERE class = 0", &[]).await.unwrap().len(), 2);
}

/// The further steps to the schema of version 5, as programs of these versions made them.
const VERSION_5: &str = concat!(
    include_str!("../../src/schema/v2.sql"),
    include_str!("../../src/schema/v3.sql"),
    include_str!("../../src/schema/v4.sql"),
    include_str!("../../src/schema/v5.sql"),
    "INSERT INTO redrive.schema_versions (version, oldest_program) VALUES (2, 1), (3, 1), (4, 1), (5, 1);"
);

#[tokio::test]
async fn a_database_of_version_5_gets_shared_guards_and_keeps_what_programs_of_that_version_read() {
    let database = Postgres::shared().fresh_database();
    let client = plain(database.url()).await;
    client.batch_execute(VERSION_1).await.unwrap();
    client.batch_execute(&format!("BEGIN; {VERSION_5} COMMIT")).await.unwrap();
    let controls = Controls { limits: Some(Limits::default()), ..Controls::default() };
    let put = "INSERT INTO redrive.lane_controls VALUES ('acme', 'billing', $1)";
    client.execute(put, &[&serde_json::to_string(&controls).unwrap()]).await.unwrap();
    let options = Options::new(database.url(), node("new"));
    assert_eq!(migrate(&options).await.unwrap().version, 5);
    let store = PostgresStore::open(options).await.unwrap();
    assert_eq!(store.controls().list(None, 10).await.unwrap(), [(lane("acme", "billing"), controls)]);
    let guards = store.shared().unwrap().guards();
    let key = GuardKey::Lane(lane("acme", "billing"));
    let version = replace_one(guards, change(key.clone(), None, "state")).await.unwrap();
    assert_eq!(read_one(guards, key).await, Some(VersionedState { version, state: "state".to_owned() }));
    // A statement of programs of version 5 with a schedule in Redis.
    client.query("SELECT tenant, dependency, until FROM redrive.guard_holds WHERE until > 0", &[]).await.unwrap();
    let newest = "SELECT version, oldest_program FROM redrive.schema_versions ORDER BY version DESC LIMIT 1";
    let newest = client.query_one(newest, &[]).await.unwrap();
    assert_eq!((newest.get::<_, i64>(0), newest.get::<_, i64>(1)), (7, 1), "programs of every version still run");
}

/// A change that the next version may make and still be used by this one: add a column that has a default.
const NEXT_VERSION: &str = "
ALTER TABLE redrive.tasks ADD COLUMN added text;
ALTER TABLE redrive.live ADD COLUMN added bigint NOT NULL DEFAULT 0;
ALTER TABLE redrive.log ADD COLUMN added text;
CREATE TABLE redrive.new_things (id bigint PRIMARY KEY);
INSERT INTO redrive.schema_versions (version, oldest_program) VALUES (8, 1);";

#[tokio::test]
async fn a_program_goes_on_working_when_the_next_version_migrates_under_it() {
    let opened = open("old").await;
    let claimed = keep_and_claim(&*opened.store, task(1)).await;
    plain(opened.database.url()).await.batch_execute(NEXT_VERSION).await.unwrap();
    // A running store, with statements prepared before, and one that is opened now.
    settle(&*opened.store, retry(&claimed, at(5), at(6))).await;
    let started = crate::support::neighbour(&opened, "old-too").await;
    let again = claim_class(&*started, billing(), Class::Retry, 5, at(9)).await.remove(0);
    settle(&*opened.store, succeed(&again, at(10))).await;
    assert_eq!(counts(&*started, acme()).await, [0, 0, 1, 0, 0, 0]);
    assert_eq!(attempts(&*opened.store, &claimed.task).await.len(), 2);
}

#[tokio::test]
async fn an_attempt_that_the_version_before_logged_has_its_number_in_all_for_its_number_in_the_run() {
    let opened = open("new").await;
    let store = &*opened.store;
    keep_and_end(store, task(1), Status::Failed, at(9)).await;
    store.tasks().replay_one(acme(), id(1), at(10)).await.unwrap();
    let second = claim(store, billing(), 1, at(11)).await.remove(0);
    settle(store, retry(&second, at(12), at(13))).await;
    let client = plain(opened.database.url()).await;
    client.batch_execute("UPDATE redrive.log SET number_in_run = NULL").await.unwrap();
    let third = claim(store, billing(), 1, at(14)).await.remove(0);
    settle(store, succeed(&third, at(15))).await;
    let numbers: Vec<_> =
        attempts(store, &third.task).await.iter().map(|attempt| (attempt.number, attempt.number_in_run)).collect();
    assert_eq!(numbers, [(1, 1), (2, 2), (3, 2)]);
}

#[tokio::test]
async fn the_view_for_people_shows_no_secrets_also_in_a_database_of_version_1() {
    let database = Postgres::shared().fresh_database();
    let client = plain(database.url()).await;
    client.batch_execute(VERSION_1).await.unwrap();
    client.batch_execute("CREATE ROLE overview_reader").await.ok();
    client.batch_execute("GRANT SELECT ON redrive.task_overview TO overview_reader").await.unwrap();
    let cases = [
        ("http://a.b/c/d", "http://a.b/c/d"),
        ("https://user:SECRET@a.b/", "https://***@a.b/"),
        ("https://SECRET@a.b:8080", "https://***@a.b:8080"),
        ("https://SECRET:@a.b/x@y", "https://***@a.b/x@y"),
        ("https://u:SECRET@SECRET@a.b/?x=y@z", "https://***@a.b/?***"),
        ("https://a.b?access_token=SECRET", "https://a.b?***"),
        ("HTTPS://a.b/c?page=2&sig=SECRET?x", "HTTPS://a.b/c?***"),
    ];
    for (n, (url, _)) in cases.into_iter().enumerate() {
        let enqueue = "SELECT redrive.enqueue($1::text, idempotency_key => $2)";
        client.query(enqueue, &[&url, &n.to_string()]).await.unwrap();
    }
    PostgresStore::open(Options::new(database.url(), node("new"))).await.unwrap();
    let view = "SELECT target_url, task_overview::text FROM redrive.task_overview ORDER BY idempotency_key";
    let rows = client.query(view, &[]);
    for ((url, shown), row) in cases.into_iter().zip(rows.await.unwrap()) {
        let (target, all): (String, String) = (row.get(0), row.get(1));
        assert_eq!(target, shown, "{url}");
        assert!(!all.contains("SECRET"), "{all}");
    }
    let kept = client.query_one("SELECT count(*) FROM redrive.tasks WHERE target_url LIKE '%SECRET%'", &[]).await;
    assert_eq!(kept.unwrap().get::<_, i64>(0), 6);
    // Privileges that were granted on the view before are kept.
    let granted = "SELECT has_table_privilege('overview_reader', 'redrive.task_overview', 'SELECT')";
    assert!(client.query_one(granted, &[]).await.unwrap().get::<_, bool>(0));
}

#[tokio::test]
async fn a_schema_that_needs_a_newer_program_is_refused() {
    let opened = open("old").await;
    let client = plain(opened.database.url()).await;
    client.batch_execute("INSERT INTO redrive.schema_versions (version, oldest_program) VALUES (8, 8)").await.unwrap();
    let refused = PostgresStore::open(Options::new(opened.database.url(), node("two"))).await.unwrap_err().to_string();
    assert!(refused.contains("is at version 8, which needs a newer program"), "{refused}");
}

#[tokio::test]
async fn a_process_that_runs_notices_that_the_schema_needs_a_newer_program() {
    let opened = open("old").await;
    let store = &*opened.store;
    let claimed = keep_and_claim(store, task(1)).await;
    keep(store, [task(2)]).await;
    let client = plain(opened.database.url()).await;
    client.batch_execute("INSERT INTO redrive.schema_versions (version, oldest_program) VALUES (8, 8)").await.unwrap();
    store.shared().unwrap().heartbeat(heartbeat(), at(0)).await.unwrap();
    let is_told = |error: &Error| matches!(error, Error::Unavailable(told) if told.contains("is at version 8, which needs a newer program"));
    let claim = store.tasks().claim(request([room(billing(), Class::First, 1, 0)], at(5))).await.unwrap_err();
    let submit = store.tasks().submit(vec![task(3).0]).await.unwrap_err();
    let check = store.health().check().await.unwrap_err();
    let guards = store.shared().unwrap().guards().replace(Vec::new()).await.unwrap_err();
    for error in [claim, submit, check, guards] {
        assert!(is_told(&error), "{error}");
    }
    // Attempts that were sent already are settled, so that they are not sent again.
    settle(store, succeed(&claimed, at(6))).await;
    // After the migration is undone, the process continues.
    client.batch_execute("DELETE FROM redrive.schema_versions WHERE version = 8").await.unwrap();
    store.health().check().await.unwrap();
    assert_eq!(claim_class(store, billing(), Class::First, 5, at(7)).await.len(), 1);
}

fn heartbeat() -> Heartbeat {
    Heartbeat {
        started_at: at(0),
        version: "1".to_owned(),
        address: "127.0.0.1:1".to_owned(),
        in_flight: 0,
        is_draining: false,
        claims: true,
        clock_ahead_ms: 0,
        every: std::time::Duration::from_secs(5),
    }
}

#[tokio::test]
async fn a_schema_that_was_dropped_and_made_anew_has_its_default_policy() {
    let opened = open("one").await;
    let store = &*opened.store;
    let (tenant, policy) = (TenantId::default_tenant(), PolicyId::default_policy());
    store.policies().put(tenant.clone(), policy.clone(), Spec::default(), Expected::Absent, at(0)).await.unwrap();
    plain(opened.database.url()).await.batch_execute("DROP SCHEMA redrive CASCADE").await.unwrap();
    migrate(&Options::new(opened.database.url(), node("two"))).await.unwrap();
    let versions = store.policies().versions(tenant.clone(), policy.clone()).await.unwrap();
    assert_eq!(
        versions.iter().map(|version| (version.version, &version.spec)).collect::<Vec<_>>(),
        [(1, &Spec::default())]
    );
    let new = task(1).of(tenant.as_str()).policy(policy.as_str(), 1);
    let created = store.tasks().submit(vec![new.0]).await.unwrap();
    assert!(matches!(created[..], [Submitted::Created(_, None)]), "{created:?}");
    let enqueue = "SELECT redrive.enqueue('http://a.b/')";
    plain(opened.database.url()).await.query_one(enqueue, &[]).await.unwrap();
}

#[tokio::test]
async fn an_address_that_cannot_be_used_is_told_without_its_password() {
    for (url, told) in [
        ("postgres://redrive:s3cret@127.0.0.1:1/x", "could not connect: "),
        ("postgres://redrive:s3cret@127.0.0.1:bad/x", "the address cannot be read"),
    ] {
        let error = PostgresStore::open(Options::new(url, node("one"))).await.unwrap_err().to_string();
        assert!(error.contains(told) && !error.contains("s3cret"), "{error}");
    }
}

#[tokio::test]
async fn a_task_that_only_a_newer_program_understands_holds_up_none_of_the_others() {
    let opened = open("old").await;
    let store = &*opened.store;
    keep(store, (1..=5).map(task)).await;
    let client = plain(opened.database.url()).await;
    let newer = format!("UPDATE redrive.live SET error_kind = 'solar_flare' WHERE id IN ('{}', '{}')", id(1), id(3));
    client.batch_execute(&newer).await.unwrap();
    let readable = [id(2), id(4), id(5)];
    let claimed: Vec<_> = claim(store, billing(), 5, at(5)).await.into_iter().map(|claimed| claimed.task.id).collect();
    assert_eq!(claimed, readable);
    let expired = store.upkeep().expired_leases(at(9_000_000), 2).await.unwrap();
    assert_eq!(expired.iter().map(|claimed| claimed.task.id).collect::<Vec<_>>(), readable[..2]);
    // A program that can read them takes them back at its start.
    client.batch_execute("UPDATE redrive.live SET error_kind = NULL").await.unwrap();
    let newer = crate::support::neighbour(&opened, "newer").await;
    let claimed: Vec<_> =
        claim(&*newer, billing(), 5, at(5)).await.into_iter().map(|claimed| claimed.task.id).collect();
    assert_eq!(claimed, [id(1), id(3)]);
}

#[tokio::test]
async fn a_schema_of_the_same_name_from_another_program_is_left_unchanged() {
    let database = Postgres::shared().fresh_database();
    let client = plain(database.url()).await;
    client.batch_execute("CREATE SCHEMA redrive; CREATE TABLE redrive.orders (id int)").await.unwrap();
    let refused = PostgresStore::open(Options::new(database.url(), node("one"))).await.unwrap_err().to_string();
    assert!(refused.contains("has a table orders that Redrive did not make"), "{refused}");
}

#[tokio::test]
async fn a_key_whose_task_only_a_newer_program_can_read_affects_no_other_key() {
    let opened = open("old").await;
    let store = &*opened.store;
    keep(store, [task(1), task(2)]).await;
    let client = plain(opened.database.url()).await;
    client.batch_execute("UPDATE redrive.live SET error_kind = 'solar_flare'").await.unwrap();
    let submits =
        [task(1), task(3), task(4).key("key-2").body("other")].map(|sample| store.tasks().submit(vec![sample.0]));
    let answers = futures_util::future::join_all(submits).await;
    // A task that is submitted again and exists; a new one; one whose owner's id is enough.
    for answer in &answers[..2] {
        assert!(matches!(answer.as_ref().unwrap()[..], [Submitted::Created(_, None)]), "{answer:?}");
    }
    assert_eq!(answers[2].as_ref().unwrap(), &[Submitted::KeyReused(id(2))]);
    let replay = store.tasks().submit(vec![task(5).key("key-2").0]).await;
    assert_eq!(replay.unwrap(), [Submitted::KeyUnreadable(id(2))]);
}

/// A role that is not a superuser, and an address with its name.
async fn role(client: &Client, database: &Database, kind: &str, options: &str) -> (String, String) {
    let name = format!("{kind} of {}", database.name());
    client.batch_execute(&format!("CREATE ROLE \"{name}\" LOGIN {options}")).await.unwrap();
    let (before, behind) = database.url().split_once("redrive@").unwrap();
    let url = format!("{before}{}@{behind}", name.replace(' ', "%20"));
    (name, url)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_migration_adds_belongs_to_the_owner_of_the_schema_whoever_migrates() {
    const NOT_OF_OWNER: &str = "
SELECT count(*) FROM pg_class
WHERE relnamespace = 'redrive'::regnamespace AND relkind IN ('r', 'v', 'S') AND pg_get_userbyid(relowner) <> $1";
    let database = Postgres::shared().fresh_database();
    let admin = plain(database.url()).await;
    let (owner, as_owner) = role(&admin, &database, "owner", "").await;
    let (member, as_member) = role(&admin, &database, "member", &format!("IN ROLE \"{owner}\"")).await;
    let (node_role, as_node) = role(&admin, &database, "nodes", "").await;
    let create = format!("GRANT CREATE ON DATABASE {} TO \"{owner}\"", database.name());
    for migrating in [as_member.as_str(), database.url()] {
        admin.batch_execute(&format!("{create}; DROP SCHEMA IF EXISTS redrive CASCADE")).await.unwrap();
        plain(&as_owner).await.batch_execute(VERSION_1).await.unwrap();
        admin
            .batch_execute(&format!(
                "GRANT USAGE ON SCHEMA redrive TO \"{node_role}\";
                 GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA redrive TO \"{node_role}\";
                 GRANT USAGE ON ALL SEQUENCES IN SCHEMA redrive TO \"{node_role}\";
                 ALTER DEFAULT PRIVILEGES FOR ROLE \"{owner}\" IN SCHEMA redrive
                     GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO \"{node_role}\";
                 ALTER DEFAULT PRIVILEGES FOR ROLE \"{owner}\" IN SCHEMA redrive GRANT USAGE ON SEQUENCES TO \"{node_role}\""
            ))
            .await
            .unwrap();
        assert_eq!(migrate(&Options::new(migrating, node("by-hand"))).await.unwrap().version, 1, "{migrating}");
        let others: i64 = admin.query_one(NOT_OF_OWNER, &[&owner]).await.unwrap().get(0);
        assert_eq!(others, 0, "{migrating}");
        let options = Options { migrate: false, ..Options::new(&as_node, node("one")) };
        let store = PostgresStore::open(options).await.unwrap();
        store.tasks().submit(vec![task(1).0]).await.unwrap();
        store.close().await;
    }
    admin.batch_execute("DROP SCHEMA redrive CASCADE").await.unwrap();
    // The owner of an empty schema is the owner of its tables.
    let refused = migrate(&Options::new(&as_node, node("by-hand"))).await.unwrap_err();
    assert!(refused.is_misconfiguration() && refused.to_string().contains("(SQLSTATE 42501); grant"), "{refused}");
    admin.batch_execute(&format!("CREATE SCHEMA redrive AUTHORIZATION \"{owner}\"")).await.unwrap();
    assert_eq!(migrate(&Options::new(database.url(), node("by-hand"))).await.unwrap().version, 0);
    let others: i64 = admin.query_one(NOT_OF_OWNER, &[&owner]).await.unwrap().get(0);
    assert_eq!(others, 0);
    for role in [node_role, member, owner] {
        admin.batch_execute(&format!("DROP OWNED BY \"{role}\"; DROP ROLE \"{role}\"")).await.unwrap();
    }
}

/// What a superuser or another member of the owner's role left to itself when it migrated, of each kind.
const STRAYS: [&str; 5] = [
    "TABLE redrive.live",
    "TABLE redrive.blobs",
    "VIEW redrive.task_overview",
    "SEQUENCE redrive.enqueue_order",
    "FUNCTION redrive.header_fields(jsonb, text)",
];

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_another_role_is_given_to_the_owner_by_a_migration_that_may() {
    const OWNERS: &str = "
SELECT relname::text, pg_get_userbyid(relowner)::text FROM pg_class WHERE relnamespace = 'redrive'::regnamespace
UNION ALL
SELECT proname::text, pg_get_userbyid(proowner)::text FROM pg_proc WHERE pronamespace = 'redrive'::regnamespace
UNION ALL
SELECT typname::text, pg_get_userbyid(typowner)::text FROM pg_type WHERE typnamespace = 'redrive'::regnamespace";
    let database = Postgres::shared().fresh_database();
    let admin = plain(database.url()).await;
    let (owner, as_owner) = role(&admin, &database, "owner", "").await;
    let (other, _) = role(&admin, &database, "other", "").await;
    let (member, as_member) = role(&admin, &database, "member", &format!("IN ROLE \"{owner}\"")).await;
    let (both, as_both) = role(&admin, &database, "both", &format!("IN ROLE \"{owner}\", \"{other}\"")).await;
    admin.batch_execute(&format!("GRANT CREATE ON DATABASE {} TO \"{owner}\"", database.name())).await.unwrap();
    // who migrates, the owner of the strays, whether the migration may give them to the schema's owner
    let cases = [
        (database.url(), "redrive", true),
        (database.url(), other.as_str(), true),
        (&as_both, &other, true),
        (&as_both, "redrive", false),
        (&as_member, &other, false),
        (&as_owner, &other, false),
        (&as_owner, "redrive", false),
    ];
    for (migrating, stray_owner, may) in cases {
        plain(&as_owner).await.batch_execute(VERSION_1).await.unwrap();
        for stray in STRAYS {
            admin.batch_execute(&format!("ALTER {stray} OWNER TO \"{stray_owner}\"")).await.unwrap();
        }
        // Not made by Redrive.
        admin.batch_execute("CREATE TABLE redrive.reports (id serial)").await.unwrap();
        let migrated = migrate(&Options::new(migrating, node("by-hand"))).await;
        let owners = admin.query(OWNERS, &[]).await.unwrap().into_iter().map(|row| (row.get(0), row.get(1)));
        let owners: Vec<(String, String)> = owners.collect();
        let of_reports = |name: &str| name.trim_start_matches('_').starts_with("reports");
        for (name, role) in &owners {
            match (of_reports(name), may) {
                (true, _) => assert_eq!(role, "redrive", "{migrating}: {name}"),
                (false, true) => assert_eq!(role, &owner, "{migrating}: {name}"),
                (false, false) => assert!([stray_owner, owner.as_str()].contains(&role.as_str()), "{name}: {role}"),
            }
        }
        let of_stray_owner = owners.iter().filter(|(name, role)| role == stray_owner && !of_reports(name));
        assert_eq!(of_stray_owner.count() == 0, may, "{migrating}: {owners:?}");
        if may {
            assert_eq!(migrated.unwrap().version, 1, "{migrating}");
        } else {
            let refused = migrated.unwrap_err();
            assert!(refused.is_misconfiguration());
            let refused = refused.to_string();
            let stray_owner = if stray_owner == "redrive" { stray_owner } else { &format!("\"{stray_owner}\"") };
            let told = [
                "bringing the schema up to date: ",
                "(SQLSTATE 42501); these do not belong to \"owner of ",
                &format!("view redrive.task_overview ({stray_owner}), table redrive.blobs ({stray_owner}), "),
                &format!(
                    "table redrive.live ({stray_owner}), 2 more; run `redrive migrate` once as a superuser, or as a"
                ),
            ];
            for part in told {
                assert!(refused.contains(part), "{part:?} is not in {refused:?}");
            }
        }
        admin.batch_execute("DROP SCHEMA redrive CASCADE").await.unwrap();
    }
    for role in [member, both, other, owner] {
        admin.batch_execute(&format!("DROP OWNED BY \"{role}\"; DROP ROLE \"{role}\"")).await.unwrap();
    }
}
