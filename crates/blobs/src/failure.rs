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
    /// The settings make no client.
    #[error("cannot set up object storage")]
    Setup(#[from] object_store::Error),
}

/// An error of object storage.
pub(crate) fn of(error: object_store::Error) -> BodyError {
    match error {
        object_store::Error::NotFound { .. } => BodyError::Missing,
        error => BodyError::Unavailable(with_reasons(&error)),
    }
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
