//! `redrive send`.

use std::fs;

use serde_json::json;

use super::world::{Program, Service, Target, redrive};

#[test]
fn a_delivery_is_shown_attempt_by_attempt_and_ends_with_0() {
    let (service, target) = (Service::start(), Target::answering(&[503, 503, 200]));
    let ended = service.run(&["send", &target.url, "-d", "hello", "--set", "initialDelayMs=500", "--wait"]).with(0);
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with("accepted "), "{lines:?}");
    assert!(lines[2].starts_with("  key ") && lines[2].ends_with(", policy default v1"), "{lines:?}");
    let plan = "  6 attempts over about 7.7s, at most 15s, if each fails at once; all within 1d";
    assert_eq!(lines[3], plan, "{lines:?}");
    assert!(lines[4].starts_with("attempt 1/6: 503 Service Unavailable after "), "{lines:?}");
    assert!(lines[4].contains("; next in "), "{lines:?}");
    assert!(lines[5].starts_with("attempt 2/6: 503 "), "{lines:?}");
    assert!(lines[6].starts_with("attempt 3/6: 200 OK after "), "{lines:?}");
    assert!(lines[7].starts_with("SUCCEEDED after 3 attempts in "), "{lines:?}");
    assert_eq!(lines.len(), 8, "{lines:?}");
    let id = lines[0].split(' ').nth(1).unwrap();
    let shown = service.run(&["tasks", "show", id]).with(0);
    shown.says(&["plan        6 attempts over about 7.7s, at most 15s, if each fails at once; all within 1d"]);
}

#[test]
fn a_task_that_is_not_delivered_ends_with_3() {
    let service = Service::start();
    let refusing = Target::answering(&[400]);
    service.run(&["send", &refusing.url, "--wait"]).with(3).says(&[
        "400 Bad Request",
        "; not to be retried",
        "FAILED (not-retryable) after 1 attempt in ",
    ]);
    let failing = Target::answering(&[500]);
    let flags = ["--set", "maxAttempts=2", "--set", "initialDelayMs=1", "--wait"];
    service
        .run(&[&["send", &failing.url], &flags[..]].concat())
        .with(3)
        .says(&["attempt 2/2: 500", "EXHAUSTED (attempts) after 2 attempts"]);
    service
        .run(&[&["send", "http://127.0.0.1:1/"], &flags[..]].concat())
        .with(3)
        .says(&["attempt 1/2: connection-refused after "]);
}

#[test]
fn a_wait_that_runs_out_ends_with_4_and_says_how_to_go_on() {
    let (service, target) = (Service::start(), Target::answering(&[200]));
    let ended = service.run(&["send", &target.url, "--delay", "1h", "--wait=50ms"]).with(4);
    ended.says(&["not ended after 50ms; the task goes on: ", " tasks watch "]);
    assert_eq!(target.unseen(), 0);
}

#[test]
fn without_waiting_it_says_how_to_watch() {
    let (service, target) = (Service::start(), Target::answering(&[200]));
    let ended = service.run(&["send", &target.url]).with(0);
    let hint = ended.stdout.lines().find_map(|line| line.strip_prefix("watch it: ")).unwrap().to_owned();
    let words: Vec<_> = hint.split(' ').skip(1).collect();
    let elsewhere = tempfile::tempdir().unwrap();
    Program::start(redrive(elsewhere.path(), &words)).end().with(0).says(&["SUCCEEDED after 1 attempt"]);
}

