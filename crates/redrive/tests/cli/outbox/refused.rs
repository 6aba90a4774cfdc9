//! Rows that Redrive refuses.

use super::super::world::{Business, Service, TABLE, Target};

const REFUSED: &str = "SELECT id, refused FROM app.outbox ORDER BY id";

#[test]
fn a_refused_row_stays_with_the_reason_and_holds_up_no_other() {
    let (service, business, target) = (Service::start(), Business::start(), Target::answering(&[200]));
    let url = &target.url;
    let taken = service.send(&[url, "--key", "taken", "-d", "something else"]);
    target.arrival();
    business.run(&format!(
        "INSERT INTO {TABLE} (target_url, headers, labels, policy_id, idempotency_key, not_before) VALUES
         ('{url}/1', NULL, NULL, NULL, NULL, NULL),
         ('ftp://x/', NULL, NULL, NULL, NULL, NULL),
         ('{url}/3', '{{\"X\": 1}}', NULL, NULL, NULL, NULL),
         ('{url}/4', NULL, '[]', NULL, NULL, NULL),
         ('{url}/5', NULL, NULL, 'nobody', NULL, NULL),
         ('{url}/6', NULL, NULL, NULL, 'taken', NULL),
         ('{url}/7', NULL, NULL, NULL, 'no spaces', NULL),
         ('{url}/8', NULL, NULL, NULL, NULL, 'infinity'),
         ('{url}/9', NULL, NULL, NULL, NULL, NULL),
         ('{url}/10', '[1]', NULL, NULL, NULL, NULL)"
    ));
    let relay = business.relay(&service, &["--once"]).end().with(1);
    let relay =
        relay.says(&["error: Redrive refused 8 rows, which stay: the reason is in the column refused of app.outbox"]);
    let relay =
        relay.says(&["moved 2 rows, refused 8 rows", "Redrive refused a row; it stays in the table", "id=2", "id=8"]);
    assert_eq!(relay.stderr.matches("Redrive refused a row").count(), 8, "{}", relay.stderr);
    let mut paths = [target.arrival().path, target.arrival().path];
    paths.sort_unstable();
    assert_eq!(paths, ["/1", "/9"]);
    let shape = |field: &str, what: &str| format!("The document does not match its schema: {what}\n  {field}: {what}");
    let moment = "invalid value: string \"infinity\", expected epoch milliseconds or an RFC 3339 time such as \
                  2026-01-31T12:00:00Z";
    assert_eq!(
        business.ask(REFUSED),
        [
            "2|A value is invalid: targetUrl must begin with http:// or https://".to_owned(),
            format!("3|{}", shape("headers.X", "invalid type: integer `1`, expected a text or a list of texts")),
            format!("4|{}", shape("labels", "invalid type: sequence, expected an object from names to texts")),
            "5|No policy with this name: there is no policy \"nobody\"\n  field: policyId".to_owned(),
            format!(
                "6|The idempotency key belongs to another request: the idempotency key belongs to task {taken}, which has another \
                 request"
            ),
            "7|The idempotency key is not valid: idempotencyKey must be visible ASCII characters, got ' '".to_owned(),
            format!("8|{}", shape("notBefore", moment)),
            "10|headers must be an object of strings or lists of strings, or a list of [name, value], got [1]"
                .to_owned(),
        ]
    );

    // Skipped until the row is corrected.
    business.relay(&service, &["--once"]).end().with(0).says(&["moved 0 rows, refused 0 rows"]);
    business.run(&format!("UPDATE {TABLE} SET target_url = '{url}/2', refused = NULL WHERE id = 2"));
    business.relay(&service, &["--once"]).end().with(0).says(&["moved 1 row, refused 0 rows"]);
    assert_eq!(target.arrival().path, "/2");
    assert_eq!(business.ids(), ["3", "4", "5", "6", "7", "8", "10"]);
}

#[test]
fn a_body_that_no_server_takes_is_refused_unread() {
    let (service, business) = (Service::start(), Business::start());
    business.run(&format!(
        "INSERT INTO {TABLE} (target_url, body) VALUES
         ('http://127.0.0.1:1/', convert_to(repeat('x', 16777217), 'UTF8')),
         ('http://127.0.0.1:1/', convert_to(repeat('x', 1048577), 'UTF8'))"
    ));
    business.relay(&service, &["--once"]).end().with(1).says(&["moved 0 rows, refused 2 rows"]);
    assert_eq!(
        business.ask(REFUSED),
        [
            "1|body must be at most 16777216 bytes, got 16777217",
            "2|Content too large: bodyBase64 is larger than 1048576 bytes"
        ]
    );
}
