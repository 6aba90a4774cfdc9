//! The example against the real service, as the examples in other languages are tested.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test, what is not there is a failure")]

#[path = "../../../crates/redrive/tests/examples/scenario.rs"]
#[allow(dead_code, reason = "other examples use the rest of it")]
mod scenario;

use std::path::{Path, PathBuf};
use std::process::Command;

use scenario::{Example, Receiver, Redrive, orders_are_announced_and_applied_once};

const ORDERS: &str = env!("CARGO_BIN_EXE_orders");

/// The `redrive` that was built beside this test.
fn redrive() -> PathBuf {
    let directory = std::env::current_exe().unwrap().parent().and_then(Path::parent).unwrap().to_owned();
    let program = directory.join("redrive");
    assert!(program.is_file(), "build it first: cargo build -p redrive ({})", program.display());
    program
}

#[test]
fn the_example_in_rust_works() {
    let directory = tempfile::tempdir().unwrap();
    let redrive = Redrive::start(&redrive(), &directory, &[]);
    let orders = |words: &[&str]| {
        let mut command = Command::new(ORDERS);
        command.args(words);
        command
    };
    let example = Example {
        submit: Box::new(move |[order, amount, url]| orders(&["submit", order, amount, url])),
        receiver: Receiver::Server(Box::new(move |port| orders(&["receive", &port.to_string()]))),
        exit_codes: [2, 3],
        is_over_http: true,
    };
    orders_are_announced_and_applied_once(example, &redrive, &directory);
}
