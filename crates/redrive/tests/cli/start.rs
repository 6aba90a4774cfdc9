//! `redrive serve`: how it starts, and how it does not.

use std::fs;
use std::path::Path;
use std::process::Command;

use redrive_testbed::{Postgres, wait_until};

use super::world::{Program, Service, redrive};

#[test]
fn it_starts_with_no_configuration_in_an_empty_directory() {
    let directory = tempfile::tempdir().unwrap();
    let service = Service::start_in(directory.path(), &[]);
    let policy = service.run(&["policies", "show", "default", "--json"]).with(0).json();
    for (field, value) in [
        ("backoff", "\"exponential\""),
        ("jitterType", "\"FULL\""),
        ("initialDelayMs", "1000"),
        ("maxDelayMs", "30000"),
        ("maxAttempts", "6"),
        ("totalBudgetMs", "86400000"),
    ] {
        assert_eq!(policy[field].to_string(), value, "{field}");
    }
    assert!(directory.path().join("redrive-data").is_dir());
    service.stop().with(0).says(&["nothing was lost"]);
}

#[test]
fn what_it_says_to_try_first_works_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let mut service = Service::start_in(directory.path(), &["--store", "memory"]);
    let send = service.program.stdout.wait_for(" send ");
    let curl = service.program.stdout.wait_for("curl ") + "\n" + &service.program.stdout.wait_for("-d ");
    for line in [send, curl] {
        let tried = Command::new("sh").args(["-c", &line]).output().unwrap();
        let said = String::from_utf8_lossy(&tried.stdout).into_owned();
        assert!(tried.status.success() && said.contains("SUCCEEDED"), "{line}\n{tried:?}");
    }
    assert!(!directory.path().join("redrive-data").exists(), "the memory store leaves nothing behind");
}

#[test]
fn an_address_that_others_can_reach_is_warned_of() {
    let directory = tempfile::tempdir().unwrap();
    let mut service = Service::start_at("0.0.0.0:0", directory.path(), &["--store", "memory"]);
    service.program.stderr.wait_for("there is no authentication yet");
    service.run(&["tasks", "list"]).with(0).says(&["no tasks found"]);
    let mut quiet = Service::start_in(directory.path(), &["--store", "memory"]);
    quiet.program.signal("TERM");
    assert!(!quiet.program.stderr.wait_for("stopped").contains("authentication"));
}

#[test]
fn what_keeps_it_from_starting_is_one_clear_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let service = Service::start_in(directory.path(), &[]);
    fs::write(directory.path().join("a-file"), "x").unwrap();
    fs::create_dir(directory.path().join("foreign")).unwrap();
    fs::write(directory.path().join("foreign/redrive.db"), "not ours").unwrap();
    for (flags, expected) in [
        (["--listen", service.authority(), "--store", "memory"], "the port is in use (by another redrive?)"),
        (["--listen", "127.0.0.1:0", "--data-dir", "redrive-data"], "is in use by another process"),
        (["--listen", "127.0.0.1:0", "--data-dir", "a-file/below"], "cannot use a-file/below"),
        (["--listen", "127.0.0.1:0", "--data-dir", "foreign"], "is not a Redrive database"),
        (["--listen", "no-such-host.invalid:1", "--store", "memory"], "cannot listen on no-such-host.invalid:1"),
    ] {
        let ended = Program::start(redrive(directory.path(), &[&["serve"], &flags[..]].concat())).end().with(1);
        let errors: Vec<_> = ended.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        assert!(errors.len() == 1 && errors[0].contains(expected), "{flags:?}: {}", ended.stderr);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    }
    assert_eq!(fs::read_to_string(directory.path().join("foreign/redrive.db")).unwrap(), "not ours");
}

#[test]
fn logs_are_json_where_that_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let service = Service::start_in(directory.path(), &["--log-format", "json"]);
    let ended = service.stop().with(0);
    let events: Vec<serde_json::Value> =
        ended.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert!(events.iter().any(|event| event["message"] == "stopping"), "{}", ended.stderr);
}

#[test]
fn the_address_of_a_database_that_cannot_be_one_is_a_bad_setting() {
    for (store, told) in [
        ("postgres://", "must name a host"),
        ("postgres://redrive:s3cret@db:port/redrive", "invalid value for option `port`"),
        ("postgres://redrive:s3cret@db/redrive?colour=red", "unknown option `colour`"),
        ("postgres://redrive:p@s3cret/w@db/redrive", "percent-encoded (@ is %40, / is %2F"),
    ] {
        for command in ["serve", "migrate", "config"] {
            let ended = Program::start(redrive(Path::new("."), &[command, "--store", store])).end().with(78);
            let ended = ended.says(&["--store: store = \"postgres://", told]);
            assert!(!format!("{}{}", ended.stdout, ended.stderr).contains("s3cret"), "{ended:?}");
        }
    }
}

#[test]
fn a_schema_that_is_not_there_is_told_with_what_makes_it() {
    let (directory, database) = (tempfile::tempdir().unwrap(), Postgres::shared().fresh_database());
    let words = ["serve", "--listen", "127.0.0.1:0", "--store", database.url(), "--postgres-migrate"];
    let refused = Program::start(redrive(directory.path(), &[&words[..], &["false"]].concat())).end().with(1);
    refused.says(&["run `redrive migrate`, or start with --postgres-migrate true"]);
    Service::start_in(directory.path(), &[&words[3..], &["true"]].concat()).stop().with(0);
}

#[test]
fn a_node_that_listens_on_every_address_is_listed_with_the_name_of_its_machine() {
    let (directory, database) = (tempfile::tempdir().unwrap(), Postgres::shared().fresh_database());
    let service = Service::start_at("0.0.0.0:0", directory.path(), &["--store", database.url()]);
    let port = service.authority().rsplit(':').next().unwrap();
    let nodes = || service.run(&["nodes", "--json"]).with(0).json()["nodes"].clone();
    wait_until("the node is listed", || nodes().as_array().is_some_and(|nodes| !nodes.is_empty()));
    assert_eq!(nodes()[0]["address"], format!("{}:{port}", redrive::host::name()));
}
