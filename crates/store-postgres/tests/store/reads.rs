//! How many rows each call reads: as many as it needs, not as many as there are. Counted in rows by PostgreSQL, because
//! a plan that scans a table is fast while the table is small.
//!
//! The hardest case is a queue that was empty for long and has just filled: the planner's statistics are wrong, and the
//! sessions' plans were made for empty tables.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use redrive_core::{Class, IdempotencyKey, Lane, Reason, Status};
use redrive_store::conformance::samples::*;
use redrive_store::conformance::workload;
use redrive_store::{
    Blob, ClaimKnownRequest, ClaimRequest, ClaimedTask, CleanFrom, KnownTask, RaisedAlert, Store, Suppression, Token,
};
use redrive_store_postgres::{Options, PostgresStore};
use redrive_testbed::{Database, Postgres};
use tokio_postgres::Client;

use crate::support::{NEVER, node, open_with, plain, until_gone};

/// The number of pending tasks.
const PENDING: u64 = 20_000;
/// The number of tasks in flight, behind those.
const IN_FLIGHT: u64 = 200;
/// The number of dead letters, behind those.
const DEAD: u64 = 10_000;
const FIRST_IN_FLIGHT: u64 = PENDING + 1;
const FIRST_DEAD: u64 = PENDING + IN_FLIGHT + 1;
/// Further lanes with pending tasks, behind those: how their rows differ.
const LANES: [&str; 4] = [
    ", 'retries' AS dependency, 1 AS class, 1 AS attempt_number",
    ", 'last' AS dependency, 1 AS max_attempts",
    ", 'before' AS dependency, NULL AS max_attempts",
    ", 'late' AS dependency, 1800000000003 AS deadline_at",
];
/// The number of tasks of each such lane.
const PER_LANE: u64 = 3_000;
/// The most rows that a call may read for each requested one: a few tables, a few indexes.
const ROWS_FOR_EACH: i64 = 12;
/// The most index pages that a call may read for each requested row: to find it and to change it in a few indexes of up
/// to three levels. A scan along an index of the filled database is a hundred pages and more.
const PAGES_FOR_EACH: i64 = 36;
/// How often each call is made with an empty database: often enough for a session to choose its plans.
const EMPTY_ROUNDS: i64 = 8;
/// The rows that a call reads for each requested one then, and the pages: one of each index of its tables whenever it
/// is planned.
const ROWS_FOR_NOTHING: i64 = 4;
const PAGES_FOR_NOTHING: i64 = 16;

/// A call, and about how many rows it requests. It is made with an empty database and with a full one.
struct Call {
    name: &'static str,
    asks_for: i64,
    run: fn(Arc<PostgresStore>, Round) -> BoxFuture<'static, ()>,
}

/// When a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    /// The database is empty.
    Empty,
    /// The first call with the full database.
    First,
    /// A later call.
    Again,
}

macro_rules! call {
    ($name:literal, $asks_for:expr, |$store:ident, $round:pat_param| $work:expr) => {
        Call {
            name: $name,
            asks_for: $asks_for,
            run: |$store, $round| {
                Box::pin(async move {
                    $work;
                })
            },
        }
    };
}

mod records;

/// The claim of task `n` that was made when the database was filled.
fn claimed(n: u64) -> ClaimedTask {
    let new = task(n).claimed(at(0)).0;
    let mut held = new.task.clone();
    (held.status, held.attempt_number) = (Status::InFlight, 1);
    let lease = redrive_store::Lease { token: Token(1), since: at(0), until: at(15_000) };
    ClaimedTask { task: held, request: new.request, lease }
}

fn calls() -> Vec<Call> {
    submits_and_claims().into_iter().chain(other_calls()).chain(records::calls()).collect()
}

