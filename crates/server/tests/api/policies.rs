//! Policies: registered, versioned, guarded, deleted.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{Answer, Ask, World};

const START: u64 = 1_700_000_000_000;
const PATH: &str = "/retry-policies";

fn shown(version: u32, created_at: u64, max_attempts: u32) -> Value {
    json!({
        "policyId": "webhooks", "version": version, "createdAt": created_at, "maxAttempts": max_attempts,
        "backoff": "exponential", "jitterType": "FULL", "initialDelayMs": 500, "multiplier": 2.0, "maxDelayMs": 30_000,
        "totalBudgetMs": 86_400_000, "attemptTimeoutMs": 30_000, "connectTimeoutMs": 5_000,
    })
}

fn document(max_attempts: u32) -> String {
    format!(r#"{{"policyId":"webhooks","maxAttempts":{max_attempts},"initialDelayMs":500}}"#)
}

fn summary(answer: &Answer) -> (u16, Option<&str>, Option<&str>) {
    (answer.status, answer.header("etag"), answer.header("location"))
}

#[tokio::test]
async fn a_policy_is_idempotent_by_its_name_and_a_change_is_a_new_version() {
    let world = World::start().await;
    let created = world.post(PATH, &document(3)).await;
    assert_eq!(summary(&created), (201, Some("\"1\""), Some("/retry-policies/webhooks")));
    assert_eq!(created.json(), shown(1, START, 3));

    world.clock.advance(Duration::from_secs(1));
    let unchanged = world.post(PATH, &document(3)).await;
    assert_eq!(summary(&unchanged), (200, Some("\"1\""), None));
    assert_eq!(unchanged.json(), shown(1, START, 3));

    let id = world.submit(r#"{"targetUrl":"https://example.com/","policyId":"webhooks","delayMs":9000}"#).await;
    let updated = world.post(PATH, &document(4)).await;
    assert_eq!(summary(&updated), (200, Some("\"2\""), None));
    assert_eq!(updated.json(), shown(2, START + 1_000, 4));

    let answer = world.get("/retry-policies/webhooks").await;
    assert_eq!(answer.header("etag"), Some("\"2\""));
    let mut expected = shown(2, START + 1_000, 4);
    expected["versions"] = json!([shown(1, START, 3), shown(2, START + 1_000, 4)]);
    assert_eq!(answer.json(), expected);

    // A task keeps the version that it was accepted with; the next one has the new one.
    let task = world.get(&format!("/retry-tasks/{id}")).await.json();
    assert_eq!((task["policyVersion"].as_u64(), task["maxAttempts"].as_u64()), (Some(1), Some(3)));
    let next = world.post("/retry-tasks", r#"{"targetUrl":"https://example.com/","policyId":"webhooks"}"#).await.json();
    assert_eq!((next["policyVersion"].as_u64(), next["maxAttempts"].as_u64()), (Some(2), Some(4)));
}

#[tokio::test]
async fn what_is_shown_of_a_policy_can_be_put_back_and_changes_nothing() {
    let world = World::start().await;
    world.post(PATH, &document(3)).await;
    let fields = |max_attempts| {
        let mut shown = shown(1, START, max_attempts);
        let object = shown.as_object_mut().unwrap();
        object.remove("version");
        object.remove("createdAt");
        shown.to_string()
    };
    let unchanged = world.post(PATH, &fields(3)).await;
    assert_eq!(summary(&unchanged), (200, Some("\"1\""), None));
    // One value that differs is a change; the others are now given and not inherited, which by itself is none.
    assert_eq!(summary(&world.post(PATH, &fields(4)).await), (200, Some("\"2\""), None));
    assert_eq!(summary(&world.post(PATH, &document(4)).await), (200, Some("\"2\""), None));
    let expected_none = Ask::post(PATH, &fields(4)).header("if-none-match", "*");
    assert_eq!(world.ask(expected_none).await.status, 412);
}

#[tokio::test]
async fn a_change_is_guarded_by_if_match_and_if_none_match() {
    let world = World::start().await;
    let put = |attempts, name, value| Ask::post(PATH, &document(attempts)).header(name, value);
    let mismatch = |answer: &Answer| answer.problem(412, "version-mismatch")["currentVersion"].as_u64();

    assert_eq!(mismatch(&world.ask(put(3, "if-match", "*")).await), None);
    assert_eq!(mismatch(&world.ask(put(3, "if-match", "\"1\"")).await), None);
    assert_eq!(world.ask(put(3, "if-none-match", "*")).await.status, 201);
    assert_eq!(mismatch(&world.ask(put(4, "if-none-match", "*")).await), Some(1));
    assert_eq!(mismatch(&world.ask(put(4, "if-match", "\"2\"")).await), Some(1));
    assert_eq!(mismatch(&world.ask(put(4, "if-match", "W/\"1\"")).await), Some(1));
    assert_eq!(world.ask(put(4, "if-match", "\"1\"")).await.header("etag"), Some("\"2\""));
    assert_eq!(world.ask(put(5, "if-match", "*")).await.header("etag"), Some("\"3\""));
    assert_eq!(world.ask(put(6, "if-match", "\"9\", \"3\"")).await.header("etag"), Some("\"4\""));
    assert_eq!(mismatch(&world.ask(put(7, "if-match", "\"8\", \"9\"")).await), Some(4));

    for (name, field, value) in [("if-match", "If-Match", "3"), ("if-none-match", "If-None-Match", "\"3\"")] {
        let problem = world.ask(put(7, name, value)).await.problem(400, "invalid-parameter");
        assert_eq!(problem["field"], field);
    }
    assert_eq!(world.get("/retry-policies/webhooks").await.json()["maxAttempts"], 6);
}

#[tokio::test]
async fn a_policy_that_cannot_be_is_refused_and_its_fields_are_named() {
    let world = World::start().await;
    for (document, status, name, field) in [
        (r#"{"maxAttempts":3}"#, 400, "invalid-document", "policyId"),
        (r#"{"policyId":"a","tries":3}"#, 400, "invalid-document", "tries"),
        (r#"{"policyId":"a","maxAttempts":"3"}"#, 400, "invalid-document", "maxAttempts"),
        (r#"{"policyId":"a","backoff":"random"}"#, 400, "invalid-document", "backoff"),
        (r#"{"policyId":"a b"}"#, 422, "invalid-value", "policyId"),
        (r#"{"policyId":""}"#, 422, "invalid-value", "policyId"),
        (r#"{"policyId":"a","maxAttempts":0}"#, 422, "invalid-value", "maxAttempts"),
        (r#"{"policyId":"a","maxDelayMs":10,"initialDelayMs":20}"#, 422, "invalid-value", "maxDelayMs"),
        (r#"{"policyId":"a","backoff":"schedule"}"#, 422, "invalid-value", "scheduleMs"),
        (r#"{"policyId":"a","retryableStatusCodes":[200]}"#, 422, "invalid-value", "retryableStatusCodes"),
    ] {
        let problem = world.post(PATH, document).await.problem(status, name);
        assert_eq!(problem["field"], field, "{document}");
    }
    world.get("/retry-policies/a").await.problem(404, "policy-not-found");
}

#[tokio::test]
async fn policies_are_listed_by_name_in_pages() {
    let world = World::start().await;
    for name in ["zulu", "alpha", "mike:1"] {
        world.post(PATH, &format!(r#"{{"policyId":"{name}"}}"#)).await;
    }
    let ids = |list: &Value| -> Vec<String> {
        list["policies"].as_array().unwrap().iter().map(|p| p["policyId"].as_str().unwrap().to_owned()).collect()
    };
    let all = world.get(PATH).await.json();
    assert_eq!(ids(&all), ["alpha", "default", "mike:1", "zulu"]);
    assert_eq!(all["nextCursor"], json!(null));
    let first = world.get("/retry-policies?limit=3").await.json();
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = world.get(&format!("/retry-policies?limit=3&cursor={cursor}")).await.json();
    assert_eq!((ids(&first).len(), ids(&second)), (3, vec!["zulu".to_owned()]));
    assert_eq!(world.get("/retry-policies?cursor=x").await.problem(400, "invalid-parameter")["field"], "cursor");
    assert_eq!(world.get("/retry-policies/mike%3A1").await.json()["policyId"], "mike:1");
}

#[tokio::test]
async fn a_policy_is_deleted_unless_a_live_task_keeps_it() {
    let world = World::start().await;
    world.post(PATH, &document(3)).await;
    let submit = r#"{"targetUrl":"https://example.com/","policyId":"webhooks","delayMs":9000}"#;
    let id = world.submit(submit).await;
    world.submit(submit).await;
    world.post(PATH, &document(4)).await;
    let delete = || Ask::new("DELETE", "/retry-policies/webhooks");

    assert_eq!(world.ask(delete()).await.problem(409, "policy-in-use")["liveTasks"], 2);
    for task in world.get("/retry-tasks").await.json()["tasks"].as_array().unwrap() {
        world.delete(&format!("/retry-tasks/{}", task["taskId"].as_str().unwrap())).await;
    }
    assert_eq!(
        world.ask(delete().header("if-match", "\"1\"")).await.problem(412, "version-mismatch")["currentVersion"],
        2
    );
    let deleted = world.ask(delete().header("if-match", "\"2\"")).await;
    assert_eq!((deleted.status, deleted.body.len()), (204, 0));
    world.ask(delete()).await.problem(404, "policy-not-found");
    world.get("/retry-policies/webhooks").await.problem(404, "policy-not-found");
    assert_eq!(world.post("/retry-tasks", submit).await.problem(422, "unknown-policy")["field"], "policyId");
    // The task that kept it still says so.
    assert_eq!(world.get(&format!("/retry-tasks/{id}")).await.json()["policyId"], "webhooks");
}

#[tokio::test]
async fn the_default_policy_can_be_changed_but_not_deleted() {
    let world = World::start().await;
    world.delete("/retry-policies/default").await.problem(409, "policy-protected");
    let changed = world.post(PATH, r#"{"policyId":"default","maxAttempts":2}"#).await;
    assert_eq!(summary(&changed), (200, Some("\"2\""), None));
    let task = world.post("/retry-tasks", r#"{"targetUrl":"https://example.com/"}"#).await.json();
    assert_eq!((task["policyVersion"].as_u64(), task["maxAttempts"].as_u64()), (Some(2), Some(2)));
}

#[tokio::test]
async fn a_preset_can_be_named_without_registering_it() {
    let world = World::start().await;
    for (name, attempts) in
        [("sync", 4), ("event", 6), ("webhook", 6), ("webhook-patient", 5), ("batch", 4), ("grpc", 4)]
    {
        assert_eq!(world.get(&format!("{PATH}/{name}")).await.status, 404, "nothing is stored before it is used");
        let submission = format!(r#"{{"targetUrl":"https://example.com/","policyId":"{name}","delayMs":9000}}"#);
        let answer = world.post("/retry-tasks", &submission).await;
        assert_eq!(answer.status, 201, "{name}");
        let task = answer.json();
        assert_eq!((&task["policyId"], &task["policyVersion"]), (&json!(name), &json!(1)));
        assert_eq!((&task["policyBuiltIn"], &task["maxAttempts"]), (&json!(true), &json!(attempts)), "{name}");
        let policy = world.get(&format!("{PATH}/{name}")).await.json();
        assert_eq!((&policy["builtIn"], &policy["context"]), (&json!(true), &json!(name)));
    }
    let webhook = world.get(&format!("{PATH}/webhook")).await.json();
    assert_eq!(webhook["scheduleMs"], json!([1_000, 5_000, 30_000, 120_000, 900_000]));
    let unknown = world.post("/retry-tasks", r#"{"targetUrl":"https://example.com/","policyId":"web-hook"}"#).await;
    assert_eq!(unknown.status, 422);
}

#[tokio::test]
async fn a_policy_under_the_name_of_a_preset_wins_and_deleting_it_brings_the_preset_back() {
    let world = World::start().await;
    let submission = r#"{"targetUrl":"https://example.com/","policyId":"webhook"}"#;
    let submit = async || world.post("/retry-tasks", submission).await.json();
    let own = r#"{"policyId":"webhook","maxAttempts":2}"#;
    assert_eq!(world.post(PATH, own).await.status, 201);
    let task = submit().await;
    assert_eq!((task["maxAttempts"].as_u64(), task.get("policyBuiltIn")), (Some(2), None));

    world.ended(task["taskId"].as_str().unwrap()).await;
    assert_eq!(world.delete(&format!("{PATH}/webhook")).await.status, 204);
    let back = world.get(&format!("{PATH}/webhook")).await.json();
    assert_eq!((&back["builtIn"], &back["version"]), (&json!(true), &json!(2)));
    let task = submit().await;
    assert_eq!((task["maxAttempts"].as_u64(), &task["policyBuiltIn"]), (Some(6), &json!(true)));
    assert_eq!(world.delete(&format!("{PATH}/webhook")).await.status, 409);

    // What is shown of it can be put back, and it stays built in; other fields are a version of one's own.
    let shown = r#"{"policyId":"webhook","context":"webhook","maxAttempts":6}"#;
    assert_eq!(world.post(PATH, shown).await.json()["builtIn"], true);
    assert_eq!(world.post(PATH, own).await.json().get("builtIn"), None);
}

#[tokio::test]
async fn a_preset_uses_its_whole_schedule_if_a_task_asks_for_more_attempts() {
    let world = World::start().await;
    let submission =
        r#"{"targetUrl":"https://example.com/","policyId":"webhook","delayMs":9,"policy":{"maxAttempts":8}}"#;
    let task = world.post("/retry-tasks", submission).await.json();
    let sum = 1_000 + 5_000 + 30_000 + 120_000 + 900_000 + 3_600_000 + 14_400_000;
    assert_eq!((&task["retrySpan"]["attempts"], &task["retrySpan"]["meanMs"]), (&json!(8), &json!(sum)));
}
