//! A real Alertmanager is told of alerts: what its own API and its own notifications say of them.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::metrics::{scrape, sum};
use super::world::{PATIENCE, Reply, Service, Target, get, post};

/// The shortest `alerts.repeat` that can be set, and as much time as anything else may take.
const A_REPEAT: Duration = PATIENCE.saturating_add(Duration::from_secs(60));

/// Rules and times without their waits.
const TIMES: &str = r#"
[guards]
breaker_open = "1s"
breaker_longest_open = "1s"
[alerts]
wait = "0s"
interval = "0s"
repeat = "1m"
[alerts.rules.breaker-open]
keep = "0s"
"#;

/// A free port of the loopback interface.
fn free() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// An Alertmanager without peers, on the loopback interface only. Killed when it is dropped.
struct Alertmanager {
    child: Child,
    authority: String,
}

impl Alertmanager {
    /// One that knows nothing yet and tells `receiver` of alerts.
    fn start(authority: &str, receiver: &Target) -> Alertmanager {
        let directory = tempfile::tempdir().unwrap();
        let config = format!(
            "route: {{ receiver: test, group_by: [alertname], group_wait: 0s, group_interval: 1s, repeat_interval: 1h }}\n\
             receivers:\n  - name: test\n    webhook_configs: [{{ url: \"{}/told\", send_resolved: true }}]\n",
            receiver.url
        );
        std::fs::write(directory.path().join("alertmanager.yml"), config).unwrap();
        let child = Command::new("prometheus-alertmanager")
            .args(["--config.file=alertmanager.yml", "--storage.path=data", "--cluster.listen-address="])
            .arg(format!("--web.listen-address={authority}"))
            .current_dir(directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus-alertmanager must be installed");
        let started = Alertmanager { child, authority: authority.to_owned() };
        // It reads the configuration before it answers, and writes its state only every 15 minutes.
        until("the start of Alertmanager", || get(authority, "/api/v2/status").is_some());
        started
    }

    /// The alerts that fire.
    fn alerts(&self) -> Vec<Value> {
        let alerts = get(&self.authority, "/api/v2/alerts").expect("Alertmanager must answer");
        alerts.as_array().unwrap().clone()
    }

    /// The dependencies of alerts in this state.
    fn dependencies(&self, state: &str) -> BTreeSet<String> {
        let alerts = self.alerts().into_iter().filter(|alert| alert["status"]["state"] == state);
        alerts.map(|alert| text(&alert["labels"]["dependency"])).collect()
    }

    fn silence_everything_of_redrive(&self) {
        let silence = json!({
            "matchers": [{ "name": "alertname", "value": "Redrive.*", "isRegex": true, "isEqual": true }],
            "startsAt": "2020-01-01T00:00:00Z", "endsAt": "2120-01-01T00:00:00Z",
            "createdBy": "test", "comment": "a silence of Alertmanager's own",
        });
        let (status, answer) = post(&self.authority, "/api/v2/silences", &silence.to_string());
        assert_eq!(status, 200, "{answer}");
    }
}

impl Drop for Alertmanager {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Asks until `is_so`.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{what} did not happen");
    }
}

/// A service that tells the Alertmanager at `authority` of these rules.
fn service(directory: &Path, authority: &str, rules: &str) -> Service {
    let sink = format!("[alerts.sinks.prod]\nkind = \"alertmanager\"\nurl = \"http://{authority}\"\nrules = {rules}\n");
    std::fs::write(directory.join("redrive.toml"), format!("{TIMES}{sink}")).unwrap();
    Service::start_in(directory, &["--config", "redrive.toml"])
}

fn pause(service: &Service, dependency: &str) {
    let (status, answer) = post(service.authority(), &format!("/dependencies/{dependency}/pause"), "{}");
    assert_eq!(status, 200, "{answer}");
}

fn resume(service: &Service, dependency: &str) {
    let (status, answer) = post(service.authority(), &format!("/dependencies/{dependency}/resume"), "{}");
    assert_eq!(status, 200, "{answer}");
}

/// The alerts of the rule that fire, as the service itself lists them.
fn listed(service: &Service, rule: &str) -> Vec<Value> {
    let list = service.run(&["alerts", "list", "--json"]).with(0).json();
    list["firing"].as_array().unwrap().iter().filter(|alert| alert["rule"] == rule).cloned().collect()
}

/// The dependencies that Alertmanager's own notifications so far say are over.
fn add_resolved(receiver: &Target, resolved: &mut BTreeSet<String>) {
    for arrival in receiver.arrived() {
        let document: Value = serde_json::from_slice(&arrival.body).unwrap();
        let over = document["alerts"].as_array().unwrap().iter().filter(|alert| alert["status"] == "resolved");
        resolved.extend(over.map(|alert| text(&alert["labels"]["dependency"])));
    }
}

