//! Errors of the network as errors of the engine: a kind that decides about the retry, and a sentence for people.
//!
//! Sentences name host and port and what was attempted. They are made of our own words and of the names of errors,
//! never of what the request or the answer contained.

use std::error::Error as _;
use std::io;

use redrive_core::ErrorType;
use redrive_dial::{DialError, DialErrorKind};
use redrive_engine::bodies::BodyError;
use redrive_engine::transport::SendError;

use crate::origin::Origin;

/// A failure of this `kind`.
pub(crate) fn of(kind: ErrorType, message: impl Into<String>) -> SendError {
    SendError { kind, message: message.into() }
}

/// A request that cannot be put on the wire.
pub(crate) fn invalid(message: impl Into<String>) -> SendError {
    of(ErrorType::InvalidRequest, message)
}

/// Nothing was sent, and the dependency is not at fault.
pub(crate) fn not_sent(message: impl Into<String>) -> SendError {
    of(ErrorType::NotSent, message)
}

/// Why a connection could not be opened.
pub(crate) fn dial(error: DialError) -> SendError {
    let kind = match error.kind {
        DialErrorKind::Dns => ErrorType::Dns,
        DialErrorKind::ConnectionRefused => ErrorType::ConnectionRefused,
        DialErrorKind::ConnectionReset => ErrorType::ConnectionReset,
        DialErrorKind::ConnectTimeout => ErrorType::ConnectTimeout,
        DialErrorKind::ConnectFailed => ErrorType::ConnectFailed,
        DialErrorKind::TlsCertificate => ErrorType::TlsCertificate,
        DialErrorKind::TlsHandshake => ErrorType::TlsHandshake,
        DialErrorKind::TlsHandshakeTimeout => ErrorType::TlsHandshakeTimeout,
        DialErrorKind::Shortage => ErrorType::NotSent,
    };
    of(kind, error.message)
}

/// Why nothing went out of a stored body.
pub(crate) fn unread(error: &BodyError) -> SendError {
    body(error, ErrorType::BodyUnavailable)
}

/// Why not all of a stored body went out.
pub(crate) fn incomplete(error: &BodyError) -> SendError {
    body(error, ErrorType::BodyIncomplete)
}

fn body(error: &BodyError, out_of_reach: ErrorType) -> SendError {
    let kind = match error {
        BodyError::Missing => ErrorType::BodyMissing,
        BodyError::Damaged(_) => ErrorType::BodyDamaged,
        _ => out_of_reach,
    };
    of(kind, error.to_string())
}

/// Why a connection brought no complete answer.
pub(crate) fn exchange(origin: &Origin, error: &hyper::Error) -> SendError {
    let (kind, reason) = diagnose(error);
    of(kind, format!("no complete answer from {origin}: {reason}"))
}

/// Whether the peer reset only this stream of an HTTP/2 connection.
pub(crate) fn is_of_one_stream(error: &hyper::Error) -> bool {
    source::<h2::Error>(error).is_some_and(|error| error.is_reset() && error.is_remote())
}

fn diagnose(error: &hyper::Error) -> (ErrorType, String) {
    if error.is_parse() {
        return (ErrorType::MalformedAnswer, error.to_string());
    }
    if let Some(wrapped) = source::<hyper::Error>(error) {
        return diagnose(wrapped);
    }
    if let Some(error) = source::<h2::Error>(error) {
        return diagnose_http2(error);
    }
    if let Some(error) = source::<io::Error>(error) {
        return diagnose_io(error);
    }
    // The one kind without a method in hyper has no source: unexpected bytes, such as a banner.
    let unexpected = error.source().is_none()
        && !(error.is_incomplete_message() || error.is_canceled() || error.is_closed() || error.is_user());
    let kind = if unexpected { ErrorType::MalformedAnswer } else { ErrorType::ConnectionReset };
    (kind, error.to_string())
}

fn diagnose_http2(error: &h2::Error) -> (ErrorType, String) {
    if let Some(error) = error.get_io() {
        return diagnose_io(error);
    }
    // What the peer says to end a stream or connection is its right; what we notice is its mistake. The debug text that
    // may come with it is left out: it could contain anything.
    let kind = if error.is_library() { ErrorType::MalformedAnswer } else { ErrorType::ConnectionReset };
    let scope = if error.is_go_away() { "connection" } else { "stream" };
    let reason = error.reason().map_or_else(|| "it cannot be used".into(), |reason| reason.to_string());
    (kind, format!("the http/2 {scope} ended: {reason}"))
}

fn diagnose_io(error: &io::Error) -> (ErrorType, String) {
    if let Some(error) = tls_error(error) {
        // With TLS 1.3, a server that dislikes our side of the handshake says so only after it.
        let kind = match error {
            rustls::Error::AlertReceived(_) => ErrorType::TlsHandshake,
            _ => ErrorType::MalformedAnswer,
        };
        return (kind, error.to_string());
    }
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => (ErrorType::MalformedAnswer, error.to_string()),
        _ => (ErrorType::ConnectionReset, error.to_string()),
    }
}

fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// The first `E` among the reasons of `error`.
fn source<E: std::error::Error + 'static>(error: &hyper::Error) -> Option<&E> {
    std::iter::successors(error.source(), |&cause| cause.source()).find_map(|cause| cause.downcast_ref())
}
