//! The host and port to connect to, and whether with TLS.

use std::fmt;

use rustls::pki_types::ServerName;

/// A host and port to connect to. Shown as `HOST:PORT`.
#[derive(Debug, Clone)]
pub struct Endpoint {
    host: String,
    port: u16,
    server_name: Option<ServerName<'static>>,
    shown: String,
}

/// The host is neither a name nor an address that a certificate could be for.
#[derive(Debug, thiserror::Error)]
#[error("the host is not a valid name or address")]
pub struct InvalidHost;

impl Endpoint {
    /// A host, with TLS or without. An IPv6 address may be in brackets.
    pub fn new(host: &str, port: u16, is_secure: bool) -> Result<Self, InvalidHost> {
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let server_name = match is_secure {
            true => Some(ServerName::try_from(bare.clone()).map_err(|_| InvalidHost)?),
            false => None,
        };
        let shown = if bare.contains(':') { format!("[{bare}]:{port}") } else { format!("{bare}:{port}") };
        Ok(Endpoint { host: bare, port, server_name, shown })
    }

    /// The name or address, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether connections to it use TLS.
    pub fn is_secure(&self) -> bool {
        self.server_name.is_some()
    }

    /// The name that the certificate must be for; only with TLS.
    pub(crate) fn server_name(&self) -> Option<&ServerName<'static>> {
        self.server_name.as_ref()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_address_is_shown_in_brackets_and_looked_up_without() {
        for (host, port, bare, shown) in [
            ("a.test", 80, "a.test", "a.test:80"),
            ("127.0.0.1", 9, "127.0.0.1", "127.0.0.1:9"),
            ("[::1]", 443, "::1", "[::1]:443"),
            ("::1", 443, "::1", "[::1]:443"),
        ] {
            for is_secure in [false, true] {
                let endpoint = Endpoint::new(host, port, is_secure).unwrap();
                assert_eq!((endpoint.host(), endpoint.port(), endpoint.is_secure()), (bare, port, is_secure));
                assert_eq!(endpoint.to_string(), shown);
            }
        }
    }

    #[test]
    fn a_host_that_no_certificate_can_be_for_is_refused_with_tls() {
        for host in ["", "-", "a b", "b\u{fc}cher.test"] {
            assert!(Endpoint::new(host, 443, true).is_err(), "{host:?}");
        }
    }
}
