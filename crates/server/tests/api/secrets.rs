//! The parts of a task that are stored and sent, but never shown.

use redrive_core::Answer;
use serde_json::{Value, json};

use crate::world::{Plan, World};

const URL: &str = "https://user-SECRET:@example.com/a?page=2&access_token=SECRET&api%5Fkey=SECRET";

fn submission() -> Value {
    json!({
        "targetUrl": URL,
        "idempotencyKey": "k",
        "headers": {
            "DPoP": "SECRET",
            "X-Otp": "SECRET",
            "X-Pin": ["SECRET", "SECRET"],
            "X-Csrf-Token": "SECRET",
            "X-Hmac": "SECRET",
            "Referer": "https://SECRET@example.com/?sig=SECRET",
            "X-Plain": "shown",
        },
    })
}

fn answer() -> Answer {
    let headers = [
        ("location", "https://user:SECRET@example.com/next?code=SECRET&page=3"),
        ("x-hmac", "SECRET"),
        ("x-plain", "shown"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    Answer { status: 307, headers, body: bytes::Bytes::new().into(), truncated: false }
}

#[tokio::test]
async fn secrets_are_sent_and_shown_nowhere() {
    let world = World::start().await;
    world.target.plan(Plan::Answer(answer()));
    let submitted = world.post("/retry-tasks", &submission().to_string()).await;
    assert_eq!(submitted.status, 201, "{}", submitted.text());
    let id = submitted.json()["taskId"].as_str().unwrap().to_owned();
    let task = world.ended(&id).await;

    let sent = &world.target.sends(1).await[0].request;
    assert_eq!(sent.target_url, URL);
    for (name, value) in &sent.headers {
        assert!(value.contains("SECRET") || name == "X-Plain", "{name}: {value}");
    }

    assert_eq!(task["targetUrl"], "https://***@example.com/a?page=2&access_token=***&api%5Fkey=***");
    let headers = json!({
        "DPoP": "***", "X-Otp": "***", "X-Pin": ["***", "***"], "X-Csrf-Token": "***", "X-Hmac": "***",
        "Referer": "https://***@example.com/?sig=***", "X-Plain": "shown",
    });
    assert_eq!(task["headers"], headers);
    let headers =
        json!({ "location": "https://***@example.com/next?code=***&page=3", "x-hmac": "***", "x-plain": "shown" });
    assert_eq!(task["response"]["headers"], headers);

    let batch = json!({ "tasks": [submission()] }).to_string();
    for shown in [
        submitted.text(),
        world.post("/retry-tasks", &submission().to_string()).await.text(),
        world.post("/retry-tasks/batch", &batch).await.text(),
        world.get("/retry-tasks").await.text(),
        world.get(&format!("/retry-tasks/{id}")).await.text(),
        world.get(&format!("/retry-tasks/{id}/attempts")).await.text(),
        world.post(&format!("/retry-tasks/{id}/replay"), "").await.text(),
    ] {
        assert!(shown.contains(&id) && !shown.contains("SECRET"), "{shown}");
    }
}

#[tokio::test]
async fn more_names_can_be_secret() {
    let document = r#"{"targetUrl":"https://example.com/?badge=SECRET","headers":{"X-Badge-No":"SECRET"}}"#;
    let world = World::with_secrets(&["badge"]).await;
    let task = world.post("/retry-tasks", document).await.json();
    assert_eq!(
        (&task["targetUrl"], &task["headers"]),
        (&json!("https://example.com/?badge=***"), &json!({ "X-Badge-No": "***" }))
    );
    assert!(World::start().await.post("/retry-tasks", document).await.text().contains("SECRET"));
}

#[tokio::test]
async fn the_reference_lists_what_is_secret() {
    let page = World::start().await.get("/docs").await.text();
    for name in ["dpop", "otp", "pin", "csrf", "hmac", "token", "--secret-names"] {
        assert!(page.contains(&format!("<code>{name}</code>")), "{name}");
    }
}
