//! What uploads that broke off left behind.

use std::path::Path as Directory;
use std::time::{Duration, UNIX_EPOCH};

use futures_util::TryStreamExt as _;
use object_store::{ObjectStore, ObjectStoreExt as _};
use redrive_core::Timestamp;
use redrive_engine::bodies::BodyError;

use crate::failure;
use crate::place::{INCOMING, Places};

/// Deletes objects that have waited to be put in their place since before this moment.
pub(crate) async fn delete_objects(
    storage: &dyn ObjectStore,
    places: &Places,
    before: Timestamp,
) -> Result<usize, BodyError> {
    let mut objects = storage.list(Some(&places.all_incoming()));
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

/// The same for a directory, where a file that was never finished is not listed as an object.
pub(crate) fn delete_files(root: &Directory, before: Timestamp) -> Result<usize, std::io::Error> {
    let before = UNIX_EPOCH + Duration::from_millis(before.as_millis());
    let incoming = match std::fs::read_dir(root.join(INCOMING)) {
        Ok(incoming) => incoming,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut deleted = 0;
    for entry in incoming {
        let entry = entry?;
        // An upload may end, or be taken back, while this is looking.
        let is_old = entry.metadata().and_then(|metadata| metadata.modified()).is_ok_and(|modified| modified < before);
        if is_old && std::fs::remove_file(entry.path()).is_ok() {
            deleted += 1;
        }
    }
    Ok(deleted)
}
