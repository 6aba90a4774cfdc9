//! Large bodies, through the real service: over a directory and over an S3-compatible server.

mod unmounted;

use std::fs;
use std::path::{Path, PathBuf};

use redrive_core::BodyHash;
use redrive_testbed::{Postgres, wait_until};
use serde_json::json;

use super::world::s3::{S3, files_below};
use super::world::{Reply, Service, Target};

const MEBIBYTE: usize = 1024 * 1024;

/// A file of this many bytes that are nowhere the same for long.
fn file(directory: &Path, length: usize) -> (String, Vec<u8>) {
    let bytes: Vec<u8> = (0..length as u64).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect();
    let path = directory.join(format!("body-{length}"));
    fs::write(&path, &bytes).unwrap();
    (format!("@{}", path.display()), bytes)
}

#[test]
fn a_file_over_a_mebibyte_is_uploaded_and_delivered_byte_for_byte() {
    let temporary = tempfile::tempdir().unwrap();
    let (service, target) = (Service::start_in(temporary.path(), &[]), Target::answering(&[200]));
    for length in [MEBIBYTE, MEBIBYTE + 1, 20 * MEBIBYTE] {
        let (words, bytes) = file(temporary.path(), length);
        let task = service.run(&["send", &target.url, "-d", &words, "--wait", "--json"]).with(0).json();
        assert_eq!((task["status"].as_str(), task["bodyBytes"].as_u64()), (Some("SUCCEEDED"), Some(length as u64)));
        assert_eq!(task["bodyRef"], json!(BodyHash::of(&bytes).to_string()));
        let arrival = target.arrival();
        assert_eq!(arrival.header("content-length"), Some(length.to_string().as_str()));
        assert!(arrival.body == bytes, "{} of {length} bytes came", arrival.body.len());
        let id = task["taskId"].as_str().unwrap();
        let reference = format!("{length} bytes, /blobs/{}", BodyHash::of(&bytes));
        service.run(&["tasks", "show", id]).with(0).says(&[&reference]);
    }
    assert_eq!(bodies(temporary.path()).len(), 3);
}

#[test]
fn a_refused_upload_is_told_as_what_it_is() {
    let temporary = tempfile::tempdir().unwrap();
    let service = Service::start_in(temporary.path(), &["--max-stored-body-bytes", "2000000"]);
    let (words, _) = file(temporary.path(), 70 * MEBIBYTE);
    let ended = service.run(&["send", "http://127.0.0.1:1/", "-d", &words]).with(1);
    ended.says(&["Content too large: the request is larger than 2000000 bytes"]);
}

#[test]
fn on_postgres_without_a_place_for_them_large_bodies_are_refused_with_the_setting_to_use() {
    let (temporary, database) = (tempfile::tempdir().unwrap(), Postgres::shared().fresh_database());
    let service = Service::start_in(temporary.path(), &["--store", database.url()]);
    let (words, _) = file(temporary.path(), 20 * MEBIBYTE);
    let ended = service.run(&["send", "http://127.0.0.1:1/", "-d", &words]).with(1);
    ended.says(&["No storage for large bodies", "start every node with --blobs"]);
}

fn bodies(directory: &Path) -> Vec<PathBuf> {
    files_below(directory.join("redrive-data/blobs/bodies"))
}

#[test]
fn a_body_that_has_gone_missing_ends_the_task_and_sends_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let (service, target) = (Service::start_in(temporary.path(), &[]), Target::answering(&[200]));
    let (words, _) = file(temporary.path(), 2 * MEBIBYTE);
    let id = service.send(&[&target.url, "-d", &words, "--delay", "1h"]);
    fs::remove_file(&bodies(temporary.path())[0]).unwrap();
    service.run(&["tasks", "retry-now", &id]).with(0);
    let watched = service.run(&["tasks", "watch", &id]).with(3);
    watched.says(&["body-missing", "FAILED (body-lost) after 1 attempt"]);
    let task = service.task(&id);
    let error = json!({ "type": "body-missing", "message": "the stored body is not there" });
    assert_eq!((&task["statusReason"], &task["lastError"]), (&json!("body-lost"), &error));
    assert_eq!(target.unseen(), 0);
    // Uploaded again, it can be replayed: it is the same body.
    service.send(&[&target.url, "-d", &words]);
    assert_eq!(target.arrival().body.len(), 2 * MEBIBYTE);
    service.run(&["tasks", "replay", &id]).with(0);
    assert_eq!(target.arrival().body.len(), 2 * MEBIBYTE);
}

