//! Alerts: what fires, who is told, and what is silenced.

use std::time::Duration;

use redrive_core::Timestamp;
use redrive_core::alerts::{Severity, Signal};
use redrive_server::alerts::{Settings, SinkKind, SinkName, SinkSettings, Target};
use serde_json::{Value, json};

use crate::world::{Plan, RECEIVER, Received, Receiver, World, answer};

pub(crate) const ONE_ATTEMPT: &str =
    r#"{"targetUrl":"https://example.com/","dependency":"DEPENDENCY","policy":{"maxAttempts":1}}"#;

/// How often a test asks before it gives up.
pub(crate) const PATIENCE: usize = 5_000;

pub(crate) fn sink(name: &str, kind: SinkKind) -> SinkSettings {
    SinkSettings {
        name: SinkName::try_new(name).unwrap(),
        kind,
        target: Target { url: format!("{RECEIVER}{name}"), authorization: None },
        signals: Vec::new(),
        least_severity: Severity::Info,
    }
}

/// One sink, a webhook that is told of these signals.
pub(crate) fn told_of(signals: &[Signal]) -> Settings {
    let sinks = vec![SinkSettings { signals: signals.to_vec(), ..sink("ops", SinkKind::Webhook) }];
    Settings { sinks, ..Settings::default() }
}

impl World {
    /// A task of this dependency that becomes a dead letter.
    pub(crate) async fn dead_letter(&self, dependency: &str) {
        self.target.plan(Plan::Answer(answer(404, "")));
        let task = self.submit(&ONE_ATTEMPT.replace("DEPENDENCY", dependency)).await;
        self.ended(&task).await;
    }

