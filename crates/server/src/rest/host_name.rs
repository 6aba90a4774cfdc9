//! The host names that the server answers to.
//!
//! A web page can make its visitor's browser send requests to a server on the visitor's machine or network. Such a
//! request can be recognised: `Origin` names the page's site, and `Host` does so too if the page has made its own name
//! resolve to the server's address (DNS rebinding). So both must be names of the server.
//!
//! Always own: `localhost` and names below it, loopback addresses, the address that the server listens on, and the
//! names of [`Options::host_names`](super::Options::host_names). A server that listens on all addresses also answers to
//! any IP address in `Host`, because rebinding needs a name. Ports are not compared.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// The longest name that DNS can hold.
const LONGEST: usize = 253;

/// A name that the server answers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostName {
    /// Any name. This disables the protection against DNS rebinding.
    Any,
    /// All names below this domain.
    Below(String),
    /// This name.
    Name(String),
    /// This IP address.
    Address(IpAddr),
}

/// The text is not a host name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be names without a port: redrive.internal, 10.0.0.5, *.example.com, or * for any")]
pub struct InvalidHostName;

impl FromStr for HostName {
    type Err = InvalidHostName;

    fn from_str(text: &str) -> Result<Self, InvalidHostName> {
        if text == "*" {
            return Ok(HostName::Any);
        }
        let (domain, is_below) = text.strip_prefix("*.").map_or((text, false), |domain| (domain, true));
        // An IPv6 address needs its brackets only where a port may follow.
        let host = match domain.parse::<Ipv6Addr>() {
            Ok(address) => Some(Host::Address(address.to_canonical())),
            Err(_) => Host::without_port(domain),
        };
        match (host, is_below) {
            (Some(Host::Name(name)), true) => Ok(HostName::Below(name.to_ascii_lowercase())),
            (Some(Host::Name(name)), false) => Ok(HostName::Name(name.to_ascii_lowercase())),
            (Some(Host::Address(address)), false) => Ok(HostName::Address(address)),
            _ => Err(InvalidHostName),
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostName::Any => f.write_str("*"),
            HostName::Below(domain) => write!(f, "*.{domain}"),
            HostName::Name(name) => f.write_str(name),
            HostName::Address(address) => write!(f, "{address}"),
        }
    }
}

/// A host as a request names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host<'a> {
    Name(&'a str),
    Address(IpAddr),
}

impl<'a> Host<'a> {
    /// The host of `host[:port]`, an IPv6 address in brackets.
    pub(super) fn parse(authority: &'a str) -> Option<Self> {
        let bracket = authority.rfind(']').unwrap_or(0);
        let (host, port) = match authority[bracket..].find(':') {
            Some(colon) => (&authority[..bracket + colon], &authority[bracket + colon + 1..]),
            None => (authority, ""),
        };
        Host::without_port(host).filter(|_| port.bytes().all(|byte| byte.is_ascii_digit()))
    }

    fn without_port(host: &'a str) -> Option<Self> {
        if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return address.parse::<Ipv6Addr>().ok().map(|address| Host::Address(address.to_canonical()));
        }
        if let Ok(address) = host.parse() {
            return Some(Host::Address(IpAddr::V4(address)));
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        let is_valid = !name.is_empty() && name.len() <= LONGEST && name.bytes().all(is_name);
        is_valid.then_some(Host::Name(name))
    }

    pub(super) fn is_same(&self, other: &Host<'_>) -> bool {
        match (self, other) {
            (Host::Name(one), Host::Name(other)) => one.eq_ignore_ascii_case(other),
            (one, other) => one == other,
        }
    }

    fn is_loopback(&self) -> bool {
        match self {
            Host::Name(name) => name.eq_ignore_ascii_case("localhost") || is_below(name, "localhost"),
            Host::Address(address) => address.is_loopback(),
        }
    }
}

/// The names of this server.
#[derive(Debug)]
pub(crate) struct HostNames {
    given: Vec<HostName>,
    listens_on: IpAddr,
}

impl HostNames {
    pub(crate) fn new(given: Vec<HostName>, listens_on: IpAddr) -> Self {
        HostNames { given, listens_on: listens_on.to_canonical() }
    }

