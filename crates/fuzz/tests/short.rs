//! A short run of every target: the same inputs every time, a few seconds of them. `cargo xtask fuzz` is the long run.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

use std::time::Duration;

use redrive_fuzz::{Hunt, TARGETS, Target, find, hunt, run};

/// Runs inputs of a fixed seed. Their number is fixed, not the time: a slow machine finds the same.
fn every_property_holds(name: &str, executions: u64) {
    let directory = tempfile::tempdir().unwrap();
    let within = Duration::from_secs(600);
    let bounds = Hunt { seed: 13, first: 0, executions, within, directory: directory.path().to_owned() };
    let outcome = hunt(find(name).unwrap(), &bounds).unwrap();
    assert!(outcome.broken.is_none(), "{}", outcome.broken.unwrap_or_default());
    assert_eq!(outcome.executions, executions);
}

#[test]
fn submissions_keep_their_properties() {
    every_property_holds("submission", 2_000);
}

#[test]
fn batches_keep_their_properties() {
    every_property_holds("batch", 1_500);
}

#[test]
fn headers_keep_their_properties() {
    every_property_holds("headers", 250);
}

#[test]
fn retry_after_keeps_its_properties() {
    every_property_holds("retry-after", 50_000);
}

#[test]
fn policies_keep_their_properties() {
    every_property_holds("policy", 500);
}

#[test]
fn cursors_keep_their_properties() {
    every_property_holds("cursor", 1_500);
}

#[test]
fn ids_of_events_keep_their_properties() {
    every_property_holds("event-id", 50_000);
}

#[test]
fn rows_keep_their_properties() {
    every_property_holds("rows", 40);
}

#[test]
fn answers_keep_their_properties() {
    every_property_holds("answer", 150);
}

#[test]
fn trace_contexts_keep_their_properties() {
    every_property_holds("trace-context", 20_000);
}

#[test]
fn beginnings_of_task_ids_keep_their_properties() {
    every_property_holds("task-id-prefix", 5_000);
}

/// A sample that every target refuses would leave the fuzzer with nothing to mutate.
#[test]
fn every_sample_keeps_the_properties() {
    for target in TARGETS {
        let samples = (target.samples)();
        assert!(!samples.is_empty(), "{}", target.name);
        for sample in &samples {
            run(target, sample).unwrap_or_else(|broken| panic!("{}: {broken:?}", target.name));
        }
    }
}

#[test]
fn an_input_that_breaks_a_property_is_made_small_saved_and_replayed() {
    static BROKEN: Target = Target {
        name: "broken",
        what: "takes everything but an x, also on a thread whose panics are caught",
        run: |input| {
            let has_x = input.contains(&b'x');
            std::thread::spawn(move || assert!(!has_x, "an x")).join().unwrap_or_default();
        },
        samples: || vec![b"some text".to_vec()],
        words: &["x"],
        generate: |_| b"other text".to_vec(),
        max_bytes: 100,
    };
    let directory = tempfile::tempdir().unwrap();
    let within = Duration::from_secs(600);
    let bounds = Hunt { seed: 1, first: 0, executions: 1_000, within, directory: directory.path().to_owned() };
    let outcome = hunt(&BROKEN, &bounds).unwrap();
    let said = outcome.broken.unwrap();
    let file = directory.path().join(format!("broken-1-{}", outcome.executions - 1));
    assert_eq!(std::fs::read(&file).unwrap(), b"x", "{said}");
    assert!(said.contains("an x") && said.contains("seed 1") && said.contains(&file.display().to_string()), "{said}");
    assert_eq!(run(&BROKEN, b"x").unwrap_err().message, "an x");
    assert_eq!(run(&BROKEN, b"y"), Ok(()));
}
