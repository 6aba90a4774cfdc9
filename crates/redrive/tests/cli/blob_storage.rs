//! Nodes over one PostgreSQL, and where each of them keeps large bodies.

use std::path::Path;

use redrive_testbed::{Database, Postgres, wait_until};
use serde_json::json;

use super::world::s3::{self, S3};
use super::world::{Ended, Program, Service, Target, redrive};

const LARGE: usize = 2 * 1024 * 1024;

fn in_directory(directory: &Path, name: &str) -> String {
    format!("file://{}", directory.join(name).display())
}

fn start(directory: &Path, database: &Database, flags: &[&str]) -> Service {
    Service::start_in(directory, &[&["--store", database.url()], flags].concat())
}

/// A start that comes to nothing.
fn refused(directory: &Path, database: &Database, flags: &[&str]) -> Ended {
    let words = [&["serve", "--listen", "127.0.0.1:0", "--store", database.url()], flags].concat();
    Program::start(redrive(directory, &words)).end()
}

#[test]
fn a_node_that_keeps_bodies_elsewhere_does_not_start() {
    let (temporary, database) = (tempfile::tempdir().unwrap(), Postgres::shared().fresh_database());
    let directory = temporary.path();
    let [shared, other] = ["shared", "other"].map(|name| in_directory(directory, name));
    // Nothing is kept apart yet, so a node without a place is as good as any.
    let mut first = start(directory, &database, &[]);
    first.program.stdout.wait_for("large bodies are stored in their tasks");
    let mut second = start(directory, &database, &["--blobs", &shared]);
    second.program.stdout.wait_for(&format!("large bodies are stored in {}/shared", directory.display()));
    let elsewhere = refused(directory, &database, &["--blobs", &other]).with(78);
    elsewhere.says(&["are not in", "other: it has no marker", "the same --blobs"]);
    assert!(!directory.join("other/place").exists(), "what is not the place does not look like one");
    refused(directory, &database, &[]).with(78).says(&["the same --blobs as the other nodes"]);
    // It was in use for something else.
    std::fs::write(directory.join("other/place"), "00000000-0000-4000-8000-000000000000\n").unwrap();
    let elsewhere = refused(directory, &database, &["--blobs", &other]).with(78);
    elsewhere.says(&["its marker is 00000000-0000-4000-8000-000000000000"]);
    // Moved with its marker, it is the same place.
    std::fs::copy(directory.join("shared/place"), directory.join("other/place")).unwrap();
    start(directory, &database, &["--blobs", &other]).stop().with(0);
}

#[test]
fn a_node_without_a_place_leaves_tasks_with_stored_bodies_as_they_are() {
    let (temporary, database) = (tempfile::tempdir().unwrap(), Postgres::shared().fresh_database());
    let directory = temporary.path();
    let target = Target::answering(&[200]);
    let mut without = start(directory, &database, &[]);
    let with = start(directory, &database, &["--blobs", &in_directory(directory, "shared")]);
    std::fs::write(directory.join("body"), vec![7; LARGE]).unwrap();
    let words = format!("@{}", directory.join("body").display());
    let id = with.send(&[&target.url, "-d", &words, "--delay", "1h", "--set", "maxAttempts=1"]);
    with.stop().with(0);
    without.run(&["tasks", "retry-now", &id]).with(0);
    without.program.stderr.wait_for("stored bodies cannot be read");
    wait_until("the task waits", || without.task(&id)["status"] == "PENDING");
    assert_eq!((&without.task(&id)["attemptNumber"], target.unseen()), (&json!(0), 0));
    without.stop().with(0);
    let with = start(directory, &database, &["--blobs", &in_directory(directory, "shared")]);
    with.run(&["tasks", "retry-now", &id]).with(0);
    assert_eq!(target.arrival().body.len(), LARGE);
    with.run(&["tasks", "watch", &id]).with(0).says(&["SUCCEEDED after 1 attempt"]);
}

#[test]
fn a_bucket_that_cannot_be_used_keeps_the_embedded_store_from_starting() {
    let (temporary, s3) = (tempfile::tempdir().unwrap(), S3::start());
    let url = s3.url();
    let shown = url.replace("?endpoint=", " at ");
    let starting = |url: &str, secret: &str| {
        let mut command = redrive(temporary.path(), &["serve", "--listen", "127.0.0.1:0", "--blobs", url]);
        command.env("AWS_ACCESS_KEY_ID", s3::ACCESS_KEY_ID).env("AWS_SECRET_ACCESS_KEY", secret);
        Program::start(command)
    };
    let mut works = starting(&url, s3::SECRET_ACCESS_KEY);
    works.stdout.wait_for(&format!("large bodies are stored in {shown}"));
    works.signal("TERM");
    works.end().with(0);
    let cannot = format!("error: cannot store large bodies in {shown}");
    let ended = starting(&url, "wrong").end().with(1).says(&[&cannot]);
    assert!(!ended.stderr.contains("wrong"), "{}", ended.stderr);
    starting(&url.replace("http:", "https:"), s3::SECRET_ACCESS_KEY).end().with(1);
    drop(s3);
    starting(&url, s3::SECRET_ACCESS_KEY).end().with(1).says(&[&cannot]);
}
