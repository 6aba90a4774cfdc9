//! Every signal: what makes it fire, what it says, and when it is over.

use std::time::Duration;

use redrive_core::ErrorType;
use redrive_core::alerts::{Rule, Signal};
use redrive_core::guards;
use redrive_server::alerts::Settings;
use serde_json::Value;

use crate::alerts::{fires, told_of};
use crate::world::{Plan, Setup, World, answer};

/// A world in which a sink is told of this signal, and how the rule differs from its default.
async fn world_with(signal: Signal, change: impl FnOnce(Rule) -> Rule) -> World {
    let mut settings = told_of(&[signal]);
    settings.rules.set(change(Rule::default_of(signal)));
    World::with_alerts(settings).await.0
}

impl World {
    /// A task that gets these answers, one for each attempt, until it has ended.
    async fn attempts(&self, dependency: &str, answers: &[u16]) {
        for status in answers {
            self.target.plan(Plan::Answer(answer(*status, "")));
        }
        let document = format!(
            r#"{{"targetUrl":"https://example.com/","dependency":"{dependency}","policy":{{"maxAttempts":{},"initialDelayMs":1}}}}"#,
            answers.len()
        );
        let task = self.submit(&document).await;
        for _ in 0..10_000 {
            if !self.get(&format!("/retry-tasks/{task}")).await.json()["endedAt"].is_null() {
                return;
            }
            self.clock.advance(Duration::from_millis(10));
        }
        panic!("the task never ended");
    }
}

/// What the alert of a rule about a dependency says.
fn why(alerts: &Value, rule: &str, dependency: Option<&str>) -> String {
    let is_it = |alert: &&Value| alert["rule"] == rule && alert["dependency"].as_str() == dependency;
    alerts["firing"].as_array().unwrap().iter().find(is_it).unwrap()["why"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn dead_letters_that_become_more_are_an_alert_of_the_dependency_and_of_all() {
    let world = world_with(Signal::DeadLetterGrowth, |rule| rule).await;
    for _ in 0..10 {
        world.dead_letter("billing").await;
    }
    world.clock.advance(Duration::from_secs(30));
    let alerts = world.alerts_until(|alerts| fires(alerts, "dead-letter", "billing")).await;
    assert!(!fires(&alerts, "dead-letter-growth", "billing"), "ten are not too many");
    world.dead_letter("billing").await;
    let alerts = world.alerts_until(|alerts| fires(alerts, "dead-letter-growth", "billing")).await;
    let expected = "11 dead letters appeared in the last 10 minutes";
    assert_eq!(why(&alerts, "dead-letter-growth", Some("billing")), expected);
    assert_eq!(why(&alerts, "dead-letter-growth", None), expected);
    world.alerts_until(|alerts| !fires(alerts, "dead-letter-growth", "billing")).await;
}

#[tokio::test]
async fn the_figures_of_retried_tasks_are_alerts_after_a_minute() {
    // The guards would keep most of the retries back.
    let guards = guards::Settings { budget: None, breaker: None, ..guards::Settings::default() };
    let engine = redrive_engine::Options { guards, ..redrive_engine::Options::default() };
    let (world, _) = World::with_receiver(Setup { engine, ..Setup::default() }).await;
    for _ in 0..20 {
        world.attempts("billing", &[503, 503, 200]).await;
    }
    let names = ["retry-rate", "attempts-to-success", "second-attempt-success"];
    let all_fire = |alerts: &Value| names.iter().all(|rule| fires(alerts, rule, "billing"));
    let alerts = world.alerts_until(all_fire).await;
    for (rule, expected) in [
        ("retry-rate", "100 % of 20 tasks were retried; the alert is above 10 %"),
        ("attempts-to-success", "3.00 attempts on average for 20 delivered tasks; the alert is above 2"),
        (
            "second-attempt-success",
            "0 % of 20 retried tasks were delivered by their second attempt; the alert is below 60 %",
        ),
    ] {
        assert_eq!(why(&alerts, rule, Some("billing")), expected);
        assert_eq!(why(&alerts, rule, None), expected);
    }
    assert!(!fires(&alerts, "dead-letter-rate", "billing"));
    // An hour later there is nothing to judge, and that is told without any event.
    let is_over = |alerts: &Value| alerts["firing"].as_array().unwrap().is_empty();
    world.alerts_until(is_over).await;
}

#[tokio::test]
async fn the_share_of_dead_letters_is_an_alert() {
    let world = World::with_alerts(Settings::default()).await.0;
    for _ in 0..19 {
        world.attempts("billing", &[200]).await;
    }
    world.dead_letter("billing").await;
    let alerts = world.alerts_until(|alerts| fires(alerts, "dead-letter-rate", "billing")).await;
    let expected = "5 % of 20 tasks became dead letters; the alert is above 1 %";
    assert_eq!(why(&alerts, "dead-letter-rate", Some("billing")), expected);
}

#[tokio::test]
async fn tasks_that_are_retried_for_more_than_a_day_are_an_alert_also_after_a_replay() {
    let world = world_with(Signal::LongInRetry, |rule| Rule { fire: 1.0, clear: 0.0, ..rule }).await;
    let document = r#"{"targetUrl":"https://example.com/","dependency":"slow","policy":{"jitterType":"NONE","backoff":"fixed",
        "initialDelayMs":90000000,"maxDelayMs":90000000,"maxAttempts":2,"totalBudgetMs":400000000}}"#;
    let mut tasks = Vec::new();
    for _ in 0..2 {
        world.target.plan(Plan::Answer(answer(404, "")));
        let task = world.submit(document).await;
        world.until(&task, |task| task["status"] == "FAILED").await;
        tasks.push(task);
    }
    // A day later they are replayed: what counts is the first run.
    world.clock.advance(Duration::from_secs(24 * 3_600));
    for task in &tasks {
        world.target.plan(Plan::Answer(answer(503, "")));
        assert_eq!(world.post(&format!("/retry-tasks/{task}/replay"), "").await.status, 200);
        world.until(task, |task| task["status"] == "PENDING" && task["attemptInRun"] == 1).await;
    }
    let alerts = world.alerts_until(|alerts| fires(alerts, "long-in-retry", "slow")).await;
    let expected = "2 tasks have been retried for more than 24 hours; the alert is above 1";
    assert_eq!(why(&alerts, "long-in-retry", Some("slow")), expected);
}

