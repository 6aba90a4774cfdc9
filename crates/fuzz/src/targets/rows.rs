//! Rows of the embedded store: random values in random columns, in a closed store or under one that is open.
//!
//! An input is a byte that selects when, followed by damages: column, row, kind of value, length and value. Only rows
//! of one tenant are damaged. This must not panic, fail a call that is about more than the damaged row, or change
//! anything of the other tenant.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use fastrand::Rng;
use redrive_core::{Class, Lane, PolicyId, Reason, Status, TaskId, TenantId};
use redrive_store::conformance::samples::{
    self, acme, at, billing, everything, id, keep, keep_and_end, keep_retries, lane, room, task, tenant,
};
use redrive_store::{CleanFrom, Error, Expected, RaisedAlert, Settled, Store, Submitted, TaskDetail, TaskQuery};
use redrive_store_sqlite::{Options, SqliteStore};
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode};

use crate::target::Target;
use crate::world::block_on;

pub(crate) const TARGET: Target = Target {
    name: "rows",
    what: "rows of the embedded store, damaged",
    run,
    samples,
    words: &["martian", "{", "[[1]]", "{\"maxAttempts\":\"many\"}", "!damaged", "\0", "default", "9223372036854775807"],
    generate,
    max_bytes: 600,
};

const DATABASE: &str = "redrive.db";
/// The tenant whose rows are not damaged.
const NEIGHBOUR: &str = "neighbour";
/// The tasks of the tenant whose rows are damaged.
const DAMAGED: std::ops::RangeInclusive<u64> = 1..=6;
/// The tasks of the neighbour.
const SOUND: [u64; 3] = [FAILED, PENDING, IN_FLIGHT];
const FAILED: u64 = 11;
const PENDING: u64 = 12;
const IN_FLIGHT: u64 = 13;
/// The most damages of one input.
const MOST_DAMAGES: usize = 4;

/// The tables with rows of one tenant, and which of their rows are the damaged tenant's. Not here: `meta`, which
/// belongs to all tenants; `keys`, which is derived from `tasks`.
const TABLES: [(&str, &str); 10] = [
    ("tasks", "id IN (SELECT id FROM tasks WHERE tenant = 1 ORDER BY id LIMIT 1 OFFSET ?2)"),
    ("requests", "task IN (SELECT id FROM tasks WHERE tenant = 1 ORDER BY id LIMIT 1 OFFSET ?2)"),
    ("answers", "task IN (SELECT id FROM tasks WHERE tenant = 1) AND ?2 >= 0"),
    ("attempts", "task IN (SELECT id FROM tasks WHERE tenant = 1) AND ?2 >= 0"),
    ("unannounced", "task IN (SELECT id FROM tasks WHERE tenant = 1) AND ?2 >= 0"),
    ("policy_versions", "tenant = 1 AND version = 1 + ?2 % 2"),
    ("policy_uses", "version IN (SELECT id FROM policy_versions WHERE tenant = 1) AND ?2 >= 0"),
    ("policies", "tenant = 1 AND ?2 >= 0"),
    ("lanes", "tenant = 1 AND ?2 >= 0"),
    ("blobs", "tenant = 1 AND ?2 >= 0"),
];

/// A database with tasks in every status, as bytes, and its columns.
struct Template {
    database: Vec<u8>,
    columns: Vec<(usize, String)>,
}

static TEMPLATE: LazyLock<Template> = LazyLock::new(|| {
    let directory = directory();
    block_on(fill(directory.path()));
    let connection = Connection::open(directory.path().join(DATABASE)).expect("the database opens");
    let mut columns = Vec::new();
    for (table, (name, _)) in TABLES.iter().enumerate() {
        let sql =
            format!("SELECT name FROM pragma_table_info('{name}') WHERE name <> 'id' AND name <> 'task' ORDER BY cid");
        let mut select = connection.prepare(&sql).expect("the columns are known");
        let names = select.query_map([], |row| row.get::<_, String>(0)).expect("the columns are known");
        columns.extend(names.map(|name| (table, name.expect("a column has a name"))));
    }
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("the log is moved into the file");
    drop(connection);
    let database = std::fs::read(directory.path().join(DATABASE)).expect("the database can be read");
    Template { database, columns }
});

