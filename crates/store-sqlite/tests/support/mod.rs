//! Support code for several of these tests.

#![allow(dead_code, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use redrive_store_sqlite::{Options, SqliteStore};
use rusqlite::{Connection, OpenFlags};

pub(crate) fn open(directory: &Path) -> SqliteStore {
    SqliteStore::open(Options::new(directory)).unwrap()
}

pub(crate) fn database(directory: &Path) -> PathBuf {
    directory.join("redrive.db")
}

/// Another connection that reads the database while the store has it open.
pub(crate) fn onlooker(directory: &Path) -> Connection {
    Connection::open_with_flags(database(directory), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

/// Copies what would be on the disk after a power loss now. Another process copies: closing a file of the database in
/// this one would drop SQLite's locks on it.
pub(crate) fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-r").arg(from.join(".")).arg(to).status().unwrap();
    assert!(status.success());
}

/// Starts the test `role` of this executable in a separate process, which is killed or dies.
pub(crate) fn child(role: &str, directory: &Path, environment: &[(&str, &Path)]) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", role, "--ignored", "--nocapture", "--test-threads", "1"]);
    command.env("REDRIVE_TEST_DIRECTORY", directory).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.envs(environment.iter().copied());
    command.spawn().unwrap()
}

/// The working directory in such a process.
pub(crate) fn child_directory() -> PathBuf {
    std::env::var_os("REDRIVE_TEST_DIRECTORY").expect("this is run by another test").into()
}
