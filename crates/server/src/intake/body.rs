//! The body to send: text, JSON exactly as it was written, or any bytes.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use redrive_core::BodyHash;
use serde_json::value::RawValue;

use super::faults::Faults;
use crate::operation_error::OperationError;
use crate::wire::Submission;

const TEXT: &str = "body";
const JSON: &str = "bodyJson";
const BASE64: &str = "bodyBase64";
pub(crate) const REFERENCE: &str = "bodyRef";

/// The standard alphabet; padding may be left out.
const DECODER: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A body, and its content type unless a header sets another.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Body {
    pub(crate) content: Content,
    pub(crate) implied_type: Option<&'static str>,
}

/// The content of a body in a submission.
#[derive(Debug, PartialEq)]
pub(crate) enum Content {
    /// Bytes in the document.
    Bytes(Bytes),
    /// Bytes that were uploaded before.
    Uploaded(BodyHash),
}

impl Default for Content {
    fn default() -> Self {
        Content::Bytes(Bytes::new())
    }
}

/// The one body that was given.
pub(crate) fn decode(submission: &Submission<'_>, limit: usize, faults: &mut Faults) -> Result<Body, OperationError> {
    let Submission { body, body_json, body_base64, body_ref, .. } = submission;
    let (field, bytes, implied_type) = match (body, body_json, body_base64, body_ref) {
        (None, None, None, None) => return Ok(Body::default()),
        (Some(text), None, None, None) => (TEXT, fits(text, limit), Some("text/plain; charset=utf-8")),
        (None, Some(json), None, None) => (JSON, fits(json.get(), limit), Some("application/json")),
        (None, None, Some(encoded), None) => (BASE64, from_base64(BASE64, encoded, limit, faults), None),
        (None, None, None, Some(reference)) => {
            let content = faults.keep(REFERENCE, reference.parse()).map(Content::Uploaded).unwrap_or_default();
            return Ok(Body { content, implied_type: None });
        }
        _ => {
            let given = [
                (TEXT, body.is_some()),
                (JSON, body_json.is_some()),
                (BASE64, body_base64.is_some()),
                (REFERENCE, body_ref.is_some()),
            ];
            for (field, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
                faults.add(field, format!("must be the only one of {TEXT}, {JSON}, {BASE64} and {REFERENCE}"));
            }
            return Ok(Body::default());
        }
    };
    let bytes = bytes.ok_or_else(|| OperationError::TooLarge { field: field.into(), limit_bytes: limit })?;
    Ok(Body { content: Content::Bytes(bytes), implied_type })
}

fn fits(text: &str, limit: usize) -> Option<Bytes> {
    (text.len() <= limit).then(|| Bytes::copy_from_slice(text.as_bytes()))
}

/// The body in a document of an idempotency record, in one of three notations.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GivenBody<'a> {
    pub(crate) text: Option<&'a str>,
    pub(crate) json: Option<&'a RawValue>,
    pub(crate) base64: Option<&'a str>,
}

/// The bytes of the one body that was given; none if none was. `outer` is the field that the body is a part of.
pub(crate) fn bytes(
    given: GivenBody<'_>,
    outer: &str,
    limit: usize,
    faults: &mut Faults,
) -> Result<Bytes, OperationError> {
    const TEXT: &str = "bodyText";
    let at = |field: &str| format!("{outer}.{field}");
    let (field, bytes) = match (given.text, given.json, given.base64) {
        (None, None, None) => return Ok(Bytes::new()),
        (Some(text), None, None) => (TEXT, fits(text, limit)),
        (None, Some(json), None) => (JSON, fits(json.get(), limit)),
        (None, None, Some(encoded)) => (BASE64, from_base64(&at(BASE64), encoded, limit, faults)),
        (text, json, base64) => {
            for (field, is_given) in [(TEXT, text.is_some()), (JSON, json.is_some()), (BASE64, base64.is_some())] {
                if is_given {
                    faults.add(at(field), format!("must be the only one of {TEXT}, {JSON} and {BASE64}"));
                }
            }
            return Ok(Bytes::new());
        }
    };
    bytes.ok_or_else(|| OperationError::TooLarge { field: at(field), limit_bytes: limit })
}

