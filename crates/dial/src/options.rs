//! The settings of a dialer.

use std::net::SocketAddr;
use std::path::PathBuf;

/// How connections are opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The DNS servers to ask, in place of those in `/etc/resolv.conf`; its search list is not used either then. Empty
    /// for the system's configuration.
    pub dns_servers: Vec<SocketAddr>,
    /// Whether the authorities that the system trusts are trusted.
    pub roots: Roots,
    /// PEM files of authorities to trust in addition.
    pub extra_ca: Vec<PathBuf>,
    /// The protocols to offer in the TLS handshake (ALPN), the preferred one first. Empty to offer none.
    pub alpn: Vec<Vec<u8>>,
}

/// Whether the authorities that the system trusts are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Roots {
    /// System authorities are trusted.
    System,
    /// Only the authorities in [`Options::extra_ca`] are trusted.
    ExtraOnly,
}

impl Default for Options {
    fn default() -> Self {
        Options { dns_servers: Vec::new(), roots: Roots::System, extra_ca: Vec::new(), alpn: Vec::new() }
    }
}