#[tokio::test]
async fn an_untrusted_certificate_is_an_alert_and_told_at_once() {
    let (world, receiver) = World::with_alerts(told_of(&[Signal::CertificateError])).await;
    for dependency in ["bank", "mail"] {
        world.target.plan(Plan::Fail(ErrorType::TlsCertificate));
        let document = format!(r#"{{"targetUrl":"https://example.com/","dependency":"{dependency}"}}"#);
        let task = world.submit(&document).await;
        world.ended(&task).await;
        let alerts = world.alerts_until(|alerts| fires(alerts, "certificate-error", dependency)).await;
        let expected = "1 attempt failed because the certificate is not trusted in the last 5 minutes";
        assert_eq!(why(&alerts, "certificate-error", Some(dependency)), expected);
    }
    // The second one waits for no more than seconds.
    let began = world.engine.now();
    world.notifications(&receiver, 2).await;
    assert!(world.engine.now().since(began) <= Duration::from_secs(21), "{:?}", world.engine.now().since(began));
}

#[tokio::test]
async fn a_budget_that_is_spent_for_minutes_is_an_alert() {
    let guards = guards::Settings { breaker: None, ..guards::Settings::default() };
    let engine = redrive_engine::Options { guards, ..redrive_engine::Options::default() };
    let mut alerts = told_of(&[Signal::BudgetExhausted]);
    alerts.rules.set(Rule { wait: Duration::from_secs(60), ..Rule::default_of(Signal::BudgetExhausted) });
    let (world, _) = World::with_receiver(Setup { alerts, engine, ..Setup::default() }).await;
    for _ in 0..2_000 {
        world.target.plan(Plan::Answer(answer(503, "")));
    }
    let document = r#"{"targetUrl":"https://example.com/","dependency":"billing",
        "policy":{"jitterType":"NONE","backoff":"fixed","initialDelayMs":1000,"maxDelayMs":1000,"maxAttempts":50}}"#;
    for _ in 0..30 {
        world.submit(document).await;
    }
    let alerts = world.alerts_until(|alerts| fires(alerts, "budget-exhausted", "billing")).await;
    let expected = "retries wait because the retry budget is spent";
    assert_eq!(why(&alerts, "budget-exhausted", Some("billing")), expected);
}

