//! Tables as wide as the terminal, and ids by their first characters.

use serde_json::json;

use super::world::{Ended, Program, Reply, Service, Target, redrive, redrive_on_terminal};

/// A service with a task of every kind, a paused dependency and what else the tables show.
fn busy_service() -> (Service, [Target; 2]) {
    let (service, good, bad) = (Service::start(), Target::answering(&[200]), Target::answering(&[404]));
    service.send(&[&good.url, "--wait", "--label", "team=payments", "-H", &format!("X-Long: {}", "word ".repeat(30))]);
    service.run(&["send", &bad.url, "--wait", "--dependency", "invoices-of-the-billing-department"]).with(3);
    let refused = ["send", "http://127.0.0.1:1/hook?order=7", "--set", "maxAttempts=2", "--set", "initialDelayMs=1"];
    service.run(&[&refused[..], &["--wait"]].concat()).with(3);
    service.send(&[&good.url, "--delay", "1h"]);
    let pause = ["dependencies", "pause", "http://127.0.0.1:1", "--reason", "it is being moved to another data centre"];
    service.run(&pause).with(0);
    service.run(&["alerts", "silence", "--rule", "dead-letter", "--for", "1h", "--reason", "we know of it"]).with(0);
    (service, [good, bad])
}

/// Runs a command for people, as if the terminal had 80 columns.
fn at_80_columns(service: &Service, words: &[&str]) -> Ended {
    let mut command = redrive(service.directory(), words);
    command.env("REDRIVE_SERVER", &service.url).env("COLUMNS", "80");
    Program::start(command).end()
}

#[test]
fn every_table_fits_into_80_columns() {
    let (service, _targets) = busy_service();
    let task =
        service.run(&["tasks", "list", "--json"]).with(0).json()["tasks"][1]["taskId"].as_str().unwrap().to_owned();
    let record = "/idempotency-records/create-payment/order-7/reserve";
    service.post(record, r#"{"request": {"method": "POST", "path": "/v1/payments", "bodyText": "{}"}}"#);
    for words in [
        &["tasks", "list"][..],
        &["tasks", "show", &task],
        &["tasks", "attempts", &task],
        &["dependencies", "list"],
        &["dependencies", "show", "http://127.0.0.1:1"],
        &["dependencies", "watch", "--once"],
        &["policies", "list"],
        &["policies", "show", "webhook"],
        &["idempotency", "list"],
        &["idempotency", "stats"],
        &["inbox", "stats"],
        &["alerts", "list", "--past"],
        &["report"],
        &["doctor"],
        &["simulate", "--clients", "200"],
        &["simulate", "--scenario", "occ", "--runs", "2"],
    ] {
        let ended = at_80_columns(&service, words);
        assert!([Some(0), Some(1)].contains(&ended.code) && !ended.stdout.is_empty(), "{ended:?}");
        for line in ended.stdout.lines() {
            assert!(line.chars().count() <= 80, "{words:?}: {line:?} in\n{}", ended.stdout);
        }
    }
}

#[test]
fn the_width_of_a_terminal_is_known_and_a_pipe_has_none() {
    let (service, _targets) = busy_service();
    let widest = |text: &str| text.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or(0);
    let piped = service.run(&["tasks", "list"]).with(0).stdout;
    assert!(widest(&piped) > 160, "{piped}");
    for columns in [80, 100] {
        let mut script = redrive_on_terminal(service.directory(), columns, "tasks list");
        script.env("REDRIVE_SERVER", &service.url);
        let columns = columns as usize;
        let shown = Program::start(script).end().with(0).stdout.replace("\u{1b}[2K", "").replace('\r', "");
        assert!(shown.contains("EXHAUSTED") && widest(&shown) <= columns, "{shown}");
        assert!(widest(&shown) > columns - 20, "{shown}");
    }
}

#[test]
fn a_dead_letter_is_listed_with_its_request_and_what_went_wrong() {
    let (service, [_, bad]) = busy_service();
    let listed = service.run(&["tasks", "list", "--status", "FAILED,EXHAUSTED"]).with(0).stdout;
    let lines: Vec<&str> = listed.lines().collect();
    let refused = "POST http://127.0.0.1:1/hook?order=7";
    assert!(lines[1].contains(refused) && lines[1].contains("attempts; connection-refused: could not"), "{listed}");
    let (request, why) = (format!("POST {}", bad.url), "not-retryable; http-status: the dependency answered 404");
    assert!(lines[2].contains(&format!("{request} (invoices-of-the-billing-department)  {why}")), "{listed}");
    let narrow = at_80_columns(&service, &["tasks", "list", "--status", "FAILED"]).stdout;
    let lines: Vec<&str> = narrow.lines().map(str::trim).collect();
    assert!(lines.contains(&why) && lines.iter().any(|line| line.starts_with(&request)), "{narrow}");
}

#[test]
fn what_a_server_says_in_an_error_does_not_reach_the_terminal_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let server = Target::replying(|_| {
        let task =
            |id: &str| json!({"taskId": id, "status": "\u{1b}[31mRED", "targetUrl": "http://a/\u{1b}]0;owned\u{7}"});
        Reply { status: 200, body: json!({"tasks": [task("01a"), task("01b")], "nextCursor": null}).to_string() }
    });
    let mut command = redrive(directory.path(), &["tasks", "show", "01"]);
    command.env("REDRIVE_SERVER", &server.url);
    let ended = Program::start(command).end().with(1);
    assert!(ended.stderr.contains("\u{fffd}[31mRED"), "{}", ended.stderr);
    assert!(!ended.stderr.chars().any(|c| c.is_control() && c != '\n'), "{:?}", ended.stderr);
}

#[test]
fn an_id_can_be_given_by_its_first_characters() {
    let (service, target) = (Service::start(), Target::answering(&[200]));
    let first = service.send(&[&target.url, "--delay", "1h"]);
    let beginning = |id: &str| id[..23].to_owned();
    let unique = beginning(&first);
    for words in [&["tasks", "show", &unique][..], &["tasks", "attempts", &unique], &["events", "--task", &unique]] {
        service.run(words).with(0);
    }
    service.run(&["tasks", "retry-now", &unique]).with(0).says(&[&first]);
    service.run(&["tasks", "watch", &unique]).with(0).says(&["SUCCEEDED"]);
    let second = service.send(&[&target.url, "--delay", "1h"]);
    let both = &first[..4];
    let many = service.run(&["tasks", "cancel", both]).with(1);
    many.says(&["several tasks have an id that begins with", &first, &format!("{second} PENDING POST {}", target.url)]);
    assert_eq!(service.task(&second)["status"], "PENDING");
    service.run(&["tasks", "cancel", &beginning(&second)]).with(0).says(&["CANCELLED"]);
    service.run(&["tasks", "show", "ffffffff"]).with(5).says(&["no task with an id that begins with ffffffff"]);
    service.run(&["tasks", "show", "order-7"]).with(5).says(&["No such task"]);

    let silence = service.run(&["alerts", "silence", "--rule", "dead-letter", "--for", "1h", "--json"]).with(0).json();
    let id = silence["silenceId"].as_str().unwrap();
    service.run(&["alerts", "end-silence", ""]).with(2).says(&["a value is required"]);
    service.run(&["tasks", "cancel", ""]).with(2).says(&["a value is required"]);
    service.run(&["alerts", "end-silence", "zz"]).with(5).says(&["no silence with an id that begins with zz"]);
    service
        .run(&["alerts", "end-silence", &id[..8].to_uppercase()])
        .with(0)
        .says(&[&format!("silence {id} has ended")]);
}