    pub(crate) async fn alerts(&self) -> Value {
        let answer = self.get("/alerts").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    /// Lets time pass, a second at a time, until `is_so` says so of the list of alerts.
    pub(crate) async fn alerts_until(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..PATIENCE {
            let alerts = self.alerts().await;
            if is_so(&alerts) {
                return alerts;
            }
            self.clock.advance(Duration::from_secs(1));
        }
        panic!("the alerts never came to be as expected: {:#}", self.alerts().await);
    }

    /// Lets time pass until this many notifications have arrived.
    pub(crate) async fn notifications(&self, receiver: &Receiver, count: usize) -> Vec<Received> {
        self.alerts_until(|_| receiver.received().len() >= count).await;
        receiver.received()
    }

    /// Lets time pass until the alerts of all dead letters are confirmed.
    pub(crate) async fn until_confirmed(&self) {
        for _ in 0..PATIENCE {
            if self.unconfirmed().await == 0 {
                return;
            }
            self.clock.advance(Duration::from_secs(1));
            self.get("/livez").await;
        }
        panic!("the alerts were never confirmed");
    }

    /// The dead letters whose alerts are not confirmed.
    pub(crate) async fn unconfirmed(&self) -> usize {
        self.engine.store().upkeep().pending_alerts(Timestamp::MAX, 100).await.unwrap().len()
    }
}

/// The rules of a list's alerts.
pub(crate) fn rules(alerts: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    alerts.as_array().unwrap().iter().map(|alert| (text(&alert["rule"]), text(&alert["dependency"]))).collect()
}

pub(crate) fn fires(alerts: &Value, rule: &str, dependency: &str) -> bool {
    rules(&alerts["firing"]).contains(&(rule.into(), dependency.into()))
}

#[tokio::test]
async fn dead_letters_are_told_once_per_group_and_resolved_when_they_are_over() {
    let (world, receiver) = World::with_alerts(told_of(&[Signal::DeadLetter])).await;
    for dependency in ["billing", "mail", "billing"] {
        world.dead_letter(dependency).await;
    }
    assert_eq!(world.unconfirmed().await, 3, "not before the notification is durable");
    let told = world.notifications(&receiver, 1).await;
    let document = &told[0].document;
    assert_eq!(
        (&document["status"], &document["rule"], &document["firing"], &document["resolved"]),
        (&json!("firing"), &json!("dead-letter"), &json!(2), &json!(0))
    );
    let named: Vec<_> =
        document["alerts"].as_array().unwrap().iter().map(|one| (&one["dependency"], &one["why"])).collect();
    let why = |dead_letters: &str| json!(format!("{dead_letters} appeared in the last 5 minutes"));
    assert_eq!(named, [(&json!("billing"), &why("2 dead letters")), (&json!("mail"), &why("1 dead letter"))]);
    world.until_confirmed().await;
    assert!(fires(&world.alerts().await, "dead-letter", "billing"));

    // One more of a dependency that is known to have some is no news.
    world.dead_letter("mail").await;
    world.until_confirmed().await;
    assert_eq!(receiver.received().len(), 1);

    let alerts = world.alerts_until(|alerts| !fires(alerts, "dead-letter", "mail")).await;
    let past = rules(&alerts["past"]);
    assert!(past.contains(&("dead-letter".into(), "billing".into())), "{past:?}");
    let told = world.notifications(&receiver, 2).await;
    let over: u64 = told[1..].iter().map(|one| one.document["resolved"].as_u64().unwrap()).sum();
    assert!(over >= 1, "{told:?}");
    let told = world.notifications(&receiver, 1 + told.len() - 1).await;
    assert_eq!(told.last().unwrap().document["status"], if over == 2 { "resolved" } else { "firing" });
}

#[tokio::test]
async fn every_kind_of_sink_gets_its_own_document_and_only_what_it_asked_for() {
    let mut settings = told_of(&[Signal::DeadLetter]);
    settings.sinks[0].target.authorization = Some("Bearer s3cret".into());
    settings.sinks.push(sink("chat", SinkKind::Slack));
    settings.sinks.push(sink("prom", SinkKind::Alertmanager));
    settings.sinks.push(SinkSettings { signals: vec![Signal::BreakerOpen], ..sink("breakers", SinkKind::Webhook) });
    settings.sinks.push(SinkSettings { least_severity: Severity::Critical, ..sink("pager", SinkKind::Webhook) });
    let (world, receiver) = World::with_alerts(settings).await;
    world.dead_letter("billing").await;
    let told = world.notifications(&receiver, 3).await;
    let of =
        |name: &str| told.iter().filter(|one| one.url.starts_with(&format!("{RECEIVER}{name}"))).collect::<Vec<_>>();
    assert_eq!(of("ops")[0].authorization.as_deref(), Some("Bearer s3cret"));
    assert_eq!(of("chat")[0].authorization, None);
    let text = of("chat")[0].document["text"].as_str().unwrap();
    assert!(text.contains("[warning] billing: 1 dead letter appeared in the last 5 minutes"), "{text}");
    assert_eq!(of("prom")[0].url, format!("{RECEIVER}prom/api/v2/alerts"));
    assert_eq!(of("prom")[0].document[0]["labels"]["alertname"], "RedriveDeadLetter");
    assert!(of("breakers").is_empty() && of("pager").is_empty(), "{told:?}");
}

#[tokio::test]
async fn a_silence_keeps_alerts_from_sinks_until_it_is_ended() {
    let (world, receiver) = World::with_alerts(told_of(&[Signal::DeadLetter])).await;
    let silence =
        world.post("/alerts/silences", r#"{"dependency":"billing","forMs":3600000,"reason":"maintenance"}"#).await;
    assert_eq!(silence.status, 201, "{}", silence.text());
    let silence = silence.json();
    world.dead_letter("billing").await;
    world.dead_letter("mail").await;
    let told = world.notifications(&receiver, 1).await;
    assert_eq!(told[0].document["alerts"].as_array().unwrap().len(), 1);
    assert_eq!(told[0].document["alerts"][0]["dependency"], "mail");
    let alerts = world.alerts().await;
    let silenced: Vec<_> = alerts["firing"].as_array().unwrap().iter().filter(|one| one["silenced"] == true).collect();
    assert_eq!(rules(&json!(silenced)), [("dead-letter".into(), "billing".into())]);
    let listed = &alerts["silences"][0];
    assert_eq!(
        (&listed["silenceId"], &listed["reason"], &listed["rule"]),
        (&silence["silenceId"], &json!("maintenance"), &json!(null))
    );
    assert_eq!(listed["until"], silence["until"]);
    world.until_confirmed().await;

    let path = format!("/alerts/silences/{}", silence["silenceId"].as_str().unwrap());
    assert_eq!(world.delete(&path).await.status, 204);
    let told = world.notifications(&receiver, 2).await;
    assert_eq!(told[1].document["alerts"].as_array().unwrap().len(), 2, "what it kept back, and what fires still");
    assert_eq!(world.alerts().await["silences"], json!([]));
    let again = world.delete(&path).await;
    assert_eq!((again.status, &again.json()["type"]), (404, &json!("/problems/silence-not-found")));
}

#[tokio::test]
async fn a_silence_that_cannot_be_is_refused_with_the_reason() {
    let world = World::start().await;
    for (document, field) in [
        (r#"{}"#, "forMs"),
        (r#"{"forMs":0}"#, "forMs"),
        (r#"{"forMs":2592000001}"#, "forMs"),
        (r#"{"forMs":1,"untilMs":1800000000000}"#, "forMs"),
        (r#"{"untilMs":1600000000000}"#, "untilMs"),
        (r#"{"forMs":1000,"rule":"retries"}"#, "rule"),
        (r#"{"forMs":1000,"dependency":""}"#, "dependency"),
        (r#"{"forMs":1000,"reason":"a\nb"}"#, "reason"),
    ] {
        let refused = world.post("/alerts/silences", document).await;
        assert_eq!(refused.status, 422, "{document}: {}", refused.text());
        assert_eq!(refused.json()["errors"][0]["field"], field, "{document}");
    }
    for n in 0..100 {
        assert_eq!(world.post("/alerts/silences", r#"{"forMs":60000}"#).await.status, 201, "{n}");
    }
    let refused = world.post("/alerts/silences", r#"{"forMs":60000}"#).await;
    assert_eq!((refused.status, &refused.json()["type"]), (409, &json!("/problems/too-many-silences")));
    world.clock.advance(Duration::from_secs(61));
    assert_eq!(world.post("/alerts/silences", r#"{"forMs":60000}"#).await.status, 201, "the others have ended");
    assert_eq!(world.alerts().await["silences"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_sink_that_refuses_is_shown_and_causes_no_alerts_about_alerts() {
    let (world, receiver) = World::with_alerts(told_of(&[])).await;
    receiver.answer(500);
    world.dead_letter("billing").await;
    let alerts = world.alerts_until(|alerts| fires(alerts, "sink-failing", "ops")).await;
    assert!(fires(&alerts, "dead-letter", "billing"), "{alerts:#}");
    for told in receiver.received() {
        assert_ne!(told.document["rule"], "sink-failing", "no sink is told of sinks");
    }
    // Once it is back it gets the newest state, and nothing fires any more in the end.
    receiver.answer(200);
    let before = receiver.received().len();
    world.alerts_until(|alerts| alerts["firing"] == json!([])).await;
    let told = receiver.received();
    let last = told[before..].iter().rfind(|one| one.document["rule"] == "dead-letter").unwrap();
    assert_eq!(last.document["status"], "resolved");
}

#[tokio::test]
async fn a_pause_is_an_alert_until_it_is_ended() {
    let (world, receiver) = World::with_alerts(told_of(&[Signal::DependencyPaused])).await;
    assert_eq!(world.post("/dependencies/billing/pause", r#"{"reason":"maintenance"}"#).await.status, 200);
    let told = world.notifications(&receiver, 1).await;
    assert_eq!(told[0].document["alerts"][0]["why"], "paused by local: maintenance");
    assert_eq!(world.post("/dependencies/billing/resume", "").await.status, 200);
    let told = world.notifications(&receiver, 2).await;
    assert_eq!((&told[1].document["status"], &told[1].document["resolved"]), (&json!("resolved"), &json!(1)));
}

#[tokio::test]
async fn a_test_says_what_the_sink_answered() {
    let (world, receiver) = World::with_alerts(told_of(&[])).await;
    let tested = world.post("/alerts/sinks/ops/test", "").await;
    assert_eq!(tested.json(), json!({ "sink": "ops", "received": true, "status": 200, "error": null }));
    let why = receiver.received()[0].document["alerts"][0]["why"].clone();
    assert_eq!(why, "this is a test of the sink ops; nothing is wrong");
    receiver.answer(403);
    let tested = world.post("/alerts/sinks/ops/test", "").await;
    assert_eq!(tested.json(), json!({ "sink": "ops", "received": false, "status": null, "error": "it answered 403" }));
    let unknown = world.post("/alerts/sinks/none/test", "").await;
    assert_eq!((unknown.status, &unknown.json()["type"]), (404, &json!("/problems/sink-not-found")));
    assert!(unknown.text().contains("there are: ops"), "{}", unknown.text());
}

#[tokio::test]
async fn alerts_are_listed_while_the_store_fails_and_its_outage_is_told_directly() {
    let settings = told_of(&[Signal::StoreUnavailable]);
    let (world, receiver) = World::with_alerts(settings).await;
    world.store.refuse_lists(true);
    let alerts = world.alerts_until(|alerts| fires(alerts, "store-unavailable", "-")).await;
    assert_eq!(alerts["silences"], json!(null));
    let told = world.notifications(&receiver, 1).await;
    assert_eq!(told[0].document["rule"], "store-unavailable");
    world.store.refuse_lists(false);
    let told = world.notifications(&receiver, 2).await;
    assert_eq!(told[1].document["status"], "resolved");
}