#[test]
fn a_body_survives_a_kill_and_a_restart() {
    let temporary = tempfile::tempdir().unwrap();
    let target = Target::answering(&[200]);
    let (words, bytes) = file(temporary.path(), 6 * MEBIBYTE);
    let service = Service::start_in(temporary.path(), &[]);
    let id = service.send(&[&target.url, "-d", &words, "--delay", "1h"]);
    service.program.signal("KILL");
    drop(service.program.end());
    let service = Service::start_in(temporary.path(), &[]);
    service.run(&["tasks", "retry-now", &id]).with(0);
    assert!(target.arrival().body == bytes);
}

#[test]
fn while_storage_is_down_a_task_waits_and_nothing_is_sent() {
    let temporary = tempfile::tempdir().unwrap();
    let (mut s3, target) = (S3::start(), Target::answering(&[200]));
    let mut service = Service::start_over(&s3, temporary.path(), &[]);
    let (words, bytes) = file(temporary.path(), 2 * MEBIBYTE);
    let id = service.send(&[&target.url, "-d", &words, "--delay", "1h", "--set", "maxAttempts=1"]);
    s3.kill();
    service.run(&["tasks", "retry-now", &id]).with(0);
    service.program.stderr.wait_for("stored bodies cannot be read");
    wait_until("the task waits", || service.task(&id)["status"] == "PENDING");
    assert_eq!((&service.task(&id)["attemptNumber"], target.unseen()), (&json!(0), 0));
    s3.resume();
    service.run(&["tasks", "retry-now", &id]).with(0);
    service.run(&["tasks", "watch", &id]).with(0).says(&["SUCCEEDED after 1 attempt"]);
    assert!(target.arrival().body == bytes);
}

/// What the kernel says of a process's memory, in bytes.
fn memory(process: u32, what: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// In through the API, into S3, out of it again to the dependency, and the dependency's answer, as large, the same way
/// back: and the process has grown by less than half of one body.
#[test]
fn a_body_of_64_mebibytes_goes_through_s3_and_back_in_flat_memory() {
    const LARGE: usize = 64 * MEBIBYTE;
    const MOST: u64 = 32 * MEBIBYTE as u64;
    let temporary = tempfile::tempdir().unwrap();
    let s3 = S3::start();
    let (words, bytes) = file(temporary.path(), LARGE);
    let answer = "y".repeat(LARGE);
    let hash = BodyHash::of(answer.as_bytes());
    let target = Target::replying(move |arrival| {
        let body = if arrival.path == "/small" { "ok".to_owned() } else { answer.clone() };
        Reply { status: 200, body }
    });
    let service = Service::start_over(&s3, temporary.path(), &["--kept-answer-bytes", &LARGE.to_string()]);
    let process = service.program.id();
    let idle = memory(process, "VmRSS");
    // Everything has been used once, so that what is counted is the body and not the program.
    let (small, _) = file(temporary.path(), MEBIBYTE + 1);
    service.run(&["send", &format!("{}/small", target.url), "-d", &small, "--wait"]).with(0);
    target.arrival();
    let before = memory(process, "VmRSS");
    fs::write(format!("/proc/{process}/clear_refs"), "5").unwrap();
    let task = service.run(&["send", &target.url, "-d", &words, "--wait", "--json"]).with(0).json();
    let peak = memory(process, "VmHWM");
    assert_eq!(task["status"], "SUCCEEDED", "{task:#}");
    assert!(target.arrival().body == bytes);
    let response = &task["response"];
    assert_eq!((&response["bodyRef"], &response["truncated"]), (&json!(hash.to_string()), &json!(false)));
    let grown = peak.saturating_sub(before);
    let kib = [idle, before, peak, grown].map(|bytes| bytes >> 10);
    println!("resident KiB: idle {}, after a small body {}, at most {}: {} more", kib[0], kib[1], kib[2], kib[3]);
    assert!(grown < MOST, "{} MiB more than before", grown >> 20);
}
