//! Where a server is: `http://HOST[:PORT][/PREFIX]`.

use std::fmt;
use std::str::FromStr;

use hyper::http::Uri;

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// HOST:PORT, to connect to and to name in requests.
    pub authority: String,
    /// What comes before every path of the API; empty or beginning with a slash.
    pub prefix: String,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || "must be a URL such as http://127.0.0.1:8620".to_owned();
        let uri: Uri = text.parse().map_err(|_| wanted())?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err("https is not supported yet; use http, or a TLS proxy on this machine".into()),
            _ => return Err(wanted()),
        }
        if uri.query().is_some() {
            return Err(wanted());
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(wanted)?;
        let authority = format!("{host}:{}", uri.port_u16().unwrap_or(80));
        Ok(Address { authority, prefix: uri.path().trim_end_matches('/').to_owned() })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_an_http_url() {
        for (text, expected) in [
            ("http://127.0.0.1:8620", "http://127.0.0.1:8620"),
            ("http://localhost/", "http://localhost:80"),
            ("http://[::1]:9/redrive/", "http://[::1]:9/redrive"),
        ] {
            assert_eq!(text.parse::<Address>().map(|address| address.to_string()).as_deref(), Ok(expected));
        }
        for wrong in ["", "localhost:8620", "https://localhost", "ftp://x", "http://", "http://x/?a=b"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong:?}");
        }
    }
}