/// `None` if it is too large; invalid base64 is a fault.
fn from_base64(field: &str, encoded: &str, limit: usize, faults: &mut Faults) -> Option<Bytes> {
    // Four characters are three bytes, the last four maybe fewer: checked before decoding.
    if encoded.len() / 4 * 3 > limit + 3 {
        return None;
    }
    match DECODER.decode(encoded) {
        Ok(bytes) if bytes.len() > limit => None,
        Ok(bytes) => Some(Bytes::from(bytes)),
        Err(error) => {
            faults.add(field, format!("must be base64: {}", error.to_string().to_lowercase()));
            Some(Bytes::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parse;

    fn decoded(document: &str, limit: usize) -> (Result<Body, OperationError>, Vec<String>) {
        let submission: Submission<'_> = parse(document.as_bytes()).unwrap();
        let mut faults = Faults::default();
        let body = decode(&submission, limit, &mut faults);
        (body, faults.fields().into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn a_json_body_is_kept_byte_for_byte() {
        let odd = "{ \"a\" :\t1.0e400,\n\"a\":12345678901234567890123, \"\\u00e9\": [ ] }";
        let (body, _) = decoded(&format!("{{\"targetUrl\":\"x\",\"bodyJson\":  {odd}  }}"), 1_000);
        assert_eq!(
            body.unwrap(),
            Body { content: Content::Bytes(Bytes::from(odd)), implied_type: Some("application/json") }
        );
    }

    #[test]
    fn a_body_is_text_json_or_base64_and_implies_its_type() {
        for (document, bytes, implied) in [
            (r#"{"targetUrl":"x"}"#, &b""[..], None),
            (r#"{"targetUrl":"x","body":"\u00e9"}"#, "é".as_bytes(), Some("text/plain; charset=utf-8")),
            (r#"{"targetUrl":"x","bodyJson":null}"#, b"null", Some("application/json")),
            (r#"{"targetUrl":"x","bodyBase64":"//79"}"#, b"\xff\xfe\xfd", None),
            (r#"{"targetUrl":"x","bodyBase64":"/w"}"#, b"\xff", None),
            (r#"{"targetUrl":"x","bodyBase64":"/w=="}"#, b"\xff", None),
        ] {
            let body = decoded(document, 10).0.unwrap();
            let expected = Body { content: Content::Bytes(Bytes::from(bytes)), implied_type: implied };
            assert_eq!(body, expected, "{document}");
        }
    }

    #[test]
    fn a_reference_is_the_hash_of_what_was_uploaded() {
        let hash = BodyHash::of(b"abc");
        let document = |reference: &str| format!(r#"{{"targetUrl":"x","bodyRef":"{reference}"}}"#);
        let (body, faults) = decoded(&document(&hash.to_string()), 0);
        assert_eq!((body.unwrap().content, faults), (Content::Uploaded(hash), vec![]));
        for bad in ["", "abc", "sha256:abc", &hash.to_string().to_uppercase()] {
            assert_eq!(decoded(&document(bad), 0).1, ["bodyRef"], "{bad}");
        }
        assert_eq!(decoded(r#"{"targetUrl":"x","bodyRef":"","body":""}"#, 0).1, ["body", "bodyRef"]);
    }

    #[test]
    fn two_bodies_and_bad_base64_are_faults() {
        assert_eq!(decoded(r#"{"targetUrl":"x","body":"a","bodyJson":1}"#, 10).1, ["body", "bodyJson"]);
        assert_eq!(decoded(r#"{"targetUrl":"x","bodyBase64":"","bodyJson":1}"#, 10).1, ["bodyJson", "bodyBase64"]);
        for bad in ["a", "a-b_", "YQ=a", "=", "YR=="] {
            let faults = decoded(&format!(r#"{{"targetUrl":"x","bodyBase64":"{bad}"}}"#), 10).1;
            assert_eq!(faults, ["bodyBase64"], "{bad}");
        }
    }

    #[test]
    fn the_limit_is_for_what_is_sent_not_for_how_it_is_written() {
        for (document, fits) in [
            (r#"{"targetUrl":"x","body":"\u0061\u0062\u0063\u0064"}"#, true),
            (r#"{"targetUrl":"x","body":"abcde"}"#, false),
            (r#"{"targetUrl":"x","bodyJson":1234}"#, true),
            (r#"{"targetUrl":"x","bodyJson":12345}"#, false),
            (r#"{"targetUrl":"x","bodyBase64":"YWJjZA=="}"#, true),
            (r#"{"targetUrl":"x","bodyBase64":"YWJjZGU="}"#, false),
            (r#"{"targetUrl":"x","bodyBase64":"YWJjZGVmZ2hpamts"}"#, false),
        ] {
            let body = decoded(document, 4).0;
            assert_eq!(body.is_ok(), fits, "{document}");
            assert!(fits || matches!(body, Err(OperationError::TooLarge { limit_bytes: 4, .. })), "{document}");
        }
    }
}
