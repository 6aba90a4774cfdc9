//! `/metrics`: what is counted, and how it is written.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive_core::ErrorType;

use crate::world::{Ask, Plan, World, answer};

/// The samples of a scrape by name and labels.
struct Samples(BTreeMap<String, f64>);

impl Samples {
    fn get(&self, series: &str) -> f64 {
        *self.0.get(series).unwrap_or_else(|| panic!("no series {series} in {:#?}", self.0.keys()))
    }

    /// The series of a metric that are not zero.
    fn of(&self, metric: &str) -> Vec<(&str, f64)> {
        let of_metric =
            self.0.iter().filter(|(series, value)| series.split('{').next() == Some(metric) && **value != 0.0);
        of_metric.map(|(series, value)| (series.as_str(), *value)).collect()
    }
}

impl World {
    async fn scrape(&self) -> Samples {
        let answer = self.get("/metrics").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let text = answer.text();
        let samples = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            (series.to_owned(), value.parse().unwrap())
        });
        Samples(samples.collect())
    }
}

#[tokio::test]
async fn attempts_dead_letters_and_waits_are_counted_as_the_target_saw_them() {
    let world = World::start().await;
    let document =
        r#"{"targetUrl":"https://example.com/","policy":{"jitterType":"NONE","initialDelayMs":2000,"maxAttempts":2}}"#;
    for plan in [Plan::Fail(ErrorType::ConnectionRefused), Plan::Answer(answer(503, "")), Plan::Answer(answer(404, ""))]
    {
        world.target.plan(plan);
    }
    let exhausted = world.submit(document).await;
    world.target.sends(1).await;
    world.until(&exhausted, |task| task["status"] == "PENDING").await;
    world.clock.advance(Duration::from_secs(2));
    world.ended(&exhausted).await;
    let failed = world.submit(r#"{"targetUrl":"https://example.com/"}"#).await;
    world.ended(&failed).await;
    let delivered = world.submit(r#"{"targetUrl":"https://example.com/","dependency":"say\"hi\"\\"}"#).await;
    world.ended(&delivered).await;

    let samples = world.scrape().await;
    let lane = r#"service="default",dependency="https://example.com""#;
    let odd = r#"service="default",dependency="say\"hi\"\\""#;
    let attempt = |lane, outcome, number| {
        let labels = format!(r#"{lane},policy="default",outcome="{outcome}",attempt_number="{number}""#);
        (format!("retry_attempts_total{{{labels}}}"), 1.0)
    };
    let expected = [
        attempt(lane, "permanent", 1),
        attempt(lane, "retryable", 1),
        attempt(lane, "retryable", 2),
        attempt(odd, "success", 1),
    ];
    let expected: Vec<(&str, f64)> = expected.iter().map(|(series, count)| (series.as_str(), *count)).collect();
    assert_eq!(samples.of("retry_attempts_total"), expected);
    assert_eq!(world.target.sent(), 4);
    assert_eq!(samples.get(&format!(r#"retry_exhausted_total{{{lane},reason="attempts"}}"#)), 1.0);
    assert_eq!(samples.get(r#"dlq_messages_total{service="default",queue="https://example.com"}"#), 2.0);
    assert_eq!(samples.get("redrive_dead_letter_alerts_total"), 2.0);
    assert_eq!(
        (samples.get("retry_backoff_duration_seconds_count"), samples.get("retry_backoff_duration_seconds_sum")),
        (1.0, 2.0)
    );
    assert_eq!(samples.get(r#"retry_task_age_seconds_count{status="EXHAUSTED"}"#), 1.0);
    assert_eq!(samples.get(r#"retry_task_age_seconds_sum{status="EXHAUSTED"}"#), 2.0);
    for (status, tasks) in [("SUCCEEDED", 1.0), ("FAILED", 1.0), ("EXHAUSTED", 1.0), ("CANCELLED", 0.0)] {
        assert_eq!(samples.get(&format!(r#"redrive_tasks_ended_total{{service="default",status="{status}"}}"#)), tasks);
    }
    assert_eq!(samples.get(r#"redrive_tasks_accepted_total{service="default"}"#), 3.0);
    assert_eq!(samples.get("redrive_due_to_wire_seconds_count"), 4.0);
    assert_eq!(samples.get(&format!("redrive_attempt_duration_seconds_count{{{lane}}}")), 3.0);
}

#[tokio::test]
async fn guards_queues_and_the_state_of_the_service_are_read() {
    let world = World::start().await;
    let id = world.submit(r#"{"targetUrl":"https://example.com/"}"#).await;
    world.ended(&id).await;
    let pause = world.post("/dependencies/https%3A%2F%2Fexample.com/pause", r#"{"reason":"test"}"#).await;
    assert_eq!(pause.status, 200, "{}", pause.text());
    for _ in 0..3 {
        world.submit(r#"{"targetUrl":"https://example.com/"}"#).await;
    }
    world.clock.advance(Duration::from_secs(7));
    let samples = world.scrape().await;
    let lane = r#"{service="default",dependency="https://example.com"}"#;
    for (metric, value) in [
        ("retry_budget_utilization_ratio", 0.0),
        ("redrive_breaker_state", 0.0),
        ("redrive_concurrency_limit", 20.0),
        ("redrive_dependency_attempts_in_flight", 0.0),
        ("redrive_dependency_paused", 1.0),
        ("redrive_queue_due_tasks", 3.0),
        ("redrive_queue_waiting_tasks", 0.0),
        ("redrive_queue_oldest_due_age_seconds", 7.0),
    ] {
        assert_eq!(samples.get(&format!("{metric}{lane}")), value, "{metric}");
    }
    assert_eq!(samples.of("redrive_held_back_tasks"), [(r#"redrive_held_back_tasks{reason="pause"}"#, 3.0)]);
    for (metric, value) in [
        ("redrive_store_up", 1.0),
        ("redrive_loops_up", 1.0),
        ("redrive_time_certain", 1.0),
        ("redrive_rows_set_aside", 0.0),
        ("redrive_attempts_in_flight", 0.0),
        ("redrive_api_connections", 1.0),
    ] {
        assert_eq!(samples.get(metric), value, "{metric}");
    }
    assert!(samples.get("process_resident_memory_bytes") > 0.0);
}

#[tokio::test]
async fn a_scraper_may_ask_for_openmetrics_by_any_address_and_no_page_may_read_metrics_under_its_own_name() {
    let world = World::start().await;
    for (host, status) in [("10.1.2.3:8620", 200), ("[fd00::1]", 200), ("localhost", 200), ("evil.test", 403)] {
        let answer = world.ask(Ask::get("/metrics").without("host").header("host", host)).await;
        assert_eq!(answer.status, status, "{host}");
    }
    let foreign = world.ask(Ask::get("/metrics").header("origin", "http://evil.test")).await;
    assert_eq!(foreign.status, 403);
    let plain = world.get("/metrics").await;
    assert_eq!(plain.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert!(plain.text().contains("\n# TYPE retry_attempts_total counter\n"), "{}", plain.text());
    let open =
        world.ask(Ask::get("/metrics").header("accept", "application/openmetrics-text;version=1.0.0,*/*;q=0.1")).await;
    assert_eq!(open.header("content-type"), Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    assert!(
        open.text().contains("\n# TYPE retry_attempts counter\n") && open.text().ends_with("# EOF\n"),
        "{}",
        open.text()
    );
}

#[tokio::test]
async fn a_store_that_is_out_costs_its_values_and_not_the_scrape() {
    let world = World::start().await;
    let id = world.submit(r#"{"targetUrl":"https://example.com/"}"#).await;
    world.ended(&id).await;
    world.engine.store().close().await;
    let samples = world.scrape().await;
    assert_eq!(samples.of("redrive_queue_due_tasks"), []);
    assert_eq!(samples.get(r#"redrive_tasks_ended_total{service="default",status="SUCCEEDED"}"#), 1.0);
}

#[tokio::test]
async fn a_dependency_that_was_never_called_has_its_gauges() {
    let world = World::start().await;
    world.post("/dependencies/quiet/pause", "{}").await;
    world.submit(r#"{"targetUrl":"https://example.com/","dependency":"new","delayMs":60000}"#).await;
    let samples = world.scrape().await;
    assert_eq!(samples.get(r#"redrive_dependency_paused{service="default",dependency="quiet"}"#), 1.0);
    assert_eq!(samples.get(r#"redrive_queue_waiting_tasks{service="default",dependency="new"}"#), 1.0);
    assert_eq!(samples.get(r#"dlq_messages_total{service="default",queue="new"}"#), 0.0);
}
