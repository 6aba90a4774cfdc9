//! The directory of large bodies is swapped for an empty one under the running service, as by a volume that is
//! unmounted, and comes back.

use std::fs;
use std::path::{Path, PathBuf};

use redrive_core::BodyHash;
use redrive_testbed::{Postgres, wait_until};
use serde_json::{Value, json};

use super::super::world::s3::files_below;
use super::super::world::{Program, Reply, Service, Target, answer_to_post, redrive};

/// More than stays a part of its task.
const LARGE: usize = 100_000;
const KEEP_ANSWERS: [&str; 2] = ["--kept-answer-bytes", "1000000"];

#[test]
fn an_unmounted_directory_takes_no_body_and_loses_none_on_the_embedded_store() {
    let temporary = tempfile::tempdir().unwrap();
    let service = Service::start_in(temporary.path(), &KEEP_ANSWERS);
    takes_no_body_and_loses_none(service, &temporary.path().join("redrive-data/blobs"));
}

#[test]
fn an_unmounted_directory_takes_no_body_and_loses_none_on_postgres() {
    let (temporary, database) = (tempfile::tempdir().unwrap(), Postgres::shared().fresh_database());
    let blobs = temporary.path().join("bodies");
    let url = format!("file://{}", blobs.display());
    let flags = [&["--store", database.url(), "--blobs", &url], &KEEP_ANSWERS[..]].concat();
    takes_no_body_and_loses_none(Service::start_in(temporary.path(), &flags), &blobs);
}

/// As after a reboot whose mount failed: a service that started would take every body for lost.
#[test]
fn the_embedded_store_does_not_start_over_an_unmounted_directory() {
    let (temporary, target) = (tempfile::tempdir().unwrap(), Target::answering(&[200]));
    let blobs = temporary.path().join("redrive-data/blobs");
    let body = "b".repeat(LARGE);
    let service = Service::start_in(temporary.path(), &[]);
    let id = accepted(submit(&service, "b", &json!({ "targetUrl": target.url, "body": body, "delayMs": 3_600_000 })));
    service.stop().with(0);
    let away = blobs.with_file_name("away");
    fs::rename(&blobs, &away).unwrap();
    for _ in 0..2 {
        let refused = Program::start(redrive(temporary.path(), &["serve", "--listen", "127.0.0.1:0"])).end().with(78);
        refused.says(&["redrive-data/blobs: it has no marker", "Mount the volume", "redrive-data/body-place"]);
    }
    // Another location is the operator's own choice.
    Service::start_in(temporary.path(), &["--blobs", &format!("file://{}", away.display())]).stop().with(0);
    fs::remove_dir(&blobs).unwrap();
    fs::rename(&away, &blobs).unwrap();
    let service = Service::start_in(temporary.path(), &[]);
    service.run(&["tasks", "retry-now", &id]).with(0);
    is_delivered(&service, &id, &target, &body);
}

fn takes_no_body_and_loses_none(mut service: Service, blobs: &Path) {
    let target = Target::replying(|_| Reply { status: 200, body: "y".repeat(LARGE) });
    let [early, large, uploaded] = ["e", "l", "u"].map(|letter| letter.repeat(LARGE));
    let submission = |body: &str| json!({ "targetUrl": target.url, "body": body });
    let referring = json!({ "targetUrl": target.url, "bodyRef": BodyHash::of(uploaded.as_bytes()).to_string() });
    let mut delayed = submission(&early);
    delayed["delayMs"] = json!(3_600_000);
    let early_id = accepted(submit(&service, "early", &delayed));
    accepted(upload(&service, &uploaded));
    assert!(service.ready().starts_with("HTTP/1.1 200"));

    let away = blobs.with_file_name("away");
    fs::rename(blobs, &away).unwrap();
    fs::create_dir(blobs).unwrap();
    is_refused(&submit(&service, "large", &submission(&large)));
    is_refused(&submit(&service, "referring", &referring));
    is_refused(&upload(&service, &uploaded));
    is_refused(&service.ready());
    sends_small_bodies(&service, &submission("small"), &target);
    service.run(&["tasks", "retry-now", &early_id]).with(0);
    service.program.stderr.wait_for("stored bodies cannot be read");
    wait_until("the task waits", || service.task(&early_id)["status"] == "PENDING");
    assert_eq!(files_below(blobs.to_owned()), Vec::<PathBuf>::new());

    fs::remove_dir(blobs).unwrap();
    fs::rename(&away, blobs).unwrap();
    assert!(service.ready().starts_with("HTTP/1.1 200"), "without a restart");
    service.run(&["tasks", "retry-now", &early_id]).with(0);
    is_delivered(&service, &early_id, &target, &early);
    let large_id = accepted(submit(&service, "large", &submission(&large)));
    is_delivered(&service, &large_id, &target, &large);
    let referring_id = accepted(submit(&service, "referring", &referring));
    is_delivered(&service, &referring_id, &target, &uploaded);
}

/// A small body needs no storage, and a large answer that cannot be stored is not a failed attempt: its beginning is
/// kept.
fn sends_small_bodies(service: &Service, submission: &Value, target: &Target) {
    let id = accepted(submit(service, "small", submission));
    is_delivered(service, &id, target, "small");
    let response = &service.task(&id)["response"];
    assert_eq!((&response["truncated"], &response["bodyRef"]), (&json!(true), &Value::Null));
}

fn is_delivered(service: &Service, id: &str, target: &Target, body: &str) {
    assert!(target.arrival().body == body.as_bytes(), "another body came");
    service.run(&["tasks", "watch", id]).with(0).says(&["SUCCEEDED after 1 attempt"]);
}

fn submit(service: &Service, key: &str, submission: &Value) -> String {
    let mut submission = submission.clone();
    submission["idempotencyKey"] = json!(key);
    answer_to_post(service.authority(), "/retry-tasks", "application/json", &submission.to_string())
}

fn upload(service: &Service, body: &str) -> String {
    answer_to_post(service.authority(), "/blobs", "application/octet-stream", body)
}

/// The id of the task, if it is one.
fn accepted(answer: String) -> String {
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let document: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    document["taskId"].as_str().unwrap_or_default().to_owned()
}

fn is_refused(answer: &str) {
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("\r\nretry-after: 1\r\n") && answer.contains("has no marker"), "{answer}");
}
