//! What went wrong, in the engine's terms.

use redrive_engine::bodies::BodyError;
use redrive_store::PlaceId;

/// Why object storage could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory cannot be made or used.
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
    /// The settings make no client.
    #[error("cannot set up object storage")]
    Setup(#[from] object_store::Error),
}

/// Why it could not be found out which place this is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// It cannot be reached or used.
    #[error("{0}")]
    Unavailable(String),
    /// Nobody said with which keys to ask.
    #[error("AWS_ACCESS_KEY_ID is not set, and the metadata service of an instance gave no keys either: {0}")]
    NoKeys(String),
    /// There is no bucket, or something in front of it answers in its place.
    #[error("there is no such bucket, or a proxy answers in its place: {0}")]
    NoBucket(String),
    /// It is not where bodies are kept, by its marker.
    #[error("{location} {}: mount the volume, or bring the bucket back, that has them", difference(.found.as_ref(), .expected))]
    AnotherPlace {
        /// Where bodies should be.
        location: String,
        /// The identity of what is there, if it has a marker.
        found: Option<PlaceId>,
        /// The identity of where they are.
        expected: PlaceId,
    },
    /// Something else has the marker's name.
    #[error("the object {name} there is not a marker of Redrive's")]
    NotAMarker {
        /// The object's name.
        name: String,
    },
}

/// Where an instance of Amazon's is told its keys.
const METADATA_SERVICE: &str = "169.254.169.254";

impl PlaceError {
    /// What somebody who gave no keys has to know: storage itself was never asked.
    pub(crate) fn without_keys(self) -> Self {
        match self {
            PlaceError::Unavailable(why) if why.contains(METADATA_SERVICE) => PlaceError::NoKeys(why),
            error => error,
        }
    }

    /// An error of object storage that says nothing about the marker.
    pub(crate) fn of(error: &object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { .. } => PlaceError::NoBucket(with_reasons(error)),
            error => PlaceError::Unavailable(with_reasons(error)),
        }
    }
}

impl From<PlaceError> for BodyError {
    fn from(error: PlaceError) -> Self {
        BodyError::Unavailable(error.to_string())
    }
}

fn difference(found: Option<&PlaceId>, expected: &PlaceId) -> String {
    match found {
        Some(found) => format!("is the place {found}, and large bodies are kept in the place {expected}"),
        None => format!("has no marker \"place\", and large bodies are kept in the place {expected}"),
    }
}

/// An error of object storage. That something was not found is a fault of it as well, unless a body was looked for: then
/// ask [`is_missing`] first.
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

/// Whether a read found no object of that name. S3 says so with a code: a bucket that is gone, and a proxy that knows no
/// such path, answer 404 as well.
pub(crate) fn is_missing(error: &object_store::Error) -> bool {
    let object_store::Error::NotFound { source, .. } = error else { return false };
    // The answer's type is private to the object store; its text has the status and the body.
    let answer = source.to_string();
    !answer.contains("status code: 404") || answer.contains("<Code>NoSuchKey</Code>")
}

/// Whether the disk that bodies are kept on has no room.
fn is_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut reasons = std::iter::successors(Some(error), |error| error.source());
    reasons.any(|reason| {
        let kind = reason.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        matches!(kind, Some(std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded))
    })
}

/// The error with all of its reasons that it does not name itself.
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
    fn who_gave_no_keys_is_told_so_if_nobody_else_did() {
        let asked = PlaceError::Unavailable("Error performing PUT http://169.254.169.254/latest/api/token".into());
        let text = asked.without_keys().to_string();
        assert!(text.starts_with("AWS_ACCESS_KEY_ID is not set") && text.ends_with("/latest/api/token"), "{text}");
        let refused = PlaceError::Unavailable("403 Forbidden".into());
        assert_eq!(refused.clone().without_keys(), refused);
    }
}
