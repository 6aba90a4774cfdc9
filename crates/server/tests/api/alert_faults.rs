//! Alerts when something is in their way: the store, the sink, a restart.

use std::time::Duration;

use redrive_core::alerts::{Rule, Signal, Timing};
use redrive_server::alerts::{Settings, SinkKind, tell_of_failure};
use serde_json::{Value, json};

use crate::alerts::{fires, sink, told_of};
use crate::world::{Answer, Received, Receiver, Setup, World};

/// Short times: the interval is a minute, and what still fires is told again after ten.
fn brisk(signals: &[Signal]) -> Settings {
    let timing =
        Timing { wait: Duration::from_secs(5), interval: Duration::from_secs(60), repeat: Duration::from_secs(600) };
    Settings { timing, ..told_of(signals) }
}

impl World {
    /// Lets so many seconds pass. The loops run at every one of them.
    async fn pass(&self, seconds: u64) {
        for _ in 0..seconds {
            self.clock.advance(Duration::from_secs(1));
            // A call to the server gives the loops time to run.
            assert_eq!(self.get("/livez").await.status, 200);
        }
    }

    async fn pause(&self) {
        assert_eq!(self.post("/dependencies/billing/pause", "{}").await.status, 200);
    }

    async fn resume(&self) {
        assert_eq!(self.post("/dependencies/billing/resume", "").await.status, 200);
    }
}

/// The rule and the status of each notification.
fn told(received: &[Received]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    received.iter().map(|one| (text(&one.document["rule"]), text(&one.document["status"]))).collect()
}

fn one(rule: &str, status: &str) -> (String, String) {
    (rule.to_owned(), status.to_owned())
}

/// Those of one rule.
fn about(receiver: &Receiver, rule: &str) -> Vec<String> {
    told(&receiver.received()).into_iter().filter(|(of, _)| of == rule).map(|(_, status)| status).collect()
}

#[tokio::test]
async fn a_dead_letter_is_told_however_long_its_notification_cannot_be_stored() {
    let (world, receiver) = World::with_alerts(told_of(&[Signal::DeadLetter])).await;
    world.store.refuse_tasks(Some("redrive"));
    world.dead_letter("billing").await;
    // Longer than the window of the rule.
    world.pass(900).await;
    assert_eq!((receiver.received().len(), world.unconfirmed().await), (0, 1), "it is still owed");
    assert!(fires(&world.alerts().await, "dead-letter", "billing"));
    world.store.refuse_tasks(None);
    world.pass(30).await;
    assert_eq!(told(&receiver.received())[0], one("dead-letter", "firing"));
    world.until_confirmed().await;
    world.pass(30).await;
    assert_eq!(about(&receiver, "dead-letter"), ["firing", "resolved"], "the window is over since long");
}

#[tokio::test]
async fn a_sink_whose_certificate_is_not_trusted_causes_no_alerts_about_itself() {
    let mut settings = told_of(&[]);
    settings.sinks.push(sink("other", SinkKind::Webhook));
    let (world, receiver) = World::with_alerts(settings).await;
    receiver.lose_trust();
    world.dead_letter("billing").await;
    world.alerts_until(|alerts| fires(alerts, "sink-failing", "ops")).await;
    world.pass(900).await;
    let alerts = world.alerts().await;
    let lists = ["firing", "past"].map(|list| alerts[list].to_string());
    assert!(lists.iter().all(|list| !list.contains("certificate-error")), "{alerts:#}");
    // One for each interval and not one for each failure.
    let system =
        world.engine.store().reads().counts(redrive_core::TenantId::try_new("redrive").unwrap()).await.unwrap();
    assert!(system.values().sum::<u64>() < 20, "{system:?}");
}

#[tokio::test]
async fn a_notification_that_the_sink_refused_is_made_again_until_it_is_received() {
    let (world, receiver) = World::with_alerts(brisk(&[Signal::DependencyPaused])).await;
    receiver.answer(404);
    world.pause().await;
    world.pass(240).await;
    let refused = receiver.received().len();
    assert!((2..=5).contains(&refused), "once a minute, because 404 is not retried: {refused}");
    // What it is told is the newest state, also if that is no alert.
    world.resume().await;
    world.pass(90).await;
    receiver.answer(200);
    world.pass(240).await;
    let all = told(&receiver.received());
    assert_eq!(all.last(), Some(&one("dependency-paused", "resolved")), "{all:?}");
    let total = all.len();
    world.pass(1_200).await;
    assert_eq!(receiver.received().len(), total, "it was received, so that it is not made again");
}

#[tokio::test]
async fn a_notification_that_was_refused_before_a_restart_is_made_again_after_it() {
    let settings = || brisk(&[Signal::DependencyPaused]);
    let (first, refusing) = World::with_alerts(settings()).await;
    refusing.answer(404);
    first.pause().await;
    first.pass(20).await;
    assert_eq!(about(&refusing, "dependency-paused"), ["firing"]);
    let before = Some(first.crash_notifier());

    let (second, receiver) = World::with_receiver(Setup { alerts: settings(), before, ..Setup::default() }).await;
    second.pass(100).await;
    assert_eq!(about(&receiver, "dependency-paused"), ["firing"], "after the interval of a minute");
    second.pass(300).await;
    assert_eq!(about(&receiver, "dependency-paused"), ["firing"], "it was received, so that it is not made again");
}

