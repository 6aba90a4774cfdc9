//! A directory that holds objects.
//!
//! When a volume is mounted or unmounted, the same path is another directory. So the directory is held open: its marker
//! is read and objects are looked up and deleted through that handle, whatever the path means by then.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use object_store::local::LocalFileSystem;
use object_store::path::Path;
use redrive_core::Timestamp;
use redrive_store::BlobStorageId;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use tokio::sync::Semaphore;

use crate::failure::{OpenError, StorageError};
use crate::object_names::{BODIES, INCOMING, MARKER};
use crate::{marker, permissions, unfinished_uploads};

/// The most calls at a time. A network file system that hangs holds a thread for each.
const CALLS_AT_ONCE: usize = 32;

/// A directory that holds objects.
pub(crate) struct Directory {
    /// As the object store below resolved it.
    path: PathBuf,
    pub(crate) files: Arc<LocalFileSystem>,
    calls: Arc<Semaphore>,
}

impl Directory {
    /// Opens a directory. Every write is synced to disk before the call returns. Subdirectories that an older version
    /// created readable for others are closed.
    pub(crate) fn open(path: &FilePath) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Directory { path: path.to_owned(), source };
        permissions::make_directory(path).map_err(failed)?;
        for ours in [BODIES, INCOMING].map(|name| path.join(name)) {
            if let Err(error) = permissions::close_directory(&ours) {
                tracing::warn!(
                    %error,
                    directory = %ours.display(),
                    "other users may be able to read stored bodies: cannot change the permissions of the directory"
                );
            }
        }
        if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
            // The entry of the directory must be durable too.
            std::fs::File::open(above).and_then(|above| above.sync_all()).map_err(failed)?;
        }
        let files = Arc::new(LocalFileSystem::new_with_prefix(path)?.with_fsync(true));
        let path = std::fs::canonicalize(path).map_err(failed)?;
        Ok(Directory { path, files, calls: Arc::new(Semaphore::new(CALLS_AT_ONCE)) })
    }

    /// Opens the directory that is at the path now. `None` if there is none.
    pub(crate) async fn hold(&self) -> io::Result<Option<HeldDirectory>> {
        let path = self.path.clone();
        let opened = self.call(move || {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            found(rustix::fs::open(&path, flags, Mode::empty()))
        });
        let calls = self.calls.clone();
        Ok(opened.await?.map(|opened| HeldDirectory { opened: Arc::new(opened), calls }))
    }

    /// Does something with the file of an object, by its path.
    pub(crate) async fn with_file(
        &self,
        object: &Path,
        act: impl FnOnce(&FilePath) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let file = self.files.path_to_filesystem(object)?;
        self.call(move || act(&file)).await
    }

    /// Creates the directory of the object. The root is never created here: if it is missing, the volume is not
    /// mounted.
    pub(crate) async fn make_parent_directory(&self, object: &Path) -> io::Result<()> {
        let root = self.path.clone();
        let make = move |file: &FilePath| match file.parent() {
            Some(parent) => permissions::make_directory_below(&root, parent),
            None => Ok(()),
        };
        self.with_file(object, make).await
    }

    async fn call<T: Send + 'static>(&self, act: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
        call(&self.calls, act).await
    }
}

/// A directory that is held open: the same one, whatever its path leads to later.
pub(crate) struct HeldDirectory {
    opened: Arc<OwnedFd>,
    calls: Arc<Semaphore>,
}

impl HeldDirectory {
    /// The identity in its marker, if it has one.
    pub(crate) async fn identity(&self) -> Result<Option<BlobStorageId>, StorageError> {
        let read = self.call(|directory| {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let Some(file) = found(rustix::fs::openat(directory, MARKER, flags, Mode::empty()))? else {
                return Ok(None);
            };
            let mut content = Vec::new();
            std::fs::File::from(file).take(marker::LONGEST + 1).read_to_end(&mut content)?;
            Ok(Some(content))
        });
        let content =
            read.await.map_err(|error| StorageError::Unavailable(format!("cannot read its marker: {error}")))?;
        content.map(|content| marker::parse(MARKER, &content)).transpose()
    }

    /// How many bytes the object has, if it is there.
    pub(crate) async fn size(&self, object: &Path) -> io::Result<Option<u64>> {
        let name = object.to_string();
        let looked = self.call(move |directory| found(rustix::fs::statat(directory, &name, AtFlags::empty())));
        Ok(looked.await?.map(|file| u64::try_from(file.st_size).unwrap_or(0)))
    }

    /// Deletes the object, if it is there.
    pub(crate) async fn delete(&self, object: &Path) -> io::Result<()> {
        let name = object.to_string();
        self.call(move |directory| found(rustix::fs::unlinkat(directory, &name, AtFlags::empty())).map(drop)).await
    }

    /// Deletes unfinished uploads that are older than `before`.
    pub(crate) async fn delete_unfinished(&self, before: Timestamp) -> io::Result<usize> {
        self.call(move |directory| unfinished_uploads::delete_files(directory, before)).await
    }

    async fn call<T: Send + 'static>(
        &self,
        act: impl FnOnce(&OwnedFd) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let opened = self.opened.clone();
        call(&self.calls, move || act(&opened)).await
    }
}

/// Calls the file system on a thread that may wait for it.
async fn call<T: Send + 'static>(
    calls: &Arc<Semaphore>,
    act: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let permit = calls.clone().acquire_owned().await.map_err(io::Error::other)?;
    let called = tokio::task::spawn_blocking(move || {
        let done = act();
        // Held to the call's own end, which may come after its caller has given up.
        drop(permit);
        done
    });
    called.await.map_err(io::Error::other)?
}

/// What was found; nothing if there is no such file.
pub(crate) fn found<T>(answer: Result<T, Errno>) -> io::Result<Option<T>> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
