//! Reserving idempotency records: who executes, and what duplicates get.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use redrive_core::idempotency::RequestHash;
use redrive_core::idempotency::request_hash::{Comparison, HashedRequest};
use serde_json::{Value, json};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::world::{Answer, Ask, Setup, World};

const START: u64 = 1_700_000_000_000;
pub(crate) const ME: &str = "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2";
pub(crate) const OTHER: &str = "5f0c6f3a-2f4e-4a1b-9a53-0d3c5b7e9f10";

pub(crate) fn hash(byte: u8) -> String {
    RequestHash([byte; 32]).to_string()
}

/// Calls an action on the record `pay/k`.
pub(crate) async fn act(world: &World, action: &str, document: Value) -> Answer {
    world.post(&format!("/idempotency-records/pay/k/{action}"), &document.to_string()).await
}

/// Reserves `pay/k` for the request 1.
pub(crate) async fn reserve(world: &World, execution: &str) -> Answer {
    act(world, "reserve", json!({ "requestHash": hash(1), "executionId": execution })).await
}

pub(crate) async fn show(world: &World) -> Answer {
    world.get("/idempotency-records/pay/k").await
}

#[tokio::test]
async fn the_first_caller_executes_and_a_duplicate_gets_the_stored_response_exactly() {
    let world = World::start().await;
    let granted = reserve(&world, ME).await;
    assert_eq!(granted.status, 201, "{}", granted.text());
    let expected = json!({ "outcome": "reserved", "executionId": ME, "epoch": 1, "leaseUntil": START + 60_000 });
    assert_eq!(granted.json(), expected);

    world.clock.advance(Duration::from_secs(2));
    let completed = act(
        &world,
        "complete",
        json!({ "executionId": ME, "epoch": 1, "resourceType": "payment", "resourceId": "pay_1",
            "response": { "status": 201, "headers": { "Set-Cookie": ["a=1", "b=2"], "X-A": "z" }, "bodyJson": { "b":1 } } }),
    )
    .await;
    assert_eq!(completed.status, 200, "{}", completed.text());
    let record = json!({
        "operation": "pay", "key": "k", "state": "SUCCEEDED", "requestHash": hash(1), "executionId": ME, "epoch": 1,
        "leaseUntil": START + 2_000, "startedAt": START, "updatedAt": START + 2_000, "expiresAt": START + 86_402_000,
        "response": { "status": 201, "headers": { "Set-Cookie": ["***", "***"], "X-A": "z" }, "bodyBytes": 7 },
        "resourceType": "payment", "resourceId": "pay_1",
    });
    assert_eq!(completed.json(), record);

    let replay = reserve(&world, OTHER).await;
    assert_eq!((replay.status, replay.header("idempotent-replayed")), (200, Some("true")));
    let expected = json!({
        "outcome": "replay", "state": "SUCCEEDED", "completedAt": START + 2_000,
        "response": { "status": 201, "headers": { "Set-Cookie": ["a=1", "b=2"], "X-A": "z" },
            "bodyBase64": "eyJiIjoxfQ==", "bodyBytes": 7 },
        "resourceType": "payment", "resourceId": "pay_1",
    });
    assert_eq!(replay.json(), expected);

    let shown = show(&world).await;
    assert_eq!(shown.header("etag"), Some("\"1-SUCCEEDED-1700000002000-1700000002000\""));
    let mut full = record;
    full["response"]["bodyBase64"] = json!("eyJiIjoxfQ==");
    assert_eq!(shown.json(), full);
}

#[tokio::test]
async fn without_an_execution_id_one_is_made() {
    let world = World::start().await;
    let granted = act(&world, "reserve", json!({ "requestHash": hash(1), "leaseMs": 5_000 })).await.json();
    let id = granted["executionId"].as_str().unwrap();
    assert_eq!((id.len(), &id[14..15], &granted["leaseUntil"]), (36, "4", &json!(START + 5_000)));
}

