//! `POST /retry-tasks`: what is accepted, and what the answer says.

use std::sync::Arc;
use std::time::Duration;

use redrive_core::request::{Fingerprint, FingerprintVersion, Fingerprinter};
use redrive_core::task::PolicyRef;
use redrive_core::{Dependency, IdempotencyKey, Lane, PolicyId, Request, Status, Task, TaskId, TenantId, Timestamp};
use redrive_store::{NewTask, Start};
use serde_json::json;

use crate::world::{Ask, Plan, World, answer};

const START: u64 = 1_700_000_000_000;

#[tokio::test]
async fn a_submitted_task_is_answered_with_everything_there_is_to_know() {
    let world = World::start().await;
    let _held = world.target.hold();
    let answer = world
        .post(
            "/retry-tasks",
            r#"{"targetUrl":"https://user:pw@Api.Example.com/x?y=z","method":"PUT","body":"hé",
                "headers":{"X-Tag":["a","b"],"Authorization":"Bearer t"},"policy":{"maxAttempts":3},
                "idempotencyKey":"k-1","labels":{"team":"billing"}}"#,
        )
        .await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("content-length"), Some(answer.body.len().to_string().as_str()));
    let task = answer.json();
    let id = task["taskId"].as_str().unwrap();
    assert_eq!(answer.header("location"), Some(format!("/retry-tasks/{id}").as_str()));
    let expected = json!({
        "taskId": id,
        "status": "IN_FLIGHT",
        "statusReason": null,
        "attemptNumber": 1,
        "run": 1,
        "attemptInRun": 1,
        "maxAttempts": 3,
        "nextAttemptAt": START,
        "createdAt": START,
        "deadlineAt": START + 86_400_000,
        "endedAt": null,
        "cancelRequested": false,
        "targetUrl": "https://***@Api.Example.com/x?y=z",
        "method": "PUT",
        "headers": { "X-Tag": ["a", "b"], "Authorization": "***", "content-type": "text/plain; charset=utf-8" },
        "bodyBytes": 3,
        "dependency": "https://api.example.com",
        "policyId": "default",
        "policyVersion": 1,
        "policy": { "maxAttempts": 3 },
        "retrySpan": { "attempts": 3, "meanMs": 1_500, "mostMs": 3_000, "cutByBudget": false },
        "idempotencyKey": "k-1",
        "labels": { "team": "billing" },
        "lastError": null,
        "response": null,
    });
    assert_eq!(task, expected);
    assert_eq!(world.get(&format!("/retry-tasks/{id}")).await.json(), expected);
}

#[tokio::test]
async fn the_same_request_with_the_same_key_is_the_same_task() {
    let world = World::start().await;
    world.target.plan(Plan::Answer(answer(200, "done")));
    let document = r#"{"targetUrl":"https://example.com/","bodyJson":{"a":1},"idempotencyKey":"same"}"#;
    let id = world.submit(document).await;
    let ended = world.ended(&id).await;
    assert_eq!(ended["response"]["body"], "done");

    // The layout of the document, the order of its fields and the way the key comes in make no difference.
    let reordered =
        r#" { "bodyJson" : {"a":1}, "method": "POST", "policyId": "default", "targetUrl":"https://example.com/" } "#;
    for ask in [
        Ask::post("/retry-tasks", document),
        Ask::post("/retry-tasks", reordered).header("idempotency-key", "same"),
        Ask::post("/retry-tasks", reordered).header("idempotency-key", "\"same\""),
        Ask::post("/retry-tasks", document).header("idempotency-key", "\"same\""),
    ] {
        let replay = world.ask(ask.clone()).await;
        assert_eq!(replay.status, 200, "{ask:?}");
        assert_eq!(replay.header("idempotent-replayed"), Some("true"));
        assert_eq!(replay.header("location"), Some(format!("/retry-tasks/{id}").as_str()));
        assert_eq!(replay.json(), ended);
    }
    assert_eq!(world.target.sends(1).await.len(), 1);
}

