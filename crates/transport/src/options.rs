//! The settings of the transport.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use redrive_core::Answer;
use redrive_dial::Roots;

/// The transport's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The most unused connections that are kept for one tenant to one origin.
    pub max_idle_per_origin: usize,
    /// The most unused connections that are kept in all. When it is reached, the quarter that was used least recently
    /// is closed.
    pub max_idle: usize,
    /// How long an unused connection is kept.
    pub idle_timeout: Duration,
    /// The DNS servers to ask, in place of those in `/etc/resolv.conf`; its search list is not used either then. Empty
    /// for the system's configuration.
    pub dns_servers: Vec<SocketAddr>,
    /// Whether the authorities that the system trusts are trusted.
    pub roots: Roots,
    /// PEM files of authorities to trust in addition.
    pub extra_ca: Vec<PathBuf>,
    /// The protocol of connections without TLS.
    pub plain: PlainProtocol,
    /// The most bytes of an answer's body that are kept with its task.
    pub inline_answer_bytes: usize,
    /// The most bytes of an answer's body that are kept at all. An answer that does not fit into its task goes to blob
    /// storage, if there is one.
    pub kept_answer_bytes: u64,
}

/// The protocol of connections without TLS. With TLS, both sides agree on one in the handshake (ALPN).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainProtocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2 from the first byte ("prior knowledge"): every dependency must speak it.
    Http2,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            // Work comes in bursts, and every lane of an origin shares these: too few, and each burst connects anew.
            // What is not needed goes after `idle_timeout`.
            max_idle_per_origin: 1_024,
            max_idle: 2_048,
            idle_timeout: Duration::from_secs(60),
            dns_servers: Vec::new(),
            roots: Roots::System,
            extra_ca: Vec::new(),
            plain: PlainProtocol::Http1,
            inline_answer_bytes: Answer::BODY_LIMIT,
            kept_answer_bytes: Answer::BODY_LIMIT as u64,
        }
    }
}
