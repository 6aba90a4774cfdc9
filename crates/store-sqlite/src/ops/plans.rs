//! SQLite's query plans for the statements whose cost must not depend on the number of tasks and records.

use rusqlite::Connection;

use super::{alerts, backlog, blobs, claim, end_overdue, expired_leases, list, pending_lanes, records};
use crate::keys::OF_RECORDS;
use crate::schema;

fn plan(sql: &str) -> Vec<String> {
    let mut connection = Connection::open_in_memory().unwrap();
    schema::migrate(&mut connection).unwrap();
    let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let parameters = vec![rusqlite::types::Value::Null; explain.parameter_count()];
    let lines = explain.query_map(rusqlite::params_from_iter(parameters), |row| row.get(3)).unwrap();
    lines.map(Result::unwrap).collect()
}

#[test]
fn due_work_is_found_by_lane_class_and_time() {
    assert_eq!(
        plan(claim::FIRST),
        [
            "SEARCH tasks USING INDEX tasks_due (lane=? AND class=?)",
            "SEARCH requests USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
        ]
    );
    let covering = "SEARCH tasks USING COVERING INDEX tasks_due";
    assert_eq!(plan(pending_lanes::NEXT_CLASS), [format!("{covering} (lane=? AND class>?)")]);
}

#[test]
fn a_backlog_is_counted_in_the_index_alone() {
    for (sql, compared) in [(backlog::DUE, '<'), (backlog::WAITING, '>')] {
        let search =
            format!("SEARCH tasks USING COVERING INDEX tasks_due (lane=? AND class=? AND next_attempt_at{compared}?)");
        assert_eq!(plan(sql), ["CO-ROUTINE (subquery-1)", &search, "SCAN (subquery-1)"]);
    }
}

#[test]
fn old_retries_are_counted_in_the_index_alone() {
    let search = "SEARCH tasks USING COVERING INDEX tasks_due (lane=? AND class=?)";
    assert_eq!(plan(backlog::OLD_RETRIES), ["CO-ROUTINE (subquery-1)", search, "SCAN (subquery-1)"]);
}

#[test]
fn overdue_work_is_found_by_its_deadline() {
    assert_eq!(plan(end_overdue::OVERDUE), ["SEARCH tasks USING INDEX tasks_deadline (deadline_at<?)"]);
    // In the order of the index, of which one entry is read.
    assert_eq!(plan(end_overdue::NEXT_DEADLINE), ["SCAN tasks USING COVERING INDEX tasks_deadline"]);
}

#[test]
fn lanes_are_walked_in_their_order() {
    assert_eq!(
        plan(pending_lanes::LANES),
        [
            "SEARCH tenants USING COVERING INDEX sqlite_autoindex_tenants_1 (name>?)",
            "SEARCH lanes USING COVERING INDEX sqlite_autoindex_lanes_1 (tenant=?)",
        ]
    );
}

#[test]
fn expired_leases_are_found_by_their_end() {
    assert_eq!(
        plan(expired_leases::EXPIRED),
        [
            "SEARCH tasks USING INDEX tasks_in_flight (lease_until<?)",
            "SEARCH requests USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
        ]
    );
}

#[test]
fn unannounced_dead_letters_are_found_and_confirmed_by_their_key() {
    assert_eq!(
        plan(alerts::UNANNOUNCED),
        ["SEARCH unannounced USING PRIMARY KEY (ended_at<?)", "SEARCH tasks USING INTEGER PRIMARY KEY (rowid=?)"]
    );
    assert_eq!(
        plan(alerts::ANNOUNCED),
        [
            "SEARCH unannounced USING PRIMARY KEY (ended_at=? AND task=?)",
            "SCALAR SUBQUERY 1",
            "SEARCH tasks USING INTEGER PRIMARY KEY (rowid=?)",
        ]
    );
}