#[tokio::test]
async fn a_dependency_that_is_gone_is_an_alert_until_it_takes_something_again() {
    let world = world_with(Signal::DependencyGone, |rule| rule).await;
    world.attempts("billing", &[410]).await;
    let alerts = world.alerts_until(|alerts| fires(alerts, "dependency-gone", "billing")).await;
    assert_eq!(why(&alerts, "dependency-gone", Some("billing")), "it answered 410 Gone");
    world.attempts("billing", &[200]).await;
    world.alerts_until(|alerts| !fires(alerts, "dependency-gone", "billing")).await;
}

#[tokio::test]
async fn rows_that_cannot_be_read_are_an_alert() {
    let world = world_with(Signal::RowsSetAside, |rule| rule).await;
    world.store.set_aside(2);
    world.dead_letter("billing").await;
    let alerts = world.alerts_until(|alerts| fires(alerts, "rows-set-aside", "-")).await;
    assert_eq!(why(&alerts, "rows-set-aside", None), "2 rows of the store cannot be read by this version");
    world.store.set_aside(0);
    world.alerts_until(|alerts| !fires(alerts, "rows-set-aside", "-")).await;
}

#[tokio::test]
async fn dead_letters_that_will_be_removed_within_a_day_are_an_alert_even_behind_many_that_will_not() {
    let retention = redrive_engine::Options::default().retention;
    let day = Duration::from_secs(24 * 3_600);
    let world = world_with(Signal::DeadLettersExpiring, |rule| rule).await;
    world.dead_letter("billing").await;
    world.clock.advance(Duration::from_secs(60));
    // Accepted early too, and ended late.
    let document =
        r#"{"targetUrl":"https://example.com/","dependency":"late","delayMs":80000000,"policy":{"maxAttempts":1}}"#;
    for _ in 0..150 {
        world.target.plan(Plan::Answer(answer(404, "")));
        world.submit(document).await;
    }
    world.clock.advance(Duration::from_secs(80_001));
    let ended = async |world: &World| {
        let counts = world.engine.store().reads().counts(redrive_core::TenantId::default_tenant()).await.unwrap();
        counts.get(&redrive_core::Status::Failed).copied().unwrap_or_default()
    };
    for _ in 0..10_000 {
        if ended(&world).await == 151 {
            break;
        }
        world.clock.advance(Duration::from_millis(10));
        assert_eq!(world.get("/livez").await.status, 200);
    }
    assert_eq!(ended(&world).await, 151);
    world.clock.advance(retention - day - Duration::from_secs(79_000));
    let alerts = world.alerts_until(|alerts| fires(alerts, "dead-letters-expiring", "-")).await;
    let why = why(&alerts, "dead-letters-expiring", None);
    assert!(why.starts_with("1 dead letter or more will be removed within a day"), "{why}");
}

#[tokio::test]
async fn a_time_that_is_uncertain_is_an_alert_and_told_directly() {
    let alerts = told_of(&[Signal::TimeUncertain]);
    let (world, receiver) = World::with_receiver(Setup { alerts, is_shared: true, ..Setup::default() }).await;
    world.store.set_ahead(3_600_000);
    world.store.refuse_tasks(Some("redrive"));
    let told = world.notifications(&receiver, 1).await;
    assert_eq!(told[0].document["rule"], "time-uncertain");
    assert_eq!(told[0].document["alerts"][0]["why"], "the time is uncertain: nothing is claimed, ended or cleaned");
}