fn submits_and_claims() -> Vec<Call> {
    vec![
        call!("submit", 20, |store, round| {
            // Tasks of a tenant without policies are not stored, so the database stays empty until it is filled.
            let tenant = if round == Round::Empty { "nobody" } else { TENANT };
            submit(&*store, (0..20).map(|n| task(500_000 + n).of(tenant))).await
        }),
        call!("claim", 16, |store, round| { claim_of(&store, round, billing(), (16, 0), 16).await }),
        call!("claim ahead", 16, |store, round| claim_of(&store, round, billing(), (4, 12), 16).await),
        call!("claim as much as all rooms may", 16, |store, round| {
            let rooms = Class::ALL.map(|class| room(billing(), class, 10_000, 10_000));
            let claims = store.tasks().claim(ClaimRequest { most: 16, ..request(rooms, at(5)) }).await.unwrap();
            assert_eq!(claims.claimed.len(), if round == Round::Empty { 0 } else { 16 });
        }),
        call!("claim retries", 16, |store, round| {
            let claims = claim_rooms(&*store, [room(lane(TENANT, "retries"), Class::Retry, 4, 12)], at(5)).await;
            assert_eq!(claims.claimed.len(), if round == Round::Empty { 0 } else { 16 });
        }),
        call!("claim last attempts", 5, |store, round| {
            claim_of(&store, round, lane(TENANT, "last"), (4, 12), 4).await
        }),
        call!("claim what the version before wrote", 16, |store, round| {
            claim_of(&store, round, lane(TENANT, "before"), (4, 12), 16).await
        }),
        call!("end overdue", 16, |store, round| {
            let ended = store.upkeep().end_overdue(at(5), 16).await.unwrap().ended.len();
            assert_eq!(ended, if round == Round::Empty { 0 } else { 16 });
        }),
        call!("end nothing overdue", 1, |store, _| {
            assert_eq!(store.upkeep().end_overdue(at(0), 16).await.unwrap().ended, []);
        }),
        call!("claim known", 16, |store, round| {
            let known = |n: u64| KnownTask {
                tenant: acme(),
                id: id(1_000 + n),
                token: Token(0),
                has_slot: n.is_multiple_of(2),
            };
            let (known, now) = ((1..=16).map(known).collect(), at(5));
            let request = ClaimKnownRequest { known, due_by: now, lease: TERMS, now };
            let claimed = store.shared().unwrap().claim_known(request).await.unwrap();
            assert_eq!(claimed.len(), if round == Round::First { 16 } else { 0 });
        }),
    ]
}

fn other_calls() -> Vec<Call> {
    let in_flight = IN_FLIGHT.cast_signed();
    vec![
        call!("settle", 16, |store, _| {
            let ends = (0..16).map(|n| (n, claimed(FIRST_IN_FLIGHT + n))).map(|(n, claimed)| match n % 3 {
                0 => succeed(&claimed, at(9)),
                1 => retry(&claimed, at(9), at(99)),
                _ => end(&claimed, Status::Failed, Some(Reason::NotRetryable), at(9)),
            });
            store.tasks().settle(ends.collect()).await.unwrap()
        }),
        call!("expired", 16, |store, _| store.upkeep().expired_leases(at(20_000), 16).await.unwrap()),
        call!("pending lanes", 8, |store, _| store.upkeep().pending_lanes(None, 8).await.unwrap()),
        call!("backlogs", 32, |store, round| {
            let lanes = ["retries", "last", "idle", DEPENDENCY].map(|name| lane(TENANT, name)).to_vec();
            let due: Vec<_> = store.reads().backlogs(lanes, at(5), 8).await.unwrap().iter().map(|of| of.due).collect();
            assert_eq!(due, if round == Round::Empty { [0, 0, 0, 0] } else { [8, 8, 0, 8] });
        }),
        call!("waiting", 16, |store, _| {
            store.shared().unwrap().waiting(Some((acme(), id(9_000))), 16).await.unwrap()
        }),
        call!("cancel", 1, |store, _| store.tasks().cancel_one(acme(), id(3_000), at(9)).await.unwrap()),
        call!("suppress", 4, |store, _| {
            let waiting = |n| Suppression { tenant: acme(), id: id(n), attempt_number: 0 };
            store.tasks().suppress((4_000..4_004).map(waiting).collect(), at(9)).await.unwrap()
        }),
        call!("bring forward", 1, |store, _| store.tasks().bring_one_forward(acme(), id(3_001), at(9)).await.unwrap()),
        call!("replay", 1, |store, _| store.tasks().replay_one(acme(), id(FIRST_DEAD + 5), at(9)).await.unwrap()),
        call!("a task that waits", 1, |store, _| store.reads().task(acme(), id(3_002)).await.unwrap()),
        call!("a task that ended", 1, |store, _| store.reads().task(acme(), id(FIRST_DEAD + 6)).await.unwrap()),
        call!("attempts", 1, |store, _| store.reads().attempts(acme(), id(FIRST_DEAD + 6), 0, 10).await.unwrap()),
        call!("by key", 1, |store, _| {
            store.reads().by_key(acme(), IdempotencyKey::try_new("key-77").unwrap()).await.unwrap()
        }),
        call!("unannounced", 16, |store, _| store.upkeep().pending_alerts(at(20_000), 16).await.unwrap()),
        call!("announced", 16, |store, _| {
            let dead = (0..16).map(|n| RaisedAlert { tenant: acme(), id: id(FIRST_DEAD + 100 + n), run: 1 });
            store.upkeep().confirm_alerts(dead.collect()).await.unwrap()
        }),
        call!("clean", 16, |store, _| {
            store.upkeep().clean(at(20_000), CleanFrom::After(id(FIRST_DEAD + 500)), 16).await.unwrap()
        }),
        call!("newest task", 1, |store, _| store.upkeep().newest_task().await.unwrap()),
        call!("adopt a blob", 1, |store, _| {
            store.blobs().adopt(acme(), stored("content 7", 2), at(9)).await.unwrap()
        }),
        call!("a blob", 1, |store, _| store.blobs().find(acme(), stored("content 8", 1).hash).await.unwrap()),
        call!("condemn blobs", 16, |store, _| store.blobs().condemn(at(20_000), None, 16).await.unwrap()),
        call!("forget blobs", 16, |store, _| {
            let blobs = (0..16).map(|n| Blob { tenant: acme(), body: stored(&format!("content {}", 100 + n), 1) });
            store.blobs().forget(blobs.collect()).await.unwrap()
        }),
        call!("a page of all", 16, |store, _| page(&store, &[]).await),
        call!("a page of dead letters", 16, |store, _| page(&store, &[Status::Failed, Status::Exhausted]).await),
        call!("a page of what waits", 16, |store, _| page(&store, &[Status::Pending]).await),
        call!("a page of what is in flight", in_flight, |store, _| page(&store, &[Status::InFlight]).await),
        call!("processes", in_flight, |store, _| store.shared().unwrap().nodes().await.unwrap()),
    ]
}

