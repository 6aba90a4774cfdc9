//! Why a dialer cannot be made, and why a connection could not be opened.

use std::io;

use crate::authorities::AuthorityError;
use crate::endpoint::Endpoint;
use crate::shortage::Shortage;

/// Why a dialer cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A file of trusted certificates cannot be used.
    #[error(transparent)]
    Authorities(#[from] AuthorityError),
    /// The look-up of names could not be set up.
    #[error("could not set up dns")]
    Dns(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// TLS could not be set up.
    #[error("could not set up tls")]
    Tls(#[from] rustls::Error),
}

/// Why a connection could not be opened. The message names host and port and what was attempted.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct DialError {
    /// What kind of failure it is.
    pub kind: DialErrorKind,
    /// What was attempted and what went wrong.
    pub message: String,
}

/// The kinds of failure to open a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialErrorKind {
    /// The name could not be resolved.
    Dns,
    /// Nothing listens at the address.
    ConnectionRefused,
    /// The peer closed or reset the connection while it was opened.
    ConnectionReset,
    /// The TCP connection was not there in time.
    ConnectTimeout,
    /// The TCP connection failed for another reason.
    ConnectFailed,
    /// The peer's certificate is not trusted, or no authority is trusted at all.
    TlsCertificate,
    /// The two sides have no TLS version or cipher in common, or do not speak TLS.
    TlsHandshake,
    /// The TLS handshake did not end in time.
    TlsHandshakeTimeout,
    /// This machine lacks file descriptors, ports or memory. It says nothing about the peer.
    Shortage,
}

impl DialError {
    /// A failure of this `kind`.
    pub(crate) fn new(kind: DialErrorKind, message: impl Into<String>) -> Self {
        DialError { kind, message: message.into() }
    }

    /// This machine lacks something for a connection to `endpoint`.
    pub(crate) fn shortage(endpoint: &Endpoint, shortage: Shortage) -> Self {
        DialError::new(DialErrorKind::Shortage, format!("could not connect to {endpoint}: {shortage}"))
    }

    /// TCP failed.
    pub(crate) fn connect(endpoint: &Endpoint, error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::ConnectionRefused => DialErrorKind::ConnectionRefused,
            io::ErrorKind::TimedOut => DialErrorKind::ConnectTimeout,
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => DialErrorKind::ConnectionReset,
            _ => DialErrorKind::ConnectFailed,
        };
        DialError::new(kind, format!("could not connect to {endpoint}: {error}"))
    }

    /// The TLS handshake failed.
    pub(crate) fn handshake(endpoint: &Endpoint, error: &io::Error) -> Self {
        let attempted = format!("could not complete the TLS handshake with {endpoint}");
        match error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>()) {
            Some(error @ (rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented)) => {
                DialError::new(DialErrorKind::TlsCertificate, format!("{attempted}: {error}"))
            }
            Some(error) => DialError::new(DialErrorKind::TlsHandshake, format!("{attempted}: {error}")),
            None => DialError::new(DialErrorKind::ConnectionReset, format!("{attempted}: {error}")),
        }
    }
}
