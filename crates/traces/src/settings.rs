//! Where spans are sent, how often, and how many at once. The defaults are those of OpenTelemetry.

use std::fmt;
use std::time::Duration;

use hyper::header::{HeaderMap, HeaderValue};
use hyper::http::uri::{Authority, PathAndQuery, Uri};
use redrive_dial::Endpoint;

/// The settings of an export.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Where the spans are sent.
    pub receiver: Receiver,
    /// Header fields of every request, such as credentials.
    pub headers: Headers,
    /// How long one request may take.
    pub timeout: Duration,
    /// The wait before a batch is sent again. It doubles with each try.
    pub first_wait: Duration,
    /// How spans are gathered.
    pub batches: Batches,
    /// What describes this process, as names and values.
    pub resource: Vec<(String, String)>,
}

/// How spans are gathered until they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batches {
    /// The longest wait until a span is sent.
    pub delay: Duration,
    /// The most spans that wait. What does not fit is dropped and counted.
    pub most_waiting: usize,
    /// The most spans in one request, and how many are sent without waiting longer.
    pub most_at_once: usize,
    /// How long sending one batch may take, with all tries.
    pub timeout: Duration,
}

impl Default for Batches {
    fn default() -> Self {
        Batches {
            delay: Duration::from_secs(5),
            most_waiting: 2_048,
            most_at_once: 512,
            timeout: Duration::from_secs(30),
        }
    }
}

impl Settings {
    /// How long one request may take by default.
    pub const TIMEOUT: Duration = Duration::from_secs(10);
    /// The wait before a batch is sent again.
    pub const FIRST_WAIT: Duration = Duration::from_secs(1);
}

/// Header fields, whose values may be secrets: they are not shown.
#[derive(Clone, Default, PartialEq)]
pub struct Headers(pub HeaderMap);

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

/// The receiver of spans. Shown as its URL, with `***` for the query, which may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Receiver {
    uri: Uri,
}

/// Why a text is no receiver. The text is not in the message: it may contain a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReceiver {
    /// It is no URL that can be called.
    #[error("must be an absolute URL: http://HOST:PORT or https://HOST")]
    NoUrl,
    /// It has credentials.
    #[error("must not contain a user and password; set OTEL_EXPORTER_OTLP_HEADERS instead")]
    Credentials,
}

impl Receiver {
    /// The receiver at this URL.
    pub fn at(url: &str) -> Result<Self, InvalidReceiver> {
        let uri: Uri = url.trim().parse().map_err(|_| InvalidReceiver::NoUrl)?;
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        match uri.authority() {
            Some(authority) if authority.as_str().contains('@') => Err(InvalidReceiver::Credentials),
            // `Uri` drops a fragment, and with it the path that `below` adds.
            Some(authority) if is_http && has_usable_port(authority) && !url.contains('#') => {
                let receiver = Receiver { uri };
                receiver.endpoint().map(|_| receiver)
            }
            _ => Err(InvalidReceiver::NoUrl),
        }
    }

    /// The receiver of traces at this base URL of OTLP.
    pub fn below(base: &str) -> Result<Self, InvalidReceiver> {
        Receiver::at(base)?;
        match base.contains('?') {
            true => Err(InvalidReceiver::NoUrl),
            false => Receiver::at(&format!("{}/v1/traces", base.trim().trim_end_matches('/'))),
        }
    }

    /// What to connect to.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, InvalidReceiver> {
        let is_secure = self.uri.scheme_str() == Some("https");
        let port = self.uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        Endpoint::new(self.uri.host().unwrap_or_default(), port, is_secure).map_err(|_| InvalidReceiver::NoUrl)
    }

    /// The value of `host`.
    pub(crate) fn host_field(&self) -> Option<HeaderValue> {
        self.uri.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok())
    }

    /// The path and query to call.
    pub(crate) fn path(&self) -> PathAndQuery {
        self.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"))
    }
}

/// Whether a port that is given can be connected to. `Uri` takes any digits, and would then use the scheme's own port.
fn has_usable_port(authority: &Authority) -> bool {
    authority.as_str() == authority.host() || authority.port_u16().is_some_and(|port| port > 0)
}

impl fmt::Display for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        write!(f, "{}://{authority}{}", self.uri.scheme_str().unwrap_or_default(), self.uri.path())?;
        if self.uri.query().is_some() { f.write_str("?***") } else { Ok(()) }
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_is_an_url_and_below_a_base_it_has_the_path_of_otlp() {
        for (base, shown) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            (" https://otlp.example/in/ ", "https://otlp.example/in/v1/traces"),
            ("http://[::1]:4318", "http://[::1]:4318/v1/traces"),
        ] {
            assert_eq!(Receiver::below(base).unwrap().to_string(), shown, "{base}");
        }
        for (url, shown) in [("http://a.test/x?key=s3cret", "http://a.test/x?***"), ("http://a.test", "http://a.test/")]
        {
            assert_eq!(Receiver::at(url).unwrap().to_string(), shown, "{url}");
            assert!(!format!("{:?}", Receiver::at(url)).contains("s3cret"));
        }
        let with_key = Receiver::at("http://a.test/x?key=s3cret").unwrap();
        assert_eq!(with_key.path(), "/x?key=s3cret");
        for (wrong, why) in [
            ("", InvalidReceiver::NoUrl),
            ("127.0.0.1:4318", InvalidReceiver::NoUrl),
            ("grpc://a.test", InvalidReceiver::NoUrl),
            ("/v1/traces", InvalidReceiver::NoUrl),
            ("https://a b/", InvalidReceiver::NoUrl),
            ("http://a.test:99999", InvalidReceiver::NoUrl),
            ("http://a.test:0", InvalidReceiver::NoUrl),
            ("http://a.test:", InvalidReceiver::NoUrl),
            ("http://[::1]:99999/", InvalidReceiver::NoUrl),
            ("http://a.test/in#key", InvalidReceiver::NoUrl),
            ("https://me:s3cret@a.test", InvalidReceiver::Credentials),
        ] {
            assert_eq!(Receiver::at(wrong), Err(why), "{wrong}");
            assert_eq!(Receiver::below(wrong), Err(why), "{wrong}");
        }
        assert_eq!(Receiver::below("http://a.test?x"), Err(InvalidReceiver::NoUrl));
    }

    #[test]
    fn the_values_of_headers_are_not_shown() {
        let mut fields = HeaderMap::new();
        fields.insert("x-api-key", HeaderValue::from_static("s3cret"));
        assert_eq!(format!("{:?}", Headers(fields)), r#"["x-api-key"]"#);
    }
}
