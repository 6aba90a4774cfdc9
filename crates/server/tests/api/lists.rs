//! `GET /retry-tasks`

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{Plan, World, answer};

const START: u64 = 1_700_000_000_000;

fn names(list: &Value) -> Vec<&str> {
    let tasks = list["tasks"].as_array().unwrap();
    tasks.iter().map(|task| task["idempotencyKey"].as_str().unwrap()).collect()
}

/// Six tasks, a second apart: delivered, failed, four waiting.
async fn six() -> World {
    let world = World::start().await;
    world.post("/retry-policies", r#"{"policyId":"webhooks"}"#).await;
    world.target.plan(Plan::Answer(answer(200, "fine")));
    world.target.plan(Plan::Answer(answer(400, "no")));
    for (key, rest) in [
        ("t1", ""),
        ("t2", ""),
        ("t3", r#","delayMs":60000,"labels":{"team":"a","tier":"gold"}"#),
        ("t4", r#","delayMs":60000,"labels":{"team":"b","url":"x:y"}"#),
        ("t5", r#","delayMs":60000,"policyId":"webhooks","dependency":"radio""#),
        ("t6", r#","delayMs":60000"#),
    ] {
        let id = world
            .submit(&format!(r#"{{"targetUrl":"https://example.com/{key}","idempotencyKey":"{key}"{rest}}}"#))
            .await;
        if rest.is_empty() {
            world.ended(&id).await;
        }
        world.clock.advance(Duration::from_secs(1));
    }
    world
}

#[tokio::test]
async fn tasks_are_filtered_by_everything_that_is_asked_for() {
    let world = six().await;
    let rfc = "2023-11-14T22:13:22Z";
    for (query, expected) in [
        ("", &["t6", "t5", "t4", "t3", "t2", "t1"][..]),
        ("status=PENDING", &["t6", "t5", "t4", "t3"]),
        ("status=SUCCEEDED&status=FAILED", &["t2", "t1"]),
        ("status=SUCCEEDED,FAILED", &["t2", "t1"]),
        ("status=SUCCEEDED%2CSUCCEEDED", &["t1"]),
        ("status=EXHAUSTED", &[]),
        ("status=", &["t6", "t5", "t4", "t3", "t2", "t1"]),
        ("dependency=radio", &["t5"]),
        ("dependency=https%3A%2F%2Fexample.com&status=FAILED", &["t2"]),
        ("policyId=webhooks", &["t5"]),
        ("policyId=none", &[]),
        ("label=team:a", &["t3"]),
        ("label=team:a&label=tier:gold", &["t3"]),
        ("label=team:a&label=tier:silver", &[]),
        ("label=url:x:y", &["t4"]),
        (&format!("createdAfter={}", START + 3_000), &["t6", "t5", "t4"]),
        (&format!("createdBefore={}", START + 1_000), &["t1"]),
        ("idPrefix=018BCFE5", &["t6", "t5", "t4", "t3", "t2", "t1"]),
        ("idPrefix=018bcfe5-6800", &["t1"]),
        ("idPrefix=018bcfe5-6be8&status=FAILED", &["t2"]),
        ("idPrefix=018bcfe5-6be8&status=PENDING", &[]),
        (&format!("createdAfter={rfc}&createdBefore=1700000003000"), &["t3"]),
    ] {
        let answer = world.get(&format!("/retry-tasks?{query}")).await;
        assert_eq!(answer.status, 200, "{query} {}", answer.text());
        assert_eq!(names(&answer.json()), expected, "{query}");
    }
}

#[tokio::test]
async fn a_list_counts_all_statuses_and_leaves_answers_out() {
    let world = six().await;
    let list = world.get("/retry-tasks?label=team:a").await.json();
    let counts = json!({ "PENDING": 4, "IN_FLIGHT": 0, "SUCCEEDED": 1, "FAILED": 1, "EXHAUSTED": 0, "CANCELLED": 0 });
    assert_eq!(list["counts"], counts);
    let list = world.get("/retry-tasks?status=SUCCEEDED").await.json();
    let task = &list["tasks"][0];
    assert_eq!(task.get("response"), None);
    let mut full = world.get(&format!("/retry-tasks/{}", task["taskId"].as_str().unwrap())).await.json();
    // What a list leaves out: answers, and what is computed from the policy.
    assert_eq!(full.as_object_mut().unwrap().remove("response").unwrap()["body"], "fine");
    assert_eq!(full.as_object_mut().unwrap().remove("retrySpan").unwrap()["attempts"], 6);
    assert_eq!(*task, full);
}

#[tokio::test]
async fn a_list_comes_in_pages() {
    let world = six().await;
    let (mut seen, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let list = world.get(&format!("/retry-tasks?limit=2{cursor}")).await.json();
        seen.extend(names(&list).into_iter().map(str::to_owned));
        pages += 1;
        assert!(pages <= 4);
        match list["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, ["t6", "t5", "t4", "t3", "t2", "t1"]);
}

#[tokio::test]
async fn invalid_parameters_are_named() {
    let world = World::start().await;
    for (query, field) in [
        ("status=DONE", "status"),
        ("status=PENDING,done", "status"),
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=-1", "limit"),
        ("limit=", "limit"),
        ("limit", "limit"),
        ("limit=&limit=2", "limit"),
        ("cursor=", "cursor"),
        ("dependency=", "dependency"),
        ("policyId=", "policyId"),
        ("createdAfter=", "createdAfter"),
        ("limit=1&limit=2", "limit"),
        ("cursor=zzz", "cursor"),
        ("cursor=YTc", "cursor"),
        ("label=team", "label"),
        ("label=team:a&label=team:b", "label"),
        ("createdAfter=yesterday", "createdAfter"),
        ("createdBefore=-1", "createdBefore"),
        ("dependency=a%20b", "dependency"),
        ("policyId=a%20b", "policyId"),
        ("policyId=%zz", "policyId"),
        ("idPrefix=", "idPrefix"),
        ("idPrefix=018bcfe56800", "idPrefix"),
        ("idPrefix=order-7", "idPrefix"),
        ("sort=asc", "sort"),
    ] {
        let problem = world.get(&format!("/retry-tasks?{query}")).await.problem(400, "invalid-parameter");
        assert_eq!(problem["field"], field, "{query}");
        assert_eq!(problem["errors"][0]["field"], field, "{query}");
    }
    assert_eq!(world.get("/retry-tasks?limit=500").await.status, 200);
}
