//! `POST /retry-tasks/batch`

use serde_json::{Value, json};

use crate::world::{Ask, World};

fn statuses(results: &Value) -> Vec<u64> {
    results["results"].as_array().unwrap().iter().map(|result| result["status"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn each_task_has_its_own_result_and_a_bad_one_spoils_none_of_the_others() {
    let world = World::start().await;
    let before = world.submit(r#"{"targetUrl":"https://example.com/old","idempotencyKey":"old"}"#).await;
    let batch = r#"{"tasks":[
        {"targetUrl":"https://example.com/0","idempotencyKey":"a"},
        {"targetUrl":"https://example.com/1","colour":"red"},
        {"targetUrl":"https://example.com/2","headers":{"te":"x"}},
        {"targetUrl":"https://example.com/3"},
        {"targetUrl":"https://example.com/old","idempotencyKey":"old"},
        {"targetUrl":"https://example.com/other","idempotencyKey":"old"},
        {"targetUrl":"https://example.com/0","idempotencyKey":"a"},
        {"targetUrl":"https://example.com/1","idempotencyKey":"a"},
        "text",
        {"targetUrl":"https://example.com/9","policyId":"none"}
    ]}"#;
    let answer = world.post("/retry-tasks/batch", batch).await;
    assert_eq!(answer.status, 200);
    let results = answer.json();
    assert_eq!(statuses(&results), [201, 400, 422, 201, 200, 422, 200, 422, 400, 422]);
    let results = results["results"].as_array().unwrap();

    assert_eq!(results[0]["task"]["idempotencyKey"], "a");
    assert_eq!(results[0]["task"].get("idempotencyKeyGenerated"), None);
    assert_eq!(results[3]["task"]["idempotencyKeyGenerated"], true);
    assert_eq!(results[4]["task"]["taskId"], before);
    assert_eq!(results[6]["task"]["taskId"], results[0]["task"]["taskId"]);
    for (at, name, field) in [
        (1, "invalid-document", Some("tasks[1].colour")),
        (2, "invalid-value", Some("tasks[2].headers.te")),
        (5, "idempotency-key-reused", None),
        (7, "idempotency-key-reused", None),
        (8, "invalid-document", Some("tasks[8]")),
        (9, "unknown-policy", Some("tasks[9].policyId")),
    ] {
        let error = &results[at]["error"];
        assert_eq!(error["type"], format!("/problems/{name}"), "{at}");
        assert_eq!(error["status"], results[at]["status"], "{at}");
        assert_eq!(error["field"].as_str(), field, "{at}");
        assert_eq!(results[at].get("task"), None);
    }
    assert_eq!(results[5]["error"]["taskId"], before);
    assert_eq!(results[7]["error"]["taskId"], results[0]["task"]["taskId"]);
    assert_eq!(world.get("/retry-tasks").await.json()["tasks"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn an_empty_batch_has_no_results() {
    let world = World::start().await;
    let answer = world.post("/retry-tasks/batch", r#"{"tasks":[]}"#).await;
    assert_eq!((answer.status, answer.json()), (200, json!({ "results": [] })));
}

#[tokio::test]
async fn a_batch_of_1000_is_accepted() {
    let world = World::start().await;
    let tasks: Vec<String> =
        (0..1_000).map(|at| format!(r#"{{"targetUrl":"https://example.com/{at}","delayMs":1000}}"#)).collect();
    let answer = world.post("/retry-tasks/batch", &format!(r#"{{"tasks":[{}]}}"#, tasks.join(","))).await;
    let results = answer.json();
    assert_eq!(statuses(&results), [201; 1_000]);
    assert_eq!(results["results"][999]["task"]["targetUrl"], "https://example.com/999");
    assert_eq!(world.get("/retry-tasks").await.json()["counts"]["PENDING"], 1_000);
}

#[tokio::test]
async fn a_batch_that_is_none_is_400() {
    let world = World::start().await;
    for (document, name, field) in [
        (r#"{"tasks":"x"}"#, "invalid-document", Some("tasks")),
        ("{}", "invalid-document", Some("tasks")),
        (r#"{"tasks":[],"more":1}"#, "invalid-document", Some("more")),
        ("[]", "invalid-document", None),
        (r#"{"tasks":[{]}"#, "malformed-json", None),
    ] {
        let problem = world.post("/retry-tasks/batch", document).await.problem(400, name);
        assert_eq!(problem["field"].as_str(), field, "{document}");
    }
    let ask = Ask::post("/retry-tasks/batch", r#"{"tasks":[]}"#).header("idempotency-key", "k");
    assert_eq!(world.ask(ask).await.problem(400, "invalid-parameter")["field"], "Idempotency-Key");
}