#[test]
fn what_is_sent_is_what_was_said() {
    let (service, target) = (Service::start(), Target::answering(&[200]));
    let url = format!("{}/a/b?c=d", target.url);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bytes");
    fs::write(&file, [0xff, 0, 0xfe]).unwrap();
    let at_file = format!("@{}", file.display());
    for (words, input, body) in [
        (&["-d", "hello"][..], "", &b"hello"[..]),
        (&["-d", "-"], "from standard input", b"from standard input"),
        (&["-d", &at_file], "", &[0xff, 0, 0xfe]),
        (&["--data", ""], "", b""),
        (&["--json-body", "{\"b\" : 1.0,  \"a\":2}"], "", b"{\"b\" : 1.0,  \"a\":2}"),
        (&["--json-body", "-"], "[1, 2]", b"[1, 2]"),
    ] {
        let words = [&["send", &url, "-X", "PATCH", "--wait", "-H", "X-One: 1", "-H", "X-One: 2"], words].concat();
        service.run_with_input(&words, input.as_bytes()).with(0);
        let arrival = target.arrival();
        assert_eq!((arrival.method.as_str(), arrival.path.as_str()), ("PATCH", "/a/b?c=d"));
        assert_eq!(arrival.body, body, "{words:?}");
        assert_eq!(arrival.headers["x-one"], ["1", "2"]);
    }
}

#[test]
fn key_policy_dependency_and_labels_reach_the_task() {
    let (service, target) = (Service::start(), Target::answering(&[200]));
    let words = ["--key", "order-7", "--dependency", "billing", "--label", "team=pay", "--set", "jitterType=NONE"];
    let words = [&["send", &target.url, "--json", "--wait"], &words[..]].concat();
    let task = service.run(&words).with(0).json();
    assert_eq!(task["status"], "SUCCEEDED");
    assert_eq!((&task["idempotencyKey"], &task["dependency"]), (&json!("order-7"), &json!("billing")));
    assert_eq!(task["labels"], json!({"team": "pay"}));
    assert_eq!(task["policy"], json!({"jitterType": "NONE"}));
    assert_eq!(target.arrival().header("idempotency-key"), Some("order-7"));

    let another = service.send(&[&target.url]);
    assert_ne!(Some(another.as_str()), task["taskId"].as_str(), "without a key it is another task");
    let same = [&["send", &target.url, "--wait"], &words[4..]].concat();
    service.run(&same).with(0).says(&["already accepted", task["taskId"].as_str().unwrap()]);
    let other = [&["send", &target.url, "-d", "other"], &words[4..]].concat();
    service
        .run(&other)
        .with(1)
        .says(&["error: The idempotency key belongs to another request", task["taskId"].as_str().unwrap()]);
}

#[test]
fn what_the_server_does_not_understand_ends_with_1_and_names_the_field() {
    let service = Service::start();
    for (words, expected) in [
        (&["ftp://not-http"][..], "targetUrl"),
        (&["http://localhost/", "--set", "maxAttempts=0"], "maxAttempts"),
        (&["http://localhost/", "-H", "Idempotency-Key: x"], "headers"),
    ] {
        let ended = service.run(&[&["send"], words].concat()).with(1).says(&["error: ", expected]);
        assert!(ended.stdout.is_empty(), "{ended:?}");
    }
}

#[test]
fn a_policy_that_does_not_exist_ends_with_5() {
    let service = Service::start();
    service.run(&["send", "http://localhost/", "--policy", "nobody"]).with(5).says(&["error: ", "nobody"]);
}

#[test]
fn programs_get_the_problem_document() {
    let service = Service::start();
    let ended = service.run(&["send", "http://localhost/", "--set", "maxAttempts=0", "--json"]).with(1);
    let problem: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(problem["type"], "/problems/invalid-value");
    assert_eq!(problem["errors"][0]["field"], "policy.maxAttempts");
}

#[test]
fn what_clap_does_not_understand_ends_with_2() {
    let service = Service::start();
    for words in [
        &["send"][..],
        &["send", "http://x/", "-H", "no colon"],
        &["send", "http://x/", "--label", "nothing"],
        &["send", "http://x/", "-d", "a", "--json-body", "1"],
        &["send", "http://x/", "--delay", "soon"],
        &["send", "http://x/", "--wait=soon"],
        &["tasks", "list", "--status", "DONE"],
        &["tasks", "list", "--limit", "0"],
        &["policies", "apply"],
        &["nonsense"],
        &[],
    ] {
        service.run(words).with(2);
    }
    let misspelt = service.run(&["send", "http://x/", "--set", "maxAttemps=3"]).with(2);
    assert_eq!(misspelt.stderr.matches("did you mean maxAttempts?").count(), 1, "{misspelt:?}");
}

