//! A key that was used in SQL and is used again over the API, and the other way round: the fingerprints are the same.

use redrive_testbed::{Database, Postgres};
use tempfile::TempDir;

use super::super::world::{Business, Service, Target, post};

/// A service over PostgreSQL, and an application with a connection to the same database.
struct World {
    service: Service,
    own: Business,
    target: Target,
    _kept: (TempDir, Database),
}

impl World {
    fn start() -> World {
        let (directory, database) = (tempfile::tempdir().unwrap(), Postgres::shared().fresh_database());
        let service = Service::start_in(directory.path(), &["--store", database.url()]);
        let own = Business::connect(database.url());
        World { service, own, target: Target::answering(&[200]), _kept: (directory, database) }
    }

    /// The status of a submission over the API, and its task's id or its problem's kind.
    fn submit(&self, document: &str) -> (u16, String) {
        let (status, answer) = post(self.service.authority(), "/retry-tasks", document);
        let told = if status < 300 { &answer["taskId"] } else { &answer["type"] };
        (status, told.as_str().unwrap().to_owned())
    }
}

#[test]
fn what_was_enqueued_in_sql_is_the_same_request_over_the_api() {
    let world = World::start();
    let url = format!("{}/hooks?x=1", world.target.url);
    let submission = r#"{"targetUrl": "URL", "method": "PUT", "body": "hällo", "idempotencyKey": "order-7",
        "headers": {"X-Second": ["ü", "2"], "X-A": "1"}, "dependency": "billing", "labels": {"order": "7", "z": "é"},
        "notBefore": "2020-01-02T01:04:05.678Z"}"#
        .replace("URL", &url);
    let enqueued = world.own.ask(&format!(
        "SELECT redrive.enqueue(
             target_url => '{url}', method => 'PUT', body => 'hällo', idempotency_key => 'order-7',
             headers => '[[\"X-Second\", \"ü\"], [\"X-Second\", \"2\"], [\"X-A\", \"1\"]]', dependency => 'billing',
             labels => '{{\"z\": \"é\", \"order\": \"7\"}}', not_before => '2020-01-02 03:04:05.678+02'
         )"
    ));
    assert_eq!(world.submit(&submission), (200, enqueued[0].clone()));
    for (part, other) in [
        ("PUT", "POST"),
        ("x=1", "x=2"),
        ("hällo", "hallo"),
        ("\"ü\", \"2\"", "\"2\", \"ü\""),
        ("X-A", "x-a"),
        ("billing", "shipping"),
        ("\"7\"", "\"8\""),
        ("678Z", "679Z"),
    ] {
        assert!(submission.contains(part), "{part}");
        let refused = (422, "/problems/idempotency-key-reused".to_owned());
        assert_eq!(world.submit(&submission.replacen(part, other, 1)), refused, "{part} as {other}");
    }
    assert_eq!(world.submit(&submission.replace("order-7", "order-8")).0, 201, "another key is another task");
    let arrived = [world.target.arrival(), world.target.arrival()];
    let mut keys = arrived.each_ref().map(|arrival| arrival.header("idempotency-key").unwrap());
    keys.sort_unstable();
    assert_eq!(keys, ["order-7", "order-8"]);
    assert_eq!(arrived[0].body, arrived[1].body);
}