/// Claims into a room of a lane with these slots and this much ahead of them, together with a room in which nothing is
/// due.
async fn claim_of(store: &PostgresStore, round: Round, lane: Lane, (slots, ahead): (usize, usize), expected: usize) {
    let idle = redrive_store::conformance::samples::lane(TENANT, "idle");
    let rooms = [room(lane, Class::First, slots, ahead), room(idle, Class::First, 16, 0)];
    let claims = claim_rooms(store, rooms, at(5)).await;
    assert_eq!(claims.claimed.len(), if round == Round::Empty { 0 } else { expected });
}

/// The ids of a page are read in advance, up to the most that a page looks at: those are not counted here.
async fn page(store: &PostgresStore, statuses: &[Status]) {
    let below = match statuses {
        [Status::InFlight] => None,
        [Status::Pending] => Some(id(17)),
        [] => Some(id(17)),
        _ => Some(id(FIRST_DEAD + 16)),
    };
    store
        .reads()
        .list(redrive_store::TaskQuery { statuses: statuses.to_vec(), below, limit: 16, ..everything(acme()) })
        .await
        .unwrap();
}

/// Copies the rows of one task for these ids: what the store would have written, without calling it.
async fn copy(client: &Client, template: u64, table: &str, columns: &str, first: u64, count: u64) {
    let ids: Vec<String> = (first..first + count).map(|n| id(n).to_string()).collect();
    let sql = format!(
        "INSERT INTO redrive.{table} SELECT (jsonb_populate_record(template, to_jsonb(copied) - 'n')).*
         FROM redrive.{table} AS template
         CROSS JOIN LATERAL (
             SELECT id::uuid AS id, $3::bigint + place - 1 AS n FROM unnest($2::text[]) WITH ORDINALITY AS given (id, place)
         ) AS given
         CROSS JOIN LATERAL (SELECT given.id, given.n {columns}) AS copied
         WHERE template.id = $1::text::uuid"
    );
    client.execute(&sql, &[&id(template).to_string(), &ids, &first.cast_signed()]).await.unwrap();
}

const KEY: &str = ", 'key-' || given.n AS idempotency_key";

/// Fills the database while the stores are open.
async fn fill(database: &Database, client: &Client) {
    let filling = plain(database.url()).await;
    filling.batch_execute("SET application_name = 'redrive filling'").await.unwrap();
    fill_with(database, &filling).await;
    drop(filling);
    // The session's reads are counted when it ends, and must not be among what is measured.
    until_gone(client, "redrive filling").await;
    until_gone(client, "redrive filler").await;
}

