use std::path::Path;
use std::process::Command;

use super::*;

fn tables(connection: &Connection) -> Vec<String> {
    let mut select = connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").unwrap();
    select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn open(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection
}

#[test]
fn a_new_database_is_of_the_newest_version_and_ours() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection).unwrap();
    assert_eq!(version(&connection).unwrap(), newest());
    let id: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0)).unwrap();
    assert_eq!(id, APPLICATION_ID);
}

#[test]
fn steps_that_were_taken_are_not_taken_again() {
    let mut connection = Connection::open_in_memory().unwrap();
    take_steps(&mut connection, &["CREATE TABLE first (x)"]).unwrap();
    take_steps(&mut connection, &["CREATE TABLE first (x)", "CREATE TABLE second (x)"]).unwrap();
    assert_eq!(tables(&connection), ["first", "second"]);
    assert_eq!(version(&connection).unwrap(), 2);
}

#[test]
fn a_step_that_fails_half_way_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = open(&directory.path().join("db"));
    take_steps(&mut connection, &["CREATE TABLE first (x); INSERT INTO first VALUES (1)"]).unwrap();
    let bad = "CREATE TABLE second (x); UPDATE first SET x = 2; PRAGMA user_version = 7; INSERT INTO absent VALUES (1)";
    let good_then_bad = ["CREATE TABLE first (x); INSERT INTO first VALUES (1)", "CREATE TABLE middle (x)", bad];
    take_steps(&mut connection, &good_then_bad).unwrap_err();
    assert_eq!(tables(&connection), ["first", "middle"], "what came before the failure stays");
    assert_eq!(version(&connection).unwrap(), 2);
    let x: i64 = connection.query_row("SELECT x FROM first", [], |row| row.get(0)).unwrap();
    assert_eq!(x, 1);
}

#[test]
fn a_process_that_dies_half_way_leaves_the_version_before() {
    let (directory, crashed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut connection = open(&directory.path().join("db"));
    take_steps(&mut connection, &["CREATE TABLE first (x); INSERT INTO first VALUES (zeroblob(100000))"]).unwrap();
    // With such a small cache SQLite writes pages of the open transaction to the log before it is committed.
    connection.pragma_update(None, "cache_size", 2).unwrap();
    let transaction = connection.transaction().unwrap();
    let step = "CREATE TABLE second (x); UPDATE first SET x = zeroblob(200000); INSERT INTO second SELECT x FROM first";
    transaction.execute_batch(step).unwrap();
    transaction.pragma_update(None, "user_version", 2).unwrap();
    let status = Command::new("cp").arg("-r").arg(directory.path().join(".")).arg(crashed.path()).status().unwrap();
    assert!(status.success());
    assert!(std::fs::metadata(crashed.path().join("db-wal")).unwrap().len() > 200_000, "nothing was under way");

    let mut after = open(&crashed.path().join("db"));
    assert_eq!(version(&after).unwrap(), 1);
    assert_eq!(tables(&after), ["first"]);
    let length: i64 = after.query_row("SELECT length(x) FROM first", [], |row| row.get(0)).unwrap();
    assert_eq!(length, 100_000);
    take_steps(&mut after, &["never taken again", step]).unwrap();
    assert_eq!(version(&after).unwrap(), 2);
}

#[test]
fn the_second_version_looks_at_no_row_and_leaves_every_task_in_its_first_run() {
    let mut connection = Connection::open_in_memory().unwrap();
    take_steps(&mut connection, &STEPS[..1]).unwrap();
    let insert = "INSERT INTO tasks (
             id, tail, tenant, lane, policy, status, attempt_number, max_attempts, attempt_timeout_ms, created_at,
             deadline_at, token, lease_since, lease_until, cancel_requested, idempotency_key
         ) VALUES (?1, 0, 1, 1, 1, 6, 3, 3, 1, 7, 9, 3, 1, 1, 0, 'key')";
    for task in 1..=3 {
        connection.execute(insert, [task]).unwrap();
    }
    let changes = connection.total_changes();
    take_steps(&mut connection, &STEPS[..2]).unwrap();
    assert!(connection.total_changes() - changes < 3, "however large the file, the step is short");
    let mut select = connection.prepare("SELECT run, attempts_before, run_started_at FROM tasks").unwrap();
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let rows: Vec<(i64, i64, Option<i64>)> = rows.map(Result::unwrap).collect();
    assert_eq!(rows, [(1, 0, None); 3]);
    let noted: i64 = connection.query_row("SELECT count(*) FROM unannounced", [], |row| row.get(0)).unwrap();
    assert_eq!(noted, 0, "the dead letters of before have had their alerts");
}

