//! A URL, parsed without copying: its origin as written, its path, its credentials.
//!
//! Only what is not known of the origin yet is checked here; `origin` checks the rest once per origin.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use http::uri::PathAndQuery;
use percent_encoding::percent_decode_str;
use redrive_engine::transport::SendError;

use crate::failure;

/// A URL, taken apart.
pub(crate) struct Target<'u> {
    /// Whether it says `https`.
    pub(crate) secure: bool,
    /// Host and port as written, without user and password.
    pub(crate) authority: &'u str,
    /// The path and query as written, without the fragment.
    pub(crate) path: PathAndQuery,
    written: &'u str,
    credentials: Option<&'u str>,
}

impl<'u> Target<'u> {
    /// Takes `url` apart.
    pub(crate) fn parse(url: &'u str) -> Result<Self, SendError> {
        let (secure, scheme) = scheme(url)?;
        let rest = &url[scheme..];
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let path = path.split('#').next().unwrap_or_default();
        let path = match path {
            "" | "/" => PathAndQuery::from_static("/"),
            path => PathAndQuery::try_from(path).map_err(|_| {
                failure::invalid("the url's path or query has characters that must be percent-encoded, or is too long")
            })?,
        };
        let written = &url[..scheme + authority.len()];
        let (credentials, authority) = match authority.rsplit_once('@') {
            Some((credentials, authority)) => (Some(credentials), authority),
            None => (None, authority),
        };
        Ok(Target { secure, authority, path, written, credentials })
    }

    /// The origin as written, the same text for the same spelling. No user or password is in it.
    pub(crate) fn origin(&self) -> Cow<'u, str> {
        match self.credentials {
            None => Cow::Borrowed(self.written),
            Some(_) => Cow::Owned(format!("{}{}", if self.secure { "https://" } else { "http://" }, self.authority)),
        }
    }

    /// User and password as `Basic` authorization, if the URL has them.
    pub(crate) fn authorization(&self) -> Option<Result<HeaderValue, SendError>> {
        let (user, password) = match self.credentials? {
            "" => return None,
            credentials => credentials.split_once(':').unwrap_or((credentials, "")),
        };
        let pair: Vec<u8> = percent_decode_str(user).chain([b':']).chain(percent_decode_str(password)).collect();
        let value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)));
        Some(value.map_err(|_| failure::invalid("the url's user and password cannot be sent")).map(|mut value| {
            value.set_sensitive(true);
            value
        }))
    }
}

/// Whether `url` is secure, and where its authority begins.
fn scheme(url: &str) -> Result<(bool, usize), SendError> {
    for (scheme, secure) in [("https://", true), ("http://", false)] {
        if url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)) {
            return Ok((secure, scheme.len()));
        }
    }
    Err(failure::invalid("the url must begin with http:// or https://"))
}

#[cfg(test)]
mod tests {
    use redrive_core::ErrorType;

    use super::*;

    #[test]
    fn a_url_is_taken_apart_as_written() {
        // url, secure, origin, authority, path
        for (url, secure, origin, authority, path) in [
            ("http://a.test/x", false, "http://a.test", "a.test", "/x"),
            ("https://a.test", true, "https://a.test", "a.test", "/"),
            ("http://a.test?q=/1", false, "http://a.test", "a.test", "/?q=/1"),
            ("http://a.test#part", false, "http://a.test", "a.test", "/"),
            ("http://a.test/x?y=1#part?z", false, "http://a.test", "a.test", "/x?y=1"),
            ("http://a.test:8080/%7e//b/../c?", false, "http://a.test:8080", "a.test:8080", "/%7e//b/../c?"),
            ("HTTPS://[::1]:7/x", true, "HTTPS://[::1]:7", "[::1]:7", "/x"),
            ("http://user:s@cret@a.test:1/x", false, "http://a.test:1", "a.test:1", "/x"),
        ] {
            let target = Target::parse(url).unwrap();
            assert_eq!(target.secure, secure, "{url}");
            assert_eq!(target.origin(), origin, "{url}");
            assert_eq!(target.authority, authority, "{url}");
            assert_eq!(target.path.to_string(), path, "{url}");
        }
    }

    #[test]
    fn what_cannot_be_asked_for_is_an_invalid_request() {
        for url in ["", "a.test/x", "ftp://a.test/", "/x", "http://a.test/a b", "http://a.test/\u{1}"] {
            let error = Target::parse(url).err().unwrap();
            assert_eq!(error.kind, ErrorType::InvalidRequest, "{url:?}");
        }
    }

    #[test]
    fn user_and_password_become_basic_authorization() {
        for (url, pair) in [
            ("http://user:pass@a.test", "user:pass"),
            ("http://user@a.test", "user:"),
            ("http://us%65r:p%3Aa:%ss@a.test", "user:p:a:%ss"),
            ("http://:pass@a.test", ":pass"),
        ] {
            let value = Target::parse(url).unwrap().authorization().unwrap().unwrap();
            assert!(value.is_sensitive());
            assert_eq!(value.to_str().unwrap(), format!("Basic {}", STANDARD.encode(pair)), "{url}");
        }
        assert!(Target::parse("http://a.test").unwrap().authorization().is_none());
        assert!(Target::parse("http://@a.test").unwrap().authorization().is_none());
    }
}