/// Runs a statement in a separate session. Its deletes are counted when it ends. If they were counted after the ANALYZE
/// that comes next, the stores would soon run another one, on tables with next to nothing in them.
async fn emptied_by(database: &Database, client: &Client, sql: &str) {
    let emptying = plain(database.url()).await;
    emptying.batch_execute("SET application_name = 'redrive emptying'").await.unwrap();
    emptying.batch_execute(sql).await.unwrap();
    drop(emptying);
    until_gone(client, "redrive emptying").await;
}

async fn fill_with(database: &Database, client: &Client) {
    let filler = PostgresStore::open(Options::new(database.url(), node("filler"))).await.unwrap();
    keep_and_end(&filler, task(900_003), Status::Exhausted, at(9)).await;
    keep(&filler, [task(900_001), task(900_002).claimed(at(0))]).await;
    filler.close().await;
    let first_of_lanes = FIRST_DEAD + DEAD;
    copy(client, 900_001, "tasks", KEY, 1, first_of_lanes - 1 + PER_LANE * LANES.len() as u64).await;
    for (n, columns) in (0..).zip(LANES) {
        copy(client, 900_001, "live", columns, first_of_lanes + n * PER_LANE, PER_LANE).await;
    }
    copy(client, 900_001, "live", "", 1, PENDING).await;
    copy(client, 900_002, "live", "", FIRST_IN_FLIGHT, IN_FLIGHT).await;
    copy(client, 900_003, "log", "", FIRST_DEAD, DEAD).await;
    copy(client, 900_003, "dead_letters", "", FIRST_DEAD, DEAD).await;
    let blobs: Vec<_> = (0..5_000).map(|n| stored(&format!("content {n}"), 1)).collect();
    let bodies: Vec<String> = blobs.iter().map(redrive_core::BodyRef::to_record).collect();
    let hashes: Vec<String> = blobs.iter().map(|blob| blob.hash.to_string()).collect();
    let sql = "INSERT INTO redrive.blobs SELECT 'acme', body, hash, 1800000000000 FROM unnest($1::text[], $2::text[]) AS given (body, hash)";
    client.execute(sql, &[&bodies, &hashes]).await.unwrap();
    records::fill(client).await;
}

/// What ended sessions have read so far, by scan: rows, and pages of indexes, because a scan along an index that finds
/// its row late counts only that row. The tables of counts and policies are not included.
async fn reads(client: &Client) -> Vec<Read> {
    let sql = "
        SELECT relname::text AS scan, seq_tup_read AS rows, 0::bigint AS pages FROM pg_stat_user_tables
        WHERE schemaname = 'redrive' AND relname <> ALL ($1)
        UNION ALL
        SELECT indexrelname, idx_tup_read, idx_blks_read + idx_blks_hit
        FROM pg_stat_user_indexes JOIN pg_statio_user_indexes USING (schemaname, relname, indexrelname)
        WHERE schemaname = 'redrive' AND relname <> ALL ($1)
        ORDER BY 1";
    let few = ["task_counts", "policies", "policy_versions", "schema_versions", "meta"].map(str::to_owned).to_vec();
    let rows = client.query(sql, &[&few]).await.unwrap();
    rows.iter().map(|row| Read { scan: row.get(0), rows: row.get(1), pages: row.get(2) }).collect()
}

/// The reads of one kind of scan.
#[derive(Debug)]
struct Read {
    scan: String,
    rows: i64,
    pages: i64,
}

/// A description of what was read beyond what was requested.
fn too_much(name: &str, asks_for: i64, before: &[Read], after: &[Read]) -> Option<String> {
    let read = after.iter().zip(before).map(|(after, before)| Read {
        scan: after.scan.clone(),
        rows: after.rows - before.rows,
        pages: after.pages - before.pages,
    });
    let read: Vec<_> = read.filter(|read| read.rows + read.pages > 0).collect();
    let (rows, pages) = read.iter().fold((0, 0), |(rows, pages), read| (rows + read.rows, pages + read.pages));
    // Reads of the empty database may be counted only now: a session reports them at any time, and at its end.
    let earlier = |of_each: i64| EMPTY_ROUNDS * of_each * asks_for;
    let is_much = rows > ROWS_FOR_EACH * (asks_for + 1) + earlier(ROWS_FOR_NOTHING)
        || pages > PAGES_FOR_EACH * (asks_for + 1) + earlier(PAGES_FOR_NOTHING);
    is_much.then(|| format!("{name} asks for {asks_for}, reads {rows} rows and {pages} pages: {read:?}"))
}

