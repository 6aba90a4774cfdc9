//! The address of a server: `http[s]://[USER:PASSWORD@]HOST[:PORT][/PREFIX]`.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::http::{HeaderValue, Uri};
use percent_encoding::percent_decode_str;
use redrive_dial::Endpoint;

/// The address of a server.
#[derive(Debug, Clone)]
pub struct Address {
    /// The host and port to connect to.
    pub endpoint: Endpoint,
    /// What comes before every path of the API; empty or beginning with a slash.
    pub prefix: String,
    /// The user and the password, as every request sends them (RFC 7617); marked as sensitive, so that nothing prints them.
    pub authorization: Option<HeaderValue>,
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
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let after_host = authority.rsplit_once(host).map_or("", |(_, rest)| rest);
        let port = match (uri.port_u16(), after_host.strip_prefix(':')) {
            (Some(port), _) if port > 0 => port,
            (None, None) => default_port,
            _ => return Err("must have a port from 1 to 65535".to_owned()),
        };
        let endpoint = Endpoint::new(host, port, is_secure).map_err(|_| expected())?;
        let user = uri.authority().and_then(|authority| authority.as_str().rsplit_once('@')).map(|(user, _)| user);
        let authorization = user.map(basic).transpose()?;
        Ok(Address { endpoint, prefix: uri.path().trim_end_matches('/').to_owned(), authorization })
    }
}

impl Address {
    /// The same address, with a user and a password for every request.
    pub fn with_user(self, user: &str, password: &str) -> Result<Self, String> {
        if user.contains(':') {
            return Err("a user must have no ':'".to_owned());
        }
        Ok(Address { authorization: Some(header(format!("{user}:{password}").as_bytes())?), ..self })
    }
}

/// The value of `Authorization` for `USER:PASSWORD`, which are percent-encoded in a URL.
fn basic(user: &str) -> Result<HeaderValue, String> {
    let mut decoded: Vec<u8> = percent_decode_str(user).collect();
    if !user.contains(':') {
        decoded.push(b':');
    }
    header(&decoded)
}

fn header(decoded: &[u8]) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(decoded)))
        .map_err(|_| "has a user that cannot be sent".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.endpoint.is_secure() { "https" } else { "http" };
        let user = if self.authorization.is_some() { "***@" } else { "" };
        write!(f, "{scheme}://{user}{}{}", self.endpoint, self.prefix)
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
            ("http://anna:secret@localhost/", "http://***@localhost:80"),
        ] {
            assert_eq!(text.parse::<Address>().map(|address| address.to_string()).as_deref(), Ok(expected));
        }
        for wrong in ["http://a:99999", "http://a:x", "http://a:0", "http://a:", "http://u:p@[::1]:99999"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong:?}");
        }
        for wrong in ["", "localhost:8620", "ftp://x", "http://", "https://", "http://x/?a=b"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_user_and_a_password_are_sent_and_never_shown() {
        for (text, expected) in [
            ("http://anna:secret@localhost", Some("Basic YW5uYTpzZWNyZXQ=")),
            ("http://anna:s%40e%3Acret@localhost", Some("Basic YW5uYTpzQGU6Y3JldA==")),
            ("http://token@localhost", Some("Basic dG9rZW46")),
            ("http://localhost", None),
        ] {
            let address: Address = text.parse().unwrap();
            let sent = address.authorization.as_ref().map(|value| value.to_str().unwrap());
            assert_eq!(sent, expected);
            assert!(!format!("{address:?} {address}").contains("secret"), "{address:?}");
        }
    }
}
