//! The request hash: tells whether two requests with the same key are the same request.
//!
//! SHA-256 over a fixed number of parts, each with its length first, so that no two different requests have the same
//! parts. The first part names the version, so that a later form never equals an earlier one by accident:
//!
//! | part | bytes |
//! | --- | --- |
//! | 1 | `redrive-request-hash/1`, or `redrive-request-hash/1+json` if the body is in the JSON form |
//! | 2 | the method, as sent |
//! | 3 | path and query, as sent |
//! | 4 | the media type of the body in lower case without its parameters, empty if there is none |
//! | 5 | the body, or its [JSON form](json_form) |
//!
//! A length is 8 bytes, little-endian. Header fields are not part of it: a token that was refreshed, or another
//! trace id, does not make another request.

mod json_form;

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

pub use json_form::json_form;

/// The hash of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestHash(pub [u8; 32]);

/// The parts of a request that are hashed.
#[derive(Debug, Clone, Copy, Default)]
pub struct HashedRequest<'a> {
    /// The method.
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// The `Content-Type` field; empty if there is none.
    pub content_type: &'a str,
    /// The body.
    pub body: &'a [u8],
    /// Whether the order of a JSON body's names and its white space count.
    pub comparison: Comparison,
}

/// How bodies are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Comparison {
    /// Byte by byte.
    #[default]
    Bytes,
    /// As JSON: white space and the order of names do not count. A body that is no JSON, or in which a name occurs
    /// twice in one object, is compared byte by byte.
    Json,
}

const VERSION: &[u8] = b"redrive-request-hash/1";
const JSON_VERSION: &[u8] = b"redrive-request-hash/1+json";

impl RequestHash {
    /// The hash of a request.
    pub fn of(request: &HashedRequest<'_>) -> Self {
        let media_type = request.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let json = match request.comparison {
            Comparison::Bytes => None,
            Comparison::Json => json_form(request.body),
        };
        let (version, body) = match &json {
            Some(form) => (JSON_VERSION, form.as_slice()),
            None => (VERSION, request.body),
        };
        let mut hash = Sha256::new();
        for part in [version, request.method.as_bytes(), request.path.as_bytes(), media_type.as_bytes(), body] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        RequestHash(hash.finalize().into())
    }
}

impl fmt::Display for RequestHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for RequestHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not a request hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 64 hexadecimal digits (a SHA-256)")]
pub struct InvalidRequestHash;

impl FromStr for RequestHash {
    type Err = InvalidRequestHash;

    fn from_str(text: &str) -> Result<Self, InvalidRequestHash> {
        let digit = |digit: u8| char::from(digit).to_digit(16).ok_or(InvalidRequestHash);
        if text.len() != 64 {
            return Err(InvalidRequestHash);
        }
        let mut hash = [0; 32];
        for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = (digit(digits[0])? << 4 | digit(digits[1])?) as u8;
        }
        Ok(RequestHash(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: HashedRequest<'static> = HashedRequest {
        method: "POST",
        path: "/payments?dry=0",
        content_type: "application/json",
        body: br#"{"amount": 100.00, "currency": "EUR"}"#,
        comparison: Comparison::Bytes,
    };

    #[test]
    fn every_part_counts() {
        let hashes = [
            RequestHash::of(&REQUEST),
            RequestHash::of(&HashedRequest { method: "PUT", ..REQUEST }),
            RequestHash::of(&HashedRequest { path: "/payments", ..REQUEST }),
            RequestHash::of(&HashedRequest { content_type: "text/plain", ..REQUEST }),
            RequestHash::of(&HashedRequest { body: br#"{"amount":100.00,"currency":"EUR"}"#, ..REQUEST }),
            RequestHash::of(&HashedRequest { method: "POST/payments?dry=0", path: "", ..REQUEST }),
            RequestHash::of(&HashedRequest { comparison: Comparison::Json, ..REQUEST }),
        ];
        for (at, one) in hashes.iter().enumerate() {
            assert!(!hashes[at + 1..].contains(one), "{at}");
        }
    }

    #[test]
    fn case_and_parameters_of_the_media_type_do_not_count() {
        for content_type in ["Application/JSON", "application/json; charset=utf-8", " application/json ;x=y"] {
            assert_eq!(RequestHash::of(&HashedRequest { content_type, ..REQUEST }), RequestHash::of(&REQUEST));
        }
    }

    #[test]
    fn as_json_the_same_amount_written_otherwise_is_the_same_request() {
        let json =
            |body: &'static [u8]| RequestHash::of(&HashedRequest { body, comparison: Comparison::Json, ..REQUEST });
        assert_eq!(json(REQUEST.body), json(br#"{"currency":"EUR","amount":100.00}"#));
        assert_ne!(json(REQUEST.body), json(br#"{"currency":"EUR","amount":100.0}"#));
        // Not JSON: compared byte by byte, and never equal to a JSON form.
        let bytes = |body: &'static [u8]| RequestHash::of(&HashedRequest { body, ..REQUEST });
        assert_eq!(json(b"{not json"), bytes(b"{not json"));
        assert_eq!(json(br#"{"a":1,"a":2}"#), bytes(br#"{"a":1,"a":2}"#));
    }

    #[test]
    fn a_hash_is_written_in_64_digits() {
        let hash = RequestHash::of(&REQUEST);
        let text = hash.to_string();
        assert_eq!(text.parse(), Ok(hash));
        assert_eq!(text.to_uppercase().parse(), Ok(hash));
        for wrong in ["", "abc", &text[1..], &format!("{text}0"), &text.replace(&text[..1], "g"), &"é".repeat(32)] {
            assert_eq!(wrong.parse::<RequestHash>(), Err(InvalidRequestHash), "{wrong}");
        }
    }
}
