use std::collections::BTreeMap;

use super::*;
use crate::schema;

struct Database {
    connection: Connection,
    path: PathBuf,
    _directory: tempfile::TempDir,
}

fn database() -> Database {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let mut connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.pragma_update(None, "synchronous", "OFF").unwrap();
    schema::migrate(&mut connection).unwrap();
    connection.execute("INSERT INTO tenants (id, name) VALUES (1, 'acme')", []).unwrap();
    connection.execute("INSERT INTO operations (id, tenant, name) VALUES (7, 1, 'pay')", []).unwrap();
    Database { connection, path, _directory: directory }
}

impl Database {
    fn load(&self, limit: usize) -> Keys {
        self.load_of(&TASKS, limit)
    }

    fn load_of(&self, kind: &Kind, limit: usize) -> Keys {
        Keys::load(kind.table, &self.connection, &self.path, limit).unwrap()
    }
}

/// A kind of keys, and its rows in their smallest form.
struct Kind {
    table: &'static KeyTable,
    hash: fn(u64) -> KeyHash,
    insert: fn(&Connection, i64, u64),
    name: &'static str,
    delete: &'static str,
}

const TASKS: Kind = Kind {
    table: &OF_TASKS,
    hash,
    insert: insert_task,
    name: "SELECT idempotency_key FROM tasks WHERE id = ?1",
    delete: "DELETE FROM tasks WHERE id = ?1",
};

const RECORDS: Kind = Kind {
    table: &OF_RECORDS,
    hash: |n| KeyHash::of_parts(&["acme", "pay", &key(n)]),
    insert: insert_record,
    name: "SELECT name FROM records WHERE id = ?1",
    delete: "DELETE FROM records WHERE id = ?1",
};

fn key(n: u64) -> String {
    format!("key-{n}")
}

fn hash(n: u64) -> KeyHash {
    KeyHash::of("acme", &key(n))
}

/// Inserts a row with the columns that the index is built from.
fn insert_task(connection: &Connection, task: i64, n: u64) {
    connection
        .execute(
            "INSERT INTO tasks (
                 id, tail, tenant, lane, policy, status, attempt_number, max_attempts, attempt_timeout_ms, created_at,
                 deadline_at, token, lease_since, lease_until, cancel_requested, idempotency_key
             ) VALUES (?1, 0, 1, 1, 1, 2, 0, 1, 1, 1, 1, 0, 1, 1, 0, ?2)",
            (task, key(n)),
        )
        .unwrap();
}

fn insert_record(connection: &Connection, record: i64, n: u64) {
    connection
        .execute(
            "INSERT INTO records (
                 id, operation, name, state, expires_at, updated_at, started_at, lease_until, retention_ms, epoch,
                 execution, request_hash
             ) VALUES (?1, 7, ?2, 2, 1, 1, 1, 1, 1, 1, zeroblob(16), zeroblob(32))",
            (record, key(n)),
        )
        .unwrap();
}

fn commit(connection: &Connection, keys: &mut Keys) {
    keys.write_slice(connection).unwrap();
    connection.execute_batch("COMMIT").unwrap();
    keys.committed();
}

fn roll_back(connection: &Connection, keys: &mut Keys) {
    connection.execute_batch("ROLLBACK").unwrap();
    keys.rolled_back();
}

fn owners(connection: &Connection, keys: &Keys, n: u64) -> Vec<i64> {
    owners_of(&TASKS, connection, keys, n)
}

/// All candidates for a key whose rows still exist, as a caller finds them.
fn owners_of(kind: &Kind, connection: &Connection, keys: &Keys, n: u64) -> Vec<i64> {
    let mut owners = keys.candidates(connection, (kind.hash)(n)).unwrap();
    owners.retain(|row| {
        let mut select = connection.prepare_cached(kind.name).unwrap();
        select.query_row([row], |row| row.get::<_, String>(0)).is_ok_and(|found| found == key(n))
    });
    owners.sort_unstable();
    owners.dedup();
    owners
}

