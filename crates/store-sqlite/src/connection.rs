//! Connections and their settings.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::options::Options;
use crate::sqlite_error::SqliteError;

/// More than the number of statements in this crate: a statement is prepared once per connection.
const STATEMENTS: usize = 192;

/// How long to wait for another connection's lock, such as that of an operator with a shell.
const BUSY: Duration = Duration::from_secs(5);

/// The divisor of the page cache for each reader.
const READER_CACHE_PART: usize = 4;

/// Measured with the example `life_cycles`.
const PAGE_BYTES: u32 = 4096;

/// The one connection that writes. Commits sync the log (FULL) and never checkpoint.
pub(crate) fn writer(path: &Path, options: &Options) -> rusqlite::Result<Connection> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, options.cache_bytes)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // A log that was restarted is truncated to this size. Not after every restart, because a sync of reused space takes
    // half the time, but after a reader kept the log from being restarted.
    let limit = i64::try_from(options.wal_limit_bytes).unwrap_or(i64::MAX);
    connection.pragma_update(None, "journal_size_limit", limit.saturating_mul(2))?;
    Ok(connection)
}

/// A connection that cannot write.
pub(crate) fn reader(path: &Path, options: &Options) -> rusqlite::Result<Connection> {
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY, options.cache_bytes / READER_CACHE_PART)
}

/// The connection that checkpoints. It reads no tables, so it has a minimal cache.
pub(crate) fn checkpointer(path: &Path) -> rusqlite::Result<Connection> {
    const CACHE_BYTES: usize = 64 * 1024;
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, CACHE_BYTES)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(connection)
}

/// A connection to check a database that may not be Redrive's: it changes nothing, and makes no checkpoint on closing.
pub(crate) fn observer(path: &Path) -> rusqlite::Result<Connection> {
    const CACHE_BYTES: usize = 64 * 1024;
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY, CACHE_BYTES)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// A connection to a database that is being made, under a temporary name.
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
    // The plans here do not depend on the bound values. Without this setting, SQLite prepares a statement again
    // whenever a bound value might change its plan, which took an eighth of the writer's time when many tasks become
    // due.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    let kibibytes = i64::try_from(cache_bytes / 1024).unwrap_or(i64::MAX);
    connection.pragma_update(None, "cache_size", -kibibytes)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// Completes a checkpoint between two transactions, so that the log starts over. The checkpointer has just moved all
/// but the last of it, so this is short. If a reader blocks it, it returns at once and is tried again later.
pub(crate) fn restart_log(writer: &Connection) -> Result<(), SqliteError> {
    writer.busy_timeout(Duration::ZERO)?;
    let restarted = writer.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get::<_, bool>(0));
    writer.busy_timeout(BUSY)?;
    tracing::trace!(busy = restarted?, "restarted the log");
    Ok(())
}
