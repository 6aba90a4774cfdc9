//! `ops/`: what is given to Prometheus, tried with Prometheus.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use super::world::{PATIENCE, Reply, Service, Target};

const PROMETHEUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ops/prometheus");

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
        let mut stream = TcpStream::connect(&self.authority).ok()?;
        let form =
            format!("query={}", query.replace('{', "%7B").replace('}', "%7D").replace('"', "%22").replace('=', "%3D"));
        write!(
            stream,
            "POST /api/v1/query HTTP/1.0\r\nhost: x\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
            form.len()
        )
        .ok()?;
        let answer = std::io::read_to_string(&mut stream).ok()?;
        let document: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
        let result = document["data"]["result"].as_array()?.first()?.clone();
        Some(result)
    }
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
