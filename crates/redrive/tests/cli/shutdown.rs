//! SIGTERM and SIGINT: what finishes, what is returned, what survives.

use serde_json::json;

use super::world::{Service, Target};

#[test]
fn an_attempt_under_way_finishes_and_is_settled() {
    let (directory, target) = (tempfile::tempdir().unwrap(), Target::holding());
    let mut service = Service::start_in(directory.path(), &[]);
    let id = service.send(&[&target.url]);
    target.arrival();
    service.program.signal("TERM");
    service.program.stderr.wait_for("stopping: 1 attempt in progress may take 10s to finish");
    target.release();
    service.program.end().with(0).says(&["nothing was lost"]);

    let service = Service::start_in(directory.path(), &[]);
    let task = service.task(&id);
    assert_eq!((&task["status"], &task["attemptNumber"]), (&json!("SUCCEEDED"), &json!(1)));
    assert_eq!(target.unseen(), 0, "it was sent once");
}

#[test]
fn a_data_directory_that_is_deleted_or_replaced_is_noticed() {
    for is_replaced in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("redrive-data");
        let service = Service::start_in(directory.path(), &[]);
        assert!(service.ready().starts_with("HTTP/1.1 200"));
        std::fs::remove_dir_all(&data).unwrap();
        if is_replaced {
            std::fs::create_dir(&data).unwrap();
            std::fs::write(data.join("redrive.db"), b"another one").unwrap();
        }
        let what = if is_replaced { "was replaced" } else { "was deleted" };
        let answer = service.ready();
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        service.program.signal("TERM");
        service.program.end().with(1).says(&["stopped, but", "redrive.db", what]);
    }
}

#[test]
fn a_stopping_service_says_so_and_still_answers() {
    let (directory, target) = (tempfile::tempdir().unwrap(), Target::holding());
    let mut service = Service::start_in(directory.path(), &["--shutdown-grace", "1h"]);
    let id = service.send(&[&target.url]);
    target.arrival();
    service.program.signal("TERM");
    service.program.stderr.wait_for("stopping: 1 attempt in progress");
    let answer = service.ready();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert_eq!(service.task(&id)["status"], "IN_FLIGHT");
    target.release();
    service.program.end().with(0).says(&["nothing was lost"]);
}

#[test]
fn an_attempt_that_overruns_the_grace_is_returned_and_delivered_after_a_restart() {
    let (directory, target) = (tempfile::tempdir().unwrap(), Target::holding());
    let service = Service::start_in(directory.path(), &["--shutdown-grace", "50ms"]);
    let id = service.send(&[&target.url, "--set", "initialDelayMs=1"]);
    let first = target.arrival();
    service.stop().with(0);

    let service = Service::start_in(directory.path(), &[]);
    let second = target.arrival();
    // The first connection is gone, but its answer still waits to be taken.
    target.release();
    target.release();
    service.run(&["tasks", "watch", &id]).with(0).says(&["SUCCEEDED"]);
    for name in ["idempotency-key", "redrive-task-id"] {
        assert_eq!(first.header(name), second.header(name), "{name}");
    }
    assert_eq!((first.header("redrive-attempt"), second.header("redrive-attempt")), (Some("1"), Some("2")));
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let (directory, target) = (tempfile::tempdir().unwrap(), Target::holding());
    let mut service = Service::start_in(directory.path(), &["--shutdown-grace", "1h"]);
    let id = service.send(&[&target.url, "--set", "initialDelayMs=1"]);
    target.arrival();
    service.program.signal("INT");
    service.program.stderr.wait_for("stopping: 1 attempt in progress");
    service.program.stderr.wait_for("still waiting for 1 attempt in progress");
    service.program.signal("TERM");
    service.program.end().with(130).says(&["SIGTERM again: ending at once"]);

    let service = Service::start_in(directory.path(), &[]);
    target.arrival();
    target.release();
    target.release();
    service.run(&["tasks", "watch", &id]).with(0).says(&["SUCCEEDED after 2 attempts"]);
}

#[test]
fn a_restart_keeps_everything() {
    let (directory, target) = (tempfile::tempdir().unwrap(), Target::answering(&[400, 200]));
    let service = Service::start_in(directory.path(), &[]);
    service.run_with_input(&["policies", "apply", "-"], b"policyId = \"default\"\nmaxAttempts = 9").with(0);
    let failed = service.run(&["send", &target.url, "--wait", "--json"]).with(3).json();
    let waiting = service.send(&[&target.url, "--delay", "1h", "--key", "mine", "--label", "a=b"]);
    let before = service.run(&["tasks", "list", "--json"]).with(0).json();
    service.stop().with(0);

    let service = Service::start_in(directory.path(), &[]);
    let after = service.run(&["tasks", "list", "--json"]).with(0).json();
    assert_eq!(before, after);
    assert_eq!(service.task(failed["taskId"].as_str().unwrap()), failed);
    let policy = service.run(&["policies", "show", "default", "--json"]).with(0).json();
    assert_eq!((&policy["version"], &policy["maxAttempts"]), (&json!(2), &json!(9)), "the default is not reset");
    let again = service.send(&[&target.url, "--delay", "1h", "--key", "mine", "--label", "a=b"]);
    assert_eq!(again, waiting, "the key is remembered");
    service.run(&["tasks", "retry-now", &waiting]).with(0);
    service.run(&["tasks", "watch", &waiting]).with(0).says(&["SUCCEEDED"]);
}