/// In memory where possible: the disk is not tested here, and each input has dozens of syncs.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory")
}

async fn fill(directory: &Path) {
    let store = open(directory);
    // Tasks that end come first: they are claimed from their lane while nothing else waits in it.
    keep_and_end(&store, task(1), Status::Failed, at(2)).await;
    keep_and_end(&store, task(2), Status::Succeeded, at(3)).await;
    keep_retries(&store, [task(3).due(at(1))]).await;
    keep(&store, [task(4).label("a", "b"), task(5).claimed(at(0))]).await;
    store.blobs().adopt(acme(), samples::stored("body", 1), at(0)).await.expect("a blob is kept");
    keep(&store, [task(6).stored(samples::stored("body", 1))]).await;
    let spec = redrive_core::policy::Spec { max_attempts: Some(3), ..Default::default() };
    let put = store.policies().put(acme(), PolicyId::default_policy(), spec, Expected::Anything, at(0));
    put.await.expect("a policy is kept");
    let sound = |n| task(n).of(NEIGHBOUR).to(sound_lane().dependency.as_str());
    keep_and_end(&store, sound(FAILED), Status::Failed, at(4)).await;
    keep(&store, [sound(PENDING), sound(IN_FLIGHT).claimed(at(0))]).await;
    store.close().await;
}

fn sound_lane() -> Lane {
    lane(NEIGHBOUR, "https://sound.example")
}

fn open(directory: &Path) -> SqliteStore {
    let small = Options { readers: 1, cache_bytes: 1024 * 1024, recent_keys: 1_000, ..Options::new(directory) };
    SqliteStore::open(small).expect("a store with a damaged row opens")
}

/// In each column a text, and the largest number; of the tasks, the pending one is damaged.
fn samples() -> Vec<Vec<u8>> {
    const ROW: u8 = 3;
    let columns = 0..u8::try_from(TEMPLATE.columns.len()).unwrap_or(u8::MAX);
    let text = |column: u8| [&[0, column, ROW, 3, 7], &b"martian"[..]].concat();
    columns.flat_map(|column| [text(column), vec![0, column, ROW, 6, 1, 0]]).collect()
}

fn generate(random: &mut Rng) -> Vec<u8> {
    let mut input = vec![random.u8(..)];
    for _ in 0..random.usize(1..=MOST_DAMAGES) {
        let length = random.u8(..24);
        input.extend([random.u8(..), random.u8(..), random.u8(..), length]);
        input.extend((0..length).map(|_| if random.bool() { random.u8(0x20..0x7f) } else { random.u8(..) }));
    }
    input
}

/// One value in one column of one row.
struct Damage {
    table: usize,
    column: &'static str,
    row: u8,
    value: Value,
    /// Bytes that are stored as text, valid or not.
    as_text: bool,
}

fn damages(mut bytes: &[u8]) -> Vec<Damage> {
    let mut damages = Vec::new();
    while let [column, row, kind, length, rest @ ..] = bytes
        && damages.len() < MOST_DAMAGES
    {
        let (value, after) = rest.split_at(usize::from(*length).min(rest.len()));
        bytes = after;
        let (table, column) = &TEMPLATE.columns[usize::from(*column) % TEMPLATE.columns.len()];
        let mut number = [0; 8];
        value.iter().take(8).zip(&mut number).for_each(|(byte, place)| *place = *byte);
        let small = i64::from(number[0].cast_signed());
        let edges = [i64::MAX, i64::MIN, i64::from(u32::MAX) + 1, 1_800_000_000_000, -1];
        let value = match kind % 8 {
            0 => Value::Null,
            1 => Value::Integer(i64::from_le_bytes(number)),
            2 => Value::Integer(small),
            3 | 4 => Value::Blob(value.to_vec()),
            5 => Value::Real(f64::from_le_bytes(number)),
            6 => Value::Integer(edges[usize::from(number[0]) % edges.len()]),
            _ => Value::Integer(small.rem_euclid(9)),
        };
        damages.push(Damage { table: *table, column, row: *row, value, as_text: kind % 8 == 3 });
    }
    damages
}

