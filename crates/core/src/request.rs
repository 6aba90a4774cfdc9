//! The request of a task: the part that is written once and never changes.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::body::Body;
use crate::policy;

/// The request that every attempt sends, byte for byte the same, and the other fields of the submission.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The absolute URL to call.
    pub target_url: String,
    /// The method, as given.
    pub method: String,
    /// Header fields in the order given; a name may occur more than once.
    pub headers: Vec<(String, String)>,
    /// The body, as given.
    pub body: Body,
    /// Fields of the policy that this task changes.
    pub overrides: Option<policy::Spec>,
    /// The caller's labels, to find tasks by.
    pub labels: BTreeMap<String, String>,
}

/// SHA-256 over everything that makes two submissions the same request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 32]);

/// Builds a [`Fingerprint`] from parts whose boundaries count: `("ab", "c")` differs from `("a", "bc")`.
#[derive(Default)]
pub struct Fingerprinter(Sha256);

impl Fingerprinter {
    /// Adds one part.
    pub fn part(mut self, bytes: &[u8]) -> Self {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// The fingerprint of all parts, in their order.
    pub fn finish(self) -> Fingerprint {
        Fingerprint(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_one_part_ends_matters() {
        let one = Fingerprinter::default().part(b"ab").part(b"c").finish();
        let other = Fingerprinter::default().part(b"a").part(b"bc").finish();
        assert_ne!(one, other);
        assert_eq!(one, Fingerprinter::default().part(b"ab").part(b"c").finish());
    }

    #[test]
    fn order_number_and_emptiness_of_parts_matter() {
        let fingerprint =
            |parts: &[&[u8]]| parts.iter().fold(Fingerprinter::default(), |printer, part| printer.part(part)).finish();
        let all: [&[&[u8]]; 6] = [&[], &[b""], &[b"", b""], &[b"a", b"b"], &[b"b", b"a"], &[b"ab"]];
        for (at, one) in all.iter().enumerate() {
            for other in &all[at + 1..] {
                assert_ne!(fingerprint(one), fingerprint(other), "{one:?}, {other:?}");
            }
        }
    }

    /// Fingerprints are kept in stores: a change here would take every known request for another one.
    #[test]
    fn a_fingerprint_stays_the_same_from_release_to_release() {
        let Fingerprint(bytes) =
            Fingerprinter::default().part(b"POST").part(b"").part(b"https://example.com/").finish();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "9606584b8592eceb1bff2e427b1c26890b0756949e73b3f7f8326b371a12c107");
    }
}
