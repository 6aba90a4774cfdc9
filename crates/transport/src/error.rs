//! Why a transport cannot be made.

/// Why a transport cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of own authorities is not what it should be.
    #[error(transparent)]
    Trust(#[from] redrive_trust::Error),
    /// A setting that makes no sense.
    #[error("{name} {problem}")]
    InvalidOption {
        /// The field of [`crate::Options`].
        name: &'static str,
        /// What is wrong with it and what would be right.
        problem: String,
    },
    /// TLS could not be set up.
    #[error("could not set up tls")]
    Tls(#[from] rustls::Error),
}