/// Keys are added, removed, committed, rolled back and read again: each key leads to its row.
fn live(kind: &Kind) {
    for (seed, limit) in [(1, 1), (2, 10), (3, 100), (4, 300), (5, 1_000), (6, 1_000)] {
        let database = database();
        let connection = &database.connection;
        let mut keys = database.load_of(kind, limit);
        let mut random = seed;
        let mut below = move |bound: u64| {
            random = u64::wrapping_add(u64::wrapping_mul(random, 6_364_136_223_846_793_005), 1_442_695_040_888_963_407);
            (random >> 33) % bound
        };
        let mut model: BTreeMap<u64, i64> = BTreeMap::new();
        let mut made = 0;
        for step in 0..400 {
            let before = model.clone();
            connection.execute_batch("BEGIN").unwrap();
            for _ in 0..below(12) {
                made += 1;
                // Tasks do not arrive exactly in the order of their ids.
                let row = (made + below(40)) as i64 * 1_000 + made as i64;
                (kind.insert)(connection, row, made);
                keys.add(connection, (kind.hash)(made), row).unwrap();
                model.insert(made, row);
            }
            for _ in 0..below(6) {
                let n = below(made + 1);
                if let Some(row) = model.remove(&n) {
                    connection.execute(kind.delete, [row]).unwrap();
                    keys.remove(connection, (kind.hash)(n), row).unwrap();
                }
            }
            match below(10) {
                0..3 => {
                    roll_back(connection, &mut keys);
                    model = before;
                }
                3 => {
                    commit(connection, &mut keys);
                    keys = database.load_of(kind, limit);
                }
                _ => commit(connection, &mut keys),
            }
            if step % 20 == 0 {
                for n in 0..=made {
                    let expected: Vec<i64> = model.get(&n).copied().into_iter().collect();
                    let found = owners_of(kind, connection, &keys, n);
                    assert_eq!(found, expected, "{} keys, seed {seed}, step {step}, key {n}", kind.table.of);
                }
            }
        }
    }
}

#[test]
fn every_key_leads_to_its_task_through_a_long_random_life() {
    live(&TASKS);
}

#[test]
fn every_key_leads_to_its_record_through_a_long_random_life() {
    live(&RECORDS);
}

#[test]
fn what_is_in_memory_stays_within_its_bound() {
    let database = database();
    let connection = &database.connection;
    let mut keys = database.load(1_000);
    for n in 0..20_000 {
        if n % 10 == 0 {
            connection.execute_batch("BEGIN").unwrap();
        }
        keys.add(connection, hash(n), n as i64).unwrap();
        if n % 10 == 9 {
            commit(connection, &mut keys);
        }
        let frozen = keys.frozen.as_ref().map_or(0, |frozen| frozen.entries.len());
        assert!(keys.recent.len() + frozen <= 2_000, "{} recent and {frozen} frozen keys", keys.recent.len());
    }
    let moved: u64 = connection.query_row("SELECT count(*) FROM keys", [], |row| row.get(0)).unwrap();
    assert!(moved >= 18_000, "{moved}");
}

#[test]
fn moving_goes_on_where_a_restart_interrupted_it() {
    let database = database();
    let connection = &database.connection;
    let mut keys = database.load(1_000);
    let mut made = 0;
    let mut add = |keys: &mut Keys, tasks: u64| {
        connection.execute_batch("BEGIN").unwrap();
        for _ in 0..tasks {
            made += 1;
            insert_task(connection, made as i64, made);
            keys.add(connection, hash(made), made as i64).unwrap();
        }
        commit(connection, keys);
        made
    };
    add(&mut keys, 1_001);
    for _ in 0..100 {
        // Each process is too short-lived to move all keys.
        let made = add(&mut keys, 50);
        keys = database.load(1_000);
        let read = keys.recent.len() + keys.frozen.as_ref().map_or(0, |frozen| frozen.entries.len());
        assert!(read < 2_100, "{read} of {made} keys had to be read again");
    }
    for n in 1..=6_001 {
        assert_eq!(owners(connection, &keys, n), [n as i64]);
    }
}

#[test]
fn a_filter_is_made_of_the_table_and_of_what_came_meanwhile() {
    let database = database();
    let connection = &database.connection;
    let mut keys = database.load(10);
    for n in 0..1_000 {
        connection.execute_batch("BEGIN").unwrap();
        insert_task(connection, n as i64, n);
        keys.add(connection, hash(n), n as i64).unwrap();
        commit(connection, &mut keys);
    }
    keys = database.load(10);
    assert!(keys.filter.is_none(), "the table has rows that were not read yet");
    for n in 1_000.. {
        connection.execute_batch("BEGIN").unwrap();
        insert_task(connection, n as i64, n);
        keys.add(connection, hash(n), n as i64).unwrap();
        let finished = keys.building.as_ref().is_none_or(Building::is_finished);
        commit(connection, &mut keys);
        if finished {
            assert!(keys.filter.is_some());
            for n in 0..=n {
                assert_eq!(owners(connection, &keys, n), [n as i64]);
            }
            return;
        }
    }
}

#[test]
fn the_hash_of_a_key_never_changes() {
    // The hash is stored on disk, so it must never change.
    assert_eq!(KeyHash::of("acme", "key-1").0, -2_781_478_728_997_953_948);
    assert_ne!(KeyHash::of("acme", "key-1"), KeyHash::of("acmek", "ey-1"));
    let record = |operation: &str, name: &str| {
        KeyHash::of_record(&RecordKey {
            tenant: redrive_core::TenantId::try_new("acme").unwrap(),
            operation: operation.parse().unwrap(),
            name: redrive_core::RecordName::try_new(name).unwrap(),
        })
    };
    assert_eq!(record("pay", "key-1").0, -5_079_514_644_770_703_874);
    assert_ne!(record("pay", "key-1"), record("payk", "ey-1"));
}
