//! The settings of the schedule.

/// The settings of the schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What the names of all keys begin with: one for each deployment that shares a Redis with others.
    pub prefix: String,
    /// Whom to trust for TLS, as PEM; the system's own roots if `None`.
    pub root_certificates: Option<Vec<u8>>,
}

impl Default for Options {
    fn default() -> Self {
        Options { prefix: "redrive".to_owned(), root_certificates: None }
    }
}
