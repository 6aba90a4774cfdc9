//! The marker: an object with a fixed name that holds the identity of the storage.
//!
//! The address is not enough: a directory of the same name is another one on another machine, a volume that is not
//! mounted leaves an empty directory, and a bucket may have been recreated. So the first process generates an identity
//! and writes it beside the bodies. It must be moved together with them.

use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};
use redrive_store::BlobStorageId;

use crate::failure::{self, StorageError};

/// The most bytes that a marker has, a line's end included.
pub(crate) const LONGEST: u64 = 64;

/// The identity of the storage, if it has one.
pub(crate) async fn read(storage: &dyn ObjectStore, name: &Path) -> Result<Option<BlobStorageId>, StorageError> {
    let object = match storage.get(name).await {
        Ok(object) => object,
        Err(error) if failure::is_missing(&error) => return Ok(None),
        Err(error) => return Err(StorageError::of(&error)),
    };
    if object.meta.size > LONGEST {
        return Err(StorageError::NotAMarker { name: name.to_string() });
    }
    let bytes = object.bytes().await.map_err(|error| StorageError::of(&error))?;
    parse(name.as_ref(), &bytes).map(Some)
}

/// The identity in the content of the object `name`.
pub(crate) fn parse(name: &str, content: &[u8]) -> Result<BlobStorageId, StorageError> {
    let text = std::str::from_utf8(content).ok();
    let identity = text.and_then(|text| text.trim_end().parse().ok());
    identity.ok_or_else(|| StorageError::NotAMarker { name: name.to_owned() })
}

/// Makes `fresh` the identity of a storage that has none. Returns the identity that it has then: another process may
/// have been first.
pub(crate) async fn write(
    storage: &dyn ObjectStore,
    name: &Path,
    fresh: BlobStorageId,
) -> Result<BlobStorageId, StorageError> {
    let content = Bytes::from(format!("{fresh}\n"));
    let only_if_absent = PutOptions::from(PutMode::Create);
    match storage.put_opts(name, content.clone().into(), only_if_absent).await {
        Ok(_) | Err(Error::AlreadyExists { .. }) => {}
        // Then two at the same moment are told apart by the read that follows, if they are lucky, and by the store if
        // not.
        Err(error) if knows_no_conditions(&error) => {
            storage.put(name, content.into()).await.map_err(|error| StorageError::of(&error))?;
        }
        Err(error) => return Err(StorageError::of(&error)),
    }
    read(storage, name)
        .await?
        .ok_or_else(|| StorageError::Unavailable("the marker that was written is not there".into()))
}

/// Not everything that speaks S3 knows conditions; what does not either ignores them or says so.
fn knows_no_conditions(error: &Error) -> bool {
    matches!(error, Error::NotImplemented { .. }) || error.to_string().contains("501 Not Implemented")
}

#[cfg(test)]
mod tests {
    use object_store::local::LocalFileSystem;
    use object_store::memory::InMemory;

    use super::*;
    use crate::bucket;
    use crate::location::{Credentials, Location};
    use crate::s3::{self, S3};

    /// Both have looked and found nothing; then one after the other writes.
    #[tokio::test]
    async fn the_second_to_write_takes_the_identity_of_the_first() {
        let (directory, s3) = (tempfile::tempdir().unwrap(), S3::start());
        let Ok(Location::S3(named)) = Location::parse(&s3.url()) else { panic!("{}", s3.url()) };
        let credentials = Credentials {
            access_key_id: Some(s3::ACCESS_KEY_ID.into()),
            secret_access_key: Some(s3::SECRET_ACCESS_KEY.into()),
            session_token: None,
        };
        let storages: [Box<dyn ObjectStore>; 3] = [
            Box::new(InMemory::new()),
            Box::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap()),
            Box::new(bucket::open(&named, &credentials, &[]).unwrap()),
        ];
        for storage in storages {
            let name = Path::from("redrive/place");
            assert_eq!(read(&*storage, &name).await.unwrap(), None, "{storage}");
            let (first, second) = (BlobStorageId::of(1), BlobStorageId::of(2));
            assert_eq!(write(&*storage, &name, first).await.unwrap(), first, "{storage}");
            assert_eq!(write(&*storage, &name, second).await.unwrap(), first, "{storage}");
            assert_eq!(read(&*storage, &name).await.unwrap(), Some(first), "{storage}");
        }
    }

    #[test]
    fn storage_that_knows_no_conditions_says_so_by_its_status() {
        let answered = |status: &str| {
            let text =
                format!("Error performing PUT http://x/y in 1ms - Server returned non-2xx status code: {status}: ");
            Error::Generic { store: "S3", source: text.into() }
        };
        assert!(knows_no_conditions(&answered("501 Not Implemented")));
        assert!(!knows_no_conditions(&answered("500 Internal Server Error")));
        assert!(!knows_no_conditions(&answered("403 Forbidden")));
    }

    #[tokio::test]
    async fn an_object_of_that_name_that_is_no_marker_is_left_alone() {
        let (storage, name) = (InMemory::new(), Path::from("place"));
        for content in ["", "somebody's notes", "\u{fffd}", &"x".repeat(100)] {
            storage.put(&name, content.to_owned().into()).await.unwrap();
            for answer in
                [read(&storage, &name).await.map(drop), write(&storage, &name, BlobStorageId::of(1)).await.map(drop)]
            {
                assert!(matches!(answer, Err(StorageError::NotAMarker { .. })), "{content:?}: {answer:?}");
            }
            let left = storage.get(&name).await.unwrap().bytes().await.unwrap();
            assert_eq!(left, content.as_bytes());
        }
    }
}
