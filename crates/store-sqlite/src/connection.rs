//! Connections and their settings.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::failure::Failure;
use crate::options::Options;

/// More than there are statements in this crate: a statement is prepared once per connection.
const STATEMENTS: usize = 128;

/// How long to wait for somebody else's lock, such as that of a person with a shell.
const BUSY: Duration = Duration::from_secs(5);

/// Each reader's part of the page cache.
const READER_CACHE_PART: usize = 4;

/// Measured: see the example `life_cycles`.
const PAGE_BYTES: u32 = 4096;

/// The one connection that writes. Commits sync the log (FULL) and never checkpoint.
pub(crate) fn writer(path: &Path, options: &Options) -> rusqlite::Result<Connection> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, options.cache_bytes)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // A log that was restarted is cut back to this: not after every round, because space that is reused is synced in
    // half the time, but after a reader kept it from being restarted.
    let limit = i64::try_from(options.wal_limit_bytes).unwrap_or(i64::MAX);
    connection.pragma_update(None, "journal_size_limit", limit.saturating_mul(2))?;
    Ok(connection)
}

/// A connection that cannot write.
pub(crate) fn reader(path: &Path, options: &Options) -> rusqlite::Result<Connection> {
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY, options.cache_bytes / READER_CACHE_PART)
}

/// The connection that checkpoints. It reads no tables, so it needs no cache to speak of.
pub(crate) fn checkpointer(path: &Path) -> rusqlite::Result<Connection> {
    const CACHE_BYTES: usize = 64 * 1024;
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, CACHE_BYTES)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(connection)
}

/// A look into a database that may turn out not to be ours: leaves no trace, not even a checkpoint on closing.
pub(crate) fn observer(path: &Path) -> rusqlite::Result<Connection> {
    const CACHE_BYTES: usize = 64 * 1024;
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY, CACHE_BYTES)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// A database that is being made, under a name that nobody looks at yet.
pub(crate) fn creator(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    Ok(connection)
}

fn open(path: &Path, mode: OpenFlags, cache_bytes: usize) -> rusqlite::Result<Connection> {
    // Each connection belongs to one thread, so SQLite needs no mutex of its own.
    let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // The plans here do not depend on the values bound. Without this, SQLite prepares a statement anew whenever a bound
    // value might change its plan: that was an eighth of the writer's time when many tasks come due.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    let kibibytes = i64::try_from(cache_bytes / 1024).unwrap_or(i64::MAX);
    connection.pragma_update(None, "cache_size", -kibibytes)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// Ends a checkpoint while nobody writes, so that the log starts over. The checkpointer has just moved all but the last
/// of it, so this is short. A reader in the way means another time, not a wait.
pub(crate) fn restart_log(writer: &Connection) -> Result<(), Failure> {
    writer.busy_timeout(Duration::ZERO)?;
    let restarted = writer.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get::<_, bool>(0));
    writer.busy_timeout(BUSY)?;
    tracing::trace!(busy = restarted?, "restarted the log");
    Ok(())
}
