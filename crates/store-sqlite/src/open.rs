//! Opening a data directory: takes its lock, and checks that the database is Redrive's and of a supported version.
//!
//! A database is made under another name and moved into place when it is complete, so an existing file is either whole
//! or not Redrive's. The check reads the file's header without opening the database, so that a file which is refused is
//! not changed.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redrive_store::group_commit::GroupCommit;
use redrive_store::{Error, Liveness};
use rusqlite::{Connection, TransactionBehavior};

use crate::checkpointer::Checkpointer;
use crate::connection;
use crate::keys::{Keys, OF_RECORDS, OF_TASKS};
use crate::location::Location;
use crate::lock::{self, DirectoryLock};
use crate::ops::expire_leases::expire_leases;
use crate::ops::set_aside::take_back;
use crate::options::Options;
use crate::pending_guards::PendingGuards;
use crate::readers::Readers;
use crate::schema;
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

const DATABASE: &str = "redrive.db";
const UNFINISHED: &str = "redrive.db.new";

/// Why a store could not be opened. Nothing was changed, unless a step of a migration succeeded before.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory, or a file in it, cannot be used.
    #[error("cannot use {}", path.display())]
    Directory {
        /// The directory or file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another process, or another store in this process, has it open.
    #[error("the data directory {} is in use by another process", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The file was not made by Redrive.
    #[error("{} is not a Redrive database", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// The file was made by a newer Redrive.
    #[error("{} has schema version {found}, but this program knows only versions up to {newest}", path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: i32,
        /// The newest version that this program supports.
        newest: i32,
    },
    /// SQLite failed.
    #[error("cannot open {}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Error,
    },
}

/// The running parts of a store.
pub(crate) struct Parts {
    pub(crate) writer: GroupCommit<Writer>,
    pub(crate) readers: Readers,
    pub(crate) liveness: Liveness,
    pub(crate) location: Location,
    pub(crate) guards: PendingGuards,
}

pub(crate) fn open(options: &Options) -> Result<Parts, OpenError> {
    let lock = Arc::new(DirectoryLock::take(&options.directory)?);
    let path = options.directory.join(DATABASE);
    if path.try_exists().map_err(|source| OpenError::Directory { path: path.clone(), source })? {
        inspect(&path)?;
    } else {
        create(&options.directory, &path)?;
    }
    let refused = |failure: SqliteError| OpenError::Database {
        path: path.clone(),
        source: failure.into_error("opening the database"),
    };
    let mut connection = connection::writer(&path, options).map_err(|error| refused(error.into()))?;
    let keys = prepare(&mut connection, &path, options).map_err(refused)?;
    start(&path, options, connection, keys, &lock).map_err(|source| OpenError::Database { path, source })
}

