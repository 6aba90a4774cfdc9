//! The fingerprint of a submission: a hash of everything the caller gave that determines what is sent, or when.
//!
//! The parts come in a fixed order and number, lists with their length first, so that no two different submissions
//! share their parts. The layout of the document, and whether the key came as a header, are not part of it.
//!
//! Whether a body came in the document or was uploaded is part of it: an uploaded body counts by its hash, one in the
//! document by its bytes. To make the two equal, every submission of an uploaded body would have to read all of it. A
//! caller that repeats a submission must repeat its form; otherwise it is refused, and nothing is sent twice.

use std::collections::BTreeSet;

use redrive_core::request::{Fingerprint, FingerprintVersion, Fingerprinter, is_volatile};
use redrive_core::trace::is_trace_field;
use redrive_core::{Body, PolicyId, Request};

use crate::wire::Moment;

/// The fields of a submission that are not part of the request.
#[derive(Debug, Clone)]
pub(crate) struct OtherFields {
    pub(crate) policy: PolicyId,
    pub(crate) dependency: Option<String>,
    pub(crate) delay_ms: Option<u64>,
    pub(crate) not_before: Option<Moment>,
}

/// The fingerprint of a submission, made by the rules of this version.
pub(crate) fn of(version: FingerprintVersion, request: &Request, beside: &OtherFields) -> Fingerprint {
    let mut parts = Fingerprinter::default()
        .part(request.method.as_bytes())
        .part(request.target_url.as_bytes())
        .part(match &request.body {
            Body::Inline(bytes) => bytes,
            _ => b"",
        })
        .part(beside.policy.as_str().as_bytes());
    parts = optional(parts, beside.dependency.as_deref().map(str::as_bytes));
    parts = optional(parts, beside.delay_ms.map(u64::to_le_bytes).as_ref().map(|bytes| &bytes[..]));
    let not_before = beside.not_before.map(|moment| moment.0.as_millis().to_le_bytes());
    parts = optional(parts, not_before.as_ref().map(|bytes| &bytes[..]));
    let overrides = request.overrides.as_ref().map(|overrides| {
        // A spec is numbers, names and lists of numbers: there is nothing in it that could fail.
        serde_json::to_vec(overrides).unwrap_or_default()
    });
    parts = optional(parts, overrides.as_deref());
    let counts = |name: &str| version == FingerprintVersion::V1 || !is_volatile(name);
    let headers = request.headers.iter().filter(|(name, _)| counts(name));
    let headers = headers.map(|(name, value)| (name.as_str(), value.as_str()));
    parts = pairs(parts, headers.clone().count(), headers);
    let labels = request.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    parts = pairs(parts, request.labels.len(), labels);
    let hash = match request.body.stored() {
        // More parts than a submission without an upload ever has.
        Some(body) => parts.part(UPLOADED).part(&body.hash.0).hash(),
        None => parts.hash(),
    };
    Fingerprint { version, hash }
}

const UPLOADED: &[u8] = b"bodyRef";

/// Absent differs from empty.
fn optional(parts: Fingerprinter, value: Option<&[u8]>) -> Fingerprinter {
    match value {
        Some(bytes) => parts.part(&[1]).part(bytes),
        None => parts.part(&[0]),
    }
}

fn pairs<'a>(parts: Fingerprinter, count: usize, pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Fingerprinter {
    let parts = parts.part(&(count as u64).to_le_bytes());
    pairs.fold(parts, |parts, (name, value)| parts.part(name.as_bytes()).part(value.as_bytes()))
}

/// What is needed to compare a submission with a task that its key belongs to.
pub(crate) struct Resubmission {
    other: OtherFields,
    /// The fingerprint of version 1, if the request alone does not have it any more: its large body was stored apart.
    first: Option<Fingerprint>,
}

impl Resubmission {
    /// Made while `request` has its body as it was given.
    pub(crate) fn new(request: &Request, other: OtherFields, inline_bytes: usize) -> Self {
        let is_large = request.body.inline().is_some_and(|bytes| bytes.len() > inline_bytes);
        let first = is_large.then(|| of(FingerprintVersion::V1, request, &other));
        Resubmission { other, first }
    }

    /// Whether the stored fingerprint is that of this submission, by the rules of the stored one.
    pub(crate) fn is(&self, stored: Fingerprint, request: &Request) -> bool {
        let first = self.first.filter(|first| first.version == stored.version);
        first.unwrap_or_else(|| of(stored.version, request, &self.other)) == stored
    }
}

/// The names of the volatile header fields whose values differ between a submission and the task that it repeats, in lower
/// case and in their order. Those of traces only if the submission gives them: the task may have others from the request
/// that brought it.
pub(crate) fn ignored_headers(given: &Request, stored: &Request) -> Vec<String> {
    let volatile = given.headers.iter().chain(&stored.headers).map(|(name, _)| name.to_ascii_lowercase());
    let gives = |name: &String| given.headers.iter().any(|(field, _)| field.eq_ignore_ascii_case(name));
    let is_compared = |name: &String| is_volatile(name) && (!is_trace_field(name) || gives(name));
    let names: BTreeSet<String> = volatile.filter(is_compared).collect();
    let differs = |name: &String| {
        let is_it = |field: &&(String, String)| field.0.eq_ignore_ascii_case(name);
        let values = |request: &Request| {
            request.headers.iter().filter(is_it).map(|(_, value)| value.clone()).collect::<Vec<String>>()
        };
        values(given) != values(stored)
    };
    names.into_iter().filter(differs).collect()
}

