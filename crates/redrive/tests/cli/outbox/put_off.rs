//! A server that takes nothing for now, and what the relay does with the rows meanwhile. The servers here are no
//! Redrive: they say what one says when it is in trouble.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use serde_json::{Value, json};

use super::super::world::s3::{Fault, S3};
use super::super::world::{Arrival, Business, Reply, Service, TABLE, Target};

/// How many tasks a batch has, and the answer that takes them all.
fn batch(arrival: &Arrival) -> (usize, Reply) {
    let document: Value = serde_json::from_slice(&arrival.body).unwrap();
    let tasks = document["tasks"].as_array().unwrap().len();
    let results: Vec<Value> = (0..tasks).map(|_| json!({"status": 201, "task": {}})).collect();
    (tasks, Reply { status: 200, body: json!({ "results": results }).to_string() })
}

fn refusal(status: u16) -> Reply {
    Reply { status, body: json!({"title": "Not now"}).to_string() }
}

#[test]
fn rows_stay_until_a_server_that_is_in_trouble_takes_them() {
    let business = Business::start();
    business.insert("http://127.0.0.1:1/", 3);
    let trouble = Mutex::new(vec![503, 429, 404]);
    let server = Target::replying(move |arrival| match trouble.lock().unwrap().pop() {
        Some(status) => refusal(status),
        None => batch(arrival).1,
    });
    let mut relay = business.relay_to(&server.url, &[]);
    let bodies: Vec<_> = (0..4)
        .map(|tries| {
            let arrival = server.arrival();
            if tries < 3 {
                relay.stderr.wait_for("Redrive does not accept rows; retrying");
                assert_eq!(business.ids(), ["1", "2", "3"]);
            }
            arrival.body
        })
        .collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]), "the same rows with the same keys");
    business.wait_until_empty();
}

#[test]
fn a_server_that_cannot_be_reached_ends_a_single_run_and_not_the_relay() {
    let (business, target) = (Business::start(), Target::answering(&[200]));
    business.insert(&target.url, 1);
    let directory = tempfile::tempdir().unwrap();
    let service = Service::start_in(directory.path(), &[]);
    let address = service.authority().to_owned();
    let mut relay = {
        service.stop().with(0);
        let server = format!("http://{address}");
        business.relay_to(&server, &["--once"]).end().with(6).says(&["cannot reach the server at"]);
        business.relay_to(&server, &[])
    };
    relay.stderr.wait_for("Redrive does not accept rows; retrying");
    assert_eq!(business.ids(), ["1"]);
    let _service = Service::start_at(&address, directory.path(), &[]);
    target.arrival();
    business.wait_until_empty();
}

/// The bucket is gone, or a proxy answers in its place: that says nothing about the row.
#[test]
fn a_row_whose_body_cannot_be_stored_is_not_refused() {
    let (business, target, s3) = (Business::start(), Target::answering(&[200]), S3::start());
    let temporary = tempfile::tempdir().unwrap();
    let service = Service::start_over(&s3, temporary.path(), &[]);
    s3.fail(|method, _| (method == "PUT").then(|| Fault::not_found("NoSuchBucket")));
    let url = &target.url;
    business.run(&format!(
        "INSERT INTO {TABLE} (target_url, body) VALUES ('{url}', convert_to(repeat('x', 100000), 'UTF8'))"
    ));
    let once = business.relay(&service, &["--once"]).end().with(1);
    once.says(&["object storage is unavailable"]);
    assert_eq!(business.ask("SELECT id, refused IS NULL FROM app.outbox"), ["1|t"]);
    s3.heal();
    business.relay(&service, &["--once"]).end().with(0).says(&["moved 1 row, refused 0 rows"]);
    assert_eq!(target.arrival().body.len(), 100_000);
}

#[test]
fn a_batch_that_is_too_large_for_a_proxy_is_made_smaller_and_a_row_that_is_too_large_is_refused() {
    let business = Business::start();
    business.insert("http://127.0.0.1:1/", 9);
    business.run(&format!("UPDATE {TABLE} SET labels = '{{\"large\": \"yes\"}}' WHERE id = 6"));
    let server = Target::replying(|arrival| {
        let is_large = String::from_utf8_lossy(&arrival.body).contains("large");
        let (tasks, taken) = batch(arrival);
        if is_large || tasks > 2 { refusal(413) } else { taken }
    });
    business.relay_to(&server.url, &["--once"]).end().with(1).says(&["moved 8 rows, refused 1 row"]);
    assert_eq!(business.ask("SELECT id, refused FROM app.outbox"), ["6|Not now"]);
}

#[test]
fn a_row_that_is_changed_while_it_is_handed_over_is_not_deleted() {
    let business = Business::start();
    business.insert("http://127.0.0.1:1/", 2);
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let server = Target::replying(move |arrival| {
        released.lock().unwrap().recv().ok();
        batch(arrival).1
    });
    let relay = business.relay_to(&server.url, &[]);
    let first = server.arrival();
    business.run(&format!("UPDATE {TABLE} SET method = 'PUT' WHERE id = 2"));
    release.send(()).unwrap();
    let second = server.arrival();
    assert_eq!(business.ids(), ["2"]);
    assert_eq!((batch(&first).0, batch(&second).0), (2, 1));
    assert!(String::from_utf8_lossy(&second.body).contains(r#""method":"PUT""#));
    // The signal comes while the batch is under way, which is still brought to its end.
    relay.signal("TERM");
    release.send(()).unwrap();
    relay.end().with(0).says(&["SIGTERM: ended; moved 2 rows", "rows changed while they were submitted"]);
    assert_eq!(business.ids(), [""; 0]);
}
