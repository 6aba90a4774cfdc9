//! The programs in `examples`, run against the real service: announced orders, and orders that are applied once.
//!
//! The Rust example has the same test beside it (`examples/rust/tests`), because that builds its program.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test, what is not there is a failure")]

mod scenario;

use std::path::{Path, PathBuf};
use std::process::Command;

use redrive_testbed::Postgres;
use scenario::{Example, Receiver, Redrive, orders_are_announced_and_applied_once};

const PROGRAM: &str = env!("CARGO_BIN_EXE_redrive");

#[test]
fn the_example_for_curl_works() {
    let directory = tempfile::tempdir().unwrap();
    let redrive = Redrive::start(Path::new(PROGRAM), &directory, &[]);
    let example = Example {
        submit: Box::new(|order| with(Command::new(file("curl/submit.sh")), order)),
        receiver: Receiver::PerEvent(Box::new(|key, _| with(Command::new(file("curl/receive.sh")), &[key]))),
        exit_codes: [2, 3],
        is_over_http: true,
    };
    orders_are_announced_and_applied_once(example, &redrive, &directory);
}

#[test]
fn the_example_in_python_works() {
    let directory = tempfile::tempdir().unwrap();
    let redrive = Redrive::start(Path::new(PROGRAM), &directory, &[]);
    run_by("python3", file("python/orders.py"), &redrive, &directory);
}

/// The types are removed by esbuild, so that this needs no newer Node than the other tests.
#[test]
fn the_example_in_typescript_works() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("orders.mjs");
    let mut esbuild = Command::new("esbuild");
    esbuild.arg(file("typescript/orders.ts")).arg(format!("--outfile={}", script.display())).arg("--log-level=warning");
    assert!(esbuild.status().expect("esbuild is needed: apt-get install esbuild").success());
    let redrive = Redrive::start(Path::new(PROGRAM), &directory, &[]);
    run_by("node", script, &redrive, &directory);
}

#[test]
fn the_example_in_sql_works() {
    let (database, directory) = (Postgres::shared().fresh_database(), tempfile::tempdir().unwrap());
    let redrive = Redrive::start(Path::new(PROGRAM), &directory, &["--store", database.url()]);
    let url = database.url().to_owned();
    let psql = move |script: &str, variables: &[(&str, &str)]| {
        let mut psql = Command::new("psql");
        psql.args([&url, "-qAtX", "-f"]).arg(file(script));
        for (name, value) in variables {
            psql.arg("-v").arg(format!("{name}={value}"));
        }
        psql
    };
    assert!(psql("sql/schema.sql", &[]).status().unwrap().success());
    let receive = psql.clone();
    let example = Example {
        submit: Box::new(move |[order, amount, url]| {
            psql("sql/submit.sql", &[("order", order), ("amount", amount), ("url", url)])
        }),
        receiver: Receiver::PerEvent(Box::new(move |key, body| {
            let [order, amount] = ["order", "amount"].map(|name| field(body, name));
            receive("sql/receive.sql", &[("key", key), ("order", order), ("amount", amount)])
        })),
        // psql has one exit code for every error of a script.
        exit_codes: [3, 3],
        is_over_http: false,
    };
    orders_are_announced_and_applied_once(example, &redrive, &directory);
}

fn run_by(interpreter: &'static str, script: PathBuf, redrive: &Redrive, directory: &tempfile::TempDir) {
    let again = script.clone();
    let example = Example {
        submit: Box::new(move |order| with(with(Command::new(interpreter), &[&script, Path::new("submit")]), order)),
        receiver: Receiver::Server(Box::new(move |port| {
            with(with(Command::new(interpreter), &[&again, Path::new("receive")]), &[port.to_string()])
        })),
        exit_codes: [2, 3],
        is_over_http: true,
    };
    orders_are_announced_and_applied_once(example, redrive, directory);
}

fn with<T: AsRef<std::ffi::OsStr>>(mut command: Command, words: &[T]) -> Command {
    command.args(words);
    command
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// The value of a field of a small JSON document with string values.
fn field<'a>(document: &'a str, name: &str) -> &'a str {
    let rest = document.split_once(&format!("\"{name}\"")).unwrap().1;
    rest.split('"').nth(1).unwrap()
}
