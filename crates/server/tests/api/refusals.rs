//! Bad submissions: the exact status, type and field of each.

use crate::world::{Ask, World};

/// A document, and the status, type and field that it is refused with.
type Case<'a> = (&'a str, u16, &'a str, Option<&'a str>);

async fn refused(world: &World, path: &str, cases: &[Case<'_>]) {
    for (document, status, name, field) in cases {
        let problem = world.post(path, document).await.problem(*status, name);
        assert_eq!(problem["field"].as_str(), *field, "{document}\n{problem:#}");
    }
    assert_eq!(world.get("/retry-tasks").await.json()["tasks"].as_array().unwrap().len(), 0);
}

#[tokio::test]
async fn what_cannot_be_understood_is_400_and_named() {
    let json = "malformed-json";
    let shape = "invalid-document";
    let cases: &[Case<'_>] = &[
        ("", 400, json, None),
        ("{", 400, json, None),
        ("targetUrl=x", 400, json, None),
        (r#"{"targetUrl":"https://example.com/",}"#, 400, json, None),
        (r#"{"targetUrl":"https://example.com/"} x"#, 400, json, None),
        (r#"{"targetUrl":"https://example.com/\x"}"#, 400, json, None),
        ("[]", 400, shape, None),
        (r#"["https://example.com/"]"#, 400, shape, None),
        ("null", 400, shape, None),
        ("{}", 400, shape, Some("targetUrl")),
        (r#"{"targetUrl":null}"#, 400, shape, Some("targetUrl")),
        (r#"{"targetUrl":["https://example.com/"]}"#, 400, shape, Some("targetUrl")),
        (r#"{"targetUrl":"https://example.com/","target":"x"}"#, 400, shape, Some("target")),
        (r#"{"targetUrl":"https://example.com/","targetUrl":"https://example.com/"}"#, 400, shape, Some("targetUrl")),
        (r#"{"targetUrl":"https://example.com/","method":1}"#, 400, shape, Some("method")),
        (r#"{"targetUrl":"https://example.com/","headers":{"a":{}}}"#, 400, shape, Some("headers.a")),
        (r#"{"targetUrl":"https://example.com/","headers":{"a":["b",null]}}"#, 400, shape, Some("headers.a[1]")),
        (r#"{"targetUrl":"https://example.com/","body":{}}"#, 400, shape, Some("body")),
        (r#"{"targetUrl":"https://example.com/","policy":{"maxTries":1}}"#, 400, shape, Some("policy.maxTries")),
        (
            r#"{"targetUrl":"https://example.com/","policy":{"jitterType":"full"}}"#,
            400,
            shape,
            Some("policy.jitterType"),
        ),
        (
            r#"{"targetUrl":"https://example.com/","policy":{"scheduleMs":[1,"2"]}}"#,
            400,
            shape,
            Some("policy.scheduleMs[1]"),
        ),
        (r#"{"targetUrl":"https://example.com/","delayMs":"1s"}"#, 400, shape, Some("delayMs")),
        (r#"{"targetUrl":"https://example.com/","delayMs":-1}"#, 400, shape, Some("delayMs")),
        (r#"{"targetUrl":"https://example.com/","notBefore":"tomorrow"}"#, 400, shape, Some("notBefore")),
        (r#"{"targetUrl":"https://example.com/","labels":{"a":1}}"#, 400, shape, Some("labels.a")),
        (r#"{"targetUrl":"https://example.com/","labels":[]}"#, 400, shape, Some("labels")),
        (r#"{"targetUrl":"https://example.com/","labels":{"a":"1","a":"1"}}"#, 400, shape, Some("labels.a")),
    ];
    refused(&World::start().await, "/retry-tasks", cases).await;
}

#[tokio::test]
async fn an_invalid_target_method_or_header_is_422_and_named() {
    let value = "invalid-value";
    let long_url = format!(r#"{{"targetUrl":"https://example.com/{}"}}"#, "x".repeat(8 * 1024));
    let many_headers =
        format!(r#"{{"targetUrl":"https://example.com/","headers":{{"a":[{}"x"]}}}}"#, r#""x","#.repeat(100));
    let big_headers =
        format!(r#"{{"targetUrl":"https://example.com/","headers":{{"a":"{}"}}}}"#, "x".repeat(32 * 1024));
    let cases: &[Case<'_>] = &[
        (r#"{"targetUrl":""}"#, 422, value, Some("targetUrl")),
        (r#"{"targetUrl":"/hooks"}"#, 422, value, Some("targetUrl")),
        (r#"{"targetUrl":"ftp://example.com/"}"#, 422, value, Some("targetUrl")),
        (r#"{"targetUrl":"https:///x"}"#, 422, value, Some("targetUrl")),
        (r#"{"targetUrl":"https://example.com/a b"}"#, 422, value, Some("targetUrl")),
        (r#"{"targetUrl":"https://example.com/\r\nx: y"}"#, 422, value, Some("targetUrl")),
        (r#"{"targetUrl":"https://example.com:0/"}"#, 422, value, Some("targetUrl")),
        (r#"{"targetUrl":"http://127.0.0.1:+22100/"}"#, 422, value, Some("targetUrl")),
        (r#"{"targetUrl":"https://example.com/","headers":{"Host":""}}"#, 422, value, Some("headers.Host")),
        (r#"{"targetUrl":"https://example.com/","headers":{"Host":["a","b"]}}"#, 422, value, Some("headers.Host")),
        (r#"{"targetUrl":"https://example.com/","headers":{"Host":"a","host":"a"}}"#, 422, value, Some("headers.host")),
        (&long_url, 422, value, Some("targetUrl")),
        (r#"{"targetUrl":"https://example.com/","method":"GE T"}"#, 422, value, Some("method")),
        (r#"{"targetUrl":"https://example.com/","method":"CONNECT"}"#, 422, value, Some("method")),
        (r#"{"targetUrl":"https://example.com/","headers":{"a b":"c"}}"#, 422, value, Some("headers.a b")),
        (r#"{"targetUrl":"https://example.com/","headers":{"a":"b\nc"}}"#, 422, value, Some("headers.a")),
        (
            r#"{"targetUrl":"https://example.com/","headers":{"Content-Length":"1"}}"#,
            422,
            value,
            Some("headers.Content-Length"),
        ),
        (
            r#"{"targetUrl":"https://example.com/","headers":{"Idempotency-Key":"1"}}"#,
            422,
            value,
            Some("headers.Idempotency-Key"),
        ),
        (
            r#"{"targetUrl":"https://example.com/","headers":{"redrive-attempt":"1"}}"#,
            422,
            value,
            Some("headers.redrive-attempt"),
        ),
        (&many_headers, 422, value, Some("headers")),
        (&big_headers, 422, value, Some("headers")),
    ];
    refused(&World::start().await, "/retry-tasks", cases).await;
}

#[tokio::test]
async fn an_invalid_body_policy_time_or_label_is_422_and_named() {
    let value = "invalid-value";
    let many_labels: Vec<String> = (0..21).map(|at| format!(r#""l{at}":"v""#)).collect();
    let many_labels = format!(r#"{{"targetUrl":"https://example.com/","labels":{{{}}}}}"#, many_labels.join(","));
    let cases: &[Case<'_>] = &[
        (r#"{"targetUrl":"https://example.com/","body":"a","bodyBase64":"YQ=="}"#, 422, value, Some("body")),
        (r#"{"targetUrl":"https://example.com/","bodyBase64":"?"}"#, 422, value, Some("bodyBase64")),
        (r#"{"targetUrl":"https://example.com/","policyId":"no such"}"#, 422, value, Some("policyId")),
        (r#"{"targetUrl":"https://example.com/","policyId":"none"}"#, 422, "unknown-policy", Some("policyId")),
        (r#"{"targetUrl":"https://example.com/","policy":{"maxAttempts":0}}"#, 422, value, Some("policy.maxAttempts")),
        (
            r#"{"targetUrl":"https://example.com/","policy":{"backoff":"schedule"}}"#,
            422,
            value,
            Some("policy.scheduleMs"),
        ),
        (r#"{"targetUrl":"https://example.com/","dependency":"a b"}"#, 422, value, Some("dependency")),
        (r#"{"targetUrl":"https://example.com/","delayMs":1,"notBefore":1}"#, 422, value, Some("delayMs")),
        (r#"{"targetUrl":"https://example.com/","delayMs":86400000}"#, 422, value, Some("delayMs")),
        (
            r#"{"targetUrl":"https://example.com/","delayMs":5000,"policy":{"totalBudgetMs":5000}}"#,
            422,
            value,
            Some("delayMs"),
        ),
        (r#"{"targetUrl":"https://example.com/","notBefore":"2099-01-01T00:00:00Z"}"#, 422, value, Some("notBefore")),
        (&many_labels, 422, value, Some("labels")),
        (r#"{"targetUrl":"https://example.com/","labels":{"a:b":"c"}}"#, 422, value, Some("labels.a:b")),
    ];
    refused(&World::start().await, "/retry-tasks", cases).await;
}

#[tokio::test]
async fn all_faults_are_told_at_once() {
    let world = World::start().await;
    let document = r#"{"targetUrl":"nowhere","method":"","headers":{"te":"x","a":"\n"},"body":"","bodyJson":1,
        "policy":{"maxAttempts":0,"multiplier":0},"labels":{"":""}}"#;
    let problem = world.post("/retry-tasks", document).await.problem(422, "invalid-value");
    let fields: Vec<&str> =
        problem["errors"].as_array().unwrap().iter().map(|fault| fault["field"].as_str().unwrap()).collect();
    let expected = [
        "method",
        "targetUrl",
        "body",
        "bodyJson",
        "headers.te",
        "headers.a",
        "labels.",
        "policy.multiplier",
        "policy.maxAttempts",
    ];
    assert_eq!(fields, expected);
    assert!(problem["errors"].as_array().unwrap().iter().all(|fault| fault["message"].is_string()));
}

#[tokio::test]
async fn a_body_that_is_not_json_by_its_own_word_is_415() {
    let world = World::start().await;
    let ask = Ask::post("/retry-tasks", r#"{"targetUrl":"https://example.com/"}"#);
    for content_type in ["text/plain", "application/x-www-form-urlencoded", "application/xml", "json"] {
        world.ask(ask.clone().header("content-type", content_type)).await.problem(415, "unsupported-media-type");
    }
    world.ask(ask.clone().header("content-encoding", "gzip")).await.problem(415, "unsupported-media-type");
    for content_type in ["application/json; charset=utf-8", "application/vnd.x+json"] {
        assert_eq!(world.ask(ask.clone().header("content-type", content_type)).await.status, 201);
    }
    for path in ["/retry-tasks", "/retry-tasks/batch", "/retry-policies"] {
        let untyped = Ask::post(path, r#"{"targetUrl":"https://example.com/"}"#).without("content-type");
        world.ask(untyped).await.problem(415, "unsupported-media-type");
    }
    assert_eq!(world.target.sent(), 2);
}

#[tokio::test]
async fn an_unknown_query_parameter_is_refused_everywhere() {
    let world = World::start().await;
    for (method, path) in [
        ("GET", "/retry-tasks?state=PENDING"),
        ("POST", "/retry-tasks?state=PENDING"),
        ("GET", "/retry-tasks/018bcfe5-6800-7f57-a123-456789abcdef?state="),
        ("GET", "/retry-policies?state=x"),
    ] {
        let problem = world.ask(Ask::new(method, path)).await.problem(400, "invalid-parameter");
        assert_eq!(problem["field"], "state", "{method} {path}");
    }
}

#[tokio::test]
async fn a_page_of_another_site_changes_nothing() {
    let world = World::start().await;
    let document = r#"{"targetUrl":"https://example.com/"}"#;
    for site in ["cross-site", "same-site"] {
        let ask = Ask::post("/retry-tasks", document).header("sec-fetch-site", site);
        world.ask(ask).await.problem(403, "cross-site");
    }
    assert_eq!(world.ask(Ask::get("/retry-tasks").header("sec-fetch-site", "cross-site")).await.status, 200);
    let own = Ask::post("/retry-tasks", document).header("sec-fetch-site", "same-origin");
    assert_eq!(world.ask(own).await.status, 201);
}
