//! The target: an absolute `http` or `https` URL, sent as given; and its origin, the dependency of a task that names
//! none.

use std::net::{Ipv4Addr, Ipv6Addr};

use http::Uri;
use http::uri::Authority;
use redrive_core::Dependency;
use redrive_core::request::origin_of;

use super::faults::Faults;

const FIELD: &str = "targetUrl";
/// The longest name that DNS can hold.
const LONGEST_HOST: usize = 253;
/// The longest part of such a name.
const LONGEST_LABEL: usize = 63;

/// The target's origin, if the target is valid.
pub(crate) fn check(url: &str, longest: usize, faults: &mut Faults) -> Option<Dependency> {
    if url.len() > longest {
        faults.add(FIELD, format!("must be at most {longest} bytes, got {}", url.len()));
        return None;
    }
    faults.keep(FIELD, origin(url)).and_then(|origin| faults.keep(FIELD, Dependency::try_new(origin)))
}

/// The [origin](origin_of) of a URL that a task can be sent to.
fn origin(url: &str) -> Result<String, &'static str> {
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("must not contain spaces, control characters or non-ASCII characters: percent-encode them");
    }
    if url.contains('#') {
        return Err("must not have a fragment: it is never sent");
    }
    let uri: Uri = url.parse().map_err(|_| "must be an absolute URL such as https://example.com/hooks")?;
    let is_secure = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        Some(_) => return Err("must begin with http:// or https://"),
        None => return Err("must be an absolute URL such as https://example.com/hooks"),
    };
    let authority = uri.authority().ok_or("must name a host")?;
    let host = authority.host();
    if !is_host(host) {
        return Err("must name a host: a DNS name or an IP address");
    }
    if is_secure && !can_be_certified(host) {
        return Err("must name a host that a certificate can name: a DNS name or an IP address");
    }
    let behind_user = authority.as_str().rsplit('@').next().unwrap_or_default();
    let port = &behind_user[host.len()..];
    if !port.is_empty() {
        port.strip_prefix(':').and_then(read_port).ok_or("must have a port from 1 to 65535")?;
    }
    Ok(origin_of(url))
}

/// Whether this is a host, or a host and a port.
pub(super) fn is_host_and_port(text: &str) -> bool {
    let Ok(authority) = text.parse::<Authority>() else { return false };
    let host = authority.host();
    let port = text.strip_prefix(host).map(|rest| (rest, rest.strip_prefix(':').and_then(read_port)));
    is_host(host) && matches!(port, Some(("", None) | (_, Some(_))))
}

/// Digits and nothing else: a number may have a sign, a port may not.
fn read_port(text: &str) -> Option<u16> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&port| is_number && port != 0)
}

fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().is_ok();
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    !host.is_empty() && host.len() <= LONGEST_HOST && host.bytes().all(is_name)
}

/// Whether a certificate can be for this host, which is one by [`is_host`]. No TLS connection is made to another one:
/// labels of 1 to 63 characters with no hyphen at either end, the last one not a number, optionally followed by a dot.
fn can_be_certified(host: &str) -> bool {
    let is_label = |label: &str| (1..=LONGEST_LABEL).contains(&label.len()) && label.trim_matches('-') == label;
    let name = host.strip_suffix('.').unwrap_or(host);
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit());
    host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok() || (name.split('.').all(is_label) && !is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_is_in_lower_case_without_default_port_and_userinfo() {
        for (url, expected) in [
            ("https://Example.COM/Hooks?a=B", "https://example.com"),
            ("HTTP://example.com:80", "http://example.com"),
            ("https://example.com:443/", "https://example.com"),
            ("http://example.com:443/", "http://example.com:443"),
            ("https://user:p:w@example.com:8443/x@y", "https://example.com:8443"),
            ("http://[::1]:8080/", "http://[::1]:8080"),
            ("http://127.0.0.1?x", "http://127.0.0.1"),
            ("http://my_service.local/%20{a}", "http://my_service.local"),
        ] {
            assert_eq!(origin(url).as_deref(), Ok(expected), "{url}");
        }
    }

    #[test]
    fn what_cannot_be_called_is_refused() {
        for url in [
            "",
            "/hooks",
            "example.com/hooks",
            "localhost:8080",
            "ftp://example.com/",
            "https://",
            "https:///path",
            "https://:80/",
            "https://user@/",
            "https://example.com:0/",
            "https://example.com:65536/",
            "https://example.com:/",
            "https://example.com:8x/",
            "https://example.com:+8443/",
            "https://example.com:-1/",
            "http://[::1]79/",
            "http://[::1]x/",
            "https://exa mple.com/",
            "https://example.com/a b",
            "https://example.com/\u{7f}",
            "https://example.com/\r\nHost: x",
            "https://exämple.com/",
            "https://example.com/#top",
            "https://[::zz]/",
            "https://[::1/",
            "https://a%20b/",
            "https://a,b/",
        ] {
            assert!(origin(url).is_err(), "{url:?} {:?}", origin(url));
        }
        assert!(origin(&format!("https://{}/", "a".repeat(254))).is_err());
    }

    #[test]
    fn a_host_that_no_certificate_can_name_is_refused_over_tls() {
        let long = "a".repeat(64);
        for host in ["1", ".", "a..b", "1.2.3.4.5", "a.1.", "-a.test", "a-.test", long.as_str()] {
            assert!(origin(&format!("https://{host}/")).is_err(), "{host}");
            assert!(origin(&format!("http://{host}/")).is_ok(), "{host}: without TLS it is the resolver's to judge");
        }
        for host in ["a", "a.test.", "1.a", "a_b.test", "x--y.test", "127.0.0.1", "[::1]"] {
            assert!(origin(&format!("https://{host}/")).is_ok(), "{host}");
        }
    }

    #[test]
    fn a_target_has_a_longest_length() {
        let mut faults = Faults::default();
        assert!(check("https://example.com/1234", 24, &mut faults).is_some());
        assert!(check("https://example.com/12345", 24, &mut faults).is_none());
        assert_eq!(faults.fields(), ["targetUrl"]);
    }
}