#[tokio::test]
async fn what_is_silenced_after_it_was_told_is_not_told_again_until_it_is_over() {
    let (world, receiver) = World::with_alerts(brisk(&[Signal::DependencyPaused])).await;
    world.pause().await;
    world.pass(20).await;
    assert_eq!(about(&receiver, "dependency-paused"), ["firing"]);
    let silence = world.post("/alerts/silences", r#"{"dependency":"billing","forMs":86400000}"#).await;
    assert_eq!(silence.status, 201, "{}", silence.text());
    world.pass(1_300).await;
    assert_eq!(about(&receiver, "dependency-paused"), ["firing"], "two repeats were left out");
    world.resume().await;
    world.pass(70).await;
    assert_eq!(about(&receiver, "dependency-paused"), ["firing", "resolved"]);
}

#[tokio::test]
async fn a_restart_tells_what_is_over_and_does_not_repeat_what_goes_on() {
    let settings = || brisk(&[Signal::DependencyPaused]);
    let (first, told_first) = World::with_alerts(settings()).await;
    first.pause().await;
    first.pass(20).await;
    assert_eq!(about(&told_first, "dependency-paused"), ["firing"]);
    let before = Some(first.crash_notifier());

    let (second, told_second) = World::with_receiver(Setup { alerts: settings(), before, ..Setup::default() }).await;
    second.pass(300).await;
    assert_eq!(about(&told_second, "dependency-paused"), Vec::<String>::new(), "it goes on");
    let before = Some(second.crash_notifier());
    second.resume().await;

    let (third, told_third) = World::with_receiver(Setup { alerts: settings(), before, ..Setup::default() }).await;
    third.pass(60).await;
    assert_eq!(about(&told_third, "dependency-paused"), ["resolved"]);
    let past = third.alerts().await["past"].clone();
    assert_eq!((&past[0]["rule"], past.as_array().unwrap().len()), (&json!("dependency-paused"), 1));
}

#[tokio::test]
async fn a_restart_knows_of_hundreds_of_alerts_that_they_are_over() {
    const MANY: usize = 300;
    let settings = || brisk(&[Signal::DependencyPaused]);
    let (first, _told) = World::with_alerts(settings()).await;
    for number in 0..MANY {
        assert_eq!(first.post(&format!("/dependencies/d{number}/pause"), "{}").await.status, 200);
    }
    first.pass(20).await;
    let listed = |answer: Answer, list: &str| answer.json()[list].as_array().unwrap().len();
    assert_eq!(listed(first.get("/alerts?limit=500").await, "firing"), MANY);
    let before = Some(first.crash_notifier());
    for number in 0..MANY {
        assert_eq!(first.post(&format!("/dependencies/d{number}/resume"), "").await.status, 200);
    }

    let (second, told) = World::with_receiver(Setup { alerts: settings(), before, ..Setup::default() }).await;
    second.pass(60).await;
    assert_eq!(about(&told, "dependency-paused"), ["resolved"]);
    assert_eq!(listed(second.get("/alerts?limit=500").await, "past"), MANY);
}

#[tokio::test]
async fn an_outage_of_the_store_is_told_and_resolved_without_the_store() {
    let (world, receiver) = World::with_alerts(told_of(&[Signal::StoreUnavailable])).await;
    // The alert must not hang on a reading of its own: nothing here asks for the list of alerts.
    world.store.refuse_tasks(Some("default"));
    for _ in 0..40 {
        let refused = world.post("/retry-tasks", r#"{"targetUrl":"https://example.com/"}"#).await;
        assert_eq!(refused.status, 503, "{}", refused.text());
        world.pass(1).await;
    }
    assert_eq!(about(&receiver, "store-unavailable"), ["firing"]);
    world.store.refuse_tasks(None);
    assert_eq!(world.post("/retry-tasks", r#"{"targetUrl":"https://example.com/"}"#).await.status, 201);
    world.pass(120).await;
    assert_eq!(about(&receiver, "store-unavailable"), ["firing", "resolved"]);
}

#[tokio::test]
async fn that_a_part_has_failed_is_told_directly() {
    let mut settings = told_of(&[Signal::PartFailed]);
    settings.sinks.push(sink("other", SinkKind::Slack));
    settings.sinks.push(sink("prom", SinkKind::Alertmanager));
    let (world, receiver) = World::with_alerts(settings).await;
    // Neither the store nor the loop is needed.
    world.store.refuse_tasks(Some("redrive"));
    drop(world.crash_notifier());
    tell_of_failure(&world.app, "the claimer").await;
    let received = receiver.received();
    let mut urls: Vec<&str> = received.iter().map(|one| one.url.rsplit('/').next().unwrap()).collect();
    urls.sort_unstable();
    assert_eq!(urls, ["alerts", "ops", "other"]);
    let webhook = &received.iter().find(|one| one.url.ends_with("ops")).unwrap().document;
    assert_eq!(webhook["alerts"][0]["why"], "the claimer has failed: this process exits");
}

#[tokio::test]
async fn a_rule_that_is_switched_off_is_not_told() {
    let mut settings = told_of(&[Signal::PartFailed]);
    settings.rules.set(Rule { is_enabled: false, ..Rule::default_of(Signal::PartFailed) });
    let (world, receiver) = World::with_alerts(settings).await;
    tell_of_failure(&world.app, "the claimer").await;
    assert_eq!(receiver.received().len(), 0);
}
