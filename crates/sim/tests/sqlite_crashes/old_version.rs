//! A database as the first version of the store made it.

use std::path::Path;
use std::process::Command;

use redrive_core::Status;
use redrive_sim::disk::Image;
use redrive_store::Store;
use redrive_store::conformance::samples::{acme, allow, at, keep, keep_and_end, task};
use redrive_store::conformance::{Snapshot, snapshot};
use redrive_store_sqlite::SqliteStore;

use crate::reopened::{DATA, directory, options, without_leases_ends};

const TABLES: &str = include_str!("../../../store-sqlite/src/schema/v1.sql");

/// What identifies a file as a database of Redrive, and its version.
const IDENTITY: &str = "PRAGMA application_id = 0x52447276; PRAGMA user_version = 1; PRAGMA journal_mode = WAL;";

/// The statements that copy everything from a database of the current version that the first version could hold.
const COPIES: &str = "
WITH tables AS (
    SELECT name, (SELECT group_concat(name, ', ') FROM pragma_table_info(sqlite_master.name)) AS columns
    FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'
)
SELECT format('INSERT INTO main.%s (%s) SELECT %s FROM newer.%s;', name, columns, columns, name) FROM tables";

/// The files, and their content once they are migrated.
pub(crate) fn database() -> (Image, Snapshot) {
    let (newer, older) = (directory(), directory());
    let held = fill(newer.path());
    let file = older.path().join("redrive.db");
    shell(&file, &format!("{IDENTITY} {TABLES}"));
    let newer = newer.path().join(DATA).join("redrive.db");
    let copies = shell(&file, COPIES);
    shell(&file, &format!("ATTACH '{}' AS newer; {copies}", newer.display()));
    let content = std::fs::read(&file).unwrap();
    let image =
        Image { files: [(Path::new(DATA).join("redrive.db"), content)].into(), directories: [DATA.into()].into() };
    (image, held)
}

#[tokio::main(flavor = "current_thread")]
async fn fill(directory: &Path) -> Snapshot {
    // The first version had no correlation ids and no traces.
    let task = |n| task(n).uncorrelated();
    let store = SqliteStore::open(options(directory)).unwrap();
    allow(&store, acme()).await;
    for n in 1..=20 {
        keep_and_end(&store, task(n), Status::Succeeded, at(9)).await;
        keep_and_end(&store, task(100 + n), Status::Exhausted, at(9)).await;
    }
    keep(&store, (200..=240).map(|n| task(n).due(at(n)))).await;
    keep(&store, (300..=310).map(|n| task(n).claimed(at(0)))).await;
    let mut held = without_leases_ends(snapshot(&store, [acme()]).await);
    // The first version did not note them.
    held.unannounced.clear();
    store.close().await;
    held
}

fn shell(database: &Path, statements: &str) -> String {
    let output = Command::new("sqlite3").args(["-batch", "-bail"]).arg(database).arg(statements).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