/// Writes the damages. The schema may refuse some: they are skipped.
fn damage(directory: &Path, damages: &[Damage]) {
    let connection = Connection::open(directory.join(DATABASE)).expect("the database opens");
    connection.busy_timeout(Duration::from_secs(10)).expect("a timeout can be set");
    for Damage { table, column, row, value, as_text } in damages {
        let (table, rows) = TABLES[*table];
        let value_sql = if *as_text { "CAST(?1 AS TEXT)" } else { "?1" };
        let sql = format!("UPDATE {table} SET {column} = {value_sql} WHERE {rows}");
        let most = DAMAGED.end();
        match connection.execute(&sql, (value, u64::from(*row) % most)).map_err(|error| error.sqlite_error_code()) {
            Ok(_) | Err(Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch)) => {}
            Err(error) => panic!("{sql}: {error:?}"),
        }
    }
}

fn run(input: &[u8]) {
    let Some((when, rest)) = input.split_first() else { return };
    let damages = damages(rest);
    let directory = directory();
    std::fs::write(directory.path().join(DATABASE), &TEMPLATE.database).expect("the database can be copied");
    block_on(async {
        if when % 2 == 0 {
            damage(directory.path(), &damages);
            let store = open(directory.path());
            work(&store).await;
            store.close().await;
        } else {
            let store = open(directory.path());
            store.upkeep().pending_lanes(None, 10).await.expect("lanes are found");
            damage(directory.path(), &damages);
            work(&store).await;
            store.close().await;
        }
        let store = open(directory.path());
        let shown = ids(&store, tenant(NEIGHBOUR)).await;
        assert!(SOUND.iter().all(|n| shown.contains(&id(*n))), "after another start: {shown:?}");
        store.health().set_aside(10).await.expect("what is set aside is named");
        store.close().await;
    });
}

/// Makes every kind of call to a store.
async fn work(store: &SqliteStore) {
    let expired = store.upkeep().expired_leases(at(1_000_000_000), 50).await.expect("leases are found");
    assert!(expired.iter().any(|claimed| claimed.task.id == id(IN_FLIGHT)), "a lease is lost");
    let lanes = store.upkeep().pending_lanes(None, 50).await.expect("lanes are found");
    assert!(lanes.iter().any(|due| due.lane == sound_lane()), "a lane is lost");

    let rooms = [billing(), sound_lane()].into_iter();
    let rooms = rooms.flat_map(|lane| [Class::First, Class::Retry].map(|class| room(lane.clone(), class, 8, 0)));
    let claims = store.tasks().claim(samples::request(rooms, at(10))).await.expect("tasks are claimed");
    assert!(claims.claimed.iter().any(|claimed| claimed.task.id == id(PENDING)), "a task is not claimed");
    let retried = claims.claimed.iter().map(|claimed| samples::retry(claimed, at(11), at(12)));
    let failed =
        expired.iter().map(|claimed| samples::end(claimed, Status::Failed, Some(Reason::NotRetryable), at(11)));
    let settled = store.tasks().settle(retried.chain(failed).collect()).await.expect("attempts are settled");
    for (claimed, settled) in claims.claimed.iter().chain(&expired).zip(&settled) {
        let is_sound = SOUND.iter().any(|n| claimed.task.id == id(*n));
        assert!(!is_sound || matches!(settled, Settled::Done(_)), "{settled:?}");
    }
    // Successes are written together, with the commit.
    let rooms = [billing(), sound_lane()].into_iter().map(|lane| room(lane, Class::Retry, 8, 0));
    let again = store.tasks().claim(samples::request(rooms, at(13))).await.expect("tasks are claimed again").claimed;
    assert!(again.iter().any(|claimed| claimed.task.id == id(PENDING)), "a task is not claimed again");
    let successes = again.iter().map(|claimed| samples::succeed(claimed, at(14))).collect();
    let settled = store.tasks().settle(successes).await.expect("successes are settled");
    assert_eq!(settled.len(), again.len());

    let unannounced = store.upkeep().pending_alerts(at(1_000_000_000), 50).await.expect("dead letters are found");
    assert!(unannounced.iter().any(|task| task.id == id(FAILED)), "an alert is lost");
    let announced = unannounced
        .iter()
        .map(|task| RaisedAlert { tenant: task.lane.tenant.clone(), id: task.id, run: task.run })
        .collect();
    store.upkeep().confirm_alerts(announced).await.expect("alerts are noted");

    let shown = ids(store, tenant(NEIGHBOUR)).await;
    // A task of the other tenant may appear here, if its row was changed so.
    assert!(SOUND.iter().all(|n| shown.contains(&id(*n))), "a task is not listed: {shown:?}");
    ids(store, acme()).await;
    store.reads().counts(tenant(NEIGHBOUR)).await.expect("tasks are counted");

    for n in DAMAGED {
        ask_for(store, n).await;
    }
    accept(store).await;
    store.upkeep().end_overdue(at(20), 50).await.expect("overdue tasks are ended");
    store.blobs().condemn(at(20), None, 50).await.expect("blobs are looked at");
    store.upkeep().clean(at(0), CleanFrom::Start, 100).await.expect("ended tasks are looked at");
    store.upkeep().newest_task().await.expect("the newest task is known");
    store.health().check().await.expect("the store works");
    let aside = store.health().set_aside(50).await.expect("what is set aside is named");
    assert!(aside.rows.iter().all(|row| !row.row.is_empty() && !row.problem.is_empty()), "{aside:?}");
}

