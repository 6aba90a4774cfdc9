//! An attempt: one send of a task over the wire, as the attempt log keeps it.

use std::time::Duration;

use crate::body::Body;
use crate::time::Timestamp;

/// One line of the attempt log.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// Its number among all attempts of the task, from 1.
    pub number: u32,
    /// Its number among the attempts of its run, from 1 in every run.
    pub number_in_run: u32,
    /// When its first byte was sent; when it began to connect if none was; when it was claimed if a crash interrupted
    /// it.
    pub started_at: Timestamp,
    /// How long it took, connecting included; nothing if a crash interrupted it.
    pub duration: Option<Duration>,
    /// Its outcome.
    pub outcome: Outcome,
    /// The answer's status code, if there was an answer.
    pub response_status: Option<u16>,
    /// The error, if there was one.
    pub error: Option<LastError>,
    /// The wait before the next attempt, if there is to be one.
    pub backoff: Option<Duration>,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The dependency accepted it.
    Success,
    /// It failed, and a later attempt may succeed.
    Retryable,
    /// The dependency asks for fewer requests: a 429 that is retried.
    Overloaded,
    /// It failed in a way that no retry can fix.
    Permanent,
    /// A crash interrupted it: it may or may not have been delivered.
    Unknown,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Outcome; 5] =
        [Outcome::Success, Outcome::Retryable, Outcome::Overloaded, Outcome::Permanent, Outcome::Unknown];

    /// Its name on the wire and in the stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Success => "success",
            Outcome::Retryable => "retryable",
            Outcome::Overloaded => "overloaded",
            Outcome::Permanent => "permanent",
            Outcome::Unknown => "unknown",
        }
    }

    /// The outcome with this name.
    pub fn from_name(name: &str) -> Option<Outcome> {
        Outcome::ALL.into_iter().find(|outcome| outcome.as_str() == name)
    }
}

/// The error of an attempt: a kind for programs, and a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastError {
    /// The kind, stable.
    pub kind: ErrorType,
    /// What happened; never a body, a token or a secret.
    pub message: String,
}

/// The kinds of failure that an attempt can meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorType {
    /// An answer came, and its status was not a success.
    HttpStatus,
    /// The connection was refused.
    ConnectionRefused,
    /// The connection was closed or reset before the answer was complete.
    ConnectionReset,
    /// No connection within the connect timeout.
    ConnectTimeout,
    /// The dependency could not be reached for another reason (no route, unreachable network).
    ConnectFailed,
    /// A connection, but no complete answer within the attempt timeout.
    ReadTimeout,
    /// The name could not be resolved.
    Dns,
    /// The TLS handshake did not end in time.
    TlsHandshakeTimeout,
    /// The certificate is not trusted.
    TlsCertificate,
    /// The TLS handshake failed for another reason.
    TlsHandshake,
    /// The answer is not HTTP.
    MalformedAnswer,
    /// The request cannot be sent: it is not a valid HTTP request.
    InvalidRequest,
    /// The stored body is gone; nothing was sent.
    BodyMissing,
    /// The stored body is damaged; only a part of it was sent.
    BodyDamaged,
    /// The stored body could not be read; nothing was sent.
    BodyUnavailable,
    /// The stored body could not be read to its end; only a part of it was sent.
    BodyIncomplete,
    /// Nothing was sent, for a reason of this process: the send was withdrawn in time, or sockets or memory ran short.
    NotSent,
    /// The process died while the attempt was under way.
    Interrupted,
}

impl ErrorType {
    /// Every kind.
    pub const ALL: [ErrorType; 18] = [
        ErrorType::HttpStatus,
        ErrorType::ConnectionRefused,
        ErrorType::ConnectionReset,
        ErrorType::ConnectTimeout,
        ErrorType::ConnectFailed,
        ErrorType::ReadTimeout,
        ErrorType::Dns,
        ErrorType::TlsHandshakeTimeout,
        ErrorType::TlsCertificate,
        ErrorType::TlsHandshake,
        ErrorType::MalformedAnswer,
        ErrorType::InvalidRequest,
        ErrorType::BodyMissing,
        ErrorType::BodyDamaged,
        ErrorType::BodyUnavailable,
        ErrorType::BodyIncomplete,
        ErrorType::NotSent,
        ErrorType::Interrupted,
    ];

    /// Its name on the wire and in the stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            ErrorType::HttpStatus => "http-status",
            ErrorType::ConnectionRefused => "connection-refused",
            ErrorType::ConnectionReset => "connection-reset",
            ErrorType::ConnectTimeout => "connect-timeout",
            ErrorType::ConnectFailed => "connect-failed",
            ErrorType::ReadTimeout => "read-timeout",
            ErrorType::Dns => "dns",
            ErrorType::TlsHandshakeTimeout => "tls-handshake-timeout",
            ErrorType::TlsCertificate => "tls-certificate",
            ErrorType::TlsHandshake => "tls-handshake",
            ErrorType::MalformedAnswer => "malformed-answer",
            ErrorType::InvalidRequest => "invalid-request",
            ErrorType::BodyMissing => "body-missing",
            ErrorType::BodyDamaged => "body-damaged",
            ErrorType::BodyUnavailable => "body-unavailable",
            ErrorType::BodyIncomplete => "body-incomplete",
            ErrorType::NotSent => "not-sent",
            ErrorType::Interrupted => "interrupted",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<ErrorType> {
        ErrorType::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// The answer of a dependency, as far as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Header fields in the order received.
    pub headers: Vec<(String, String)>,
    /// The body, or its beginning.
    pub body: Body,
    /// Whether the body was longer than what is stored.
    pub truncated: bool,
}

impl Answer {
    /// The most bytes of an answer's body that are read and stored by default.
    pub const BODY_LIMIT: usize = 64 * 1024;

    /// This answer without its body.
    #[must_use]
    pub fn without_body(self) -> Self {
        Answer { body: Body::default(), truncated: true, ..self }
    }

    /// The first value of the header `name` (given in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_what_it_names() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::from_name(outcome.as_str()), Some(outcome));
        }
        for kind in ErrorType::ALL {
            assert_eq!(ErrorType::from_name(kind.as_str()), Some(kind));
        }
        assert_eq!(Outcome::from_name("Success"), None);
        assert_eq!(ErrorType::from_name(""), None);
    }

    #[test]
    fn a_header_is_found_in_any_case_and_the_first_one_counts() {
        let headers =
            [("Retry-After", "1"), ("retry-after", "2"), ("X", "")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        let answer = Answer { status: 503, headers: headers.to_vec(), body: Body::default(), truncated: false };
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert_eq!(answer.header("x"), Some(""));
        assert_eq!(answer.header("date"), None);
    }
}
