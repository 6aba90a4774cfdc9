//! Why a transport cannot be made.

/// Why a transport cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of own authorities is not what it should be.
    #[error(transparent)]
    Trust(#[from] redrive_trust::Error),
    /// The look-up of names could not be set up.
    #[error("could not set up dns")]
    Dns(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// TLS could not be set up.
    #[error("could not set up tls")]
    Tls(#[from] rustls::Error),
}