async fn ids(store: &SqliteStore, tenant: TenantId) -> Vec<TaskId> {
    let mut query = TaskQuery { limit: 2, ..everything(tenant) };
    let mut ids = Vec::new();
    for _ in 0..100 {
        let page = store.reads().list(query.clone()).await.expect("tasks are listed");
        for TaskDetail { task, .. } in &page.tasks {
            assert!(task.attempt_in_run() <= task.attempt_number, "{task:?}");
            ids.push(task.id);
        }
        let Some(next) = page.next else { return ids };
        assert!(query.below.is_none_or(|below| next < below), "the list does not go on");
        query.below = Some(next);
    }
    panic!("the list does not end");
}

/// A call for one row succeeds, or fails because the row is corrupt.
async fn ask_for(store: &SqliteStore, n: u64) {
    fn allowed<T>(answer: Result<T, Error>) {
        if let Err(error) = answer {
            assert!(matches!(error, Error::Corrupt(_)), "{error}");
        }
    }
    allowed(store.reads().task(acme(), id(n)).await);
    allowed(store.reads().attempts(acme(), id(n), 0, 10).await);
    allowed(store.tasks().bring_one_forward(acme(), id(n), at(13)).await);
    allowed(store.tasks().replay_one(acme(), id(n), at(15)).await);
    allowed(store.tasks().cancel_one(acme(), id(n), at(16)).await);
    allowed(store.policies().versions(acme(), PolicyId::default_policy()).await);
    allowed(store.policies().list(acme(), None, 10).await);
    allowed(store.reads().counts(acme()).await);
    allowed(store.blobs().find(acme(), samples::stored("body", 1).hash).await);
    let key = redrive_core::IdempotencyKey::try_new(format!("key-{n}")).expect("a key");
    allowed(store.reads().by_key(acme(), key).await);
}

/// New tasks are accepted: the neighbour's always.
async fn accept(store: &SqliteStore) {
    let sound = task(21).of(NEIGHBOUR).to(sound_lane().dependency.as_str());
    let new = vec![task(22).0, sound.0, task(23).to("https://new.example").0];
    let submitted = store.tasks().submit(new).await.expect("tasks are accepted");
    assert!(matches!(submitted[1], Submitted::Created(_, None)), "{submitted:?}");
}
