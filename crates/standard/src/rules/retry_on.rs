//! Reads `retryOn`: the failures that calls are retried on, as status codes, gRPC codes or names of errors.

use std::fmt;

use redrive_core::classify::{NON_RETRYABLE_STATUS, RETRYABLE_STATUS};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use super::word::{parts, plain};

/// A failure that a service retries on: the word in the file, and what the standard says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryOn {
    /// The word in the file.
    pub written: String,
    /// What the standard demands.
    pub requirement: RetryRequirement,
}

/// What the standard demands of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryRequirement {
    /// The standard demands a retry.
    MustRetry,
    /// The standard forbids a retry.
    MustNotRetry,
    /// The standard forbids a retry: a TLS certificate error, which may be an attack.
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

/// The names that are suggested for an unknown one.
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

impl RetryOn {
    fn of_number(number: u64) -> Option<Self> {
        let requirement = match usize::try_from(number).ok()? {
            code @ 0..=16 => of_grpc(code),
            status @ 300..=599 => of_status(u16::try_from(status).ok()?),
            _ => return None,
        };
        Some(RetryOn { written: number.to_string(), requirement })
    }

    fn of_text(text: &str) -> Option<Self> {
        Some(RetryOn { written: text.to_owned(), requirement: requirement(text)? })
    }
}

/// What the standard says of a status code.
pub(super) fn of_status(status: u16) -> RetryRequirement {
    match status {
        status if RETRYABLE_STATUS.contains(&status) => RetryRequirement::MustRetry,
        status if NON_RETRYABLE_STATUS.contains(&status) => RetryRequirement::MustNotRetry,
        // Not implemented, and not in this version of HTTP: neither gets better by asking again.
        300..=499 | 501 | 505 => RetryRequirement::Unlisted,
        // Other failures of the server are its own, and mostly pass.
        _ => RetryRequirement::MustRetry,
    }
}

fn of_grpc(code: usize) -> RetryRequirement {
    match code {
        code if GRPC_RETRIED.contains(&code) => RetryRequirement::MustRetry,
        code if GRPC_NEVER.contains(&code) => RetryRequirement::MustNotRetry,
        _ => RetryRequirement::Unlisted,
    }
}

fn requirement(text: &str) -> Option<RetryRequirement> {
    let words = parts(text);
    let has = |word: &str| words.iter().any(|part| part == word);
    // `HTTP 404`, `404 Not Found`: the number says it all.
    if let Some(number) = words.iter().rev().find_map(|word| word.parse::<u64>().ok()) {
        return RetryOn::of_number(number).map(|retried| retried.requirement);
    }
    if words.iter().any(|word| word.starts_with("cert") || word == "x509") || has("sslcert") || has("tlscert") {
        return Some(RetryRequirement::Certificate);
    }
    // `StatusCode.NOT_FOUND`, `grpc::NotFound`: what is before the last separator says where the name comes from.
    let plain = plain(text.trim().rsplit(['.', ':', '/']).next().unwrap_or(text));
    let is = |name: &str| self::plain(name) == plain;
    if matches!(plain.as_str(), "all" | "any" | "everything" | "4xx") || text.trim() == "*" {
        return Some(RetryRequirement::MustNotRetry);
    }
    if plain == "5xx" || ERRORS_RETRIED.iter().any(|name| is(name)) {
        return Some(RetryRequirement::MustRetry);
    }
    if ERRORS_NEVER.iter().any(|name| is(name)) {
        return Some(RetryRequirement::MustNotRetry);
    }
    if let Some(code) = GRPC.iter().position(|name| is(name)) {
        return Some(of_grpc(code));
    }
    PHRASES.iter().find(|(name, _)| is(name)).map(|(_, status)| of_status(*status))
}

impl<'de> Deserialize<'de> for RetryOn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RetryOnVisitor)
    }
}

struct RetryOnVisitor;

impl Visitor<'_> for RetryOnVisitor {
    type Value = RetryOn;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a status code from 300 to 599, a gRPC code from 0 to 16, or the name of an error")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<RetryOn, E> {
        RetryOn::of_number(number).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<RetryOn, E> {
        let unsigned = u64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))?;
        self.visit_u64(unsigned)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<RetryOn, E> {
        RetryOn::of_text(text).ok_or_else(|| E::unknown_variant(text, &KNOWN))
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
                RetryRequirement::MustRetry,
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
                RetryRequirement::MustNotRetry,
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
                RetryRequirement::Certificate,
            ),
            (&["410", "301", "501", "INTERNAL", "13", "DATA_LOSS"], RetryRequirement::Unlisted),
        ] {
            for text in texts {
                assert_eq!(requirement(text), Some(expected), "{text}");
            }
        }
    }

    #[test]
    fn an_unknown_word_is_refused() {
        for text in ["", "banana", "INVALID_ARGUMNET", "200", "17", "700", "sometimes"] {
            assert_eq!(RetryOn::of_text(text), None, "{text}");
        }
        for json in ["200", "700", "17", "-3", "1.5", "true", "[]"] {
            assert!(serde_json::from_str::<RetryOn>(json).is_err(), "{json}");
        }
    }
}
