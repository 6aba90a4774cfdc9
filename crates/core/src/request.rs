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
    let scheme = scheme.to_ascii_lowercase();
    let default_port = if scheme == "https" { 443 } else { 80 };
    let mut origin = format!("{scheme}://{}", host.to_ascii_lowercase());
    if let Some(port) = port.filter(|port| *port != default_port) {
        origin.push_str(&format!(":{port}"));
    }
    origin
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
        let Fingerprint(bytes) =
            Fingerprinter::default().part(b"POST").part(b"").part(b"https://example.com/").finish();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "9606584b8592eceb1bff2e427b1c26890b0756949e73b3f7f8326b371a12c107");
    }
}
