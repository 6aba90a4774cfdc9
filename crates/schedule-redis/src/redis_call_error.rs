//! Failures of calls to Redis.

use std::sync::Arc;
use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Why a call to Redis failed. No store call fails because of it: the store does the work instead.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RedisCallError {
    /// There is no connection at the moment; one is being made in the background.
    #[error("there is no connection to Redis")]
    Unconnected,
    /// No answer came in time. The call may still take effect.
    #[error("Redis did not answer within {0:?}")]
    TimedOut(Duration),
    /// Redis returned an error, or the connection failed.
    #[error("Redis: {0}")]
    Refused(#[from] Arc<RedisError>),
    /// The answer has an unexpected form.
    #[error("Redis answered something that {0} does not answer")]
    Unexpected(&'static str),
    /// No sentinel returned a primary.
    #[error("no sentinel names a primary that is one")]
    NoPrimary,
}

impl RedisCallError {
    /// Whether a new connection is needed before further calls can succeed.
    pub(crate) fn ends_connection(&self) -> bool {
        match self {
            RedisCallError::Unconnected | RedisCallError::TimedOut(_) | RedisCallError::NoPrimary => true,
            // A primary that has become a replica refuses every write with one of these errors.
            RedisCallError::Refused(error) => {
                let was_demoted =
                    matches!(error.kind(), ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown));
                was_demoted || error.is_io_error() || error.is_unrecoverable_error()
            }
            RedisCallError::Unexpected(_) => false,
        }
    }
}

impl From<RedisError> for RedisCallError {
    fn from(error: RedisError) -> Self {
        RedisCallError::Refused(Arc::new(error))
    }
}