#[tokio::test]
async fn a_request_is_hashed_as_the_library_does() {
    let world = World::start().await;
    let body = r#"{"amount": 1,  "to":"a"}"#;
    let request = HashedRequest {
        method: "POST",
        path: "/payments?x=1",
        content_type: "application/json",
        body: body.as_bytes(),
        comparison: Comparison::Bytes,
    };
    let json_form = HashedRequest { comparison: Comparison::Json, ..request };
    let empty = HashedRequest { content_type: "", body: b"", ..request };
    let common = r#""method":"POST","path":"/payments?x=1""#;
    let typed = format!(r#"{common},"contentType":"application/json; charset=utf-8""#);
    for (at, (document, expected)) in [
        (format!(r#"{{{typed},"bodyJson":{body}}}"#), &request),
        (format!(r#"{{{typed},"bodyText":{}}}"#, json!(body)), &request),
        (format!(r#"{{{typed},"bodyBase64":"eyJhbW91bnQiOiAxLCAgInRvIjoiYSJ9"}}"#), &request),
        (format!(r#"{{{typed},"bodyJson":{body},"comparison":"bytes"}}"#), &request),
        (format!(r#"{{{typed},"bodyJson":{{"to":"a","amount":1}},"comparison":"json"}}"#), &json_form),
        (format!(r#"{{{common}}}"#), &empty),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/idempotency-records/pay/{at}");
        let answer = world.post(&format!("{path}/reserve"), &format!(r#"{{"request":{document}}}"#)).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        let shown = world.get(&path).await.json();
        assert_eq!(shown["requestHash"], RequestHash::of(expected).to_string(), "{document}");
    }
}

#[tokio::test]
async fn another_request_with_the_same_key_is_refused_and_learns_nothing() {
    let world = World::start().await;
    reserve(&world, ME).await;
    let other = || act(&world, "reserve", json!({ "requestHash": hash(2) }));
    let while_under_way = other().await;
    let problem = while_under_way.problem(422, "idempotency-key-reused");
    assert_eq!(while_under_way.header("retry-after"), None);
    let response = json!({ "status": 200, "bodyText": "secret" });
    act(&world, "complete", json!({ "executionId": ME, "epoch": 1, "response": response })).await;
    assert_eq!(other().await.problem(422, "idempotency-key-reused"), problem, "whether it has ended is not told");
    let members: Vec<&String> = problem.as_object().unwrap().keys().collect();
    assert_eq!(members, ["type", "title", "status", "detail"]);
}

#[tokio::test]
async fn while_an_execution_is_under_way_duplicates_are_told_when_to_come_again() {
    for (lease_ms, retry_after) in [(1_000, "1"), (1_001, "2"), (5_000, "5"), (60_000, "30"), (86_400_000_u64, "30")] {
        let world = World::start().await;
        let key = "/idempotency-records/pay/a%2Fb";
        let document = json!({ "requestHash": hash(1), "leaseMs": lease_ms }).to_string();
        assert_eq!(world.post(&format!("{key}/reserve"), &document).await.status, 201);
        let refused = world.post(&format!("{key}/reserve"), &document).await;
        let problem = refused.problem(409, "idempotency-in-progress");
        assert_eq!(refused.header("retry-after"), Some(retry_after), "{lease_ms}");
        assert_eq!((refused.header("location"), &problem["pollUrl"]), (Some(key), &json!(key)));
        assert_eq!(problem["leaseUntil"], START + lease_ms);
        assert_eq!(world.get(key).await.json()["state"], "IN_PROGRESS");
    }
}

#[tokio::test]
async fn invalid_values_are_named() {
    let world = World::start().await;
    let common = || json!({ "requestHash": hash(1) });
    let with = |name: &str, value: Value| {
        let mut document = common();
        document[name] = value;
        document
    };
    let request = |value: Value| json!({ "request": value });
    for (document, status, name, field) in [
        (json!({}), 422, "invalid-value", "requestHash"),
        (json!({ "requestHash": "abc" }), 422, "invalid-value", "requestHash"),
        (with("request", json!({ "method": "GET", "path": "/" })), 422, "invalid-value", "requestHash"),
        (request(json!({ "path": "/" })), 400, "invalid-document", "request.method"),
        (request(json!({ "method": "", "path": "/" })), 422, "invalid-value", "request.method"),
        (request(json!({ "method": "GET", "path": "" })), 422, "invalid-value", "request.path"),
        (
            request(json!({ "method": "GET", "path": "/", "comparison": "xml" })),
            422,
            "invalid-value",
            "request.comparison",
        ),
        (
            request(json!({ "method": "GET", "path": "/", "bodyBase64": "?" })),
            422,
            "invalid-value",
            "request.bodyBase64",
        ),
        (
            request(json!({ "method": "GET", "path": "/", "bodyText": "", "bodyJson": 1 })),
            422,
            "invalid-value",
            "request.bodyText",
        ),
        (with("leaseMs", json!(999)), 422, "invalid-value", "leaseMs"),
        (with("leaseMs", json!(86_400_001)), 422, "invalid-value", "leaseMs"),
        (with("leaseMs", json!("1s")), 400, "invalid-document", "leaseMs"),
        (with("retentionMs", json!(999)), 422, "invalid-value", "retentionMs"),
        (with("retentionMs", json!(7_776_000_001_u64)), 422, "invalid-value", "retentionMs"),
        (with("executionId", json!("me")), 422, "invalid-value", "executionId"),
        (with("colour", json!(1)), 400, "invalid-document", "colour"),
    ] {
        let answer = act(&world, "reserve", document.clone()).await;
        assert_eq!(answer.problem(status, name)["field"], field, "{document}");
    }
    show(&world).await.problem(404, "record-not-found");
}

#[tokio::test]
async fn operations_and_keys_in_the_path_have_rules() {
    let world = World::start().await;
    let long = "k".repeat(65);
    for (path, name, field, rule) in [
        ("/idempotency-records/pay/a%20b", "invalid-idempotency-key", "key", "visible ASCII"),
        (
            &*format!("/idempotency-records/pay/{long}"),
            "invalid-idempotency-key",
            "key",
            "at most 64 characters, got 65",
        ),
        ("/idempotency-records/pay/%C3%A9", "invalid-idempotency-key", "key", "got 'é'"),
        ("/idempotency-records/a%2Fb/k", "invalid-parameter", "operation", "letters, digits"),
    ] {
        for ask in
            [Ask::get(path), Ask::post(&format!("{path}/reserve"), &json!({ "requestHash": hash(1) }).to_string())]
        {
            let problem = world.ask(ask).await.problem(400, name);
            assert_eq!(problem["field"], field, "{path}");
            assert!(problem["detail"].as_str().unwrap().contains(rule), "{problem:#}");
        }
    }
}

#[tokio::test]
async fn the_record_of_a_submission_is_its_task() {
    let world = World::start().await;
    let id = world.submit(r#"{"targetUrl":"https://example.com/","idempotencyKey":"order-1"}"#).await;
    let path = "/idempotency-records/submit-task/order-1";
    let shown = world.get(path).await;
    assert_eq!(shown.status, 200, "{}", shown.text());
    let record = shown.json();
    assert_eq!(
        (&record["state"], &record["resourceType"], &record["resourceId"]),
        (&json!("SUCCEEDED"), &json!("retry-task"), &json!(id))
    );
    assert_eq!((&record["expiresAt"], &record["executionId"]), (&Value::Null, &json!(id)));
    world.get("/idempotency-records/submit-task/none").await.problem(404, "record-not-found");

    let owner = json!({ "executionId": ME, "epoch": 1, "retryable": true }).to_string();
    let owner_only = json!({ "executionId": ME, "epoch": 1 }).to_string();
    for (action, document) in [
        ("reserve", json!({ "requestHash": hash(1) }).to_string()),
        ("complete", owner_only.clone()),
        ("fail", owner),
        ("renew", owner_only.clone()),
        ("release", owner_only),
    ] {
        let problem = world.post(&format!("{path}/{action}"), &document).await.problem(422, "invalid-value");
        assert_eq!(problem["field"], "operation", "{action}");
        assert!(problem["detail"].as_str().unwrap().contains("POST /retry-tasks"), "{problem:#}");
    }
    let deleted = world.ask(Ask::new("DELETE", path).header("if-match", "*")).await;
    assert_eq!(deleted.problem(422, "invalid-value")["field"], "operation");
    let listed = world.get("/idempotency-records?operation=submit-task").await.problem(400, "invalid-parameter");
    assert!(listed["detail"].as_str().unwrap().contains("GET /retry-tasks"), "{listed:#}");
}

/// A thousand streams on ten connections: all of them begin their request at the same moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_a_thousand_callers_at_once_one_executes() {
    let world = World::start().await;
    let document = json!({ "requestHash": hash(1) }).to_string();
    let uri = format!("http://{}/idempotency-records/pay/k/reserve", world.address);
    let begin = Arc::new(Barrier::new(1_000));
    let mut callers = JoinSet::new();
    for _ in 0..10 {
        let sender = http2(&world).await;
        for _ in 0..100 {
            let (mut sender, begin) = (sender.clone(), begin.clone());
            let request = Request::post(&uri).header("content-type", "application/json");
            let request = request.body(Full::new(Bytes::from(document.clone()))).unwrap();
            callers.spawn(async move {
                begin.wait().await;
                let response = sender.send_request(request).await.unwrap();
                let status = response.status().as_u16();
                let body = response.into_body().collect().await.unwrap().to_bytes();
                (status, serde_json::from_slice::<Value>(&body).unwrap()["type"].clone())
            });
        }
    }
    let mut answers = callers.join_all().await;
    answers.sort_by_key(|(status, _)| *status);
    assert_eq!(answers[0].0, 201);
    let refused = (409, json!("/problems/idempotency-in-progress"));
    assert!(answers[1..].iter().all(|answer| *answer == refused), "{:?}", &answers[1..]);
    let totals = world.get("/idempotency-records/stats").await.json()["totals"].clone();
    assert_eq!((&totals["reservations"], &totals["inProgress"]), (&json!(1), &json!(999)));
}

async fn http2(world: &World) -> hyper::client::conn::http2::SendRequest<Full<Bytes>> {
    let stream = tokio::net::TcpStream::connect(world.address).await.unwrap();
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = handshake.await.unwrap();
    // A connection that the server ends shows in the requests' own errors.
    tokio::spawn(async move { connection.await.unwrap_or_default() });
    sender
}

#[tokio::test]
async fn while_the_time_is_uncertain_nothing_is_reserved_and_no_record_is_changed() {
    let world = World::of(Setup { is_shared: true, ..Setup::default() }).await;
    assert_eq!(reserve(&world, ME).await.status, 201);
    // The store's clock steps by an hour, and the machine's does not.
    world.store.set_ahead(3_600_000);
    let beat_every = redrive_engine::Options::default().beat_every;
    while world.engine.clock_state().is_certain {
        world.clock.until_a_sleep_of(beat_every).await;
        world.clock.advance(beat_every);
        tokio::task::yield_now().await;
    }
    let single = json!({ "requestHash": hash(1), "executionId": ME }).to_string();
    let owner = json!({ "executionId": ME, "epoch": 1 }).to_string();
    let retryable = json!({ "executionId": ME, "epoch": 1, "retryable": true }).to_string();
    for (path, document) in [
        ("/idempotency-records/pay/k/reserve", single),
        ("/idempotency-records/batch", json!({ "records": [] }).to_string()),
        ("/inboxes/billing/events/e1", json!({}).to_string()),
        ("/inboxes/billing/events", json!({ "events": ["e1"] }).to_string()),
        ("/inboxes/billing/events/e1/confirm", owner.clone()),
        ("/inboxes/billing/events/e1/release", owner.clone()),
        ("/idempotency-records/pay/k/complete", owner.clone()),
        ("/idempotency-records/pay/k/fail", retryable),
        ("/idempotency-records/pay/k/renew", owner.clone()),
        ("/idempotency-records/pay/k/release", owner),
    ] {
        let refused = world.post(path, &document).await;
        let problem = refused.problem(503, "unavailable");
        assert_eq!(refused.header("retry-after"), Some("1"), "{path}");
        assert!(problem["detail"].as_str().unwrap().contains("time is uncertain"), "{problem:#}");
    }
    let delete = Ask::new("DELETE", "/idempotency-records/pay/k").header("if-match", "*");
    world.ask(delete).await.problem(503, "unavailable");
    assert_eq!(show(&world).await.json()["state"], "IN_PROGRESS");
}
