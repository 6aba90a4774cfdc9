//! Why a request got no answer but a problem: what an operation said, or what HTTP itself got wrong.

use redrive_engine::bodies::BodyError;

use crate::failure::Failure;
use crate::rest::memory::NoRoom;

/// Why a request got a problem for an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// An operation was not done.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// There is nothing at this path.
    #[error("there is nothing at this path; see /docs")]
    NoSuchPath,
    /// The path has other methods.
    #[error("this path does not have the method {method}")]
    MethodNotAllowed {
        /// The method that was asked for.
        method: String,
        /// The methods that it has.
        allow: String,
    },
    /// A query parameter or a header makes no sense.
    #[error("{name} {message}")]
    Parameter {
        /// Its name.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// The body says that it is something else than plain JSON.
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
    NoRoom(#[from] NoRoom),
    /// Every place for a connection is taken by one that is worked on.
    #[error("the service works on as many connections as it may: only health checks are answered; try again later")]
    NoPlace,
    /// The body did not arrive in time.
    #[error("the body did not arrive in time")]
    TooSlow,
    /// The body broke off.
    #[error("the body broke off: {0}")]
    BrokenBody(#[from] hyper::Error),
    /// What is kept cannot be shown.
    #[error("what is kept cannot be shown: {0}")]
    Unshowable(String),
    /// The handler panicked.
    #[error("the handler panicked")]
    Panicked,
    /// A page of another site, in somebody's browser, wants to change something.
    #[error("a page of another site made this request")]
    CrossSite,
    /// A page of another site made this request, by the word of its `Origin`.
    #[error("a page of {0:?} made this request, and that is not a name of this server")]
    ForeignOrigin(String),
    /// The request is for a host that this server is not known to be.
    #[error("this server does not answer to the name {0:?}; if that is one of its names, start it with --host-names")]
    UnknownHost(String),
}

impl Refusal {
    /// A parameter that makes no sense.
    pub(crate) fn parameter(name: impl Into<String>, message: impl Into<String>) -> Self {
        Refusal::Parameter { name: name.into(), message: message.into() }
    }

    /// Why what the service stands on, its store or its object storage, did not do its part; nothing if it did.
    pub(crate) fn store_error(&self) -> Option<&Failure> {
        use redrive_store::Error::{Full, Unavailable};
        match self {
            Refusal::Failure(failure) => matches!(
                failure,
                Failure::Store(Full(_) | Unavailable(_))
                    | Failure::Bodies(BodyError::Store(Full(_) | Unavailable(_)) | BodyError::Unavailable(_))
            )
            .then_some(failure),
            _ => None,
        }
    }

    /// Whether it is because the body stopped coming: then there is nothing more to wait for.
    pub(crate) fn is_for_silence(&self) -> bool {
        let broken_off = matches!(self, Refusal::Failure(Failure::Bodies(BodyError::BrokenOff(_))));
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
        Refusal::Failure(malformed.into())
    }
}
