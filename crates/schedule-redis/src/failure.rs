//! Why Redis did not do what it was asked.

use std::sync::Arc;
use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Why Redis did not do what it was asked. Nothing fails because of it: the store does the work instead.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Failure {
    /// There is no connection at the moment; one is being made in the background.
    #[error("there is no connection to Redis")]
    Unconnected,
    /// No answer in time. What was asked may still happen.
    #[error("Redis did not answer within {0:?}")]
    TimedOut(Duration),
    /// Redis or the way to it said no.
    #[error("Redis: {0}")]
    Refused(#[from] Arc<RedisError>),
    /// An answer of another form than expected.
    #[error("Redis answered something that {0} does not answer")]
    Unexpected(&'static str),
    /// No sentinel knows where the primary is.
    #[error("no sentinel names a primary that is one")]
    NoPrimary,
}

impl Failure {
    /// Whether another connection is needed before anything works again.
    pub(crate) fn ends_connection(&self) -> bool {
        match self {
            Failure::Unconnected | Failure::TimedOut(_) | Failure::NoPrimary => true,
            // A primary that has become a replica refuses every write, and says so in one of these ways.
            Failure::Refused(error) => {
                let was_demoted =
                    matches!(error.kind(), ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown));
                was_demoted || error.is_io_error() || error.is_unrecoverable_error()
            }
            Failure::Unexpected(_) => false,
        }
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        Failure::Refused(Arc::new(error))
    }
}