#[test]
fn each_kind_of_body_is_the_same_request_both_ways() {
    let world = World::start();
    let url = &world.target.url;
    // Kept apart from its task when it comes over the API, and in its row when it comes by SQL.
    let large = format!(r#", "body": "{}""#, "x".repeat(70_000));
    for (key, in_sql, over_the_api) in [
        ("none", "NULL::text", ""),
        ("empty", "''", r#", "body": """#),
        ("text", "'a\"b'", r#", "body": "a\"b""#),
        ("json", r#"'{"b":1,"aa":[null]}'::jsonb"#, r#", "bodyJson": {"b": 1, "aa": [null]}"#),
        ("large", "repeat('x', 70000)", &large),
        ("bytes", r"'\x00ff'::bytea", r#", "bodyBase64": "AP8=""#),
    ] {
        let submission = format!(r#"{{"targetUrl": "{url}", "idempotencyKey": "{key}"{over_the_api}}}"#);
        let (status, id) = world.submit(&submission);
        assert_eq!(status, 201, "{key}");
        let enqueue = |url: &str| {
            format!("SELECT redrive.enqueue(target_url => '{url}', body => {in_sql}, idempotency_key => '{key}')")
        };
        assert_eq!(world.own.ask(&enqueue(url)), [id], "{key}");
        assert_eq!(world.own.refusal(&enqueue(&format!("{url}/other"))), "RD001", "{key}");
    }
    assert_eq!(
        world.service.run(&["tasks", "list", "--json"]).with(0).json()["tasks"].as_array().map(Vec::len),
        Some(6)
    );
}

#[test]
fn a_renewed_credential_is_the_same_request_both_ways() {
    let world = World::start();
    let url = &world.target.url;
    let submission = |key: &str, token: &str, other: &str| {
        format!(
            r#"{{"targetUrl": "{url}", "method": "GET", "idempotencyKey": "{key}",
                "headers": {{"Authorization": "{token}", "X-A": "{other}"}}}}"#
        )
    };
    let enqueue = |key: &str, token: &str, other: &str| {
        format!(
            "SELECT redrive.enqueue('{url}', method => 'GET', idempotency_key => '{key}',
                 headers => '[[\"Authorization\", \"{token}\"], [\"X-A\", \"{other}\"]]')"
        )
    };
    let enqueued = world.own.ask(&enqueue("in-sql", "Bearer 1", "1"));
    assert_eq!(world.submit(&submission("in-sql", "Bearer 2", "1")), (200, enqueued[0].clone()));
    assert_eq!(world.submit(&submission("in-sql", "Bearer 1", "2")).0, 422);
    let (status, id) = world.submit(&submission("over-the-api", "Bearer 1", "1"));
    assert_eq!(status, 201);
    assert_eq!(world.own.ask(&enqueue("over-the-api", "Bearer 2", "1")), [id]);
    assert_eq!(world.own.refusal(&enqueue("over-the-api", "Bearer 1", "2")), "RD001");
}

#[test]
fn a_key_of_version_1_is_still_the_same_request_both_ways() {
    let world = World::start();
    let url = &world.target.url;
    let enqueue = format!(
        "SELECT redrive.enqueue('{url}', method => 'GET', idempotency_key => 'old', headers => '[[\"Date\", \"1\"]]')"
    );
    let enqueued = world.own.ask(&enqueue);
    // As `redrive.enqueue` of the versions before has written it.
    world.own.run(&format!(
        "UPDATE redrive.tasks SET fingerprint = redrive.fingerprint(
             'GET', '{url}', '', 'default', NULL, NULL, '[[\"Date\", \"1\"]]', '{{}}')"
    ));
    assert_eq!(world.own.ask(&enqueue), enqueued);
    let submission =
        format!(r#"{{"targetUrl": "{url}", "method": "GET", "idempotencyKey": "old", "headers": {{"Date": "1"}}}}"#);
    assert_eq!(world.submit(&submission), (200, enqueued[0].clone()));
    assert_eq!(world.submit(&submission.replace("\"1\"", "\"2\"")).0, 422, "every header counts in version 1");
}

#[test]
fn a_key_that_an_open_transaction_holds_leaves_a_submission_in_doubt_and_it_can_be_made_again() {
    let world = World::start();
    let submission = format!(r#"{{"targetUrl": "{}", "method": "GET", "idempotencyKey": "held"}}"#, world.target.url);
    let enqueue = format!("SELECT redrive.enqueue('{}', method => 'GET', idempotency_key => 'held')", world.target.url);
    world.own.run(&format!("BEGIN; {enqueue}"));
    let (status, problem) = post(world.service.authority(), "/retry-tasks", &submission);
    assert_eq!((status, problem["type"].as_str()), (503, Some("/problems/unavailable")), "{problem:#}");
    let told = "may have been accepted all the same: submitting it again with the same Idempotency-Key is safe";
    assert!(problem["detail"].as_str().unwrap().ends_with(told), "{problem:#}");
    world.own.run("COMMIT");
    assert_eq!(world.submit(&submission).0, 200);
}
