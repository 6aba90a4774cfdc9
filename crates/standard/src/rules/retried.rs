//! What a dependency's calls are retried on, as people write it: status codes, gRPC codes, errors by name.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use super::word::{parts, plain};
use redrive_core::classify::{NON_RETRYABLE_STATUS, RETRYABLE_STATUS};

/// Something that is retried: as it is written, and what that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retried {
    /// As it is written.
    pub written: String,
    /// What the standard says of it.
    pub standing: Standing,
}

/// What the standard says of retrying something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It must be retried.
    Retried,
    /// It must not be.
    Never,
    /// It must not be, and somebody may be in the middle.
    Certificate,
    /// The standard does not name it.
    Unlisted,
}

/// The names of the gRPC codes, by number.
const GRPC: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

const GRPC_RETRIED: [usize; 4] = [4, 8, 10, 14];
const GRPC_NEVER: [usize; 5] = [3, 5, 7, 12, 16];

/// Errors that must be retried, by name.
const ERRORS_RETRIED: [&str; 13] = [
    "connection-refused",
    "connection-reset",
    "connect-timeout",
    "connect-failed",
    "socket-timeout",
    "read-timeout",
    "timeout",
    "dns",
    "dns-failure",
    "tls-handshake-timeout",
    "tls-handshake",
    "malformed-answer",
    "interrupted",
];

/// Errors that must not be, by name.
const ERRORS_NEVER: [&str; 6] = [
    "serialization-error",
    "serialization",
    "invalid-configuration",
    "invalid-request",
    "token-revoked",
    "token-permanently-revoked",
];

/// Status codes by the words that stand for them.
const PHRASES: [(&str, u16); 12] = [
    ("bad-request", 400),
    ("unauthorized", 401),
    ("forbidden", 403),
    ("conflict", 409),
    ("unprocessable-entity", 422),
    ("unprocessable-content", 422),
    ("request-timeout", 408),
    ("too-many-requests", 429),
    ("internal-server-error", 500),
    ("bad-gateway", 502),
    ("service-unavailable", 503),
    ("gateway-timeout", 504),
];

/// What is offered to somebody whose word is not known.
const KNOWN: [&str; 20] = [
    "5xx",
    "UNAVAILABLE",
    "DEADLINE_EXCEEDED",
    "RESOURCE_EXHAUSTED",
    "ABORTED",
    "INTERNAL",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "PERMISSION_DENIED",
    "UNAUTHENTICATED",
    "UNIMPLEMENTED",
    "connection-refused",
    "connection-reset",
    "connect-timeout",
    "socket-timeout",
    "dns",
    "tls-handshake-timeout",
    "tls-certificate",
    "serialization-error",
    "token-revoked",
];

impl Retried {
    fn of_number(number: u64) -> Option<Self> {
        let standing = match usize::try_from(number).ok()? {
            code @ 0..=16 => of_grpc(code),
            status @ 300..=599 => of_status(u16::try_from(status).ok()?),
            _ => return None,
        };
        Some(Retried { written: number.to_string(), standing })
    }

    fn of_text(text: &str) -> Option<Self> {
        Some(Retried { written: text.to_owned(), standing: standing(text)? })
    }
}

/// What the standard says of a status code.
pub(super) fn of_status(status: u16) -> Standing {
    match status {
        status if RETRYABLE_STATUS.contains(&status) => Standing::Retried,
        status if NON_RETRYABLE_STATUS.contains(&status) => Standing::Never,
        // Not implemented, and not in this version of HTTP: neither gets better by asking again.
        300..=499 | 501 | 505 => Standing::Unlisted,
        // Other failures of the server are its own, and mostly pass.
        _ => Standing::Retried,
    }
}

fn of_grpc(code: usize) -> Standing {
    match code {
        code if GRPC_RETRIED.contains(&code) => Standing::Retried,
        code if GRPC_NEVER.contains(&code) => Standing::Never,
        _ => Standing::Unlisted,
    }
}