#[test]
fn a_method_may_be_written_small_and_a_wait_with_a_blank() {
    let (service, target) = (Service::start(), Target::answering(&[200]));
    let words = ["send", "-X", "get", "--wait", "30s", &target.url];
    service.run(&words).with(0).says(&[&format!("GET {}", target.url), "SUCCEEDED after 1 attempt"]);
    let words = ["send", "-X", "get", "--wait", &target.url];
    service.run(&words).with(0).says(&["SUCCEEDED after 1 attempt"]);
    service.run(&["send", "-X", "purge", &target.url]).with(0).says(&[&format!("purge {}", target.url)]);
}

#[test]
fn a_body_that_cannot_be_read_is_said_before_anything_is_sent() {
    let (service, target) = (Service::start(), Target::answering(&[200]));
    service.run(&["send", &target.url, "-d", "@missing"]).with(1).says(&["cannot read missing"]);
    service.run(&["send", &target.url, "--json-body", "{"]).with(1).says(&["--json-body is not JSON"]);
    assert_eq!(service.run(&["tasks", "list", "--json"]).with(0).json()["tasks"], json!([]));
}

#[test]
fn a_server_that_is_not_there_ends_with_6() {
    let directory = tempfile::tempdir().unwrap();
    for words in [&["send", "http://x/"][..], &["tasks", "list"], &["tasks", "watch", "x"], &["policies", "list"]] {
        let words = [words, &["--server", "http://127.0.0.1:1"]].concat();
        Program::start(redrive(directory.path(), &words))
            .end()
            .with(6)
            .says(&["cannot reach the server at http://127.0.0.1:1", "is `redrive serve` running?"]);
    }
}

#[test]
fn the_key_is_printed_before_anything_is_sent_and_repeating_with_it_makes_no_second_task() {
    let (service, target) = (Service::start(), Target::answering(&[200]));
    let first = service.run(&["send", &target.url, "-d", "hello", "--wait"]).with(0);
    let advice = first.stderr.lines().next().unwrap();
    let key = advice.strip_prefix("if contact is lost, repeat it with: the same command and --key ").unwrap();
    assert_eq!(target.arrival().header("idempotency-key"), Some(key));
    let again = service.run(&["send", &target.url, "-d", "hello", "--key", key, "--wait"]).with(0);
    again.says(&["already accepted"]);
    assert_eq!(target.unseen(), 0, "it was sent once");

    // Nothing has answered yet, and the key is known already.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", silent.local_addr().unwrap());
    let mut sending = service.begin(&["send", &target.url, "-d", "hello", "--server", &server]);
    sending.stderr.wait_for(" --key ");
    sending.kill();
}

#[test]
fn contact_that_is_lost_before_the_answer_leaves_the_key() {
    let service = Service::start();
    let nowhere = ["send", "http://localhost/", "--server", "http://127.0.0.1:1"];
    let ended = service.run(&nowhere).with(6);
    let key = ended.stderr.lines().next().unwrap().rsplit(' ').next().unwrap().to_owned();
    ended.says(&[&format!("with --key {key} the same command can be repeated: it never makes a second task")]);
    let json = service.run(&[&nowhere[..], &["--json"]].concat()).with(6);
    json.says(&["with --key ", "it never makes a second task"]);
    let own = service.run(&[&nowhere[..], &["--key", "order-7"]].concat()).with(6);
    assert!(own.stderr.starts_with("error: "), "{own:?}");
    own.says(&["with --key order-7 the same command can be repeated"]);
}

