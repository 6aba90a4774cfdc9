//! The origin of a URL (scheme, host and port), parsed once and kept for every send to it.

use std::fmt;
use std::net::Ipv6Addr;

use http::HeaderValue;
use http::uri::{Authority, Scheme};
use redrive_dial::Endpoint;
use redrive_engine::transport::SendError;

use crate::failure;
use crate::target::Target;

/// Scheme, host and port, in every form that a send needs.
pub(crate) struct Origin {
    /// The host and port to connect to; the scheme's own port if none was given.
    pub(crate) endpoint: Endpoint,
    /// The `host` field of HTTP/1.1.
    pub(crate) host_field: HeaderValue,
    /// The scheme of an HTTP/2 request.
    pub(crate) scheme: Scheme,
    /// The authority of an HTTP/2 request.
    pub(crate) authority: Authority,
}

impl Origin {
    /// The origin that `target` names.
    pub(crate) fn parse(target: &Target<'_>) -> Result<Self, SendError> {
        let (bracketed, port) = host_and_port(target.authority)?;
        let default_port = if target.secure { 443 } else { 80 };
        let port = port.unwrap_or(default_port);
        let endpoint = Endpoint::new(bracketed, port, target.secure).map_err(|_| invalid_host())?;
        let shown = endpoint.to_string();
        // A default port is left out, as every browser does and some servers expect.
        let written = if port == default_port { bracketed } else { shown.as_str() };
        let authority = Authority::try_from(written).map_err(|_| invalid_host())?;
        let host_field = HeaderValue::try_from(written).map_err(|_| invalid_host())?;
        let scheme = if target.secure { Scheme::HTTPS } else { Scheme::HTTP };
        Ok(Origin { endpoint, host_field, scheme, authority })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.endpoint.fmt(f)
    }
}

/// The host, in brackets if it came so, and the port if there is one.
fn host_and_port(authority: &str) -> Result<(&str, Option<u16>), SendError> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(address) => {
            let end = address.find(']').ok_or_else(invalid_host)?;
            address[..end].parse::<Ipv6Addr>().map_err(|_| invalid_host())?;
            authority.split_at(end + "[]".len())
        }
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    if host.is_empty() {
        return Err(invalid_host());
    }
    match port {
        "" | ":" => Ok((host, None)),
        port => match port.strip_prefix(':').map(str::parse) {
            Some(Ok(port)) if port > 0 => Ok((host, Some(port))),
            _ => Err(failure::invalid("the url's port must be a number from 1 to 65535")),
        },
    }
}

fn invalid_host() -> SendError {
    failure::invalid("the url's host must be a name in ASCII (international names in their xn-- form) or an address")
}

#[cfg(test)]
mod tests {
    use redrive_core::ErrorType;

    use super::*;

    fn origin(url: &str) -> Result<Origin, SendError> {
        Origin::parse(&Target::parse(url)?)
    }

    #[test]
    fn host_and_port_are_found_in_every_form() {
        // url, host, port, host field, shown
        for (url, host, port, field, shown) in [
            ("http://a.test/", "a.test", 80, "a.test", "a.test:80"),
            ("http://a.test:80/", "a.test", 80, "a.test", "a.test:80"),
            ("https://a.test:/", "a.test", 443, "a.test", "a.test:443"),
            ("https://a.test:80/", "a.test", 80, "a.test:80", "a.test:80"),
            ("http://127.0.0.1:9/", "127.0.0.1", 9, "127.0.0.1:9", "127.0.0.1:9"),
            ("https://[::1]/", "::1", 443, "[::1]", "[::1]:443"),
            ("http://[::1]:8080/", "::1", 8080, "[::1]:8080", "[::1]:8080"),
            ("http://user:secret@a.test/", "a.test", 80, "a.test", "a.test:80"),
        ] {
            let origin = origin(url).unwrap();
            assert_eq!((origin.endpoint.host(), origin.endpoint.port()), (host, port), "{url}");
            assert_eq!(origin.host_field, field, "{url}");
            assert_eq!(origin.authority, field, "{url}");
            assert_eq!(origin.to_string(), shown, "{url}");
            assert_eq!(origin.endpoint.is_secure(), url.starts_with("https"), "{url}");
        }
    }

    #[test]
    fn a_host_or_port_that_cannot_be_is_an_invalid_request() {
        for url in [
            "http:///x",
            "http://:80/",
            "http://user@/",
            "http://a.test:0/",
            "http://a.test:65536/",
            "http://a.test:x/",
            "http://a.test:80:80/",
            "http://::1/",
            "http://[::1/",
            "http://[zz]/",
            "http://[::1]x/",
            "http://]/",
            "http://a b/",
            "http://a\\b/",
            "http://b\u{fc}cher.test/",
            "https://-/",
        ] {
            assert_eq!(origin(url).err().map(|error| error.kind), Some(ErrorType::InvalidRequest), "{url}");
        }
    }
}
