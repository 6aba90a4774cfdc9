//! One relay at a time.

use super::super::world::{Business, Service, Target};
use super::{arrivals, numbers};

#[test]
fn a_second_relay_waits_and_takes_over_when_the_first_dies() {
    const ROWS: usize = 60;
    let (service, business, target) = (Service::start(), Business::start(), Target::answering(&[200]));
    let mut first = business.relay(&service, &["--batch", "5"]);
    first.stderr.wait_for("relaying");
    let mut second = business.relay(&service, &["--batch", "5"]);
    second.stderr.wait_for("another relay is running for this table; waiting until it ends");
    business.relay(&service, &["--once"]).end().with(0).says(&["nothing to do", "moved 0 rows"]);
    business.insert(&target.url, ROWS);
    let mut arrived = arrivals(&target, 1);
    first.kill();
    second.stderr.wait_for("relaying");
    business.wait_until_empty();
    arrived.extend(arrivals(&target, ROWS - 1));
    second.signal("TERM");
    second.end().with(0);
    service.stop().with(0);
    assert_eq!(target.unseen(), 0, "no key arrived twice");
    assert_eq!(numbers(arrived.values().flatten()), (1..=ROWS).collect::<Vec<_>>());
}

#[test]
fn a_relay_that_waits_ends_when_it_is_asked_to() {
    let (service, business) = (Service::start(), Business::start());
    let mut first = business.relay(&service, &[]);
    first.stderr.wait_for("relaying");
    let mut second = business.relay(&service, &[]);
    second.stderr.wait_for("waiting until it ends");
    second.signal("INT");
    second.end().with(0).says(&["SIGINT: ended; moved 0 rows"]);
}

#[test]
fn relays_of_different_tables_do_not_wait_for_each_other() {
    let (service, business, target) = (Service::start(), Business::start(), Target::answering(&[200]));
    let mut first = business.relay(&service, &[]);
    first.stderr.wait_for("relaying");
    business.run("CREATE TABLE app.second (LIKE app.outbox INCLUDING ALL)");
    business.run(&format!("INSERT INTO app.second (target_url) VALUES ('{}')", target.url));
    let words = ["outbox", "relay", "--from", &business.url, "--table", "app.second", "--once"];
    service.run(&words).with(0).says(&["moved 1 row"]);
    target.arrival();
}
