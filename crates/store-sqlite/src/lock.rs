//! Ownership of the data directory: one process at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use crate::open::OpenError;

/// The name of the file that is locked.
pub(crate) const FILE: &str = "lock";

/// Held while the store is open. The operating system releases it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    _file: File,
    /// A handle of the database file for [`DirectoryLock::sync_database`]. It is kept here because closing any handle
    /// of a file drops all locks of the process on it, including SQLite's. Every part with a connection shares this
    /// lock.
    database: OnceLock<File>,
}

impl DirectoryLock {
    /// Creates the directory if needed and takes its lock, without waiting.
    pub(crate) fn take(directory: &Path) -> Result<Self, OpenError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source: io::Error| OpenError::Directory { path, source }
        };
        make_private(directory).map_err(at(directory))?;
        let path = directory.join(FILE);
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        let file = options.open(&path).map_err(at(&path))?;
        match file.try_lock() {
            Ok(()) => Ok(DirectoryLock { _file: file, database: OnceLock::new() }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: directory.to_owned() }),
            Err(TryLockError::Error(source)) => Err(OpenError::Directory { path, source }),
        }
    }

    /// Opens the database file for [`DirectoryLock::sync_database`].
    pub(crate) fn open_database(&self, path: &Path) -> io::Result<()> {
        let file = File::open(path)?;
        debug_assert!(self.database.get().is_none(), "one database in a directory");
        self.database.get_or_init(|| file);
        Ok(())
    }

    /// Syncs the database file.
    pub(crate) fn sync_database(&self) -> io::Result<()> {
        self.database.get().map_or(Ok(()), File::sync_data)
    }
}

/// Creates the directory so that other users cannot read it: bodies and headers may contain secrets. An existing
/// directory keeps its permissions.
///
/// The new directories are synced: without its name in the directory above, everything that is synced inside is lost.
fn make_private(directory: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = directory.ancestors().take_while(|path| is_missing(path)).collect();
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)?;
    missing.into_iter().rev().try_for_each(sync_name)
}

fn is_missing(path: &Path) -> bool {
    !path.as_os_str().is_empty() && !path.exists()
}

/// Makes a name durable by a sync of the directory that contains it.
pub(crate) fn sync_name(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}
