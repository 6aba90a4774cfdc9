//! The address of a server: `http[s]://HOST[:PORT][/PREFIX]`.

use std::fmt;
use std::str::FromStr;

use hyper::http::Uri;
use redrive_dial::Endpoint;

/// The address of a server.
#[derive(Debug, Clone)]
pub struct Address {
    /// The host and port to connect to.
    pub endpoint: Endpoint,
    /// What comes before every path of the API; empty or beginning with a slash.
    pub prefix: String,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "must be a URL such as http://127.0.0.1:8620 or https://redrive.example.com".to_owned();
        let uri: Uri = text.parse().map_err(|_| expected())?;
        let (is_secure, default_port) = match uri.scheme_str() {
            Some("http") => (false, 80),
            Some("https") => (true, 443),
            _ => return Err(expected()),
        };
        if uri.query().is_some() {
            return Err(expected());
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(expected)?;
        let port = uri.port_u16().unwrap_or(default_port);
        let endpoint = Endpoint::new(host, port, is_secure).map_err(|_| expected())?;
        Ok(Address { endpoint, prefix: uri.path().trim_end_matches('/').to_owned() })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.endpoint.is_secure() { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.endpoint, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_an_http_or_https_url() {
        for (text, expected) in [
            ("http://127.0.0.1:8620", "http://127.0.0.1:8620"),
            ("http://localhost/", "http://localhost:80"),
            ("https://localhost", "https://localhost:443"),
            ("https://redrive.test:8443/redrive", "https://redrive.test:8443/redrive"),
            ("http://[::1]:9/redrive/", "http://[::1]:9/redrive"),
        ] {
            assert_eq!(text.parse::<Address>().map(|address| address.to_string()).as_deref(), Ok(expected));
        }
        for wrong in ["", "localhost:8620", "ftp://x", "http://", "https://", "http://x/?a=b"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong:?}");
        }
    }
}