#[test]
fn a_wait_goes_on_when_the_server_is_killed_and_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let target = Target::answering(&[200]);
    let service = Service::start_in(directory.path(), &[]);
    let address = service.authority().to_owned();
    let mut sending = service.begin(&["send", &target.url, "--delay", "1h", "--wait"]);
    let line = sending.stdout.wait_for("accepted ");
    let id = line.split(' ').nth(1).unwrap().to_owned();
    service.kill();
    let lost = sending.stderr.wait_for("lost contact with the server; the task was accepted and goes on");
    assert!(lost.contains(&format!("tasks watch {id} --server http://{address}")), "{lost}");
    sending.stderr.wait_for("waiting for the server");
    let service = Service::start_at(&address, directory.path(), &[]);
    sending.stderr.wait_for("the server is back");
    service.run(&["tasks", "retry-now", &id]).with(0);
    sending.end().with(0).says(&["SUCCEEDED after 1 attempt"]);
    assert_eq!(target.arrived().len(), 1);
}

#[test]
fn a_server_that_is_not_redrive_is_called_that_and_gets_the_user_of_its_address() {
    let directory = tempfile::tempdir().unwrap();
    let other = Target::answering(&[404]);
    let address = other.url.replace("http://", "http://anna:s%40e@");
    let words = ["tasks", "show", "01a1e0fa-2fae-7000-8650-237a7cedaea6", "--server", &address];
    let ended = Program::start(redrive(directory.path(), &words)).end().with(1);
    ended.says(&["404", "not that of a Redrive server; check --server"]);
    assert_eq!(other.arrival().header("authorization"), Some("Basic YW5uYTpzQGU="));
}

#[test]
fn a_mistake_in_a_field_or_a_label_is_said_in_plain_words() {
    let service = Service::start();
    for (words, said) in [
        (&["--set", "backoff=exponentail"][..], "backoff: there is no exponentail; did you mean exponential?"),
        (&["--set", "maxAttempts=abc"], "maxAttempts: must be a whole number, not \"abc\""),
        (&["--set", "maxAttempts=-1"], "maxAttempts: must be a whole number, not -1"),
        (&["--set", "scheduleMs=1,2,3"], "scheduleMs: must be a list such as [1000,5000], not \"1,2,3\""),
        (&["--label", "a=1", "--label", "b=2", "--label", "a=3"], "--label a is given twice"),
        (&["--set", "maxAttempts=3", "--set", "maxAttempts=4"], "--set maxAttempts is given twice"),
    ] {
        service.run(&[&["send", "http://127.0.0.1:1/"], words].concat()).with(2).says(&[said]);
    }
}

#[test]
fn what_was_meant_is_said_where_it_can_be_guessed() {
    let (service, target) = (Service::start(), Target::answering(&[200]));
    for (words, code, said) in [
        (&["127.0.0.1:9000/hook"][..], 2, "did you mean http://127.0.0.1:9000/hook?"),
        (&[&target.url, "--policy", "webhok"], 5, "did you mean webhook?"),
        (&["--wait", "30", &target.url], 2, "invalid value '30' for '--wait"),
    ] {
        service.run(&[&["send"], words].concat()).with(code).says(&[said]);
    }
    service.run(&["policies", "show", "webhok"]).with(5).says(&["did you mean webhook?"]);
    assert_eq!(target.unseen(), 0);

    let id = service.send(&[&target.url, "--delay", "1h"]);
    service.run(&["tasks", "attempts", &id]).with(0).says(&["no attempts yet"]);
    let paused = service.run(&["dependencies", "pause", &target.url]).with(0);
    assert!(!paused.stderr.contains("check the spelling"), "{paused:?}");
    service
        .run(&["dependencies", "pause", "bilings"])
        .with(0)
        .says(&["the node knows no task of bilings; check the spelling"]);

    let with_password = service.url.replace("http://", "http://anna:secret@");
    let sent = service.run(&["send", &target.url, "--delay", "1h", "--server", &with_password]).with(0);
    assert!(!format!("{sent:?}").contains("secret") && !sent.stdout.contains("***@"), "{sent:?}");
    sent.says(&["(with the same --server)"]);
}
