//! Where the files are: a path may come to lead to another file, or to none, while the process has its own open.

use std::io;
use std::path::{Path, PathBuf};

use redrive_store::Error;

/// The files of a store, as they were when it was opened.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    files: Vec<(PathBuf, Identity)>,
}

/// What tells a file from every other one: device and number.
type Identity = (u64, u64);

impl Location {
    /// These files, which are there.
    pub(crate) fn of<'a>(paths: impl IntoIterator<Item = &'a Path>) -> io::Result<Self> {
        let files = paths.into_iter().map(|path| Ok((path.to_owned(), identity(path)?)));
        Ok(Location { files: files.collect::<io::Result<_>>()? })
    }

    /// An error if one of the files is not there any more, or is another one.
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
    // Looks without opening: whoever closes a file of SQLite's loses its locks.
    std::fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> io::Result<Identity> {
    std::fs::metadata(path).map(|_| (0, 0))
}
