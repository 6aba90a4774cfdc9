//! `redrive target`.

use std::net::TcpListener;
use std::path::Path;

use super::world::{Program, Service, redrive};

/// A target on a free port, and its URL.
fn start(flags: &[&str]) -> (Program, String) {
    let words = [&["target", "--listen", "127.0.0.1:0"], flags].concat();
    let mut program = Program::start(redrive(Path::new("."), &words));
    let line = program.stdout.wait_for("listens on http://");
    let url = line.split(' ').find(|word| word.starts_with("http://")).unwrap().to_owned();
    (program, url)
}

fn run(words: &[&str]) -> super::world::Ended {
    Program::start(redrive(Path::new("."), words)).end()
}

#[test]
fn a_task_is_delivered_after_the_failures_and_what_arrives_is_printed() {
    let (service, (mut target, url)) = (Service::start(), start(&["--fail", "2", "--bodies"]));
    let url = format!("{url}/hook?token=secret-1");
    let words = ["send", &url, "-d", "hello", "--key", "order-7", "-H", "Authorization: Bearer secret-2"];
    let sent = service.run(&[&words[..], &["--set", "initialDelayMs=1", "--wait"]].concat()).with(0);
    sent.says(&["attempt 1/6: 503 Service Unavailable", "attempt 2/6: 503", "attempt 3/6: 200 OK"]);
    for (number, status) in [(1, "503 Service Unavailable"), (2, "503 Service Unavailable"), (3, "200 OK")] {
        let line = target.stdout.wait_for(&format!("#{number} "));
        assert_eq!(line, format!("#{number} POST /hook?…, key order-7, attempt {number}, 5 bytes: {status}"));
        let headers = target.stdout.wait_for("headers: ");
        assert!(headers.contains("authorization") && headers.contains("redrive-task-id"), "{headers}");
        assert_eq!(target.stdout.wait_for("body: "), "   body: hello");
    }
    target.signal("INT");
    let ended = target.end().with(0);
    assert!(!ended.stdout.contains("secret"), "{ended:?}");
}

#[test]
fn a_failure_can_have_another_status_and_a_retry_after() {
    let (service, (_target, url)) =
        (Service::start(), start(&["--fail", "1", "--status", "429", "--retry-after", "1"]));
    let sent = service.run(&["send", &url, "--set", "initialDelayMs=1", "--wait"]).with(0);
    sent.says(&["attempt 1/6: 429 Too Many Requests", "; next in 1s", "attempt 2/6: 200 OK"]);
    service.run(&["send", &format!("{url}/status/404"), "--wait"]).with(3).says(&["404 Not Found", "FAILED"]);
}

#[test]
fn an_answer_can_be_slow() {
    let (service, (_target, url)) = (Service::start(), start(&["--delay", "1h"]));
    let flags = ["--set", "attemptTimeoutMs=100", "--set", "maxAttempts=1", "--wait"];
    service.run(&[&["send", &url], &flags[..]].concat()).with(3).says(&["attempt 1/1: read-timeout after "]);
}

#[test]
fn a_port_that_is_taken_is_said() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    run(&["target", "--listen", &address])
        .with(1)
        .says(&[&format!("error: cannot listen on {address}: the port is in use; choose another with --listen")]);
}

#[test]
fn it_listens_on_loopback_unless_it_is_told_otherwise() {
    run(&["target", "--listen", "0.0.0.0:0"])
        .with(2)
        .says(&["can be reached from other machines", "use 127.0.0.1, or add --allow-remote"]);
    let mut allowed = Program::start(redrive(Path::new("."), &["target", "--listen", "0.0.0.0:0", "--allow-remote"]));
    allowed.stdout.wait_for("listens on http://0.0.0.0:");
    allowed.signal("TERM");
    allowed.end().with(0);
}

#[test]
fn what_cannot_be_is_refused() {
    for (words, expected) in [
        (&["--listen", "9000"][..], "no address such as 127.0.0.1:9000"),
        (&["--retry-after", "5"], "--retry-after is sent with failures; add --fail N or --status CODE"),
        (&["--fail", "1", "--status", "200"], "--status 200 is no failure"),
        (&["--status", "99"], "200..=599"),
        (&["--delay", "soon"], "must be a duration"),
    ] {
        run(&[&["target"], words].concat()).with(2).says(&[expected]);
    }
}
