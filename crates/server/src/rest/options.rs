//! The settings of the HTTP server, each with a bound.

use std::time::Duration;

use super::host_name::HostName;

/// The settings of the HTTP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The most connections at once; more wait to be accepted. 4,096 by default.
    pub max_connections: usize,
    /// How long a caller may take to send a request's head, and how long a kept connection may be idle. 60 s by default.
    pub header_read_timeout: Duration,
    /// How long a caller may take to send a request's body. 30 s by default.
    pub body_read_timeout: Duration,
    /// How long requests may take to finish when the server stops; those that wait for a task's end are answered at once.
    /// 10 s by default.
    pub drain_timeout: Duration,
    /// The names that the server answers to, beside loopback and the address that it listens on. None by default.
    pub host_names: Vec<HostName>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            max_connections: 4_096,
            header_read_timeout: Duration::from_secs(60),
            body_read_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(10),
            host_names: Vec::new(),
        }
    }
}

impl Options {
    pub(super) fn validate(&self) -> Result<(), Error> {
        if self.max_connections == 0 {
            return Err(Error::Option("max_connections must be at least 1"));
        }
        if self.header_read_timeout.is_zero() || self.body_read_timeout.is_zero() {
            return Err(Error::Option("header_read_timeout and body_read_timeout must be above zero"));
        }
        Ok(())
    }
}

/// Why the HTTP server did not start or did not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting makes no sense.
    #[error("{0}")]
    Option(&'static str),
    /// The address that the server listens on is not known.
    #[error("finding out the address to listen on: {0}")]
    Address(#[source] std::io::Error),
    /// No connection could be accepted any more.
    #[error("accepting connections: {0}")]
    Accept(#[source] std::io::Error),
}
