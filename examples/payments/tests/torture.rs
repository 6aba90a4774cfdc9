//! `torture.py` against the real service, a real Redrive and a real PostgreSQL: every order is charged once.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use redrive_testbed::{Postgres, free_port, wait_until};

/// The `redrive` that was built beside this test.
fn redrive() -> PathBuf {
    let directory = std::env::current_exe().unwrap().parent().and_then(Path::parent).unwrap().to_owned();
    let program = directory.join("redrive");
    assert!(program.is_file(), "build it first: cargo build -p redrive ({})", program.display());
    program
}

/// A process that is killed with this value.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn every_order_is_charged_once_although_the_service_is_killed_at_its_worst_moments() {
    let (database, directory) = (Postgres::shared().fresh_database(), tempfile::tempdir().unwrap());
    let address = format!("127.0.0.1:{}", free_port());
    let mut serve = Command::new(redrive());
    serve.args(["serve", "--listen", &address, "--data-dir"]).arg(directory.path());
    let _redrive = Killed(serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_until("redrive listens", || TcpStream::connect(&address).is_ok());
    let output = Command::new("python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("torture.py"))
        .arg(env!("CARGO_BIN_EXE_payments"))
        .env("REDRIVE", format!("http://{address}"))
        .env("DATABASE", database.url())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(printed.starts_with("29 orders, 29 charges"), "{printed}");
}
