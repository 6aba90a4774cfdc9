//! Deletes what interrupted uploads left behind.

use std::io;
use std::os::fd::OwnedFd;

use futures_util::TryStreamExt as _;
use object_store::{ObjectStore, ObjectStoreExt as _};
use redrive_core::Timestamp;
use redrive_engine::bodies::BodyError;
use rustix::fs::{AtFlags, Dir, Mode, OFlags};

use crate::directory::found;
use crate::failure;
use crate::object_names::{INCOMING, ObjectNames};

/// Deletes unfinished uploads that are older than `before`.
pub(crate) async fn delete_objects(
    storage: &dyn ObjectStore,
    names: &ObjectNames,
    before: Timestamp,
) -> Result<usize, BodyError> {
    let mut objects = storage.list(Some(&names.all_incoming()));
    let mut deleted = 0;
    while let Some(object) = objects.try_next().await.map_err(failure::of)? {
        let is_old = u64::try_from(object.last_modified.timestamp_millis()).unwrap_or(0) < before.as_millis();
        if is_old {
            storage.delete(&object.location).await.map_err(failure::of)?;
            deleted += 1;
        }
    }
    Ok(deleted)
}

/// Like [`delete_objects`], for a directory: a half-written file is not listed as an object there.
pub(crate) fn delete_files(root: &OwnedFd, before: Timestamp) -> io::Result<usize> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Some(incoming) = found(rustix::fs::openat(root, INCOMING, flags, Mode::empty()))? else { return Ok(0) };
    let before = i128::from(before.as_millis());
    let mut deleted = 0;
    for entry in Dir::read_from(&incoming)? {
        let entry = entry?;
        // An upload may finish or be aborted meanwhile.
        let Ok(file) = rustix::fs::statat(&incoming, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let modified = i128::from(file.st_mtime) * 1_000 + i128::from(file.st_mtime_nsec) / 1_000_000;
        if modified < before && rustix::fs::unlinkat(&incoming, entry.file_name(), AtFlags::empty()).is_ok() {
            deleted += 1;
        }
    }
    Ok(deleted)
}