#[cfg(test)]
mod tests {
    use redrive_core::{BodyHash, BodyRef, Timestamp, policy};

    use super::*;
    use FingerprintVersion::{V1, V2};

    const CURRENT: FingerprintVersion = FingerprintVersion::CURRENT;

    fn plain() -> OtherFields {
        OtherFields { policy: PolicyId::default_policy(), dependency: None, delay_ms: None, not_before: None }
    }

    fn request() -> Request {
        Request {
            target_url: "https://example.com/".into(),
            method: "POST".into(),
            headers: vec![("a".into(), "b".into())],
            body: "body".into(),
            overrides: None,
            labels: [("l".to_owned(), "v".to_owned())].into(),
        }
    }

    #[test]
    fn every_part_of_a_submission_counts() {
        let other = PolicyId::try_new("other").unwrap();
        let moment = Some(Moment(Timestamp::from_millis(0)));
        let fingerprints = [
            of(CURRENT, &request(), &plain()),
            of(CURRENT, &Request { target_url: "https://example.com/x".into(), ..request() }, &plain()),
            of(CURRENT, &Request { method: "PUT".into(), ..request() }, &plain()),
            of(CURRENT, &Request { headers: vec![], ..request() }, &plain()),
            of(CURRENT, &Request { headers: vec![("ab".into(), "".into())], ..request() }, &plain()),
            of(CURRENT, &Request { body: "Body".into(), ..request() }, &plain()),
            of(CURRENT, &Request { body: "".into(), ..request() }, &plain()),
            of(CURRENT, &Request { body: stored(b"body", 1).into(), ..request() }, &plain()),
            of(CURRENT, &Request { body: stored(b"", 1).into(), ..request() }, &plain()),
            of(CURRENT, &Request { labels: [].into(), ..request() }, &plain()),
            of(CURRENT, &Request { overrides: Some(policy::Spec::default()), ..request() }, &plain()),
            of(CURRENT, &request(), &OtherFields { policy: other, ..plain() }),
            of(CURRENT, &request(), &OtherFields { dependency: Some(String::new()), ..plain() }),
            of(CURRENT, &request(), &OtherFields { dependency: Some("billing".to_owned()), ..plain() }),
            of(CURRENT, &request(), &OtherFields { delay_ms: Some(0), ..plain() }),
            of(CURRENT, &request(), &OtherFields { not_before: moment, ..plain() }),
        ];
        for (at, one) in fingerprints.iter().enumerate() {
            assert!(!fingerprints[..at].contains(one), "{at}");
        }
        assert_eq!(fingerprints[0], of(CURRENT, &request(), &plain()));
        let again = Request { body: stored(b"body", 2).into(), ..request() };
        assert!(
            fingerprints.contains(&of(CURRENT, &again, &plain())),
            "which copy it is says nothing of what is in it"
        );
    }

    fn stored(content: &[u8], copy: u64) -> BodyRef {
        BodyRef { hash: BodyHash::of(content), length: content.len() as u64, copy }
    }

    /// Fingerprints are kept in stores: a change here would take every known request for another one.
    #[test]
    fn the_fingerprint_of_a_body_in_the_document_stays_the_same_from_release_to_release() {
        for version in [V1, V2] {
            let hash = of(version, &request(), &plain()).hash;
            let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, "d448ae61d135be1c68b2059a17446c7247084318938e40d185384392ac4c4e66", "{version:?}");
        }
    }

    #[test]
    fn a_renewed_credential_is_another_request_only_in_version_1() {
        let with_token = |token: &str| Request {
            headers: vec![("Authorization".into(), token.into()), ("a".into(), "b".into())],
            ..request()
        };
        let print = |version, request: &Request| of(version, request, &plain());
        assert_ne!(print(V1, &with_token("Bearer 1")), print(V1, &with_token("Bearer 2")));
        assert_eq!(print(V2, &with_token("Bearer 1")), print(V2, &with_token("Bearer 2")));
        assert_eq!(print(V2, &with_token("Bearer 1")), print(V2, &request()));
    }

    #[test]
    fn only_volatile_fields_that_differ_are_ignored() {
        let with = |fields: &[(&str, &str)]| Request {
            headers: fields.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            ..request()
        };
        for (given, stored, expected) in [
            (&[("Authorization", "1")][..], &[("authorization", "1")][..], &[][..]),
            (&[("Authorization", "2")], &[("authorization", "1")], &["authorization"]),
            (&[("traceparent", "2")], &[("Date", "1")], &["date", "traceparent"]),
            (&[], &[("authorization", "1")], &["authorization"]),
            (&[], &[("tracestate", "1"), ("baggage", "1")], &[]),
            (&[("Baggage", "2")], &[("tracestate", "1"), ("baggage", "1")], &["baggage"]),
            (&[("baggage", "1"), ("baggage", "2")], &[("baggage", "1")], &["baggage"]),
            (&[("x", "1")], &[("x", "2")], &[]),
        ] {
            assert_eq!(ignored_headers(&with(given), &with(stored)), expected, "{given:?} {stored:?}");
        }
    }
}
