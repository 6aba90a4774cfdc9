//! What went wrong, in the engine's terms.

use redrive_engine::bodies::BodyError;

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
    /// A file of authorities to trust cannot be used.
    #[error(transparent)]
    Trust(#[from] redrive_trust::Error),
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

    pub(crate) fn out_of_reach(error: &object_store::Error) -> Self {
        PlaceError::Unavailable(with_reasons(error))
    }
}

/// An error of object storage.
pub(crate) fn of(error: object_store::Error) -> BodyError {
    match error {
        object_store::Error::NotFound { .. } => BodyError::Missing,
        error if is_full(&error) => BodyError::Store(redrive_store::Error::Full(with_reasons(&error))),
        error => BodyError::Unavailable(with_reasons(&error)),
    }
}

/// The error with all of its reasons that it does not name itself.
/// Whether the disk that bodies are kept on has no room.
fn is_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut reasons = std::iter::successors(Some(error), |error| error.source());
    reasons.any(|reason| {
        let kind = reason.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        matches!(kind, Some(std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded))
    })
}

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