const ENQUEUE_NEW: &str = "SELECT redrive.enqueue('https://a.b/', tenant => 'acme', idempotency_key => 'new')";
/// A submission whose key the filled database has for another request.
const ENQUEUE_AGAIN: &str = "SELECT redrive.enqueue('https://a.b/', tenant => 'acme', idempotency_key => 'key-77')";

/// A name, a call, and the store that makes it.
type Reader = (String, Call, Arc<PostgresStore>);

/// One store for each call, with one session, whose plans last this long. Tables are not analysed meanwhile, and rows
/// that are set aside are not looked at: on a slow machine that would happen in the middle of a test. Every call starts
/// at the beginning, or its reads would depend on the time since the previous one.
async fn readers(database: &Database, plans_last: Duration) -> Vec<Reader> {
    let mut readers = Vec::new();
    for (n, call) in calls().into_iter().enumerate() {
        let name = format!("reader-{n}");
        let options = Options {
            connections: 1,
            plans_last,
            upkeep_after: NEVER,
            take_back_every: NEVER,
            floors_last: Duration::ZERO..=Duration::ZERO,
            ..Options::new(database.url(), node(&name))
        };
        readers.push((name, call, Arc::new(PostgresStore::open(options).await.unwrap())));
    }
    readers
}

/// Waits until every session of the readers has reported its reads: PostgreSQL does that once a session was idle for 10
/// s. Otherwise they would count as reads of another call.
async fn until_reported(client: &Client) {
    let rest = "SELECT max(extract(epoch FROM state_change - clock_timestamp()))::float8 + 11 FROM pg_stat_activity
                WHERE application_name LIKE 'redrive reader-%' AND datname = current_database()";
    loop {
        let rest: Option<f64> = client.query_one(rest, &[]).await.unwrap().get(0);
        match rest.filter(|rest| *rest > 0.0) {
            Some(rest) => client.query_one("SELECT pg_sleep($1)", &[&rest]).await.unwrap(),
            None => return,
        };
    }
}