/// Migrates the database, takes back what was set aside, expires all leases of tasks, and reads the newest keys: those of
/// tasks, and those of idempotency records.
fn prepare(connection: &mut Connection, path: &Path, options: &Options) -> Result<(Keys, Keys), SqliteError> {
    schema::migrate(connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let taken_back = take_back(&transaction)?;
    let leases = expire_leases(&transaction)?;
    transaction.commit()?;
    if taken_back > 0 {
        tracing::info!(rows = taken_back, "took back rows that an earlier program could not understand");
    }
    if leases > 0 {
        tracing::info!(tasks = leases, "tasks were in flight when the store was last used; their leases have ended");
    }
    let load = |table| Keys::load(table, connection, path, options.recent_keys);
    Ok((load(&OF_TASKS)?, load(&OF_RECORDS)?))
}

fn start(
    path: &Path,
    options: &Options,
    connection: Connection,
    keys: (Keys, Keys),
    lock: &Arc<DirectoryLock>,
) -> Result<Parts, Error> {
    let failed = |error: rusqlite::Error| SqliteError::from(error).into_error("opening the database");
    let no_thread = |error: io::Error| Error::Unavailable(format!("starting a thread: {error}"));
    let readers: Vec<Connection> = (0..options.readers.max(1))
        .map(|_| connection::reader(path, options))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    let checkpoints = connection::checkpointer(path).map_err(failed)?;
    lock.open_database(path).map_err(|error| Error::Unavailable(format!("opening the database: {error}")))?;
    let liveness = Liveness::default();
    let checkpointer = Checkpointer::start(checkpoints, options, Arc::clone(lock), &liveness).map_err(no_thread)?;
    let guards = PendingGuards::default();
    let writer = Writer::new(connection, keys, checkpointer, guards.clone());
    let writer = GroupCommit::start("redrive-write", writer, options.group_commit)?;
    let readers = Readers::start(readers, lock, &liveness).map_err(no_thread)?;
    let location = Location::of([path, &options.directory.join(lock::FILE)])
        .map_err(|error| Error::Unavailable(format!("looking at the database: {error}")))?;
    Ok(Parts { writer, readers, liveness, location, guards })
}

/// Creates a database of the newest version and moves it into place.
fn create(directory: &Path, path: &Path) -> Result<(), OpenError> {
    let unfinished = directory.join(UNFINISHED);
    let at = |source| OpenError::Directory { path: unfinished.clone(), source };
    for leftover in [&unfinished, &directory.join(format!("{UNFINISHED}-journal"))] {
        match std::fs::remove_file(leftover) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(at(source)),
            _ => {}
        }
    }
    let make = || {
        let mut connection = connection::creator(&unfinished)?;
        schema::migrate(&mut connection)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.close().map_err(|(_, error)| error)
    };
    make().map_err(|error| OpenError::Database {
        path: unfinished.clone(),
        source: SqliteError::from(error).into_error("making a database"),
    })?;
    keep_from_others(&unfinished).map_err(at)?;
    std::fs::rename(&unfinished, path).map_err(at)?;
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(at)?;
    // An earlier start may have made the directory and died before it was synced. A process that may not open the
    // directory above did not make it.
    match lock::sync_name(directory) {
        Err(source) if source.kind() != io::ErrorKind::PermissionDenied => Err(at(source)),
        _ => Ok(()),
    }
}

/// Sets the file's mode to private: headers may contain secrets, and others may be able to read the directory. The log
/// gets the same mode.
fn keep_from_others(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(())
}

/// Refuses a file that is not Redrive's, or of a newer version.
fn inspect(path: &Path) -> Result<(), OpenError> {
    let header = Header::read(path).map_err(|source| OpenError::Directory { path: path.to_owned(), source })?;
    let newest = schema::newest();
    let too_new = |found| OpenError::TooNew { path: path.to_owned(), found, newest };
    match header {
        Some(header) if header.application_id == schema::APPLICATION_ID => {
            if header.version > newest {
                return Err(too_new(header.version));
            }
        }
        _ => return Err(OpenError::NotOurs { path: path.to_owned() }),
    }
    // A crash may have left the last migration in the log.
    let logged = connection::observer(path).and_then(|observer| schema::version(&observer));
    let found = logged.map_err(|error| OpenError::Database {
        path: path.to_owned(),
        source: SqliteError::from(error).into_error("reading the schema's version"),
    })?;
    if found > newest { Err(too_new(found)) } else { Ok(()) }
}

/// The first bytes of a database file (<https://www.sqlite.org/fileformat.html>).
struct Header {
    application_id: i32,
    version: i32,
}

impl Header {
    const BYTES: usize = 100;
    const MAGIC: &[u8] = b"SQLite format 3\0";
    const VERSION_AT: usize = 60;
    const APPLICATION_ID_AT: usize = 68;

    /// Reads the header; `None` if this is not a SQLite database.
    fn read(path: &Path) -> io::Result<Option<Header>> {
        let mut bytes = [0; Header::BYTES];
        match File::open(path)?.read_exact(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let number = |at: usize| i32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Ok(bytes
            .starts_with(Header::MAGIC)
            .then(|| Header { application_id: number(Header::APPLICATION_ID_AT), version: number(Header::VERSION_AT) }))
    }
}
