//! Looking at tasks and their attempts.

use std::time::Duration;

use redrive_core::ErrorType;
use serde_json::json;

use crate::world::{Plan, World, answer};

const START: u64 = 1_700_000_000_000;
const UNKNOWN: &str = "018bcfe5-6800-7f57-a123-456789abcdef";

#[tokio::test]
async fn a_task_is_seen_through_its_whole_life() {
    let world = World::start().await;
    world.target.plan(Plan::Answer(answer(503, "busy")));
    world.target.plan(Plan::Fail(ErrorType::ConnectionReset));
    world.target.plan(Plan::Answer(answer(201, "made")));
    let id = world.submit(r#"{"targetUrl":"https://example.com/"}"#).await;

    let waiting = world.until(&id, |task| task["status"] == "PENDING").await;
    assert_eq!((waiting["attemptNumber"].as_u64(), waiting["nextAttemptAt"].as_u64()), (Some(1), Some(START + 500)));
    assert_eq!(waiting["lastError"]["type"], "http-status");
    assert_eq!(waiting["response"], json!(null));
    world.clock.advance(Duration::from_millis(500));
    let waiting = world.until(&id, |task| task["attemptNumber"] == 2 && task["status"] == "PENDING").await;
    assert_eq!(waiting["lastError"], json!({ "type": "connection-reset", "message": "as planned" }));
    world.clock.advance(Duration::from_millis(1_000));

    let ended = world.ended(&id).await;
    assert_eq!(ended["status"], "SUCCEEDED");
    assert_eq!((ended["statusReason"].clone(), ended["nextAttemptAt"].clone()), (json!(null), json!(null)));
    assert_eq!((ended["attemptNumber"].as_u64(), ended["endedAt"].as_u64()), (Some(3), Some(START + 1_500)));
    let response = json!({ "status": 201, "headers": {}, "body": "made", "bodyBytes": 4, "truncated": false });
    assert_eq!(ended["response"], response);

    let path = format!("/retry-tasks/{id}/attempts");
    let log = world.get(&path).await.json();
    let expected = json!({
        "attempts": [
            {
                "taskId": id, "attemptNumber": 1, "attemptInRun": 1, "maxAttempts": 6, "startedAt": START,
                "durationMs": 0, "outcome": "retryable", "responseStatus": 503, "errorType": "http-status", "errorMessage": log["attempts"][0]["errorMessage"], "backoffMs": 500,
            },
            {
                "taskId": id, "attemptNumber": 2, "attemptInRun": 2, "maxAttempts": 6, "startedAt": START + 500,
                "durationMs": 0, "outcome": "retryable", "responseStatus": null, "errorType": "connection-reset", "errorMessage": "as planned",
                "backoffMs": 1_000,
            },
            {
                "taskId": id, "attemptNumber": 3, "attemptInRun": 3, "maxAttempts": 6, "startedAt": START + 1_500,
                "durationMs": 0, "outcome": "success", "responseStatus": 201, "errorType": null, "errorMessage": null, "backoffMs": null,
            },
        ],
        "nextCursor": null,
    });
    assert_eq!(log, expected);

    // The same log, in pages of two.
    let first = world.get(&format!("{path}?limit=2")).await.json();
    assert_eq!(first["attempts"].as_array().unwrap()[..], expected["attempts"].as_array().unwrap()[..2]);
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = world.get(&format!("{path}?limit=2&cursor={cursor}")).await.json();
    assert_eq!(second["attempts"].as_array().unwrap()[..], expected["attempts"].as_array().unwrap()[2..]);
    assert_eq!(second["nextCursor"], json!(null));
}

#[tokio::test]
async fn an_id_that_is_none_is_not_found_anywhere() {
    let world = World::start().await;
    for id in [UNKNOWN, "x", "%20", "018bcfe5-6800-4f57-a123-456789abcdef"] {
        world.get(&format!("/retry-tasks/{id}")).await.problem(404, "task-not-found");
        world.get(&format!("/retry-tasks/{id}/attempts")).await.problem(404, "task-not-found");
        world.delete(&format!("/retry-tasks/{id}")).await.problem(404, "task-not-found");
        world.post(&format!("/retry-tasks/{id}/retry-now"), "").await.problem(404, "task-not-found");
        world.post(&format!("/retry-tasks/{id}/replay"), "").await.problem(404, "task-not-found");
    }
}

#[tokio::test]
async fn the_parameters_of_the_log_are_checked() {
    let world = World::start().await;
    let id = world.submit(r#"{"targetUrl":"https://example.com/"}"#).await;
    for (query, field) in [("limit=0", "limit"), ("limit=501", "limit"), ("limit=x", "limit"), ("cursor=x", "cursor")] {
        let problem = world.get(&format!("/retry-tasks/{id}/attempts?{query}")).await.problem(400, "invalid-parameter");
        assert_eq!(problem["field"], field, "{query}");
    }
}