/// Makes each call in these rounds and checks each time that it reads no more than it requests.
async fn hold_to_what_is_asked_for(client: &Client, readers: Vec<Reader>, rounds: &[Round]) {
    until_reported(client).await;
    let mut wrong = Vec::new();
    for (name, call, store) in readers {
        let before = reads(client).await;
        for round in rounds {
            (call.run)(store.clone(), *round).await;
        }
        store.close().await;
        until_gone(client, &format!("redrive {name}")).await;
        // Dead entries of earlier rounds are passed by scans until no transaction can see them any more.
        let in_the_way = if rounds.len() > 1 { 4 } else { 1 };
        let asks_for = call.asks_for * i64::try_from(rounds.len()).unwrap() * in_the_way;
        wrong.extend(too_much(call.name, asks_for, &before, &reads(client).await));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A database with a schema and a policy, and a separate connection to it. The planner's statistics are up to the test.
async fn database() -> (Database, Client) {
    let database = Postgres::shared().fresh_database();
    let store = PostgresStore::open(Options::new(database.url(), node("first"))).await.unwrap();
    allow(&store, acme()).await;
    store.close().await;
    let client = plain(database.url()).await;
    for table in TABLES {
        let sql = format!("ALTER TABLE redrive.{table} SET (autovacuum_enabled = off)");
        client.batch_execute(&sql).await.unwrap();
    }
    (database, client)
}

const TABLES: [&str; 6] = ["tasks", "live", "log", "dead_letters", "blobs", "idempotency_records"];

/// Checks calls whose sessions choose their plans while the database is empty, and keep them when it is full.
async fn hold_to_what_is_asked_for_when_it_fills(database: &Database, client: &Client, but: &[&str]) {
    let plans_last = Duration::from_millis(100);
    let mut readers = readers(database, plans_last).await;
    readers.retain(|(_, call, _)| !but.contains(&call.name));
    for (_, call, store) in &readers {
        for _ in 0..EMPTY_ROUNDS {
            (call.run)(store.clone(), Round::Empty).await;
        }
    }
    let enqueuer = plain(database.url()).await;
    enqueuer.batch_execute("SET application_name = 'redrive enqueuer'").await.unwrap();
    for _ in 0..EMPTY_ROUNDS {
        enqueuer.batch_execute(ENQUEUE_AGAIN).await.unwrap();
    }
    for table in TABLES {
        client.batch_execute(&format!("DELETE FROM redrive.{table}")).await.unwrap();
    }
    let settled = Instant::now();
    fill(database, client).await;
    while settled.elapsed() < plans_last {
        tokio::task::yield_now().await;
    }
    let before = reads(client).await;
    enqueuer.batch_execute(ENQUEUE_NEW).await.unwrap();
    enqueuer.batch_execute(ENQUEUE_AGAIN).await.unwrap_err();
    drop(enqueuer);
    until_gone(client, "redrive enqueuer").await;
    assert_eq!(too_much("enqueue", 2, &before, &reads(client).await), None);
    hold_to_what_is_asked_for(client, readers, &[Round::First]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_read_what_they_ask_for_when_a_new_database_has_just_filled() {
    let (database, client) = database().await;
    hold_to_what_is_asked_for_when_it_fills(&database, &client, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_read_what_they_ask_for_when_a_database_was_emptied_and_has_filled_again() {
    let (database, client) = database().await;
    fill(&database, &client).await;
    client.batch_execute("ANALYZE").await.unwrap();
    let deletes = TABLES.map(|table| format!("DELETE FROM redrive.{table};"));
    emptied_by(&database, &client, &deletes.concat()).await;
    for table in TABLES {
        client.batch_execute(&format!("VACUUM ANALYZE redrive.{table}")).await.unwrap();
    }
    hold_to_what_is_asked_for_when_it_fills(&database, &client, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_read_what_they_ask_for_when_a_database_was_all_but_emptied_and_has_filled_again() {
    let (database, client) = database().await;
    fill(&database, &client).await;
    // Not the tasks: which of two indexes the planner uses for one is random then, until the table has been analysed
    // again.
    emptied_by(&database, &client, "DELETE FROM redrive.tasks").await;
    client.batch_execute("VACUUM redrive.tasks").await.unwrap();
    for table in TABLES.into_iter().filter(|table| *table != "tasks") {
        // The last row keeps the table from being truncated: for the planner it is long, with one row in it.
        let all_but_one = format!("DELETE FROM redrive.{table} WHERE ctid <> (SELECT max(ctid) FROM redrive.{table})");
        emptied_by(&database, &client, &all_but_one).await;
        client.batch_execute(&format!("VACUUM ANALYZE redrive.{table}")).await.unwrap();
        client.batch_execute(&format!("DELETE FROM redrive.{table}")).await.unwrap();
    }
    // Cleaning is not urgent, so it may read more until then.
    hold_to_what_is_asked_for_when_it_fills(&database, &client, &["clean"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_read_what_they_ask_for_however_often_they_are_made() {
    let (database, client) = database().await;
    fill(&database, &client).await;
    // One unprepared, one that prepares, five that PostgreSQL plans each time, and a few with the generic plan.
    let rounds = [&[Round::First][..], &[Round::Again; 11][..]].concat();
    let readers = readers(&database, Duration::from_secs(3_600)).await;
    hold_to_what_is_asked_for(&client, readers, &rounds).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_locks_hardly_more_than_it_takes() {
    let (database, client) = database().await;
    fill(&database, &client).await;
    let store = PostgresStore::open(Options::new(database.url(), node("one"))).await.unwrap();
    // lane, slots, ahead, most, claimed, rows that were locked in addition
    for (name, slots, ahead, most, expected, beside) in [
        (DEPENDENCY, 10, 0, 1_000, 10, 0),
        (DEPENDENCY, 10, 500, 20, 20, 2),
        ("last", 4, 500, 1_000, 4, 2),
        ("last", 0, 500, 1_000, 0, 2),
    ] {
        let newest = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint";
        let before: i64 = client.query_one(newest, &[]).await.unwrap().get(0);
        let rooms = [room(lane(TENANT, name), Class::First, slots, ahead)];
        let claims = store.tasks().claim(ClaimRequest { most, ..request(rooms, at(5)) }).await.unwrap();
        let case = format!("{name}: {slots} slots, {ahead} ahead, at most {most}");
        assert_eq!(claims.claimed.len(), expected, "{case}");
        let locked = "SELECT FROM redrive.live WHERE lease_until IS NULL AND xmax::text::bigint >= $1";
        assert!(client.query(locked, &[&before]).await.unwrap().len() <= beside, "{case}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_random_life_ends_as_the_model_says_however_soon_plans_are_made_anew() {
    let change = |options| Options { plans_last: Duration::from_millis(3), ..options };
    let opened = open_with("one", change).await;
    workload::run(&*opened.store, 2, 1_000).await;
}
