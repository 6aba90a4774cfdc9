//! The fingerprint of a submission: a hash of everything the caller gave that determines what is sent, or when.
//!
//! The parts come in a fixed order and number, lists with their length first, so that no two different submissions
//! share their parts. The layout of the document, and whether the key came as a header, are not part of it.
//!
//! Whether a body came in the document or was uploaded is part of it: an uploaded body counts by its hash, one in the
//! document by its bytes. To make the two equal, every submission of an uploaded body would have to read all of it. A
//! caller that repeats a submission must repeat its form; otherwise it is refused, and nothing is sent twice.

use redrive_core::request::{Fingerprint, Fingerprinter};
use redrive_core::{Body, PolicyId, Request};

use crate::wire::Moment;

/// The fields of a submission that are not part of the request.
pub(crate) struct OtherFields<'a> {
    pub(crate) policy: &'a PolicyId,
    pub(crate) dependency: Option<&'a str>,
    pub(crate) delay_ms: Option<u64>,
    pub(crate) not_before: Option<Moment>,
}

/// The fingerprint of a submission.
pub(crate) fn of(request: &Request, beside: &OtherFields<'_>) -> Fingerprint {
    let mut parts = Fingerprinter::default()
        .part(request.method.as_bytes())
        .part(request.target_url.as_bytes())
        .part(match &request.body {
            Body::Inline(bytes) => bytes,
            _ => b"",
        })
        .part(beside.policy.as_str().as_bytes());
    parts = optional(parts, beside.dependency.map(str::as_bytes));
    parts = optional(parts, beside.delay_ms.map(u64::to_le_bytes).as_ref().map(|bytes| &bytes[..]));
    let not_before = beside.not_before.map(|moment| moment.0.as_millis().to_le_bytes());
    parts = optional(parts, not_before.as_ref().map(|bytes| &bytes[..]));
    let overrides = request.overrides.as_ref().map(|overrides| {
        // A spec is numbers, names and lists of numbers: there is nothing in it that could fail.
        serde_json::to_vec(overrides).unwrap_or_default()
    });
    parts = optional(parts, overrides.as_deref());
    let headers = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    parts = pairs(parts, request.headers.len(), headers);
    let labels = request.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    parts = pairs(parts, request.labels.len(), labels);
    match request.body.stored() {
        // More parts than a submission without an upload ever has.
        Some(body) => parts.part(UPLOADED).part(&body.hash.0).finish(),
        None => parts.finish(),
    }
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

#[cfg(test)]
mod tests {
    use redrive_core::{BodyHash, BodyRef, Timestamp, policy};

    use super::*;

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
        let id = PolicyId::default_policy();
        let other = PolicyId::try_new("other").unwrap();
        let plain = || OtherFields { policy: &id, dependency: None, delay_ms: None, not_before: None };
        let moment = Some(Moment(Timestamp::from_millis(0)));
        let fingerprints = [
            of(&request(), &plain()),
            of(&Request { target_url: "https://example.com/x".into(), ..request() }, &plain()),
            of(&Request { method: "PUT".into(), ..request() }, &plain()),
            of(&Request { headers: vec![], ..request() }, &plain()),
            of(&Request { headers: vec![("ab".into(), "".into())], ..request() }, &plain()),
            of(&Request { body: "Body".into(), ..request() }, &plain()),
            of(&Request { body: "".into(), ..request() }, &plain()),
            of(&Request { body: stored(b"body", 1).into(), ..request() }, &plain()),
            of(&Request { body: stored(b"", 1).into(), ..request() }, &plain()),
            of(&Request { labels: [].into(), ..request() }, &plain()),
            of(&Request { overrides: Some(policy::Spec::default()), ..request() }, &plain()),
            of(&request(), &OtherFields { policy: &other, ..plain() }),
            of(&request(), &OtherFields { dependency: Some(""), ..plain() }),
            of(&request(), &OtherFields { dependency: Some("billing"), ..plain() }),
            of(&request(), &OtherFields { delay_ms: Some(0), ..plain() }),
            of(&request(), &OtherFields { not_before: moment, ..plain() }),
        ];
        for (at, one) in fingerprints.iter().enumerate() {
            assert!(!fingerprints[..at].contains(one), "{at}");
        }
        assert_eq!(fingerprints[0], of(&request(), &plain()));
        let again = Request { body: stored(b"body", 2).into(), ..request() };
        assert!(fingerprints.contains(&of(&again, &plain())), "which copy it is says nothing of what is in it");
    }

    fn stored(content: &[u8], copy: u64) -> BodyRef {
        BodyRef { hash: BodyHash::of(content), length: content.len() as u64, copy }
    }

    /// Fingerprints are kept in stores: a change here would take every known request for another one.
    #[test]
    fn the_fingerprint_of_a_body_in_the_document_stays_the_same_from_release_to_release() {
        let beside =
            OtherFields { policy: &PolicyId::default_policy(), dependency: None, delay_ms: None, not_before: None };
        let hex: String = of(&request(), &beside).0.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "d448ae61d135be1c68b2059a17446c7247084318938e40d185384392ac4c4e66");
    }
}
