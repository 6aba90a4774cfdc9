//! What is printed of a request.

use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use redrive_core::counted;

use crate::follow::status_text;
use crate::output::printable;

/// The most bytes of a body that are printed.
pub(super) const SHOWN_BODY: usize = 200;

/// A request with what is needed of its body.
pub(super) struct Arrival<'a> {
    /// Its number, from 1.
    pub(super) number: u64,
    pub(super) head: &'a Parts,
    /// The size of its body.
    pub(super) size: u64,
    /// The first bytes of the body, if they are to be printed.
    pub(super) beginning: Option<&'a [u8]>,
}

impl Arrival<'_> {
    /// `#1 POST /hook, key order-7, attempt 1, 5 bytes: 503 Service Unavailable`, and below it the names of its header
    /// fields and the beginning of its body. The values of other fields and of the query may be secrets.
    pub(super) fn text(&self, status: u16) -> String {
        let (headers, uri) = (&self.head.headers, &self.head.uri);
        let query = if uri.query().is_some() { "?…" } else { "" };
        let named = |label: &str, name: &str| value(headers, name).map(|value| format!(", {label} {value}"));
        let mut text = format!(
            "#{} {} {}{query}{}{}, {}: {}",
            self.number,
            printable(self.head.method.as_str()),
            printable(uri.path()),
            named("key", "idempotency-key").unwrap_or_default(),
            named("attempt", "redrive-attempt").unwrap_or_default(),
            counted(self.size, "byte"),
            status_text(status),
        );
        let names: Vec<_> = headers.keys().map(|name| printable(name.as_str())).collect();
        text += &format!("\n   headers: {}", names.join(", "));
        if let Some(beginning) = self.beginning.filter(|bytes| !bytes.is_empty()) {
            let more = if self.size > beginning.len() as u64 { "…" } else { "" };
            text += &format!("\n   body: {}{more}", printable(&String::from_utf8_lossy(beginning)));
        }
        text
    }
}

fn value(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| printable(&String::from_utf8_lossy(value.as_bytes())))
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn text(beginning: Option<&[u8]>, size: u64) -> String {
        let request = Request::post("/hook?token=secret-1")
            .header("Idempotency-Key", "order-7")
            .header("Redrive-Attempt", "2")
            .header("Authorization", "Bearer secret-2")
            .body(())
            .unwrap();
        Arrival { number: 3, head: &request.into_parts().0, size, beginning }.text(200)
    }

    #[test]
    fn a_request_is_shown_without_what_may_be_secret() {
        assert_eq!(
            text(None, 5),
            "#3 POST /hook?…, key order-7, attempt 2, 5 bytes: 200 OK\n   headers: idempotency-key, redrive-attempt, authorization"
        );
    }

    #[test]
    fn the_beginning_of_a_body_is_shown_without_control_characters() {
        assert!(text(Some(b"one\n\x1b[2Jtwo"), 11).ends_with("\n   body: one\u{fffd}\u{fffd}[2Jtwo"));
        assert!(text(Some(b"one"), 11).ends_with("\n   body: one…"));
        assert!(text(Some(b""), 0).ends_with("authorization"));
    }
}