    /// Whether a request for `host` is for this server.
    pub(super) fn answer_to(&self, host: &Host<'_>) -> bool {
        let is_any_address = self.listens_on.is_unspecified() && matches!(host, Host::Address(_));
        is_any_address || self.given.contains(&HostName::Any) || self.are_of(host)
    }

    /// Whether `host` is this server by its name, so that a page from there is the server's own.
    pub(super) fn are_of(&self, host: &Host<'_>) -> bool {
        let is_given = |name: &HostName| match (name, host) {
            (HostName::Below(domain), Host::Name(host)) => is_below(host, domain),
            (HostName::Name(name), Host::Name(host)) => name.eq_ignore_ascii_case(host),
            (HostName::Address(address), Host::Address(host)) => address == host,
            _ => false,
        };
        host.is_loopback() || *host == Host::Address(self.listens_on) || self.given.iter().any(is_given)
    }
}

/// Whether `name` is a subdomain of `domain`.
fn is_below(name: &str, domain: &str) -> bool {
    let Some(at) = name.len().checked_sub(domain.len() + 1).filter(|&at| at > 0) else { return false };
    name.is_char_boundary(at) && name[at..].starts_with('.') && name[at + 1..].eq_ignore_ascii_case(domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(given: &[&str], listens_on: &str) -> HostNames {
        HostNames::new(given.iter().map(|name| name.parse().unwrap()).collect(), listens_on.parse().unwrap())
    }

    #[test]
    fn a_server_answers_to_loopback_its_address_and_the_names_it_was_given() {
        let one = names(&["redrive.internal", "*.example.com", "10.9.9.9", "fd00::9"], "10.0.0.5");
        for (host, is_answered) in [
            ("localhost", true),
            ("LocalHost:8620", true),
            ("localhost.:1", true),
            ("app.localhost", true),
            ("127.0.0.1:8620", true),
            ("127.9.9.9", true),
            ("[::1]:8620", true),
            ("[::ffff:127.0.0.1]", true),
            ("10.0.0.5:80", true),
            ("Redrive.Internal:443", true),
            ("a.example.com", true),
            ("10.9.9.9", true),
            ("[fd00::9]:1", true),
            ("example.com", false),
            ("badexample.com", false),
            ("evil.example", false),
            ("localhost.evil.example", false),
            ("evillocalhost", false),
            (".localhost", false),
            ("10.0.0.6", false),
            ("0.0.0.0", false),
            ("2130706433", false),
            ("user@localhost", false),
            ("localhost:8620:1", false),
            ("localhost:+8620", false),
            ("localhost/x", false),
            ("[::1", false),
            ("::1", false),
            ("", false),
            (":8620", false),
        ] {
            let answered = Host::parse(host).is_some_and(|host| one.answer_to(&host));
            assert_eq!(answered, is_answered, "{host:?}");
        }
    }

    #[test]
    fn one_that_listens_on_all_addresses_answers_to_any_address_but_not_to_any_name() {
        for listens_on in ["0.0.0.0", "::"] {
            let all = names(&[], listens_on);
            let address = Host::parse("203.0.113.7:8620").unwrap();
            assert!(all.answer_to(&address) && !all.are_of(&address));
            assert!(!all.answer_to(&Host::parse("evil.example").unwrap()));
        }
        let any = names(&["*"], "127.0.0.1");
        let name = Host::parse("evil.example").unwrap();
        assert!(any.answer_to(&name) && !any.are_of(&name));
    }

    #[test]
    fn a_name_to_answer_to_is_shown_as_it_can_be_given() {
        for text in ["*", "*.example.com", "redrive.internal", "10.0.0.5", "fd00::5"] {
            assert_eq!(text.parse::<HostName>().unwrap().to_string(), text);
        }
        assert_eq!("[::1]".parse(), Ok(HostName::Address(Ipv6Addr::LOCALHOST.into())));
        for wrong in ["", "*.", "*.10.0.0.5", "a:80", "[::1]:80", "http://a", "a b", "**", "a.*", "é"] {
            assert_eq!(wrong.parse::<HostName>(), Err(InvalidHostName), "{wrong:?}");
        }
    }
}
