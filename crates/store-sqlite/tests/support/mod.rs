//! What several of these tests need.

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

/// Somebody else who looks at the database while the store has it open.
pub(crate) fn onlooker(directory: &Path) -> Connection {
    Connection::open_with_flags(database(directory), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

/// What a machine that lost power right now would find. Copied by another process: closing a file of the database in
/// this one would drop SQLite's locks on it.
pub(crate) fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-r").arg(from.join(".")).arg(to).status().unwrap();
    assert!(status.success());
}

/// Starts the test `role` of this same executable in a process of its own, to be killed or to die there.
pub(crate) fn child(role: &str, directory: &Path, environment: &[(&str, &Path)]) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", role, "--ignored", "--nocapture", "--test-threads", "1"]);
    command.env("REDRIVE_TEST_DIRECTORY", directory).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.envs(environment.iter().copied());
    command.spawn().unwrap()
}

/// In such a process: where to work.
pub(crate) fn child_directory() -> PathBuf {
    std::env::var_os("REDRIVE_TEST_DIRECTORY").expect("this is run by another test").into()
}
