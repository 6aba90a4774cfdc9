//! `ops/`: what is given to Prometheus, tried with Prometheus.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::world::{PATIENCE, Reply, Service, Target, get, post};

const PROMETHEUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ops/prometheus");
const DASHBOARD: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ops/grafana/redrive.json"));

fn promtool(words: &[&str]) {
    let ended =
        Command::new("promtool").args(words).current_dir(PROMETHEUS).output().expect("promtool must be installed");
    let said = format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{said}");
}

#[test]
fn the_rules_for_prometheus_are_valid_and_fire_when_they_should() {
    promtool(&["check", "rules", "redrive.rules.yml"]);
    promtool(&["test", "rules", "redrive.test.yml"]);
}

/// A Prometheus that scrapes one service every second. Killed when it is dropped.
struct Prometheus {
    child: Child,
    authority: String,
}

impl Prometheus {
    fn scraping(service: &Service, directory: &Path) -> Prometheus {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let config = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [\"{PROMETHEUS}/redrive.rules.yml\"]\n\
             scrape_configs:\n  - job_name: redrive\n    static_configs: [{{ targets: [\"{}\"] }}]\n",
            service.authority()
        );
        std::fs::write(directory.join("prometheus.yml"), config).unwrap();
        let child = Command::new("prometheus")
            .arg("--config.file=prometheus.yml")
            .arg("--storage.tsdb.path=prometheus-data")
            .arg(format!("--web.listen-address={free}"))
            .current_dir(directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus must be installed");
        Prometheus { child, authority: free.to_string() }
    }

    /// The result of a query, once it has one.
    fn result(&self, query: &str) -> Value {
        let started = Instant::now();
        loop {
            if let Some(found) = self.query(query) {
                return found;
            }
            assert!(started.elapsed() < PATIENCE, "no result of {query}");
        }
    }

    fn query(&self, query: &str) -> Option<Value> {
        let document = get(&self.authority, &format!("/api/v1/query?query={}", encoded(query)))?;
        let result = document["data"]["result"].as_array()?.first()?.clone();
        Some(result)
    }

    /// Whether a chart of the last minutes shows something: a value that is a number.
    fn draws(&self, expression: &str) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let path = format!(
            "/api/v1/query_range?query={}&start={}&end={now}&step=1",
            encoded(expression),
            now - PATIENCE.as_secs() * 4
        );
        let Some(document) = get(&self.authority, &path) else { return false };
        let series = document["data"]["result"].as_array().into_iter().flatten();
        let values = series.flat_map(|series| series["values"].as_array().unwrap());
        values.into_iter().any(|value| value[1].as_str().unwrap().parse::<f64>().unwrap().is_finite())
    }
}

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn a_real_prometheus_scrapes_the_service_and_its_alert_fires() {
    let directory = tempfile::tempdir().unwrap();
    let service = Service::start();
    let target = Target::replying(|_| Reply { status: 404, body: String::new() });
    let prometheus = Prometheus::scraping(&service, directory.path());
    let up = prometheus.result(r#"up{job="redrive"}"#);
    assert_eq!(up["metric"]["job"], "redrive");
    service.run(&["send", &target.url, "--dependency", "billing", "--wait"]).with(3);
    let letters = prometheus.result(r#"dlq_messages_total{queue="billing"}"#);
    assert_eq!(letters["value"][1], "1");
    let alert = prometheus.result(r#"ALERTS{alertname="RedriveDeadLetter",alertstate="firing"}"#);
    assert_eq!((&alert["metric"]["queue"], &alert["metric"]["severity"]), (&"billing".into(), &"warning".into()));
}

/// What the panels of the dashboard draw, each with the title of its panel. Grafana's own variable is four scrapes and more.
fn drawn() -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let lines = panels.flat_map(|panel| {
        let title = panel["title"].as_str().unwrap();
        let targets = panel["targets"].as_array().unwrap().iter();
        targets.map(|target| (title.to_owned(), target["expr"].as_str().unwrap().replace("$__rate_interval", "15s")))
    });
    lines.collect()
}

#[test]
fn every_panel_of_the_dashboard_has_data_when_a_dependency_dies_and_returns() {
    let directory = tempfile::tempdir().unwrap();
    let service = Service::start_with(&["--breaker-open", "1s", "--breaker-longest-open", "1s"]);
    let answers = Arc::new(AtomicU16::new(503));
    let status = answers.clone();
    let healthy = Target::answering(&[200]);
    let dying = Target::replying(move |_| Reply { status: status.load(Ordering::Relaxed), body: String::new() });
    let prometheus = Prometheus::scraping(&service, directory.path());
    let task = |target: &Target, dependency: &str, attempts: u32| {
        let policy = json!({ "maxAttempts": attempts, "initialDelayMs": 1 });
        json!({ "targetUrl": target.url, "method": "GET", "dependency": dependency, "policy": policy })
    };
    let batch =
        [vec![task(&healthy, "mail", 3); 5], vec![task(&dying, "billing", 1); 3], vec![task(&dying, "billing", 3)]];
    let batch = json!({ "tasks": batch.concat() }).to_string();
    let send = || assert_eq!(post(service.authority(), "/retry-tasks/batch", &batch).0, 200);
    let mut waiting = drawn();
    assert!(waiting.len() > 14, "{waiting:?}");
    let started = Instant::now();
    while !waiting.is_empty() {
        assert!(started.elapsed() < PATIENCE * 2, "no data: {waiting:#?}");
        send();
        waiting.retain(|(_, expression)| !prometheus.draws(expression));
    }
    answers.store(200, Ordering::Relaxed);
    prometheus.result(r#"redrive_breaker_state{dependency="billing"} == 0"#);
    assert!(!prometheus.draws("redrive_breaker_state > 9"), "a line that is never there is told apart");
}
