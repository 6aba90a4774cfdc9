//! The retry standard at the door: off, warned of, enforced.

use redrive_server::Standard;
use serde_json::{Value, json};

use crate::world::{Ask, World};

const POLICIES: &str = "/retry-policies";
const TASKS: &str = "/retry-tasks";
const FIXED: &str = r#"{"policyId":"naive","backoff":"fixed","initialDelayMs":1000}"#;

fn task(policy: &str) -> String {
    format!(r#"{{"targetUrl":"https://example.com/","method":"GET","policy":{policy}}}"#)
}

/// Rule, check and field of each finding.
fn findings(document: &Value) -> Vec<(&str, &str, &str)> {
    let all = document["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    fn text<'a>(finding: &'a Value, name: &str) -> &'a str {
        finding[name].as_str().unwrap_or_default()
    }
    all.iter().map(|finding| (text(finding, "rule"), text(finding, "check"), text(finding, "field"))).collect()
}

#[tokio::test]
async fn without_the_standard_nothing_is_said() {
    let world = World::start().await;
    let policy = world.post(POLICIES, FIXED).await;
    assert_eq!((policy.status, policy.json().get("findings")), (201, None));
    let task = world.post(TASKS, &task(r#"{"jitterType":"NONE"}"#)).await;
    assert_eq!((task.status, task.json().get("findings")), (201, None));
}

#[tokio::test]
async fn a_warning_accepts_and_says_what_is_broken() {
    let world = World::with_standard(Standard::Warn).await;
    let policy = world.post(POLICIES, FIXED).await;
    assert_eq!(policy.status, 201);
    let document = policy.json();
    assert_eq!(findings(&document), [("R-1", "fixed-interval", "backoff")]);
    let finding = &document["findings"][0];
    assert_eq!(
        (&finding["gate"], &finding["wrong"]),
        (&json!("merge"), &json!("the wait does not grow: 1s before every retry, jitter aside"))
    );
    assert!(finding["why"].as_str().unwrap().len() > 20 && finding["fix"].as_str().unwrap().len() > 20, "{finding}");
    assert_eq!(findings(&world.get("/retry-policies/naive").await.json()), [("R-1", "fixed-interval", "backoff")]);

    let task = world.post(TASKS, &task(r#"{"jitterType":"EQUAL"}"#)).await;
    assert_eq!((task.status, findings(&task.json())), (201, vec![("R-1", "equal-jitter", "policy.jitterType")]));
}

#[tokio::test]
async fn what_breaks_a_must_is_refused_where_the_standard_is_enforced() {
    let world = World::with_standard(Standard::Enforce).await;
    let refused = world.post(POLICIES, FIXED).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    let problem = refused.json();
    assert_eq!((&problem["type"], &problem["field"]), (&json!("/problems/breaks-standard"), &json!("backoff")));
    assert_eq!(findings(&problem), [("R-1", "fixed-interval", "backoff")]);
    assert_eq!(problem["errors"][0]["field"], "backoff");
    assert_eq!(world.get("/retry-policies/naive").await.status, 404);

    let refused = world.post(TASKS, &task(r#"{"maxAttempts":50,"jitterType":"NONE"}"#)).await;
    assert_eq!(refused.status, 422);
    assert_eq!(
        findings(&refused.json()),
        [("R-1", "missing-jitter", "policy.jitterType"), ("R-2", "retries-out-of-range", "policy.maxAttempts")]
    );
    assert_eq!(world.get(TASKS).await.json()["tasks"], json!([]));
}

#[tokio::test]
async fn what_keeps_the_standard_is_accepted_where_it_is_enforced() {
    let world = World::with_standard(Standard::Enforce).await;
    for context in ["sync", "event", "webhook", "webhook-patient", "batch", "grpc"] {
        let policy = world.post(POLICIES, &format!(r#"{{"policyId":"{context}","context":"{context}"}}"#)).await;
        assert_eq!((policy.status, policy.json().get("findings")), (201, None), "{context}");
        assert_eq!(policy.json()["context"], context);
    }
    assert_eq!(world.post(TASKS, &task(r#"{"context":"sync","maxAttempts":5}"#)).await.status, 201);
    // A SHOULD is told and refuses nothing.
    let advice = world.post(POLICIES, r#"{"policyId":"a","maxAttempts":1}"#).await;
    assert_eq!((advice.status, findings(&advice.json())), (201, vec![("R-2", "never-retries", "maxAttempts")]));
}

#[tokio::test]
async fn an_approval_lets_more_retries_through_until_its_last_day() {
    // The world's clock says 2023-11-14.
    let world = World::with_standard(Standard::Enforce).await;
    let document = |until: &str| {
        format!(
            r#"{{"policyId":"a","maxAttempts":20,"approval":{{"by":"Board","until":"{until}","maxAttempts":20,"reason":"x"}}}}"#
        )
    };
    let refused = world.post(POLICIES, &document("2023-11-13")).await;
    assert_eq!(refused.status, 422);
    let approval = &refused.json()["findings"][0]["approval"];
    let expected = json!({"by": "Board", "until": "2023-11-13", "maxAttempts": 20, "state": "expired"});
    assert_eq!(approval, &expected);
    let message = refused.json()["errors"][0]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("; Board's approval ended on 2023-11-13; "), "{message}");

    let accepted = world.post(POLICIES, &document("2023-11-14")).await;
    assert_eq!(accepted.status, 201, "{}", accepted.text());
    let policy = accepted.json();
    assert_eq!(policy["findings"][0]["approval"]["state"], "granted");
    assert_eq!(policy["approval"], json!({"by": "Board", "until": "2023-11-14", "maxAttempts": 20, "reason": "x"}));
}

#[tokio::test]
async fn a_change_is_judged_by_what_it_changes() {
    let world = World::with_standard(Standard::Enforce).await;
    // A policy from before the standard was enforced.
    let (tenant, id) = (redrive_core::TenantId::default_tenant(), redrive_core::PolicyId::try_new("old").unwrap());
    let old = serde_json::from_str(r#"{"backoff":"fixed","maxAttempts":50}"#).unwrap();
    world.engine.policies().put(tenant, id, old, redrive_store::Expected::Absent).await.unwrap();
    let submit = async |policy: &str| {
        let document = format!(r#"{{"targetUrl":"https://example.com/","method":"GET","policyId":"old"{policy}}}"#);
        let answer = world.post(TASKS, &document).await;
        (answer.status, answer.json())
    };
    assert_eq!(submit("").await.0, 201);
    assert_eq!(submit(r#","policy":{"attemptTimeoutMs":1000}"#).await.0, 201);
    let (status, problem) = submit(r#","policy":{"maxAttempts":40}"#).await;
    assert_eq!((status, findings(&problem)), (422, vec![("R-2", "retries-out-of-range", "policy.maxAttempts")]));
    let (status, problem) = submit(r#","policy":{"context":"batch"}"#).await;
    assert_eq!((status, findings(&problem)), (422, vec![("R-2", "retries-out-of-range", "policy.maxAttempts")]));
    let (status, problem) = submit(r#","policy":{"jitterType":"NONE"}"#).await;
    assert_eq!((status, findings(&problem)), (422, vec![("R-1", "missing-jitter", "policy.jitterType")]));
}

#[tokio::test]
async fn a_post_needs_a_key_where_the_standard_is_enforced() {
    let document = r#"{"targetUrl":"https://example.com/","body":"x"}"#;
    let world = World::with_standard(Standard::Enforce).await;
    let refused = world.post(TASKS, document).await;
    assert_eq!((refused.status, findings(&refused.json())), (422, vec![("R-6", "unkeyed-writes", "idempotencyKey")]));
    let keyed = world.ask(Ask::post(TASKS, document).header("idempotency-key", "order-7")).await;
    assert_eq!((keyed.status, keyed.json().get("findings")), (201, None));
    // PUT is safe to retry as it is, and what is tried only once is not retried.
    for safe in [r#""method":"PUT""#, r#""policy":{"maxAttempts":1}"#] {
        let document = format!(r#"{{"targetUrl":"https://example.com/","body":"x",{safe}}}"#);
        let accepted = world.post(TASKS, &document).await;
        assert_eq!(accepted.status, 201, "{}", accepted.text());
    }

    let warned = World::with_standard(Standard::Warn).await;
    let accepted = warned.post(TASKS, document).await;
    assert_eq!((accepted.status, accepted.json()["idempotencyKeyGenerated"].as_bool()), (201, Some(true)));
    assert_eq!(findings(&accepted.json()), [("R-6", "unkeyed-writes", "idempotencyKey")]);
}

#[tokio::test]
async fn what_was_accepted_before_is_still_the_same_task() {
    let mut world = World::with_standard(Standard::Warn).await;
    let document = task(r#"{"jitterType":"NONE"}"#);
    let ask = || Ask::post(TASKS, &document).header("idempotency-key", "order-7");
    let first = world.ask(ask()).await.json();
    world.enforce_standard().await;
    let again = world.ask(ask()).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (200, Some("true")), "{}", again.text());
    assert_eq!(again.json()["taskId"], first["taskId"]);
}

#[tokio::test]
async fn a_batch_refuses_the_item_and_names_where() {
    let world = World::with_standard(Standard::Enforce).await;
    let good = task(r#"{"context":"sync"}"#);
    let batch = format!(r#"{{"tasks":[{good},{}]}}"#, task(r#"{"backoff":"linear"}"#));
    let results = world.post("/retry-tasks/batch", &batch).await.json()["results"].clone();
    assert_eq!((&results[0]["status"], &results[1]["status"]), (&json!(201), &json!(422)));
    assert_eq!(findings(&results[1]["error"]), [("R-1", "linear-backoff", "tasks[1].policy.backoff")]);
}

#[tokio::test]
async fn a_submission_cannot_approve_its_own_policy() {
    let world = World::with_standard(Standard::Enforce).await;
    let own = r#"{"maxAttempts":100,"approval":{"by":"me","until":"9999-12-31","maxAttempts":100}}"#;
    let refused = world.post(TASKS, &task(own)).await;
    assert_eq!((refused.status, &refused.json()["field"]), (422, &json!("policy.approval")));
    assert_eq!(refused.json()["type"], "/problems/invalid-value");
}

#[tokio::test]
async fn an_approval_covers_what_was_approved_and_no_more() {
    let world = World::with_standard(Standard::Enforce).await;
    let policy = r#"{"policyId":"approved","context":"event","maxAttempts":14,"totalBudgetMs":30000,"maxDelayMs":2000,
        "approval":{"by":"Board","until":"2024-01-31","maxAttempts":14}}"#;
    assert_eq!(world.post(POLICIES, policy).await.status, 201);
    let submit = async |changes: &str| {
        let document = format!(
            r#"{{"targetUrl":"https://example.com/","method":"GET","policyId":"approved","policy":{{{changes}}}}}"#
        );
        let answer = world.post(TASKS, &document).await;
        (answer.status, findings(&answer.json()).iter().map(|finding| finding.1.to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(submit(r#""attemptTimeoutMs":1000"#).await, (201, vec![]));
    assert_eq!(submit(r#""maxAttempts":12"#).await, (201, vec!["retries-out-of-range".into()]));
    assert_eq!(submit(r#""maxAttempts":15"#).await, (422, vec!["retries-out-of-range".into()]));
    assert_eq!(submit(r#""context":"sync""#).await, (422, vec!["retries-out-of-range".into()]));
}

#[tokio::test]
async fn registering_what_is_registered_changes_nothing_even_when_its_approval_has_run_out() {
    let world = World::with_standard(Standard::Enforce).await;
    let policy = r#"{"policyId":"a","maxAttempts":20,"approval":{"by":"Board","until":"2023-11-14","maxAttempts":20}}"#;
    assert_eq!(world.post(POLICIES, policy).await.status, 201);
    world.clock.advance(std::time::Duration::from_secs(86_400));
    let again = world.post(POLICIES, policy).await;
    assert_eq!((again.status, again.header("etag")), (200, Some("\"1\"")), "{}", again.text());
    assert_eq!(again.json()["findings"][0]["approval"]["state"], "expired");
    assert_eq!(world.get("/retry-policies/a").await.json()["findings"][0]["approval"]["state"], "expired");
    let changed = policy.replace(":20,", ":19,");
    assert_eq!(world.post(POLICIES, &changed).await.status, 422);
    let absent = world.ask(Ask::post(POLICIES, policy).header("if-none-match", "*")).await;
    assert_eq!(absent.status, 422);
}

#[tokio::test]
async fn a_refusal_names_what_breaks_a_must_and_tells_the_rest_as_well() {
    let world = World::with_standard(Standard::Enforce).await;
    let policy = r#"{"policyId":"a","context":"webhook","scheduleMs":[5000,1000,9000],"maxAttempts":20,
        "totalBudgetMs":172800000}"#;
    let problem = world.post(POLICIES, policy).await.json();
    assert_eq!(problem["detail"], "breaks R-1, R-2, R-3 of the retry standard");
    assert_eq!(problem["field"], "scheduleMs");
    let fields: Vec<_> = problem["errors"].as_array().unwrap().iter().map(|error| error["field"].clone()).collect();
    assert_eq!(fields, ["scheduleMs", "maxAttempts", "totalBudgetMs"]);

    let advice =
        r#"{"policyId":"a","context":"webhook","scheduleMs":[5000,1000,9000,99000],"totalBudgetMs":172800000}"#;
    let problem = world.post(POLICIES, advice).await.json();
    assert_eq!(
        (&problem["field"], &problem["detail"]),
        (&json!("totalBudgetMs"), &json!("breaks R-3 of the retry standard"))
    );
    assert_eq!(findings(&problem).len(), 2);
    assert_eq!(problem["errors"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn every_built_in_policy_is_allowed_where_the_standard_is_enforced() {
    let world = World::with_standard(Standard::Enforce).await;
    for context in redrive_core::policy::Context::ALL {
        let submission =
            format!(r#"{{"targetUrl":"https://example.com/","policyId":"{context}","idempotencyKey":"{context}"}}"#);
        let answer = world.post("/retry-tasks", &submission).await;
        assert_eq!(answer.status, 201, "{context}: {}", answer.text());
        assert_eq!(answer.json().get("findings"), None, "{context}");
    }
}
