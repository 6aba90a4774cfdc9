//! Which callers the real service lets in.

use std::io::Write;
use std::net::TcpStream;

use super::world::{Program, Service, Target, redrive};

const DOCUMENT: &str = r#"{"targetUrl":"http://127.0.0.1:9/","delayMs":60000}"#;

/// The status that a submission with this head gets.
fn submit(service: &Service, head: &str) -> u16 {
    let mut stream = TcpStream::connect(service.authority()).unwrap();
    let length = DOCUMENT.len();
    let request = format!("POST /retry-tasks HTTP/1.1\r\n{head}connection: close\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(format!("{request}{DOCUMENT}").as_bytes()).unwrap();
    let answer = std::io::read_to_string(&mut stream).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_web_page_cannot_submit_tasks() {
    let service = Service::start();
    const JSON: &str = "content-type: application/json\r\n";
    for (head, status) in [
        (format!("host: evil.example\r\n{JSON}"), 403),
        (format!("host: localhost\r\norigin: https://evil.example\r\n{JSON}"), 403),
        ("host: localhost\r\norigin: https://evil.example\r\n".into(), 403),
        (format!("host: localhost\r\norigin: null\r\n{JSON}"), 403),
        ("host: localhost\r\n".into(), 415),
        ("host: localhost\r\ncontent-type: text/plain\r\n".into(), 415),
        (format!("host: localhost:1\r\n{JSON}"), 201),
        (format!("host: {}\r\norigin: {}\r\n{JSON}", service.authority(), service.url), 201),
    ] {
        assert_eq!(submit(&service, &head), status, "{head}");
    }
    assert_eq!(service.run(&["tasks", "list", "--json"]).with(0).json()["tasks"].as_array().unwrap().len(), 2);
}

#[test]
fn the_service_answers_to_the_names_that_it_was_given_and_to_its_machines() {
    let directory = tempfile::tempdir().unwrap();
    let flags = ["--host-names", "redrive", "--host-names", "*.internal,10.0.0.5"];
    let service = Service::start_in(directory.path(), &flags);
    let status =
        |service: &Service, host: &str| submit(service, &format!("host: {host}\r\ncontent-type: application/json\r\n"));
    for (host, expected) in [("redrive:8620", 201), ("a.internal", 201), ("10.0.0.5", 201), ("10.0.0.6", 403)] {
        assert_eq!(status(&service, host), expected, "{host}");
    }
    service.stop().with(0);

    let machine = redrive::host::name();
    let everywhere = Service::start_at("0.0.0.0:0", directory.path(), &[]);
    for (host, expected) in [(machine.as_str(), 201), ("203.0.113.7:1", 201), ("redrive", 403)] {
        assert_eq!(status(&everywhere, host), expected, "{host}");
    }
    everywhere.stop().with(0);

    for wrong in ["redrive:8620", "http://redrive", "", "a b"] {
        let command = redrive(directory.path(), &["serve", "--host-names", wrong]);
        Program::start(command).end().with(78).says(&["--host-names: host_names = [", "must be names without a port"]);
    }
}

#[test]
fn more_names_can_be_kept_out_of_sight() {
    let service = Service::start_with(&["--secret-names", "badge", "--secret-names", "desk,floor"]);
    let target = Target::answering(&[200]);
    let url = format!("{}?desk=7&page=2", target.url);
    let id = service.send(&[&url, "-H", "X-Badge: 5", "-H", "X-Floor-Plan: 3", "-H", "X-Room: 1"]);
    let task = service.task(&id);
    assert!(task["targetUrl"].as_str().unwrap().ends_with("?desk=***&page=2"), "{task}");
    for (name, shown) in [("X-Badge", "***"), ("X-Floor-Plan", "***"), ("X-Room", "1")] {
        assert_eq!(task["headers"][name], shown, "{task}");
    }
    let directory = tempfile::tempdir().unwrap();
    let wrong = Program::start(redrive(directory.path(), &["serve", "--secret-names", "a b"])).end().with(78);
    wrong.says(&["--secret-names: secret_names = [\"a b\"]: must be names, or parts of names"]);
}