fn standing(text: &str) -> Option<Standing> {
    let words = parts(text);
    let has = |word: &str| words.iter().any(|part| part == word);
    // `HTTP 404`, `404 Not Found`: the number says it all.
    if let Some(number) = words.iter().rev().find_map(|word| word.parse::<u64>().ok()) {
        return Retried::of_number(number).map(|retried| retried.standing);
    }
    if words.iter().any(|word| word.starts_with("cert") || word == "x509") || has("sslcert") || has("tlscert") {
        return Some(Standing::Certificate);
    }
    // `StatusCode.NOT_FOUND`, `grpc::NotFound`: what is before the last separator says where the name comes from.
    let plain = plain(text.trim().rsplit(['.', ':', '/']).next().unwrap_or(text));
    let is = |name: &str| self::plain(name) == plain;
    if matches!(plain.as_str(), "all" | "any" | "everything" | "4xx") || text.trim() == "*" {
        return Some(Standing::Never);
    }
    if plain == "5xx" || ERRORS_RETRIED.iter().any(|name| is(name)) {
        return Some(Standing::Retried);
    }
    if ERRORS_NEVER.iter().any(|name| is(name)) {
        return Some(Standing::Never);
    }
    if let Some(code) = GRPC.iter().position(|name| is(name)) {
        return Some(of_grpc(code));
    }
    PHRASES.iter().find(|(name, _)| is(name)).map(|(_, status)| of_status(*status))
}

impl<'de> Deserialize<'de> for Retried {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RetriedVisitor)
    }
}

struct RetriedVisitor;

impl Visitor<'_> for RetriedVisitor {
    type Value = Retried;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a status code from 300 to 599, a gRPC code from 0 to 16, or the name of an error")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Retried, E> {
        Retried::of_number(number).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Retried, E> {
        let unsigned = u64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))?;
        self.visit_u64(unsigned)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Retried, E> {
        Retried::of_text(text).ok_or_else(|| E::unknown_variant(text, &KNOWN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_stand_as_the_standard_says() {
        for (texts, expected) in [
            (
                &[
                    "408",
                    "HTTP 503",
                    "504 Gateway Timeout",
                    "5xx",
                    "UNAVAILABLE",
                    "14",
                    "StatusCode.ABORTED",
                    "Too Many Requests",
                    "connection refused",
                    "ConnectionReset",
                    "socketTimeout",
                    "DNS failure",
                    "tls_handshake_timeout",
                    "599",
                ][..],
                Standing::Retried,
            ),
            (
                &[
                    "404",
                    "404 Not Found",
                    "HTTP/409",
                    "4xx",
                    "*",
                    "all",
                    "NOT_FOUND",
                    "3",
                    "16",
                    "grpc.PERMISSION_DENIED",
                    "InvalidArgument",
                    "Unauthorized",
                    "BAD_REQUEST",
                    "serialization error",
                    "Token permanently revoked",
                    "invalid-configuration",
                ],
                Standing::Never,
            ),
            (
                &[
                    "tls-certificate",
                    "TLSCertificateError",
                    "CERT_HAS_EXPIRED",
                    "x509",
                    "tls-cert-error",
                    "SSLCertificateError",
                    "certificate-verify-failed",
                    "TLS_CERTIFICATE_ERROR",
                ],
                Standing::Certificate,
            ),
            (&["410", "301", "501", "INTERNAL", "13", "DATA_LOSS"], Standing::Unlisted),
        ] {
            for text in texts {
                assert_eq!(standing(text), Some(expected), "{text}");
            }
        }
    }

    #[test]
    fn a_word_that_nobody_knows_is_none() {
        for text in ["", "banana", "INVALID_ARGUMNET", "200", "17", "700", "sometimes"] {
            assert_eq!(Retried::of_text(text), None, "{text}");
        }
        for json in ["200", "700", "17", "-3", "1.5", "true", "[]"] {
            assert!(serde_json::from_str::<Retried>(json).is_err(), "{json}");
        }
    }
}