#[test]
fn blobs_are_found_by_their_content_and_walked_in_their_order() {
    assert_eq!(plan(blobs::KEPT), ["SEARCH blobs USING PRIMARY KEY (tenant=? AND body>? AND body<?)"]);
    assert_eq!(
        plan(blobs::LOOK),
        [
            "SEARCH blobs USING PRIMARY KEY ((tenant,body)>(?,?))",
            "CORRELATED SCALAR SUBQUERY 1",
            "SEARCH body_uses USING COVERING INDEX body_uses_by_body (body=?)",
            "CORRELATED SCALAR SUBQUERY 2",
            "SEARCH records USING COVERING INDEX records_stored_bodies (body=?)",
        ]
    );
}

#[test]
fn lists_walk_the_index_that_fits_them_backwards() {
    assert_eq!(plan(list::WALK_ALL), ["SEARCH tasks USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]);
    assert_eq!(
        plan(list::WALK_DEAD_LETTERS),
        ["SEARCH tasks USING INDEX tasks_dead_letters (tenant=? AND rowid>? AND rowid<?)"]
    );
    assert_eq!(plan(list::WALK_IN_FLIGHT), ["SCAN tasks USING INDEX tasks_in_flight", "USE TEMP B-TREE FOR ORDER BY"]);
}

#[test]
fn records_are_found_by_their_number_and_their_hash() {
    assert_eq!(plan(records::find::RECORD), ["SEARCH records USING INTEGER PRIMARY KEY (rowid=?)"]);
    assert_eq!(plan(OF_RECORDS.select), ["SEARCH record_keys USING PRIMARY KEY (hash=?)"]);
    assert_eq!(plan(OF_RECORDS.delete), ["SEARCH record_keys USING PRIMARY KEY (hash=? AND record=?)"]);
    assert_eq!(
        plan(OF_RECORDS.rows_after),
        [
            "SEARCH records USING INTEGER PRIMARY KEY (rowid>?)",
            "SEARCH operations USING INTEGER PRIMARY KEY (rowid=?)",
            "SEARCH tenants USING INTEGER PRIMARY KEY (rowid=?)",
        ]
    );
}

#[test]
fn records_are_listed_and_counted_along_their_index() {
    let by_name = "SEARCH operations USING COVERING INDEX sqlite_autoindex_operations_1 (tenant=? AND name>?)";
    for sql in [records::list::OPERATIONS, records::counts::OPERATIONS_AFTER] {
        assert_eq!(plan(sql), [by_name]);
    }
    let walk = "SEARCH records USING COVERING INDEX records_by_state (operation=? AND state=? AND rowid>?)";
    assert_eq!(plan(records::list::WALK_STATE), [walk]);
    let merged = plan(records::list::WALK);
    assert_eq!(merged.iter().filter(|line| *line == walk).count(), 4, "{merged:?}");
    let others = merged.iter().filter(|line| *line != walk);
    assert!(others.clone().all(|line| ["MERGE (UNION ALL)", "LEFT", "RIGHT"].contains(&line.as_str())), "{merged:?}");
    assert_eq!(
        plan(records::counts::COUNT),
        [
            "CO-ROUTINE (subquery-1)",
            "SEARCH records USING COVERING INDEX records_by_state (operation=? AND state=?)",
            "SCAN (subquery-1)",
        ]
    );
}

#[test]
fn expired_records_are_found_by_their_time_and_removed_with_their_operation() {
    assert_eq!(
        plan(records::clean::EXPIRED),
        [
            "SEARCH records USING INDEX records_expiry (expires_at<?)",
            "SEARCH operations USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
            "SEARCH tenants USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
        ]
    );
    assert_eq!(
        plan(records::clean::REMOVE_OPERATION),
        [
            "SEARCH operations USING INTEGER PRIMARY KEY (rowid=?)",
            "SCALAR SUBQUERY 1",
            "SEARCH records USING COVERING INDEX records_by_state (operation=?)",
        ]
    );
}
