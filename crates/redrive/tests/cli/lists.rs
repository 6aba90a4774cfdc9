//! `redrive tasks list`: filters, pages, counts.

use serde_json::{Value, json};

use super::world::{Program, Reply, Service, Target, redrive};

fn ids(document: &Value) -> Vec<String> {
    document["tasks"].as_array().unwrap().iter().map(|task| task["taskId"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn filters_find_what_they_name() {
    let (service, good, bad) = (Service::start(), Target::answering(&[200]), Target::answering(&[400]));
    let delivered = service.send(&[&good.url, "--wait", "--label", "team=pay", "--label", "a=b=c"]);
    let failed = service.run(&["send", &bad.url, "--wait", "--json", "--dependency", "billing"]).with(3).json();
    let failed = failed["taskId"].as_str().unwrap().to_owned();
    let waiting = service.send(&[&good.url, "--delay", "1h"]);
    for (words, expected) in [
        (&[][..], vec![&waiting, &failed, &delivered]),
        (&["--status", "FAILED"], vec![&failed]),
        (&["--status", "failed,PENDING"], vec![&waiting, &failed]),
        (&["--status", "FAILED", "--status", "SUCCEEDED"], vec![&failed, &delivered]),
        (&["--dependency", "billing"], vec![&failed]),
        (&["--dependency", "nobody"], vec![]),
        (&["--label", "team=pay"], vec![&delivered]),
        (&["--label", "a=b=c", "--label", "team=pay"], vec![&delivered]),
        (&["--label", "team=buy"], vec![]),
        (&["--policy", "default", "--limit", "1"], vec![&waiting]),
        (&["--since", "1h", "--all"], vec![&waiting, &failed, &delivered]),
        (&["--since", "0s"], vec![]),
    ] {
        let document = service.run(&[&["tasks", "list", "--json"], words].concat()).with(0).json();
        assert_eq!(ids(&document), expected.into_iter().cloned().collect::<Vec<_>>(), "{words:?}");
    }
    service.run(&["tasks", "list"]).with(0).says(&[
        "TASK",
        "PENDING",
        "FAILED",
        "not-retryable",
        "in 1h",
        "in all: 1 PENDING, 1 SUCCEEDED, 1 FAILED",
    ]);
    service.run(&["tasks", "list", "--limit", "1"]).with(0).says(&["(there are more; use --limit N or --all)"]);
}

/// A server whose list has three pages, the second one empty.
fn three_pages() -> Target {
    Target::replying(|arrival| {
        let task = |n: u32| json!({"taskId": format!("task-{n}"), "status": "PENDING", "someday": [n]});
        let page = |tasks: Vec<Value>, next: Option<&str>| {
            json!({"tasks": tasks, "nextCursor": next, "counts": {"PENDING": 3}}).to_string()
        };
        let body = match arrival.path.split_once("cursor=").map(|(_, cursor)| cursor) {
            None => page(vec![task(1), task(2)], Some("two&2")),
            Some("two%262") => page(vec![], Some("three")),
            Some("three") => page(vec![task(3)], None),
            other => panic!("{other:?}"),
        };
        Reply { status: 200, body }
    })
}

#[test]
fn all_pages_are_one_document_with_every_item_as_it_was() {
    let (server, directory) = (three_pages(), tempfile::tempdir().unwrap());
    let list = |words: &[&str]| {
        let words = [&["tasks", "list", "--server", &server.url], words].concat();
        Program::start(redrive(directory.path(), &words)).end().with(0)
    };
    let document = list(&["--all", "--json"]).json();
    assert_eq!(ids(&document), ["task-1", "task-2", "task-3"]);
    assert_eq!(document["tasks"][2]["someday"], json!([3]), "what we do not know is passed on");
    assert_eq!((&document["nextCursor"], &document["counts"]), (&Value::Null, &json!({"PENDING": 3})));
    let ended = list(&["--all"]).says(&["task-1", "task-2", "task-3", "in all: 3 PENDING"]);
    assert_eq!(ended.stdout.matches("STATUS").count(), 1, "{}", ended.stdout);
    assert_eq!(ids(&list(&["--limit", "3", "--json"]).json()), ["task-1", "task-2", "task-3"]);
}

#[test]
fn a_reader_who_has_enough_is_no_error() {
    let service = Service::start();
    let url = &service.url;
    let binary = env!("CARGO_BIN_EXE_redrive");
    let line = format!(
        "for command in 'tasks list' 'policies show default' 'config' 'completions bash' '--help'; do \
           case $command in tasks*|policies*) server='--server {url}';; *) server=;; esac; \
           {binary} $command $server | true; done"
    );
    let mut bash = std::process::Command::new("bash");
    // `redrive config` warns of variables of this name that are no settings.
    bash.env_remove(redrive_testbed::SHARED_POSTGRES);
    let ended = bash.args(["-o", "pipefail", "-ec", &line]).output().unwrap();
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
}
