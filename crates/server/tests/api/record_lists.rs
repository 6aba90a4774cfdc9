//! Lists, batches and numbers of idempotency records.

use std::time::Duration;

use redrive_server::{Limits, rest};
use serde_json::{Value, json};

use crate::records::{ME, act, hash, reserve};
use crate::world::World;

async fn reserve_as(world: &World, operation: &str, key: &str) {
    let document = json!({ "requestHash": hash(1), "executionId": ME }).to_string();
    let answer = world.post(&format!("/idempotency-records/{operation}/{key}/reserve"), &document).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
}

fn keys(page: &Value) -> Vec<String> {
    let name =
        |record: &Value| format!("{}/{}", record["operation"].as_str().unwrap(), record["key"].as_str().unwrap());
    page["records"].as_array().unwrap().iter().map(name).collect()
}

#[tokio::test]
async fn records_are_listed_by_operation_and_key_without_bodies() {
    let world = World::start().await;
    for (operation, key) in [("refund", "b"), ("pay", "b"), ("pay", "a"), ("pay", "c")] {
        reserve_as(&world, operation, key).await;
    }
    assert_eq!(world.post("/inboxes/billing/events/e", "{}").await.status, 201);
    world.clock.advance(Duration::from_secs(10));
    let complete = json!({ "executionId": ME, "epoch": 1, "response": { "status": 200, "bodyText": "body" } });
    world.post("/idempotency-records/pay/b/complete", &complete.to_string()).await;
    for (query, expected) in [
        ("", &["pay/a", "pay/b", "pay/c", "refund/b"][..]),
        ("?operation=pay", &["pay/a", "pay/b", "pay/c"]),
        ("?operation=refund", &["refund/b"]),
        ("?operation=none", &[]),
        ("?state=SUCCEEDED", &["pay/b"]),
        ("?state=IN_PROGRESS&operation=pay", &["pay/a", "pay/c"]),
        ("?olderThanMs=5000", &["pay/a", "pay/c", "refund/b"]),
        ("?olderThanMs=10000", &[]),
        ("?olderThanMs=9999", &["pay/a", "pay/c", "refund/b"]),
    ] {
        let page = world.get(&format!("/idempotency-records{query}")).await.json();
        assert_eq!(
            (keys(&page), &page["nextCursor"]),
            (expected.iter().map(ToString::to_string).collect(), &Value::Null),
            "{query}"
        );
    }
    let listed = world.get("/idempotency-records?state=SUCCEEDED").await.json();
    assert_eq!(listed["records"][0]["response"], json!({ "status": 200, "headers": {}, "bodyBytes": 4 }));
    for (query, field) in [
        ("?state=succeeded", "state"),
        ("?operation=a%20b", "operation"),
        ("?olderThanMs=x", "olderThanMs"),
        ("?limit=0", "limit"),
        ("?cursor=x", "cursor"),
    ] {
        let problem = world.get(&format!("/idempotency-records{query}")).await.problem(400, "invalid-parameter");
        assert_eq!(problem["field"], field);
    }
}

#[tokio::test]
async fn a_list_has_pages() {
    let world = World::start().await;
    let mut expected = Vec::new();
    for at in 0..45 {
        reserve_as(&world, "pay", &format!("k{at:02}")).await;
        expected.push(format!("pay/k{at:02}"));
    }
    for limit in [1, 20, 44, 45, 500] {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = world.get(&format!("/idempotency-records?limit={limit}{cursor}")).await.json();
            assert!(keys(&page).len() <= limit);
            found.extend(keys(&page));
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(found, expected, "{limit}");
    }
}

