//! The settings of the HTTP server, each with a bound.

use std::time::Duration;

use super::host_name::HostName;

/// The least memory that a server can work with: a connection's share of it holds the largest small request.
const LEAST_MEMORY: usize = 1024 * 1024;

/// The settings of the HTTP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The most connections at once. For one more, the idlest is closed. 4,096 by default.
    pub max_connections: usize,
    /// The most bytes of requests and answers in memory at once; requests beyond that are answered 503. 256 MiB by
    /// default.
    pub max_memory_bytes: usize,
    /// How long a caller may take to send a request's head, and how long a kept connection may be idle. 60 s by
    /// default.
    pub header_read_timeout: Duration,
    /// How long a caller may take to send a request's body. 30 s by default.
    pub body_read_timeout: Duration,
    /// How long a caller may read nothing of its answer before the connection is closed. 30 s by default.
    pub write_timeout: Duration,
    /// How long requests may take to finish when the server stops; those that wait for a task's end are answered at
    /// once. 10 s by default.
    pub drain_timeout: Duration,
    /// The host names that the server answers to, besides loopback and the address that it listens on. None by default.
    pub host_names: Vec<HostName>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            max_connections: 4_096,
            max_memory_bytes: 256 * 1024 * 1024,
            header_read_timeout: Duration::from_secs(60),
            body_read_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
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
        if self.max_memory_bytes < LEAST_MEMORY {
            return Err(Error::Option("max_memory_bytes must be at least 1 MiB"));
        }
        if [self.header_read_timeout, self.body_read_timeout, self.write_timeout].iter().any(Duration::is_zero) {
            return Err(Error::Option("header_read_timeout, body_read_timeout and write_timeout must be above zero"));
        }
        Ok(())
    }
}

/// Why the HTTP server did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is invalid.
    #[error("{0}")]
    Option(&'static str),
    /// The address that the server listens on is not known.
    #[error("finding out the address to listen on: {0}")]
    Address(#[source] std::io::Error),
}