#[test]
fn alertmanager_shows_a_dead_dependency_until_it_is_back() {
    let (directory, receiver) = (tempfile::tempdir().unwrap(), Target::answering(&[200]));
    let alertmanager = Alertmanager::start(&free(), &receiver);
    let service = service(directory.path(), &alertmanager.authority, r#"["breaker-open"]"#);
    let answers = Arc::new(AtomicU16::new(503));
    let status = answers.clone();
    let target = Target::replying(move |_| Reply { status: status.load(Ordering::Relaxed), body: String::new() });
    let task =
        json!({ "targetUrl": target.url, "method": "GET", "dependency": "billing", "policy": { "maxAttempts": 1 } });
    let send = |count| {
        let batch = json!({ "tasks": vec![task.clone(); count] }).to_string();
        assert_eq!(post(service.authority(), "/retry-tasks/batch", &batch).0, 200);
    };
    send(10);
    until("the alert in Alertmanager", || !alertmanager.alerts().is_empty());
    let alert = alertmanager.alerts().remove(0);
    let labels = json!({ "alertname": "RedriveBreakerOpen", "severity": "critical", "service": "default",
        "dependency": "billing" });
    assert_eq!((&alert["labels"], &alert["status"]["state"]), (&labels, &json!("active")));
    let (summary, why) = (text(&alert["annotations"]["summary"]), text(&alert["annotations"]["description"]));
    assert_eq!(summary, format!("billing: {why}"));
    // It is open or probing, as the second after which it probes has passed or not.
    assert!(why.starts_with("the circuit breaker "), "{why}");
    let groups = get(&alertmanager.authority, "/api/v2/alerts/groups").unwrap();
    let group = &groups.as_array().unwrap()[0];
    assert_eq!(
        (&group["labels"], &group["alerts"][0]["fingerprint"]),
        (&json!({ "alertname": "RedriveBreakerOpen" }), &alert["fingerprint"])
    );

    answers.store(200, Ordering::Relaxed);
    send(20);
    let mut resolved = BTreeSet::new();
    until("the end of the alert in Alertmanager", || {
        add_resolved(&receiver, &mut resolved);
        alertmanager.alerts().is_empty() && resolved.contains("billing")
    });
    assert_eq!(listed(&service, "breaker-open"), Vec::<Value>::new());
    service.stop();
}

#[test]
fn alertmanager_is_told_of_more_alerts_than_one_document_lists() {
    let (directory, receiver) = (tempfile::tempdir().unwrap(), Target::answering(&[200]));
    let alertmanager = Alertmanager::start(&free(), &receiver);
    let service = service(directory.path(), &alertmanager.authority, r#"["dependency-paused"]"#);
    let names: BTreeSet<String> = (0..250).map(|number| format!("partner-{number}")).collect();
    names.iter().for_each(|name| pause(&service, name));
    until("all alerts in Alertmanager", || alertmanager.dependencies("active") == names);
    names.iter().for_each(|name| resume(&service, name));
    let mut resolved = BTreeSet::new();
    until("the end of all alerts in Alertmanager", || {
        add_resolved(&receiver, &mut resolved);
        alertmanager.alerts().is_empty() && resolved == names
    });
    service.stop();
}

#[test]
fn a_silence_and_a_restart_of_alertmanager_lose_nothing() {
    let (directory, receiver) = (tempfile::tempdir().unwrap(), Target::answering(&[200]));
    let authority = free();
    let alertmanager = Alertmanager::start(&authority, &receiver);
    alertmanager.silence_everything_of_redrive();
    let service = service(directory.path(), &authority, r#"["dependency-paused"]"#);
    let both = BTreeSet::from(["billing".to_owned(), "mail".to_owned()]);
    both.iter().for_each(|name| pause(&service, name));
    until("the alerts in Alertmanager", || alertmanager.dependencies("suppressed") == both);
    resume(&service, "mail");
    let billing = BTreeSet::from(["billing".to_owned()]);
    until("the end of one of them", || alertmanager.dependencies("suppressed") == billing);
    assert_eq!(listed(&service, "dependency-paused").len(), 1, "the silence is Alertmanager's own");
    assert_eq!(listed(&service, "sink-failing").len(), 0);
    let told = alertmanager.alerts().remove(0);

    drop(alertmanager);
    let alertmanager = Alertmanager::start(&authority, &receiver);
    assert_eq!(alertmanager.alerts(), Vec::<Value>::new(), "it has lost what it knew");
    // Its first notification is about what the repeat told it.
    receiver.arrival_within(A_REPEAT);
    assert_eq!(alertmanager.dependencies("active"), billing);
    let again = alertmanager.alerts().remove(0);
    assert_eq!((&again["fingerprint"], &again["startsAt"]), (&told["fingerprint"], &told["startsAt"]));
    service.stop();
}

#[test]
fn an_alertmanager_that_was_down_is_told_when_it_is_up() {
    let (directory, receiver) = (tempfile::tempdir().unwrap(), Target::answering(&[200]));
    let authority = free();
    let service = service(directory.path(), &authority, r#"["dependency-paused"]"#);
    pause(&service, "billing");
    let attempts = || sum(&scrape(&service, "text/plain"), "retry_attempts_total", "service=\"redrive\"");
    until("a notification that did not arrive", || attempts() > 0.0);
    let alertmanager = Alertmanager::start(&authority, &receiver);
    let billing = BTreeSet::from(["billing".to_owned()]);
    until("the alert in Alertmanager", || alertmanager.dependencies("active") == billing);
    service.stop();
}
