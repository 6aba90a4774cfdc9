//! `/metrics` of the real service, read by Prometheus' own tool.

use std::io::Write;
use std::net::TcpStream;
use std::process::{Command, Stdio};

use super::world::{Reply, Service, Target};

/// The body of an answer to `GET /metrics`.
pub(crate) fn scrape(service: &Service, accept: &str) -> String {
    let mut stream = TcpStream::connect(service.authority()).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: {accept}\r\n\r\n")
        .unwrap();
    let answer = std::io::read_to_string(&mut stream).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no series {series} in\n{text}")).parse().unwrap()
}

/// The sum of all series of a metric whose labels contain `label`.
pub(crate) fn sum(text: &str, metric: &str, label: &str) -> f64 {
    let of_metric = text.lines().filter(|line| line.starts_with(&format!("{metric}{{")) && line.contains(label));
    of_metric.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
}

#[test]
fn the_numbers_are_those_of_the_target_and_promtool_finds_nothing() {
    let service = Service::start();
    let target = Target::replying(|arrival| {
        let (_, status) = arrival.path.rsplit_once('/').unwrap();
        Reply { status: status.parse().unwrap(), body: String::new() }
    });
    for (status, attempts, code) in [(200, 1, 0), (503, 3, 3), (404, 1, 3)] {
        let url = format!("{}/{status}", target.url);
        let words =
            ["send", &url, "--dependency", "billing", "--set", "maxAttempts=3", "--set", "initialDelayMs=1", "--wait"];
        service.run(&words).with(code);
        let arrived = target.arrived().iter().filter(|arrival| arrival.path == format!("/{status}")).count();
        assert_eq!(arrived, attempts);
    }
    let text = scrape(&service, "text/plain");
    for (outcome, attempts) in [("success", 1.0), ("retryable", 3.0), ("permanent", 1.0)] {
        assert_eq!(sum(&text, "retry_attempts_total", &format!("outcome=\"{outcome}\"")), attempts, "{outcome}");
    }
    assert_eq!(value(&text, r#"dlq_messages_total{service="default",queue="billing"}"#), 2.0);
    assert_eq!(value(&text, r#"retry_exhausted_total{service="default",dependency="billing",reason="attempts"}"#), 1.0);
    assert!(value(&text, "redrive_store_commit_duration_seconds_count") > 0.0);

    let mut promtool = Command::new("promtool");
    promtool
        .args(["check", "metrics", "--extended"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut promtool = promtool.spawn().expect("promtool must be installed");
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let ended = promtool.wait_with_output().unwrap();
    assert!(ended.status.success() && ended.stderr.is_empty(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn metrics_that_are_off_count_nothing_and_what_is_read_is_still_there() {
    let (service, target) = (Service::start_with(&["--metrics", "off"]), Target::answering(&[200]));
    service.send(&[&target.url, "--wait"]);
    let text = scrape(&service, "text/plain");
    assert_eq!(sum(&text, "retry_attempts_total", ""), 0.0);
    assert_eq!(value(&text, "redrive_store_up"), 1.0);
    assert!(scrape(&service, "application/openmetrics-text").ends_with("# EOF\n"));
}