#[tokio::test]
async fn the_same_key_with_another_request_is_refused_and_changes_nothing() {
    let world = World::start().await;
    let id = world.submit(r#"{"targetUrl":"https://example.com/","body":"a","idempotencyKey":"same"}"#).await;
    let before = world.ended(&id).await;
    for other in [
        r#"{"targetUrl":"https://example.com/x","body":"a","idempotencyKey":"same"}"#,
        r#"{"targetUrl":"https://example.com/","body":"b","idempotencyKey":"same"}"#,
        r#"{"targetUrl":"https://example.com/","body":"a","method":"PUT","idempotencyKey":"same"}"#,
        r#"{"targetUrl":"https://example.com/","body":"a","headers":{"x":"y"},"idempotencyKey":"same"}"#,
        r#"{"targetUrl":"https://example.com/","body":"a","policy":{"maxAttempts":2},"idempotencyKey":"same"}"#,
        r#"{"targetUrl":"https://example.com/","body":"a","dependency":"d","idempotencyKey":"same"}"#,
        r#"{"targetUrl":"https://example.com/","body":"a","delayMs":1,"idempotencyKey":"same"}"#,
        r#"{"targetUrl":"https://example.com/","body":"a","notBefore":1,"idempotencyKey":"same"}"#,
        r#"{"targetUrl":"https://example.com/","body":"a","labels":{"a":"b"},"idempotencyKey":"same"}"#,
        r#"{"targetUrl":"https://example.com/","bodyJson":"a","idempotencyKey":"same"}"#,
    ] {
        let problem = world.post("/retry-tasks", other).await.problem(422, "idempotency-key-reused");
        assert_eq!(problem["taskId"], id, "{other}");
    }
    assert_eq!(world.ended(&id).await, before);
    assert_eq!(world.get("/retry-tasks").await.json()["tasks"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_task_without_a_key_gets_one_and_says_so() {
    let world = World::start().await;
    let document = r#"{"targetUrl":"https://example.com/"}"#;
    let first = world.post("/retry-tasks", document).await;
    assert_eq!(first.status, 201);
    let task = first.json();
    assert_eq!(task["idempotencyKeyGenerated"], true);
    let key = task["idempotencyKey"].as_str().unwrap();
    assert_eq!((key.len(), &key[14..15]), (36, "4"), "{key}");

    let shown = world.get(first.header("location").unwrap()).await.json();
    assert_eq!(shown["idempotencyKey"], key);
    assert_eq!(shown.get("idempotencyKeyGenerated"), None);

    let second = world.post("/retry-tasks", document).await;
    assert_eq!(second.status, 201);
    assert_ne!(second.json()["idempotencyKey"], key);
    let sent = world.target.sends(2).await;
    assert_eq!(sent[0].idempotency_key.as_str(), key);
}

#[tokio::test]
async fn keys_in_the_document_and_the_header_must_agree() {
    let world = World::start().await;
    let ask = Ask::post("/retry-tasks", r#"{"targetUrl":"https://example.com/","idempotencyKey":"a"}"#);
    let problem = world.ask(ask.clone().header("idempotency-key", "b")).await.problem(400, "idempotency-key-mismatch");
    assert_eq!(problem["field"], "idempotencyKey");
    assert_eq!(world.ask(ask.header("idempotency-key", "a")).await.status, 201);
}

#[tokio::test]
async fn a_key_that_is_none_is_400_and_says_which_rule_it_breaks() {
    let world = World::start().await;
    let submit = || Ask::post("/retry-tasks", r#"{"targetUrl":"https://example.com/"}"#);
    let long = "k".repeat(65);
    for (value, rule) in [
        ("\"b", "must be one string that ends with a quote"),
        ("\"b\";a=1", "must be one string that ends with a quote"),
        (&long, "must be at most 64 characters, got 65"),
        ("a b", "must be visible ASCII characters, got ' '"),
        ("a, a", "must be visible ASCII characters, got ' '"),
        ("\"\"", "must not be empty"),
        ("", "must not be empty"),
    ] {
        let problem =
            world.ask(submit().header("idempotency-key", value)).await.problem(400, "invalid-idempotency-key");
        assert_eq!(problem["field"], "Idempotency-Key", "{value}");
        assert!(problem["detail"].as_str().unwrap().contains(rule), "{value}: {problem:#}");
    }
    for (one, other) in [("a", "b"), ("a", "a"), ("a", "\"a\"")] {
        let twice = submit().header("idempotency-key", one).header("Idempotency-Key", other);
        let problem = world.ask(twice).await.problem(400, "invalid-idempotency-key");
        assert_eq!(problem["detail"], "Idempotency-Key must be given only once", "{one} {other}");
    }
    for (key, rule) in [(&*long, "must be at most 64 characters, got 65"), ("", "must not be empty"), (" ", "got ' '")]
    {
        let document = format!(r#"{{"targetUrl":"https://example.com/","idempotencyKey":"{key}"}}"#);
        let problem = world.post("/retry-tasks", &document).await.problem(400, "invalid-idempotency-key");
        assert_eq!(problem["field"], "idempotencyKey");
        assert!(problem["errors"][0]["message"].as_str().unwrap().contains(rule), "{problem:#}");
        let batch = world.post("/retry-tasks/batch", &format!(r#"{{"tasks":[{document}]}}"#)).await.json();
        let result = &batch["results"][0];
        assert_eq!((&result["status"], &result["error"]["field"]), (&json!(400), &json!("tasks[0].idempotencyKey")));
    }
    let longest = "k".repeat(64);
    assert_eq!(world.ask(submit().header("idempotency-key", &longest)).await.status, 201);
    assert_eq!(world.get("/retry-tasks").await.json()["tasks"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_task_may_start_later() {
    let world = World::start().await;
    for (start, due) in [
        (r#""delayMs":5000"#, START + 5_000),
        (r#""notBefore":1700000007000"#, START + 7_000),
        (r#""notBefore":"2023-11-14T22:13:29.5Z""#, START + 9_500),
    ] {
        let document = format!(r#"{{"targetUrl":"https://example.com/",{start}}}"#);
        let task = world.post("/retry-tasks", &document).await.json();
        assert_eq!((task["status"].as_str(), task["nextAttemptAt"].as_u64()), (Some("PENDING"), Some(due)), "{start}");
        assert_eq!(task["attemptNumber"], 0);
    }
    // A moment that has passed is now.
    let task = world.post("/retry-tasks", r#"{"targetUrl":"https://example.com/","notBefore":5}"#).await.json();
    assert_eq!((task["status"].as_str(), task["nextAttemptAt"].as_u64()), (Some("IN_FLIGHT"), Some(START)));
}

#[tokio::test]
async fn what_is_sent_is_what_was_given() {
    let world = World::start().await;
    let document = r#"{"targetUrl":"https://user:pw@example.com:8443/x?y","method":"M-SEARCH","bodyBase64":"AP/+",
        "headers":{"X-B":"1","x-a":["2","3"]},"idempotencyKey":"k","dependency":"radio"}"#;
    let id = world.submit(document).await;
    let sent = &world.target.sends(1).await[0];
    assert_eq!(sent.request.target_url, "https://user:pw@example.com:8443/x?y");
    assert_eq!(sent.request.method, "M-SEARCH");
    assert_eq!(&sent.request.body.inline().unwrap()[..], b"\x00\xff\xfe");
    let headers: Vec<(&str, &str)> = sent.request.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(headers, [("X-B", "1"), ("x-a", "2"), ("x-a", "3")]);
    assert_eq!((sent.idempotency_key.as_str(), sent.attempt), ("k", 1));
    assert_eq!(sent.lane.dependency.as_str(), "radio");
    assert_eq!(sent.task.to_string(), id);
}

#[tokio::test]
async fn the_same_request_is_the_same_task_whatever_became_of_its_policy() {
    let world = World::start().await;
    world.post("/retry-policies", r#"{"policyId":"brief","totalBudgetMs":3600000}"#).await;
    let document = r#"{"targetUrl":"http://a.test/","policyId":"brief","delayMs":600000,"idempotencyKey":"k"}"#;
    let other = document.replace("600000", "500000");
    let id = world.submit(document).await;

    world.post("/retry-policies", r#"{"policyId":"brief","totalBudgetMs":60000}"#).await;
    let again = world.post("/retry-tasks", document).await;
    assert_eq!((again.status, again.json()["taskId"].as_str()), (200, Some(&*id)), "{}", again.text());
    assert_eq!(world.post("/retry-tasks", &other).await.problem(422, "idempotency-key-reused")["taskId"], id);
    let fresh = document.replace("\"k\"", "\"fresh\"");
    world.post("/retry-tasks", &fresh).await.problem(422, "invalid-value");

    world.delete(&format!("/retry-tasks/{id}")).await;
    assert_eq!(world.delete("/retry-policies/brief").await.status, 204);
    let again = world.post("/retry-tasks", document).await;
    assert_eq!((again.status, again.json()["taskId"].as_str()), (200, Some(&*id)), "{}", again.text());
    let batch = world.post("/retry-tasks/batch", &format!(r#"{{"tasks":[{document},{fresh},{other}]}}"#)).await.json();
    let statuses: Vec<_> = batch["results"].as_array().unwrap().iter().map(|result| result["status"].clone()).collect();
    assert_eq!(statuses, [200, 422, 422], "{batch:#}");
}

fn with_headers(key: &str, headers: &str) -> String {
    format!(r#"{{"targetUrl":"https://example.com/","body":"a","headers":{{{headers}}},"idempotencyKey":"{key}"}}"#)
}

#[tokio::test]
async fn a_renewed_credential_is_the_same_request_and_the_first_one_is_sent() {
    let world = World::start().await;
    let _held = world.target.hold();
    let first = with_headers("k", r#""Authorization":"Bearer 1","traceparent":"00-1","x":"y""#);
    let id = world.submit(&first).await;
    let same = world.post("/retry-tasks", &first).await;
    assert_eq!((same.status, same.json().get("ignoredHeaders")), (200, None));

    let renewed = with_headers("k", r#""authorization":"Bearer 2","traceparent":"00-1","baggage":"a=b","x":"y""#);
    for headers in [r#""x":"y""#, r#""Authorization":"Bearer 2","traceparent":"00-1","baggage":"a=b","x":"y""#] {
        let again = world.post("/retry-tasks", &with_headers("k", headers)).await;
        assert_eq!((again.status, again.header("idempotent-replayed")), (200, Some("true")), "{}", again.text());
        // What is shown is the stored task.
        assert_eq!(again.json()["headers"]["traceparent"], "00-1", "{headers}");
        assert_eq!(again.json()["taskId"], id);
    }
    let again = world.post("/retry-tasks", &renewed).await;
    assert_eq!(again.json()["ignoredHeaders"], json!(["authorization", "baggage"]));
    assert_eq!(again.json()["headers"].get("baggage"), None);
    assert_eq!(world.get(&format!("/retry-tasks/{id}")).await.json().get("ignoredHeaders"), None);
    let batch = world.post("/retry-tasks/batch", &format!(r#"{{"tasks":[{renewed},{first}]}}"#)).await.json();
    assert_eq!(batch["results"][0]["task"]["ignoredHeaders"], json!(["authorization", "baggage"]));
    assert_eq!(batch["results"][1]["task"].get("ignoredHeaders"), None);

    let other = with_headers("k", r#""Authorization":"Bearer 1","traceparent":"00-1","x":"z""#);
    world.post("/retry-tasks", &other).await.problem(422, "idempotency-key-reused");
    let sent = &world.target.sends(1).await[0];
    assert!(sent.request.headers.contains(&("Authorization".to_owned(), "Bearer 1".to_owned())));
}

/// A fingerprint of version 1 counts every header field. Its layout is written out here, because what earlier releases stored
/// stays as it is.
fn version_1(headers: &[(&str, &str)]) -> Fingerprint {
    let mut parts = Fingerprinter::default().part(b"POST").part(b"https://example.com/").part(b"a").part(b"default");
    for _absent in ["dependency", "delayMs", "notBefore", "policy"] {
        parts = parts.part(&[0]);
    }
    parts = parts.part(&(headers.len() as u64).to_le_bytes());
    for (name, value) in headers {
        parts = parts.part(name.as_bytes()).part(value.as_bytes());
    }
    Fingerprint { version: FingerprintVersion::V1, hash: parts.part(&0_u64.to_le_bytes()).hash() }
}

#[tokio::test]
async fn a_key_that_was_stored_with_version_1_is_still_recognised() {
    let world = World::start().await;
    let headers = [("Authorization", "Bearer 1"), ("content-type", "text/plain; charset=utf-8")];
    let lane =
        Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new("https://example.com").unwrap() };
    let task = Task {
        id: TaskId::from_parts(1, 2),
        lane,
        idempotency_key: IdempotencyKey::try_new("old").unwrap(),
        correlation_id: None,
        trace_parent: None,
        policy: PolicyRef { id: PolicyId::default_policy(), version: 1 },
        status: Status::Pending,
        reason: None,
        attempt_number: 0,
        attempts_before: 0,
        attempt_timeout: Duration::from_secs(30),
        run_started_at: Timestamp::from_millis(START),
        backoff: None,
        dns_failures: 0,
        run: 1,
        max_attempts: 6,
        next_attempt_at: Some(Timestamp::from_millis(START + 3_600_000)),
        created_at: Timestamp::from_millis(START),
        deadline_at: Timestamp::from_millis(START + 86_400_000),
        ended_at: None,
        cancel_requested: false,
        last_error: None,
    };
    let request = Request {
        target_url: "https://example.com/".into(),
        method: "POST".into(),
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        body: "a".into(),
        overrides: None,
        labels: Default::default(),
    };
    let new = NewTask { task, request: Arc::new(request), fingerprint: version_1(&headers), start: Start::Pending };
    let id = new.task.id.to_string();
    world.engine.store().tasks().submit(vec![new]).await.unwrap();
    let again = world.post("/retry-tasks", &with_headers("old", r#""Authorization":"Bearer 1""#)).await;
    assert_eq!((again.status, again.json()["taskId"].as_str()), (200, Some(&*id)), "{}", again.text());
    // What is adopted of the caller's trace was no part of it then either.
    let traced = Ask::post("/retry-tasks", &with_headers("old", r#""Authorization":"Bearer 1""#))
        .header("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        .header("tracestate", "a=1")
        .header("baggage", "b=2");
    let again = world.ask(traced).await;
    assert_eq!((again.status, again.json()["taskId"].as_str()), (200, Some(&*id)), "{}", again.text());
    // By the rules of version 1, a renewed token is another request.
    let renewed = world.post("/retry-tasks", &with_headers("old", r#""Authorization":"Bearer 2""#)).await;
    assert_eq!(renewed.problem(422, "idempotency-key-reused")["taskId"], id);
    assert_eq!(world.get("/retry-tasks/by-key/old").await.json()["taskId"], id);
}

#[tokio::test]
async fn a_correlation_id_is_kept_and_is_no_part_of_the_request() {
    let world = World::start().await;
    let document = |id: &str| {
        format!(r#"{{"targetUrl":"https://example.com/","idempotencyKey":"k","delayMs":5000,"correlationId":"{id}"}}"#)
    };
    let id = world.submit(&document("checkout-7")).await;
    let shown = world.get(&format!("/retry-tasks/{id}")).await.json();
    assert_eq!(shown["correlationId"], "checkout-7");
    let again = world.post("/retry-tasks", &document("checkout-8")).await;
    assert_eq!((again.status, again.json()["taskId"].as_str()), (200, Some(&*id)), "{}", again.text());
    assert_eq!(again.json()["correlationId"], "checkout-7");
    let without = world.submit(r#"{"targetUrl":"https://example.com/","delayMs":5000}"#).await;
    assert_eq!(world.get(&format!("/retry-tasks/{without}")).await.json().get("correlationId"), None);
    for (wrong, told) in [("", "empty"), ("a b", "visible ASCII"), (&*"x".repeat(129), "at most 128")] {
        let refused = world.post("/retry-tasks", &document(wrong)).await;
        let problem = refused.problem(422, "invalid-value");
        let text = problem.to_string();
        assert!(text.contains("correlationId") && text.contains(told), "{text}");
    }
}

#[tokio::test]
async fn a_task_is_found_by_its_key() {
    let world = World::start().await;
    let id = world.submit(r#"{"targetUrl":"https://example.com/","idempotencyKey":"a/b?c","delayMs":5000}"#).await;
    let found = world.get("/retry-tasks/by-key/a%2Fb%3Fc").await;
    assert_eq!((found.status, found.json()), (200, world.get(&format!("/retry-tasks/{id}")).await.json()));
    let problem = world.get("/retry-tasks/by-key/none").await.problem(404, "task-not-found");
    assert_eq!(problem["detail"], "there is no task with the idempotency key \"none\"");
    let problem = world.get("/retry-tasks/by-key/a%20b").await.problem(400, "invalid-idempotency-key");
    assert_eq!(problem["field"], "key");
}

#[tokio::test]
async fn every_answer_with_one_task_says_how_long_its_retries_go_on() {
    let world = World::start().await;
    let submission =
        r#"{"targetUrl":"https://example.com/","idempotencyKey":"k","delayMs":9000,"policy":{"maxAttempts":4}}"#;
    let expected = json!({ "attempts": 4, "meanMs": 3_500, "mostMs": 7_000, "cutByBudget": false });
    let submitted = world.post("/retry-tasks", submission).await;
    let id = submitted.json()["taskId"].as_str().unwrap().to_owned();
    let again = world.post("/retry-tasks", submission).await;
    assert_eq!((submitted.status, again.status), (201, 200));
    let batch = world.post("/retry-tasks/batch", &format!(r#"{{"tasks":[{submission}]}}"#)).await.json();
    let read = world.get(&format!("/retry-tasks/{id}")).await;
    let by_key = world.get("/retry-tasks/by-key/k").await;
    let cancelled = world.delete(&format!("/retry-tasks/{id}")).await;
    for answer in [submitted, again, read, by_key, cancelled] {
        assert_eq!(answer.json()["retrySpan"], expected, "{}", answer.json());
    }
    assert_eq!(batch["results"][0]["task"]["retrySpan"], expected);
    let listed = world.get("/retry-tasks").await.json();
    assert_eq!(listed["tasks"][0].get("retrySpan"), None);
}

#[tokio::test]
async fn a_total_budget_that_ends_before_the_last_attempt_is_said() {
    let world = World::start().await;
    let submission =
        r#"{"targetUrl":"https://example.com/","delayMs":100,"policy":{"totalBudgetMs":3000,"maxAttempts":4}}"#;
    let task = world.post("/retry-tasks", submission).await.json();
    let expected = json!({ "attempts": 4, "meanMs": 3_000, "mostMs": 3_000, "cutByBudget": true });
    assert_eq!(task["retrySpan"], expected);
}
