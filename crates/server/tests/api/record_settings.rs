//! How long records are kept: by setting, by request, and where the retry standard is enforced.

use std::time::Duration;

use redrive_core::{Consumer, OperationName};
use redrive_server::Standard;
use redrive_server::idempotency::{OperationSettings, Settings};
use serde_json::json;

use crate::records::hash;
use crate::world::{Answer, Setup, World};

const START: u64 = 1_700_000_000_000;
const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

fn settings() -> Settings {
    let operation = |retention, is_financial| OperationSettings { retention, is_financial };
    let days = |days: u64| Duration::from_millis(days * DAY);
    Settings {
        lease: Duration::from_secs(10),
        operations: [
            (OperationName::try_new("pay").unwrap(), operation(None, true)),
            (OperationName::try_new("refund").unwrap(), operation(Some(days(30)), true)),
            (OperationName::try_new("export").unwrap(), operation(Some(days(2)), false)),
        ]
        .into(),
        consumers: [(Consumer::try_new("audit").unwrap(), days(14))].into(),
        ..Settings::default()
    }
}

async fn world(standard: Standard) -> World {
    World::of(Setup { idempotency: settings(), standard, ..Setup::default() }).await
}

async fn reserve(world: &World, operation: &str, retention_ms: Option<u64>) -> Answer {
    let mut document = json!({ "requestHash": hash(1) });
    if let Some(retention_ms) = retention_ms {
        document["retentionMs"] = json!(retention_ms);
    }
    world.post(&format!("/idempotency-records/{operation}/k/reserve"), &document.to_string()).await
}

#[tokio::test]
async fn the_setting_of_the_operation_applies_unless_the_request_says_otherwise() {
    for (operation, asked, kept) in [
        ("other", None, DAY),
        ("other", Some(HOUR), HOUR),
        ("other", Some(90 * DAY), 90 * DAY),
        ("export", None, 2 * DAY),
        ("export", Some(HOUR), HOUR),
        ("pay", None, 7 * DAY),
        ("pay", Some(8 * DAY), 8 * DAY),
        ("refund", None, 30 * DAY),
    ] {
        let world = world(Standard::Off).await;
        let granted = reserve(&world, operation, asked).await;
        assert_eq!(
            (granted.status, &granted.json()["leaseUntil"]),
            (201, &json!(START + 10_000)),
            "{}",
            granted.text()
        );
        let record = world.get(&format!("/idempotency-records/{operation}/k")).await.json();
        assert_eq!(record["expiresAt"], START + 10_000 + kept, "{operation} {asked:?}");
    }
}

#[tokio::test]
async fn a_financial_operation_is_never_kept_for_less_than_its_setting() {
    let world = world(Standard::Off).await;
    for (operation, asked, setting) in [("pay", 7 * DAY - 1, "7d"), ("refund", 7 * DAY, "30d")] {
        let problem = reserve(&world, operation, Some(asked)).await.problem(422, "invalid-value");
        assert_eq!(problem["field"], "retentionMs");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("is financial") && detail.contains(setting), "{detail}");
    }
}

#[tokio::test]
async fn where_the_standard_is_enforced_keys_are_kept_for_a_day_and_events_for_a_week() {
    let enforced = world(Standard::Enforce).await;
    let refused = reserve(&enforced, "other", Some(DAY - 1)).await.problem(422, "breaks-standard");
    let finding = &refused["findings"][0];
    assert_eq!(
        (&finding["rule"], &finding["check"], &finding["field"]),
        (&json!("R-6"), &json!("key-retention"), &json!("retentionMs"))
    );
    assert_eq!(refused["detail"], "breaks R-6 of the retry standard");
    assert_eq!(reserve(&enforced, "other", Some(DAY)).await.status, 201);

    let record = |window: u64| json!({ "windowMs": window }).to_string();
    let refused = enforced.post("/inboxes/mail/events/e", &record(7 * DAY - 1)).await.problem(422, "breaks-standard");
    assert_eq!((&refused["findings"][0]["check"], &refused["field"]), (&json!("dedupe-retention"), &json!("windowMs")));
    assert_eq!(enforced.post("/inboxes/mail/events/e", &record(7 * DAY)).await.status, 201);
    let batch = json!({ "windowMs": DAY, "events": ["e"] }).to_string();
    enforced.post("/inboxes/mail/events", &batch).await.problem(422, "breaks-standard");
    let items =
        json!({ "records": [{ "operation": "other", "key": "b", "requestHash": hash(1), "retentionMs": HOUR }] });
    let results = enforced.post("/idempotency-records/batch", &items.to_string()).await.json();
    assert_eq!(results["results"][0]["error"]["field"], "records[0].retentionMs");

    let warned = world(Standard::Warn).await;
    assert_eq!(reserve(&warned, "other", Some(HOUR)).await.status, 201);
}

#[tokio::test]
async fn a_consumer_may_have_a_window_of_its_own() {
    let world = world(Standard::Off).await;
    for (consumer, asked, days) in [("mail", None, 7), ("audit", None, 14), ("audit", Some(DAY), 1)] {
        let path = format!("/inboxes/{consumer}/events/{}", asked.unwrap_or_default());
        let document = asked.map_or_else(|| json!({}), |window| json!({ "windowMs": window })).to_string();
        assert_eq!(world.post(&path, &document).await.status, 201);
        world.clock.advance(Duration::from_millis(days * DAY - 1));
        assert_eq!(world.post(&path, &document).await.status, 200, "{consumer}");
        world.clock.advance(Duration::from_millis(1));
        assert_eq!(world.post(&path, &document).await.status, 201, "{consumer}");
    }
}
