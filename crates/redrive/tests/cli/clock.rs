//! The machine's clock is set while the service does not run.

use serde_json::Value;

use super::world::{Service, Target};

const HOUR_MS: i64 = 3_600_000;

#[test]
fn a_clock_that_was_set_between_two_starts_is_reported_and_what_waits_is_not_lost() {
    let (directory, target) = (tempfile::tempdir().unwrap(), Target::answering(&[200]));
    let service = Service::start_in(directory.path(), &[]);
    let waits = service.send(&[&target.url, "--delay", "3h"]);
    let ended = service.stop().with(0);
    assert!(!ended.stderr.contains("clock"), "{}", ended.stderr);

    let record = directory.path().join("redrive-data/clock.json");
    // The record of a machine whose clock was that much ahead of where it is now: it was set back since, and so on.
    for (off, reported) in [
        (HOUR_MS, "clock was set back since the last start"),
        (-HOUR_MS, "clock was set forward since the last start"),
        (0, ""),
    ] {
        let mut noted: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
        noted["wallMs"] = (noted["wallMs"].as_i64().unwrap() + off).into();
        std::fs::write(&record, noted.to_string()).unwrap();
        let service = Service::start_in(directory.path(), &[]);
        assert_eq!(service.task(&waits)["status"], "PENDING");
        let said = service.stop().with(0).stderr;
        assert_eq!(said.contains("clock"), !reported.is_empty(), "{said}");
        assert!(said.contains(reported), "{said}");
    }

    // Another boot, and a clock that is behind what was there before.
    let ahead = r#"{"bootId":"another","wallMs":4102444800000,"sinceBootMs":5}"#;
    std::fs::write(&record, ahead).unwrap();
    let service = Service::start_in(directory.path(), &[]);
    assert!(service.stop().with(0).stderr.contains("clock is behind the newest time in the store"));
    std::fs::write(&record, "{").unwrap();
    Service::start_in(directory.path(), &[]).stop().with(0);
}
