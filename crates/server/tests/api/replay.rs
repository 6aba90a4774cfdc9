//! Replaying dead letters.

use std::time::Duration;

use serde_json::json;

use crate::world::{Ask, Plan, World, answer};

const START: u64 = 1_700_000_000_000;

#[tokio::test]
async fn a_dead_letter_is_put_back_to_work() {
    let world = World::start().await;
    world.target.plan(Plan::Answer(answer(400, "no")));
    let document =
        r#"{"targetUrl":"https://example.com/","idempotencyKey":"order-1","policy":{"totalBudgetMs":90000}}"#;
    let id = world.submit(document).await;
    let dead = world.ended(&id).await;
    assert_eq!(
        (dead["status"].as_str(), dead["run"].as_u64(), dead["attemptInRun"].as_u64()),
        (Some("FAILED"), Some(1), Some(1))
    );
    world.clock.advance(Duration::from_millis(5_000));

    let answer = world.ask(Ask::new("POST", &format!("/retry-tasks/{id}/replay"))).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let task = answer.json();
    assert_eq!((task["status"].as_str(), task["statusReason"].clone()), (Some("PENDING"), json!(null)));
    assert_eq!(
        (task["run"].as_u64(), task["attemptNumber"].as_u64(), task["attemptInRun"].as_u64()),
        (Some(2), Some(1), Some(0))
    );
    assert_eq!(
        (task["nextAttemptAt"].as_u64(), task["deadlineAt"].as_u64()),
        (Some(START + 5_000), Some(START + 95_000))
    );
    assert_eq!((task["endedAt"].clone(), task["response"].clone()), (json!(null), json!(null)));
    assert_eq!(
        (task["createdAt"].clone(), task["lastError"].clone()),
        (dead["createdAt"].clone(), dead["lastError"].clone())
    );

    let ended = world.ended(&id).await;
    assert_eq!(
        (ended["status"].as_str(), ended["attemptNumber"].as_u64(), ended["attemptInRun"].as_u64()),
        (Some("SUCCEEDED"), Some(2), Some(1))
    );
    assert_eq!(ended["idempotencyKey"], "order-1");
}

#[tokio::test]
async fn the_log_of_a_replayed_task_shows_each_attempt_within_its_run_and_in_all() {
    let world = World::start().await;
    for status in [503, 400, 200] {
        world.target.plan(Plan::Answer(answer(status, "")));
    }
    let id = world.submit(r#"{"targetUrl":"https://example.com/","policy":{"maxAttempts":2}}"#).await;
    world.until(&id, |task| task["status"] == "PENDING").await;
    world.clock.advance(Duration::from_millis(500));
    assert_eq!(world.ended(&id).await["status"], "FAILED");
    assert_eq!(world.ask(Ask::new("POST", &format!("/retry-tasks/{id}/replay"))).await.status, 200);
    assert_eq!(world.ended(&id).await["status"], "SUCCEEDED");

    let log = world.get(&format!("/retry-tasks/{id}/attempts")).await.json();
    let numbers =
        log["attempts"].as_array().unwrap().iter().map(|attempt| {
            ["attemptNumber", "attemptInRun", "maxAttempts"].map(|field| attempt[field].as_u64().unwrap())
        });
    assert_eq!(numbers.collect::<Vec<_>>(), [[1, 1, 2], [2, 2, 2], [3, 1, 2]]);
    assert!(log["attempts"].as_array().unwrap().iter().all(|attempt| attempt["taskId"] == *id), "{log:#}");
}

#[tokio::test]
async fn what_is_no_dead_letter_is_refused_with_what_it_is() {
    let world = World::start().await;
    let waiting = world.submit(r#"{"targetUrl":"https://example.com/","delayMs":1000}"#).await;
    let cancelled = world.submit(r#"{"targetUrl":"https://example.com/","delayMs":1000}"#).await;
    world.delete(&format!("/retry-tasks/{cancelled}")).await;
    let delivered = world.submit(r#"{"targetUrl":"https://example.com/"}"#).await;
    world.ended(&delivered).await;
    let release = world.target.hold();
    let in_flight = world.submit(r#"{"targetUrl":"https://example.com/"}"#).await;
    for (id, status) in
        [(&waiting, "PENDING"), (&cancelled, "CANCELLED"), (&delivered, "SUCCEEDED"), (&in_flight, "IN_FLIGHT")]
    {
        let before = world.get(&format!("/retry-tasks/{id}")).await.json();
        let refused = world.ask(Ask::new("POST", &format!("/retry-tasks/{id}/replay"))).await;
        let problem = refused.problem(409, "task-not-dead");
        assert_eq!(problem["taskId"], **id);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("is {status};")), "{detail}");
        assert_eq!(world.get(&format!("/retry-tasks/{id}")).await.json(), before);
    }
    release.send(()).unwrap();
}

#[tokio::test]
async fn a_dead_letter_whose_policy_was_deleted_is_refused() {
    let world = World::start().await;
    assert_eq!(world.post("/retry-policies", r#"{"policyId":"hooks","maxAttempts":1}"#).await.status, 201);
    world.target.plan(Plan::Answer(answer(503, "busy")));
    let id = world.submit(r#"{"targetUrl":"https://example.com/","policyId":"hooks"}"#).await;
    assert_eq!(world.ended(&id).await["status"], "EXHAUSTED");
    assert_eq!(world.delete("/retry-policies/hooks").await.status, 204);
    let problem = world.ask(Ask::new("POST", &format!("/retry-tasks/{id}/replay"))).await.problem(409, "policy-gone");
    assert_eq!(problem["taskId"], id);
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("version 1 of policy hooks, which was deleted"), "{detail}");
    assert_eq!(world.get(&format!("/retry-tasks/{id}")).await.json()["status"], "EXHAUSTED");
}
