//! Why a transport cannot be made.

use std::path::PathBuf;

/// Why a transport cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of own authorities cannot be read.
    #[error("could not read the certificates in {}", path.display())]
    UnreadableCa {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file of own authorities is not what it should be.
    #[error("could not use the certificates in {}: {problem}", path.display())]
    InvalidCa {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
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