#[tokio::test]
async fn a_batch_has_a_result_for_each_record_in_order() {
    let world = World::start().await;
    reserve(&world, ME).await;
    act(&world, "complete", json!({ "executionId": ME, "epoch": 1, "response": { "status": 200, "bodyText": "a" } }))
        .await;
    reserve_as(&world, "pay", "busy").await;
    let item = |key: &str| json!({ "operation": "pay", "key": key, "requestHash": hash(1) });
    let records = json!([
        item("new"),
        item("new"),
        item("k"),
        item("busy"),
        { "operation": "pay", "key": "k", "requestHash": hash(2) },
        { "operation": "pay", "key": "a b", "requestHash": hash(1) },
        { "operation": "a/b", "key": "k", "requestHash": hash(1) },
        { "operation": "submit-task", "key": "k", "requestHash": hash(1) },
        { "operation": "pay", "key": "k", "requestHash": hash(1), "leaseMs": 1 },
        { "operation": "pay" },
        { "operation": "pay", "key": "last", "request": { "method": "POST", "path": "/" }, "executionId": ME, "leaseMs": 2000 },
    ]);
    let answer = world.post("/idempotency-records/batch", &json!({ "records": records }).to_string()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let results = answer.json()["results"].clone();
    let told: Vec<(u64, String)> = results
        .as_array()
        .unwrap()
        .iter()
        .map(|result| {
            let name = result["record"]["outcome"].as_str().or(result["error"]["field"].as_str());
            let name = name.or(result["error"]["type"].as_str());
            (result["status"].as_u64().unwrap(), name.unwrap_or_default().to_owned())
        })
        .collect();
    let expected = [
        (201, "reserved"),
        (409, "/problems/idempotency-in-progress"),
        (200, "replay"),
        (409, "/problems/idempotency-in-progress"),
        (422, "/problems/idempotency-key-reused"),
        (400, "records[5].key"),
        (422, "records[6].operation"),
        (422, "records[7].operation"),
        (422, "records[8].leaseMs"),
        (400, "records[9].key"),
        (201, "reserved"),
    ]
    .map(|(status, name)| (status, name.to_owned()));
    assert_eq!(told, expected, "{results:#}");
    assert_eq!(results[2]["record"]["response"]["bodyBase64"], "YQ==");
    assert_eq!(results[10]["record"]["executionId"], ME);

    let many: Vec<Value> = (0..1_001).map(|at| item(&at.to_string())).collect();
    let refused = world.post("/idempotency-records/batch", &json!({ "records": many }).to_string()).await;
    assert_eq!(refused.problem(422, "invalid-value")["field"], "records");
    let most = world.post("/idempotency-records/batch", &json!({ "records": many[..1_000] }).to_string()).await.json();
    assert!(most["results"].as_array().unwrap().iter().all(|result| result["status"] == 201));
    assert_eq!(world.post("/idempotency-records/batch", r#"{"records":[]}"#).await.json(), json!({ "results": [] }));
}

#[tokio::test]
async fn a_batch_leaves_bodies_out_when_they_are_too_many_together() {
    let limits = Limits { page_bytes: 10, ..Limits::default() };
    let world = World::with(limits, rest::Options::default()).await;
    let item = |key: &str| json!({ "operation": "pay", "key": key, "requestHash": hash(1) });
    for key in ["a", "b"] {
        reserve_as(&world, "pay", key).await;
        let complete = json!({ "executionId": ME, "epoch": 1, "response": { "status": 200, "bodyText": "123456" } });
        world.post(&format!("/idempotency-records/pay/{key}/complete"), &complete.to_string()).await;
    }
    let batch = json!({ "records": [item("a"), item("b")] }).to_string();
    let results = world.post("/idempotency-records/batch", &batch).await.json()["results"].clone();
    let shown = json!({ "status": 200, "headers": {}, "bodyBase64": "MTIzNDU2", "bodyBytes": 6 });
    let left_out = json!({ "status": 200, "headers": {}, "bodyLeftOut": true, "bodyBytes": 6 });
    assert_eq!((&results[0]["record"]["response"], &results[1]["record"]["response"]), (&shown, &left_out));
}

#[tokio::test]
async fn the_numbers_say_what_there_is_and_what_was_answered() {
    let world = World::start().await;
    let owner = json!({ "executionId": ME, "epoch": 1 });
    reserve(&world, ME).await;
    reserve(&world, crate::records::OTHER).await;
    act(&world, "reserve", json!({ "requestHash": hash(2) })).await;
    act(&world, "complete", owner.clone()).await;
    reserve(&world, ME).await;
    reserve_as(&world, "pay", "given-up").await;
    world.post("/idempotency-records/pay/given-up/release", &owner.to_string()).await;
    reserve_as(&world, "refund", "abandoned").await;
    world.clock.advance(Duration::from_secs(61));
    let taken = json!({ "requestHash": hash(1) }).to_string();
    assert_eq!(world.post("/idempotency-records/refund/abandoned/reserve", &taken).await.status, 201);
    world.post("/idempotency-records/refund/abandoned/complete", &owner.to_string()).await.problem(409, "fenced");
    world.post("/inboxes/billing/events", r#"{"events":["a","b","a"]}"#).await;
    let stats = world.get("/idempotency-records/stats").await.json();
    let expected = json!({
        "operations": [
            { "operation": "pay", "inProgress": 0, "succeeded": 1, "failedRetryable": 0, "failedFinal": 0 },
            { "operation": "refund", "inProgress": 1, "succeeded": 0, "failedRetryable": 0, "failedFinal": 0 },
        ],
        "nextCursor": null,
        "countedUpTo": 10_000,
        "totals": { "reservations": 4, "replays": 1, "inProgress": 1, "mismatches": 1, "takeovers": 1, "completions": 1,
            "fenced": 1, "released": 1, "inboxes": { "new": 2, "duplicates": 1, "inProgress": 0 }, "submissions": { "replays": 0, "mismatches": 0 } },
    });
    assert_eq!(stats, expected);
    let first = world.get("/idempotency-records/stats?limit=1").await.json();
    // The inbox comes between the two operations, and is listed elsewhere.
    assert_eq!(first["operations"].as_array().unwrap().len(), 0);
    let second = world
        .get(&format!("/idempotency-records/stats?limit=1&cursor={}", first["nextCursor"].as_str().unwrap()))
        .await
        .json();
    assert_eq!(second["operations"][0]["operation"], "pay");
    let inboxes = world.get("/inboxes").await.json();
    let expected = json!({ "inboxes": [{ "consumer": "billing", "seen": 2, "inProgress": 0 }], "nextCursor": null,
        "countedUpTo": 10_000, "totals": { "new": 2, "duplicates": 1, "inProgress": 0 } });
    assert_eq!(inboxes, expected);
}

#[tokio::test]
async fn submissions_with_a_key_that_was_used_are_counted() {
    let world = World::start().await;
    let submission = |body: &str| json!({ "targetUrl": "https://a.test/", "idempotencyKey": "k", "body": body });
    for (body, status) in [("a", 201), ("a", 200), ("b", 422), ("a", 200)] {
        let document = submission(body).to_string();
        assert_eq!(world.post("/retry-tasks", &document).await.status, status, "{body}");
    }
    let batch = json!({ "tasks": [submission("a"), submission("c"), { "targetUrl": "https://a.test/" }] }).to_string();
    assert_eq!(world.post("/retry-tasks/batch", &batch).await.status, 200);
    let totals = world.get("/idempotency-records/stats").await.json()["totals"].clone();
    assert_eq!(totals["submissions"], json!({ "replays": 3, "mismatches": 2 }));
    assert_eq!(
        (&totals["replays"], &totals["mismatches"]),
        (&json!(0), &json!(0)),
        "records are counted by themselves"
    );
}
