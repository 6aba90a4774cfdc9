//! Whatever is killed, every row becomes one task.

use std::collections::BTreeSet;

use redrive_testbed::{Postgres, wait_until};

use super::super::world::{Arrival, Business, Service, TABLE, Target};
use super::{arrivals, numbers};

#[test]
fn a_relay_that_is_killed_again_and_again_moves_every_row_once() {
    const ROWS: usize = 200;
    let (service, business, target) = (Service::start(), Business::start(), Target::answering(&[200]));
    business.insert(&target.url, ROWS);
    for _ in 0..8 {
        let relay = business.relay(&service, &["--batch", "2"]);
        business.wait_until_fewer();
        relay.kill();
    }
    business.relay(&service, &["--once"]).end().with(0);
    assert_eq!(business.ids(), [""; 0]);
    let arrived = arrivals(&target, ROWS);
    service.stop().with(0);
    assert_eq!(target.unseen(), 0, "no key arrived twice");
    assert_eq!(numbers(arrived.values().flatten()), (1..=ROWS).collect::<Vec<_>>());
}

#[test]
fn rows_that_were_taken_but_not_deleted_when_the_relay_died_are_not_sent_again() {
    let (service, business, target) = (Service::start(), Business::start(), Target::answering(&[200]));
    business.insert(&target.url, 3);
    business.run(&format!(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'not yet'; END$$;
         CREATE TRIGGER fail BEFORE DELETE ON {TABLE} FOR EACH STATEMENT EXECUTE FUNCTION fail()"
    ));
    let mut relay = business.relay(&service, &[]);
    // It has handed the rows over, could not delete them, and does it all again.
    relay.stderr.wait_for("not yet");
    relay.stderr.wait_for("not yet");
    relay.kill();
    assert_eq!(business.ids(), ["1", "2", "3"]);
    business.run(&format!("DROP TRIGGER fail ON {TABLE}"));
    business.relay(&service, &["--once"]).end().with(0).says(&["moved 3 rows"]);
    assert_eq!(business.ids(), [""; 0]);
    assert_eq!(arrivals(&target, 3).len(), 3);
    service.stop().with(0);
    assert_eq!(target.unseen(), 0);
}

#[test]
fn a_service_that_is_killed_and_started_again_has_every_row_once() {
    const ROWS: usize = 200;
    let (business, target) = (Business::start(), Target::answering(&[200]));
    let directory = tempfile::tempdir().unwrap();
    let mut service = Service::start_in(directory.path(), &[]);
    let address = service.authority().to_owned();
    business.insert(&target.url, ROWS);
    let relay = business.relay(&service, &["--batch", "2"]);
    for _ in 0..3 {
        business.wait_until_fewer();
        service.program.kill();
        service = Service::start_at(&address, directory.path(), &[]);
    }
    business.wait_until_empty();
    relay.signal("INT");
    relay.end().with(0).says(&["SIGINT: ended"]);
    wait_until("every task has succeeded", || tasks(&service, &["--status", "SUCCEEDED"]) == ROWS);
    assert_eq!(tasks(&service, &[]), ROWS);
    service.stop().with(0);
    let arrived = target.arrived();
    // What was on the wire when the service died is sent again, but as another attempt of the same task.
    let send =
        |arrival: &Arrival| ["idempotency-key", "redrive-attempt"].map(|name| arrival.header(name).unwrap().to_owned());
    let sends: BTreeSet<_> = arrived.iter().map(send).collect();
    assert_eq!(sends.len(), arrived.len());
    let distinct: BTreeSet<usize> = numbers(&arrived).into_iter().collect();
    assert_eq!(distinct, (1..=ROWS).collect());
}

#[test]
fn a_source_that_is_killed_and_started_again_loses_no_row() {
    const ROWS: usize = 100;
    let postgres = Postgres::start();
    let (service, target) = (Service::start(), Target::answering(&[200]));
    Business::connect(&postgres.url()).make_table();
    let mut relay = None;
    for stop in [Postgres::kill, Postgres::stop_immediate] {
        let business = Business::connect(&postgres.url());
        business.insert(&target.url, ROWS);
        relay.get_or_insert_with(|| business.relay(&service, &["--batch", "2"]));
        business.wait_until_fewer();
        stop(&postgres);
        postgres.start_again();
        Business::connect(&postgres.url()).wait_until_empty();
    }
    let arrived = arrivals(&target, 2 * ROWS);
    let mut relay = relay.unwrap();
    relay.stderr.wait_for("cannot use the outbox table; retrying");
    relay.signal("TERM");
    relay.end().with(0);
    service.stop().with(0);
    assert_eq!(target.unseen(), 0, "no key arrived twice");
    let expected: Vec<usize> = (1..=ROWS).flat_map(|number| [number, number]).collect();
    assert_eq!(numbers(arrived.values().flatten()), expected);
}

/// How many tasks there are of those that the flags ask for.
fn tasks(service: &Service, flags: &[&str]) -> usize {
    let words = [&["tasks", "list", "--json", "--limit", "1000"], flags].concat();
    service.run(&words).with(0).json()["tasks"].as_array().unwrap().len()
}
