//! The bodies of responses that are kept for duplicates: small ones with the record, large ones apart.

use redrive_core::BodyHash;
use redrive_server::{Limits, rest};
use serde_json::{Value, json};

use crate::records::{ME, OTHER, act, reserve, show};
use crate::world::{Answer, World};

async fn complete(world: &World, body: &str) -> Answer {
    let response = json!({ "status": 200, "bodyText": body });
    act(world, "complete", json!({ "executionId": ME, "epoch": 1, "response": response })).await
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn limits(inline: usize, most: usize) -> Limits {
    Limits { inline_body_bytes: inline, body_bytes: most, ..Limits::default() }
}

#[tokio::test]
async fn a_large_body_is_stored_apart_and_read_back_for_a_duplicate() {
    let world = World::with(limits(1_000, 10_000), rest::Options::default()).await;
    reserve(&world, ME).await;
    let body = "x".repeat(1_001);
    let reference = BodyHash::of(body.as_bytes()).to_string();
    let completed = complete(&world, &body).await;
    let shown = json!({ "status": 200, "headers": {}, "bodyRef": reference, "bodyBytes": 1_001 });
    assert_eq!((completed.status, &completed.json()["response"]), (200, &shown), "{}", completed.text());
    // The same result again is the same result, although its body is stored again.
    assert_eq!(complete(&world, &body).await.json(), completed.json());
    assert_eq!(show(&world).await.json()["response"], shown);
    let replay = reserve(&world, OTHER).await;
    let expected = json!({ "status": 200, "headers": {}, "bodyBase64": base64(&body), "bodyBytes": 1_001 });
    assert_eq!((replay.status, &replay.json()["response"]), (200, &expected));
    assert_eq!(world.get(&format!("/blobs/{reference}")).await.text(), body);
}

#[tokio::test]
async fn a_body_of_more_than_a_mebibyte_is_referred_to() {
    let most = 3 * 1024 * 1024;
    let world = World::with(limits(1_000, most), rest::Options::default()).await;
    for (key, length, is_shown) in [("a", 1024 * 1024, true), ("b", 1024 * 1024 + 1, false), ("c", most, false)] {
        let path = format!("/idempotency-records/pay/{key}");
        let document = json!({ "requestHash": crate::records::hash(1), "executionId": ME }).to_string();
        assert_eq!(world.post(&format!("{path}/reserve"), &document).await.status, 201);
        let body = "x".repeat(length);
        let complete = json!({ "executionId": ME, "epoch": 1, "response": { "status": 200, "bodyText": body } });
        assert_eq!(world.post(&format!("{path}/complete"), &complete.to_string()).await.status, 200);
        let response = world.post(&format!("{path}/reserve"), &document).await.json()["response"].clone();
        let reference = json!(BodyHash::of(body.as_bytes()).to_string());
        let expected = if is_shown { (json!(base64(&body)), Value::Null) } else { (Value::Null, reference) };
        assert_eq!((response["bodyBase64"].clone(), response["bodyRef"].clone()), expected, "{key}");
        assert_eq!(response["bodyBytes"], length);
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_and_changes_nothing() {
    let world = World::with(limits(10, 100), rest::Options::default()).await;
    reserve(&world, ME).await;
    let problem = complete(&world, &"x".repeat(101)).await.problem(413, "content-too-large");
    assert_eq!((&problem["field"], &problem["limitBytes"]), (&json!("response.bodyText"), &json!(100)));
    assert_eq!(show(&world).await.json()["state"], "IN_PROGRESS");
    assert_eq!(complete(&world, &"x".repeat(100)).await.status, 200);
    let request = json!({ "request": { "method": "POST", "path": "/", "bodyText": "x".repeat(101) } });
    let problem = act(&world, "reserve", request).await.problem(413, "content-too-large");
    assert_eq!(problem["field"], "request.bodyText");
}

#[tokio::test]
async fn without_storage_a_large_body_stays_with_the_record() {
    let world = World::without_bodies().await;
    reserve(&world, ME).await;
    let body = "x".repeat(100_000);
    let completed = complete(&world, &body).await.json();
    assert_eq!(completed["response"], json!({ "status": 200, "headers": {}, "bodyBytes": 100_000 }));
    assert_eq!(reserve(&world, OTHER).await.json()["response"]["bodyBase64"], base64(&body));
    assert_eq!(show(&world).await.json()["response"]["bodyBase64"], base64(&body));
}

#[tokio::test]
async fn a_body_that_is_deleted_before_the_record_refers_to_it_is_stored_once_more() {
    let world = World::with(limits(10, 1_000), rest::Options::default()).await;
    reserve(&world, ME).await;
    world.store.lose_bodies(2);
    let refused = complete(&world, &"x".repeat(11)).await;
    refused.problem(503, "unavailable");
    assert_eq!(show(&world).await.json()["state"], "IN_PROGRESS");
    world.store.lose_bodies(1);
    assert_eq!(complete(&world, &"x".repeat(11)).await.status, 200);
}

#[tokio::test]
async fn an_answer_without_a_body_has_an_empty_one() {
    let world = World::start().await;
    reserve(&world, ME).await;
    act(&world, "complete", json!({ "executionId": ME, "epoch": 1, "response": { "status": 204 } })).await;
    let replay = reserve(&world, OTHER).await.json();
    assert_eq!(replay["response"], json!({ "status": 204, "headers": {}, "bodyBase64": "", "bodyBytes": 0 }));
}
