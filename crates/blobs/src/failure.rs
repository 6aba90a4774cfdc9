//! Errors, and what they mean to the engine.

use redrive_engine::bodies::BodyError;
use redrive_store::BlobStorageId;

/// Why object storage could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory cannot be created or used.
    #[error("cannot use the directory {}", path.display())]
    Directory {
        /// The directory.
        path: std::path::PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Connections cannot be set up: a file of trusted certificates cannot be used.
    #[error(transparent)]
    Dial(#[from] redrive_dial::SetupError),
    /// The settings of object storage are not valid.
    #[error("cannot set up object storage")]
    Setup(#[from] object_store::Error),
}

/// Why the identity of the storage could not be read, or is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// The storage cannot be reached or used.
    #[error("{0}")]
    Unavailable(String),
    /// There are no credentials.
    #[error("AWS_ACCESS_KEY_ID is not set, and the metadata service of the machine has no credentials either: {0}")]
    NoKeys(String),
    /// There is no such bucket, or a proxy answers instead of S3.
    #[error("there is no such bucket, or a proxy answers instead of S3: {0}")]
    NoBucket(String),
    /// This is not the storage that has the bodies: its marker is missing or another one.
    #[error("{location} {}: mount the volume, or restore the bucket, that has the bodies", difference(.found.as_ref(), .expected))]
    WrongStorage {
        /// The location of the storage.
        location: String,
        /// The identity in its marker, if it has one.
        found: Option<BlobStorageId>,
        /// The identity of the storage that has the bodies.
        expected: BlobStorageId,
    },
    /// The object with the marker's name is not a marker.
    #[error("the object {name} is not a marker of Redrive; choose another prefix or directory")]
    NotAMarker {
        /// The object's name.
        name: String,
    },
}

/// The address of the metadata service that gives a machine its credentials.
const METADATA_SERVICE: &str = "169.254.169.254";

impl StorageError {
    /// The error if no credentials were configured: storage itself was never asked.
    pub(crate) fn without_keys(self) -> Self {
        match self {
            StorageError::Unavailable(why) if why.contains(METADATA_SERVICE) => StorageError::NoKeys(why),
            error => error,
        }
    }

    /// An error of object storage that says nothing about the marker.
    pub(crate) fn of(error: &object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { .. } => StorageError::NoBucket(with_reasons(error)),
            error => StorageError::Unavailable(with_reasons(error)),
        }
    }
}

impl From<StorageError> for BodyError {
    fn from(error: StorageError) -> Self {
        BodyError::Unavailable(error.to_string())
    }
}

fn difference(found: Option<&BlobStorageId>, expected: &BlobStorageId) -> String {
    match found {
        Some(found) => format!("has the marker {found}, expected {expected}"),
        None => format!("has no marker \"place\", expected {expected}"),
    }
}

/// An error of object storage. That something was not found is a fault of it as well, unless a body was looked for:
/// then ask [`is_missing`] first.
pub(crate) fn of(error: object_store::Error) -> BodyError {
    match is_full(&error) {
        true => BodyError::Store(redrive_store::Error::Full(with_reasons(&error))),
        false => BodyError::Unavailable(with_reasons(&error)),
    }
}

/// An error of the file system.
pub(crate) fn of_file(error: std::io::Error) -> BodyError {
    of(object_store::Error::Generic { store: "LocalFileSystem", source: Box::new(error) })
}

/// Whether a read found no object of that name. S3 says so with a code: a bucket that is gone, and a proxy that knows
/// no such path, answer 404 as well.
pub(crate) fn is_missing(error: &object_store::Error) -> bool {
    let object_store::Error::NotFound { source, .. } = error else { return false };
    // The answer's type is private to the object store; its text has the status and the body.
    let answer = source.to_string();
    !answer.contains("status code: 404") || answer.contains("<Code>NoSuchKey</Code>")
}

/// Whether the disk is full.
fn is_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut reasons = std::iter::successors(Some(error), |error| error.source());
    reasons.any(|reason| {
        let kind = reason.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        matches!(kind, Some(std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded))
    })
}

/// The error with all of its sources that its own text does not name.
fn with_reasons(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut reason = error.source();
    while let Some(error) = reason {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        reason = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_as_such_whatever_it_is_wrapped_in() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let wrapped = object_store::Error::Generic { store: "file", source: Box::new(full) };
        assert!(matches!(of(wrapped), BodyError::Store(redrive_store::Error::Full(_))));
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let wrapped = object_store::Error::Generic { store: "file", source: Box::new(refused) };
        assert!(matches!(of(wrapped), BodyError::Unavailable(_)));
    }

    #[test]
    fn missing_keys_are_named_if_no_other_source_has_them() {
        let asked = StorageError::Unavailable("Error performing PUT http://169.254.169.254/latest/api/token".into());
        let text = asked.without_keys().to_string();
        assert!(text.starts_with("AWS_ACCESS_KEY_ID is not set") && text.ends_with("/latest/api/token"), "{text}");
        let refused = StorageError::Unavailable("403 Forbidden".into());
        assert_eq!(refused.clone().without_keys(), refused);
    }
}