#[test]
fn the_third_version_looks_at_no_row() {
    let mut connection = Connection::open_in_memory().unwrap();
    take_steps(&mut connection, &STEPS[..2]).unwrap();
    let insert =
        "INSERT INTO requests (task, target_url, method, fingerprint, body) VALUES (?1, 'u', 'm', x'00', x'01')";
    for task in 1..=3 {
        connection.execute(insert, [task]).unwrap();
    }
    let changes = connection.total_changes();
    take_steps(&mut connection, &STEPS[..3]).unwrap();
    assert!(connection.total_changes() - changes < 3, "however large the file, the step is short");
    let inline: i64 = connection
        .query_row("SELECT count(*) FROM requests WHERE typeof(body) = 'blob'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(inline, 3, "the bodies of before stay where they are");
}

#[test]
fn the_fourth_version_changes_pending_retries_and_no_other_row() {
    let mut connection = Connection::open_in_memory().unwrap();
    take_steps(&mut connection, &STEPS[..3]).unwrap();
    let insert = "INSERT INTO tasks (
             id, tail, tenant, lane, policy, status, attempt_number, attempts_before, max_attempts, attempt_timeout_ms,
             created_at, deadline_at, next_attempt_at, token, lease_since, lease_until, cancel_requested, idempotency_key
         ) VALUES (?1, 0, 1, 1, 1, ?2, ?3, ?4, 9, 1, 7, 9, 8, 3, 1, 1, 0, 'key')";
    // status, attempts, attempts of earlier runs, class
    let rows = [
        (2, 0, 0, 0),
        (2, 1, 0, 1),
        (2, 4, 4, 0),
        (2, 6, 4, 1),
        (3, 1, 0, 0),
        (3, 5, 0, 0),
        (4, 2, 0, 0),
        (5, 2, 0, 0),
        (6, 3, 0, 0),
        (7, 1, 0, 0),
    ];
    for ((status, attempts, before, _), task) in rows.into_iter().zip(1..) {
        connection.execute(insert, (task, status, attempts, before)).unwrap();
    }
    let changes = connection.total_changes();
    take_steps(&mut connection, &STEPS[..4]).unwrap();
    assert!(connection.total_changes() - changes < 2 + 3, "the two pending retries and the schema itself");
    let mut select = connection.prepare("SELECT class, dns_failures FROM tasks ORDER BY id").unwrap();
    let found = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let found: Vec<(i64, i64)> = found.map(Result::unwrap).collect();
    assert_eq!(found, rows.map(|(_, _, _, class)| (class, 0)));
}

#[test]
fn the_seventh_version_looks_at_no_row() {
    let mut connection = Connection::open_in_memory().unwrap();
    take_steps(&mut connection, &STEPS[..6]).unwrap();
    let insert = "INSERT INTO blobs (tenant, body, adopted_at) VALUES (1, ?1, 0)";
    for blob in 1..=3 {
        connection.execute(insert, [blob.to_string()]).unwrap();
    }
    let changes = connection.total_changes();
    take_steps(&mut connection, &STEPS[..7]).unwrap();
    assert!(connection.total_changes() - changes < 3, "however large the file, the step is short");
}
