//! Rows that become tasks.

use redrive_testbed::wait_until;

use super::super::world::{Business, Service, TABLE, Target};
use super::{arrivals, number};

#[test]
fn rows_become_tasks_in_the_order_of_their_ids() {
    let (service, business, target) = (Service::start(), Business::start(), Target::answering(&[200]));
    // Committed in another order than they were inserted in, and not one after the other in the table either.
    business.run(&format!(
        "INSERT INTO {TABLE} (id, target_url, idempotency_key) OVERRIDING SYSTEM VALUE
         SELECT n, '{}', 'row-' || n FROM generate_series(1, 250) AS n ORDER BY n * 7919 % 251",
        target.url
    ));
    business.relay(&service, &["--once"]).end().with(0).says(&["moved 250 rows, refused 0 rows"]);
    assert_eq!(business.ids(), [""; 0]);
    let listed = service.run(&["tasks", "list", "--json", "--limit", "1000"]).with(0).json();
    let mut keys: Vec<&str> =
        listed["tasks"].as_array().unwrap().iter().map(|task| task["idempotencyKey"].as_str().unwrap()).collect();
    // The newest comes first.
    keys.reverse();
    assert_eq!(keys, (1..=250).map(|n| format!("row-{n}")).collect::<Vec<_>>());
    assert_eq!(arrivals(&target, 250).len(), 250);
    service.stop().with(0);
    assert_eq!(target.unseen(), 0);
}

#[test]
fn everything_that_a_row_says_is_sent() {
    let (service, business, target) = (Service::start(), Business::start(), Target::answering(&[200]));
    service.run_with_input(&["policies", "apply", "-"], b"policyId = \"patient\"").with(0);
    business.run(&format!(
        "INSERT INTO {TABLE} (target_url, method, headers, body, policy_id, idempotency_key, dependency, not_before, labels)
         VALUES ('{}/a?b=c', 'PUT', '[[\"X-Two\", \"1\"], [\"X-A\", \"2\"], [\"X-Two\", \"3\"]]', '\\x00ff', 'patient', 'mine',
                 'billing', '2020-01-01 00:00:00+02', '{{\"order\": \"7\"}}')",
        target.url
    ));
    business.relay(&service, &["--once"]).end().with(0);
    let arrival = target.arrival();
    assert_eq!((arrival.method.as_str(), arrival.path.as_str()), ("PUT", "/a?b=c"));
    assert_eq!(arrival.body, [0, 255]);
    assert_eq!(arrival.headers["x-two"], ["1", "3"]);
    assert_eq!((arrival.header("x-a"), arrival.header("idempotency-key")), (Some("2"), Some("mine")));
    assert_eq!(arrival.header("content-type"), None, "no content type is guessed from the bytes");
    let task = service.task(arrival.header("redrive-task-id").unwrap());
    let said = ["policyId", "dependency", "idempotencyKey"].map(|name| task[name].as_str().unwrap().to_owned());
    assert_eq!(said, ["patient", "billing", "mine"]);
    assert_eq!(task["labels"], serde_json::json!({"order": "7"}));
}

#[test]
fn a_key_that_is_made_names_the_source_the_table_and_the_row() {
    let (service, business, target) = (Service::start(), Business::start(), Target::answering(&[200]));
    let key_of = |flags: &[&str]| {
        business
            .run(&format!("INSERT INTO {TABLE} (id, target_url) OVERRIDING SYSTEM VALUE VALUES (7, '{}')", target.url));
        business.relay(&service, &[flags, &["--once"]].concat()).end().with(0).says(&["moved 1 row,"]);
        target.arrival().header("idempotency-key").map(str::to_owned).unwrap()
    };
    // The same as in the tests of the keys themselves, where it is said to the letter.
    assert_eq!(key_of(&["--source", "shop"]), "outbox-8fbeed7aaa3e184a28c98b57124439b6-7");
    let unnamed = key_of(&[]);
    assert!(unnamed.starts_with("outbox-") && unnamed.ends_with("-7"), "{unnamed}");
    assert_ne!(unnamed, "outbox-8fbeed7aaa3e184a28c98b57124439b6-7");
    business.insert(&target.url, 1);
    business.run(&format!("INSERT INTO {TABLE} (id, target_url) OVERRIDING SYSTEM VALUE VALUES (7, '{}')", target.url));
    business.relay(&service, &["--once"]).end().with(0).says(&["moved 2 rows,"]);
    target.arrival();
    service.stop().with(0);
    assert_eq!(target.unseen(), 0, "the same row of the same table is the same task");
}

#[test]
fn a_row_that_commits_late_with_a_lower_id_is_not_lost() {
    let (service, business, target) = (Service::start(), Business::start(), Target::answering(&[200]));
    let slow = Business::connect(&business.url);
    slow.run(&format!("BEGIN; INSERT INTO {TABLE} (target_url, body) VALUES ('{}', '1')", target.url));
    business.run(&format!("INSERT INTO {TABLE} (target_url, body) VALUES ('{}', '2')", target.url));
    let relay = business.relay(&service, &[]);
    assert_eq!(number(&target.arrival()), 2);
    business.wait_until_empty();
    slow.run("COMMIT");
    assert_eq!(number(&target.arrival()), 1);
    business.wait_until_empty();
    relay.signal("TERM");
    relay.end().with(0).says(&["SIGTERM: ended; moved 2 rows"]);
}

#[test]
fn a_notification_wakes_the_relay_and_so_does_the_clock() {
    let (service, business, target) = (Service::start(), Business::start(), Target::answering(&[200]));
    for (poll, notifies) in [("1h", true), ("50ms", false)] {
        if !notifies {
            business.run(&format!("DROP TRIGGER outbox_notify ON {TABLE}"));
        }
        let mut relay = business.relay(&service, &["--poll", poll]);
        relay.stderr.wait_for("relaying");
        // What came before the first look would be found without being told of.
        wait_until("the relay is idle", || {
            let query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle'
                         AND application_name = 'redrive outbox relay' AND query LIKE '%WITH first AS%'";
            business.ask(query) == ["1"]
        });
        business.insert(&target.url, 1);
        target.arrival();
    }
}

#[test]
fn large_bodies_go_in_several_batches() {
    let (service, business, target) = (Service::start(), Business::start(), Target::answering(&[200]));
    business.run(&format!(
        "INSERT INTO {TABLE} (target_url, body)
         SELECT '{}', convert_to(repeat('x', 1048576), 'UTF8') FROM generate_series(1, 12)",
        target.url
    ));
    let relay = business.relay(&service, &["--once", "--log-level", "debug"]).end().with(0);
    let batches = relay.stderr.matches("relay::relay_loop: moved").count();
    assert_eq!(batches, 3, "4 MiB at a time: {}", relay.stderr);
    assert!((0..12).all(|_| target.arrival().body.len() == 1_048_576));
}
