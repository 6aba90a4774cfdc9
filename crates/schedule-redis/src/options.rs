//! The settings of the schedule.

/// The settings of the schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The prefix of all keys: a different one for each deployment that shares a Redis.
    pub prefix: String,
    /// Trusted root certificates for TLS, as PEM; the system's if `None`.
    pub root_certificates: Option<Vec<u8>>,
}

impl Default for Options {
    fn default() -> Self {
        Options { prefix: "redrive".to_owned(), root_certificates: None }
    }
}
