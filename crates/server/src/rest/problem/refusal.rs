//! Why a request is answered with a problem: the failure of an operation, or a fault of the request as such.

use redrive_engine::bodies::BodyError;

use crate::operation_error::OperationError;
use crate::rest::memory::MemoryExhausted;

/// Why a request is answered with a problem.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The operation failed.
    #[error(transparent)]
    OperationError(#[from] OperationError),
    /// There is no route at this path.
    #[error("there is no route at this path; see /docs")]
    NoSuchPath,
    /// The path does not have this method.
    #[error("this path does not have the method {method}")]
    MethodNotAllowed {
        /// The method that was asked for.
        method: String,
        /// The methods that it has.
        allow: String,
    },
    /// A query parameter or a header is invalid.
    #[error("{name} {message}")]
    Parameter {
        /// Its name.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// The request must have an `If-Match`.
    #[error("this needs If-Match: send the ETag of the record, or *")]
    PreconditionRequired,
    /// The content type or encoding of the body is not plain JSON.
    #[error("the body must be JSON, not {0}")]
    NotJson(String),
    /// The request is larger than is allowed.
    #[error("the request is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The most bytes that it may have.
        limit_bytes: usize,
    },
    /// There is no memory for the request or its answer.
    #[error(transparent)]
    MemoryExhausted(#[from] MemoryExhausted),
    /// Every connection that is allowed is in use.
    #[error("all connections of the service are in use: only health checks are answered; try again later")]
    ConnectionsExhausted,
    /// The body did not arrive in time.
    #[error("the body did not arrive in time")]
    TooSlow,
    /// The connection broke while the body was read.
    #[error("the body is incomplete: {0}")]
    BrokenBody(#[from] hyper::Error),
    /// A stored value cannot be written as JSON.
    #[error("a stored value cannot be shown: {0}")]
    Unshowable(String),
    /// The handler panicked.
    #[error("the handler panicked")]
    Panicked,
    /// The caller's scopes are not known, so it may use public routes only.
    #[error("the scopes of the caller {0:?} are not known")]
    UnknownScopes(String),
    /// A browser reports that a page of another site made this request, and the route writes.
    #[error("a page of another site made this request")]
    CrossSite,
    /// The `Origin` of the request is another site.
    #[error("a page of {0:?} made this request, and that is not a name of this server")]
    ForeignOrigin(String),
    /// The host of the request is not a name of this server.
    #[error("{0:?} is not a name of this server; if it should be, start the server with --host-names")]
    UnknownHost(String),
}

impl Refusal {
    /// An invalid parameter.
    pub(crate) fn parameter(name: impl Into<String>, message: impl Into<String>) -> Self {
        Refusal::Parameter { name: name.into(), message: message.into() }
    }

    /// The failure of the store or of the object storage, if that is the reason.
    pub(crate) fn store_error(&self) -> Option<&OperationError> {
        use redrive_store::Error::{Full, Unavailable};
        match self {
            Refusal::OperationError(failure) => matches!(
                failure,
                OperationError::Store(Full(_) | Unavailable(_))
                    | OperationError::Bodies(BodyError::Store(Full(_) | Unavailable(_)) | BodyError::Unavailable(_))
            )
            .then_some(failure),
            _ => None,
        }
    }

    /// Whether the rest of the body will not come: then there is nothing to read before answering.
    pub(crate) fn is_body_cut_off(&self) -> bool {
        let broken_off = matches!(self, Refusal::OperationError(OperationError::Bodies(BodyError::BrokenOff(_))));
        broken_off || matches!(self, Refusal::TooSlow | Refusal::BrokenBody(_))
    }
}

impl From<serde_json::Error> for Refusal {
    fn from(error: serde_json::Error) -> Self {
        Refusal::Unshowable(error.to_string())
    }
}

impl From<redrive_core::policy::Invalid> for Refusal {
    fn from(invalid: redrive_core::policy::Invalid) -> Self {
        Refusal::Unshowable(format!("a policy: {invalid}"))
    }
}

impl From<crate::wire::Malformed> for Refusal {
    fn from(malformed: crate::wire::Malformed) -> Self {
        Refusal::OperationError(malformed.into())
    }
}
