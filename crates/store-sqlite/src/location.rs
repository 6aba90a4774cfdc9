//! The location of the files: detects that a path leads to another file, or to none, while the process has its own file
//! open.

use std::io;
use std::path::{Path, PathBuf};

use redrive_store::Error;

/// The files of a store, as they were when it was opened.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    files: Vec<(PathBuf, Identity)>,
}

/// What identifies a file: device and inode number.
type Identity = (u64, u64);

impl Location {
    /// Records these files, which must exist.
    pub(crate) fn of<'a>(paths: impl IntoIterator<Item = &'a Path>) -> io::Result<Self> {
        let files = paths.into_iter().map(|path| Ok((path.to_owned(), identity(path)?)));
        Ok(Location { files: files.collect::<io::Result<_>>()? })
    }

    /// Fails if one of the files is missing, or has been replaced.
    pub(crate) fn check(&self) -> Result<(), Error> {
        for (path, before) in &self.files {
            let what = match identity(path) {
                Ok(now) if now == *before => continue,
                Ok(_) => "was replaced".to_owned(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => "was deleted".to_owned(),
                Err(error) => format!("cannot be looked at ({error})"),
            };
            let path = path.display();
            return Err(Error::Unavailable(format!(
                "{path} {what} under the running process: what was accepted since is not there for the next start"
            )));
        }
        Ok(())
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt;
    // Reads the metadata without opening: a process that closes any handle of a file loses SQLite's locks on it.
    std::fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> io::Result<Identity> {
    std::fs::metadata(path).map(|_| (0, 0))
}
