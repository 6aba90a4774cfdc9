//! The record of the blob storage that the embedded store was last used with: a file in the data directory.
//!
//! It distinguishes a volume that is not mounted from a storage that was never used. A shared store has the same record
//! in its tables.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context;
use redrive_store::BlobStorageId;

/// The file's name in the data directory.
const FILE: &str = "body-place";

/// A location and the identity of the blob storage there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordedStorage {
    pub(super) location: String,
    pub(super) identity: BlobStorageId,
}

/// Where the record is.
pub(super) fn file(data_dir: &Path) -> PathBuf {
    data_dir.join(FILE)
}

/// What was recorded, if anything was.
pub(super) fn read(data_dir: &Path) -> anyhow::Result<Option<RecordedStorage>> {
    let file = file(data_dir);
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    };
    let recorded = text.trim_end().split_once(' ').and_then(|(identity, location)| {
        Some(RecordedStorage { location: location.to_owned(), identity: identity.parse().ok()? })
    });
    let unknown = || format!("{} is damaged: restore it, or delete it", file.display());
    recorded.with_context(unknown).map(Some)
}

/// Writes the record and syncs it to disk.
pub(super) fn write(data_dir: &Path, recorded: &RecordedStorage) -> anyhow::Result<()> {
    let (file, fresh) = (file(data_dir), file(data_dir).with_extension("new"));
    let write = || {
        let mut opened = std::fs::File::create(&fresh)?;
        writeln!(opened, "{} {}", recorded.identity, recorded.location)?;
        opened.sync_all()?;
        std::fs::rename(&fresh, &file)?;
        std::fs::File::open(data_dir)?.sync_all()
    };
    write().with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_is_read_back() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read(directory.path()).unwrap(), None);
        for location in ["/var/lib/redrive/my bodies", "s3://bucket/prefix at http://127.0.0.1:9000"] {
            let recorded = RecordedStorage { location: location.into(), identity: BlobStorageId::of(7) };
            write(directory.path(), &recorded).unwrap();
            assert_eq!(read(directory.path()).unwrap(), Some(recorded));
        }
        std::fs::write(file(directory.path()), "something else").unwrap();
        assert!(read(directory.path()).unwrap_err().to_string().contains("or delete it"));
    }
}
