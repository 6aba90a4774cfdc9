//! `/health-report`: the figures of deliveries, and what they mean.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{Plan, World, answer};

const ONE_ATTEMPT: &str =
    r#"{"targetUrl":"https://example.com/","dependency":"DEPENDENCY","policy":{"maxAttempts":1}}"#;

impl World {
    /// Submits so many tasks to a dependency, each of which gets this answer, and waits until they have ended.
    async fn end(&self, dependency: &str, status: u16, tasks: usize) {
        for _ in 0..tasks {
            self.target.plan(Plan::Answer(answer(status, "")));
            let task = self.submit(&ONE_ATTEMPT.replace("DEPENDENCY", dependency)).await;
            self.ended(&task).await;
        }
    }

    async fn report(&self, query: &str) -> Value {
        let answer = self.get(&format!("/health-report{query}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }
}

/// A figure's health and reason.
fn figure(figures: &Value, name: &str) -> (String, String) {
    let figure = figures.as_array().unwrap().iter().find(|figure| figure["figure"] == name).unwrap();
    let text = |field: &str| figure[field].as_str().unwrap().to_owned();
    (text("health"), text("why"))
}

#[tokio::test]
async fn a_dead_dependency_turns_the_report_red_and_an_hour_later_it_is_silent() {
    let world = World::start().await;
    let report = world.report("").await;
    assert_eq!((&report["health"], &report["dependencies"]), (&json!("silent"), &json!([])));

    world.end("billing", 200, 19).await;
    assert_eq!(world.report("").await["health"], "silent", "19 tasks are too few");
    world.end("billing", 200, 1).await;
    assert_eq!(world.report("").await["health"], "green");

    world.end("dead", 404, 20).await;
    let report = world.report("").await;
    assert_eq!((&report["health"], &report["dependencyCount"]), (&json!("red"), &json!(2)));
    assert_eq!(
        figure(&report["figures"], "deadLetterRate"),
        ("red".into(), "50 % of 40 tasks became dead letters; the alert is above 1 %".into())
    );
    let named: Vec<_> = report["dependencies"].as_array().unwrap().iter().map(|one| &one["dependency"]).collect();
    assert_eq!(named, ["dead", "billing"], "the worst first");
    let of_dead = &report["dependencies"][0]["figures"];
    assert_eq!(figure(of_dead, "retryRate"), ("green".into(), "0 % of 20 tasks were retried".into()));
    assert_eq!(
        figure(of_dead, "attemptsToSuccess"),
        ("silent".into(), "0 tasks are too few to say: at least 20 are needed".into())
    );
    let first = world.report("?limit=1").await;
    assert_eq!((first["dependencies"].as_array().unwrap().len(), &first["dependencyCount"]), (1, &json!(2)));

    world.clock.advance(Duration::from_secs(3_600));
    let report = world.report("").await;
    assert_eq!((&report["health"], &report["dependencies"]), (&json!("silent"), &json!([])));
}

#[tokio::test]
async fn a_task_that_is_retried_for_a_day_is_late_from_its_first_run_on() {
    let world = World::start().await;
    let document = r#"{"targetUrl":"https://example.com/","dependency":"slow","policy":{"jitterType":"NONE","backoff":"fixed",
        "initialDelayMs":90000000,"maxDelayMs":90000000,"maxAttempts":3,"totalBudgetMs":400000000}}"#;
    for _ in 0..10 {
        world.target.plan(Plan::Answer(answer(503, "")));
        let task = world.submit(document).await;
        world.until(&task, |task| task["status"] == "PENDING" && task["attemptNumber"] == 1).await;
    }
    let late = |report: &Value| figure(&report["figures"], "longInRetry");
    assert_eq!(late(&world.report("").await).1, "0 tasks have been retried for more than 24 hours");
    world.clock.advance(Duration::from_secs(24 * 3_600 + 1));
    let report = world.report("").await;
    let expected = "10 tasks have been retried for more than 24 hours; usual is below 10";
    assert_eq!(late(&report), ("yellow".into(), expected.into()));
    assert_eq!((&report["health"], &report["dependencies"][0]["dependency"]), (&json!("yellow"), &json!("slow")));
}
