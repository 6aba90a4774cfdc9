//! The trace of a request: its `traceparent`, `tracestate` and `baggage`.

use http::HeaderMap;
use redrive_core::trace::{CallerContext, is_trace_field};

/// What the request says about its trace. A value that is no text is invalid, and left out like any other that is.
pub(crate) fn of(headers: &HeaderMap) -> CallerContext {
    let fields = headers.iter().filter(|(name, _)| is_trace_field(name.as_str()));
    let fields: Vec<_> = fields.map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default())).collect();
    CallerContext::of(fields.iter().copied())
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn several_fields_and_bytes_that_are_no_text_count() {
        const VALID: &[u8] = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        for (values, is_traced) in [
            (&[VALID][..], true),
            (&[VALID, VALID], false),
            (&[VALID, b"\xff"], false),
            (&[b"\xff"], false),
            (&[], false),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(HeaderName::from_static("traceparent"), HeaderValue::from_bytes(value).unwrap());
            }
            assert_eq!(of(&headers).parent.is_some(), is_traced, "{values:?}");
        }
    }
}
