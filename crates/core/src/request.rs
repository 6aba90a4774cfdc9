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

/// The origin of a valid absolute URL: `scheme://host[:port]` in lower case, without a default port and without userinfo.
pub fn origin_of(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host_and_port = authority.rsplit('@').next().unwrap_or_default();
    let is_number = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let (host, port) = match host_and_port.rsplit_once(':').filter(|(_, port)| is_number(port)) {
        Some((host, port)) => (host, port.parse::<u16>().ok()),
        None => (host_and_port, None),
    };
    let default_port = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
    let mut origin = String::with_capacity(url.len());
    origin.extend([scheme, "://", host]);
    origin.make_ascii_lowercase();
    if let Some(port) = port.filter(|port| *port != default_port) {
        origin.extend([":", &port.to_string()]);
    }
    origin
}

/// SHA-256 over everything that makes two submissions the same request, and which version of the rules it was made by.
///
/// Fingerprints are stored, and a stored one is compared with a fingerprint of its own version. So a key that an earlier
/// release accepted stays valid when the rules change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    /// The version of the rules.
    pub version: FingerprintVersion,
    /// The hash.
    pub hash: [u8; 32],
}

/// What a fingerprint is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FingerprintVersion {
    /// Every header field counts.
    V1,
    /// Volatile header fields do not count ([`is_volatile`]).
    V2,
}

impl FingerprintVersion {
    /// The version of new tasks.
    pub const CURRENT: Self = FingerprintVersion::V2;
}

impl Fingerprint {
    /// The stored form: version 1 is the hash alone, later versions have their number before it.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self.version {
            FingerprintVersion::V1 => self.hash.to_vec(),
            FingerprintVersion::V2 => [&[2], &self.hash[..]].concat(),
        }
    }

    /// Reads the stored form; `None` if this program does not know the version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (version, hash) = match bytes {
            [2, hash @ ..] if hash.len() == 32 => (FingerprintVersion::V2, hash),
            hash => (FingerprintVersion::V1, hash),
        };
        Some(Fingerprint { version, hash: hash.try_into().ok()? })
    }
}

/// Header fields that may differ between two submissions of the same request: credentials that were renewed, and the
/// tracing of the caller. The first submission's are sent.
const VOLATILE: [&str; 6] = ["authorization", "proxy-authorization", "date", "traceparent", "tracestate", "baggage"];

/// Whether a header field says nothing about which request it is.
pub fn is_volatile(name: &str) -> bool {
    VOLATILE.iter().any(|volatile| name.eq_ignore_ascii_case(volatile))
}

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

    /// The hash of all parts, in their order.
    pub fn hash(self) -> [u8; 32] {
        self.0.finalize().into()
    }

    /// The fingerprint of all parts, in their order, of the current version.
    pub fn finish(self) -> Fingerprint {
        Fingerprint { version: FingerprintVersion::CURRENT, hash: self.hash() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_the_same_whatever_path_user_case_and_default_port_a_url_has() {
        let cases = [
            ("https://a.test/orders?x=1", "https://a.test"),
            ("HTTPS://A.Test:443", "https://a.test"),
            ("https://a.test:0443/", "https://a.test"),
            ("https://me:secret@a.test?x=@b", "https://a.test"),
            ("http://a.test:80#f", "http://a.test"),
            ("http://a.test:443/", "http://a.test:443"),
            ("https://a.test:8443/", "https://a.test:8443"),
            ("http://[::1]/", "http://[::1]"),
            ("http://[::1]:80/", "http://[::1]"),
            ("https://[2001:db8::443]:8443/", "https://[2001:db8::443]:8443"),
        ];
        for (url, origin) in cases {
            assert_eq!(origin_of(url), origin, "{url}");
        }
    }

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
        let bytes = Fingerprinter::default().part(b"POST").part(b"").part(b"https://example.com/").hash();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "9606584b8592eceb1bff2e427b1c26890b0756949e73b3f7f8326b371a12c107");
    }

    #[test]
    fn a_fingerprint_is_stored_with_its_version() {
        for version in [FingerprintVersion::V1, FingerprintVersion::V2] {
            // A hash of version 1 may begin with the number of version 2.
            for hash in [[2; 32], [7; 32]] {
                let fingerprint = Fingerprint { version, hash };
                assert_eq!(Fingerprint::from_bytes(&fingerprint.to_bytes()), Some(fingerprint));
            }
        }
        for unknown in [&[][..], &[1; 31], &[3; 33], &[2; 34]] {
            assert_eq!(Fingerprint::from_bytes(unknown), None);
        }
    }

    #[test]
    fn renewed_credentials_and_traces_are_volatile() {
        for name in ["authorization", "Authorization", "TRACEPARENT", "tracestate", "date"] {
            assert!(is_volatile(name), "{name}");
        }
        for name in ["content-type", "cookie", "x-authorization", "accept"] {
            assert!(!is_volatile(name), "{name}");
        }
    }
}
