//! Checks the header fields to send: valid ones, except those that Redrive or the transport sets.

use super::faults::Faults;
use super::method::is_token;
use super::target::is_host_and_port;
use crate::app::Limits;
use crate::wire::{HeaderFields, Text};

const FIELD: &str = "headers";
const CONTENT_TYPE: &str = "content-type";
const HOST: &str = "host";

/// Fields that describe the connection or frame the message. The transport sets them.
const FRAMING: [&str; 9] = [
    "connection",
    "content-length",
    "transfer-encoding",
    "keep-alive",
    "upgrade",
    "te",
    "trailer",
    "proxy-connection",
    "expect",
];

/// Fields that Redrive sets on every attempt.
const OWN: [&str; 3] = ["idempotency-key", "redrive-task-id", "redrive-attempt"];

/// The fields to send, with the content type that the body implies unless there is one.
pub(crate) fn check(
    given: Option<HeaderFields<'_>>,
    implied_type: Option<&str>,
    limits: &Limits,
    faults: &mut Faults,
) -> Vec<(String, String)> {
    let given = given.unwrap_or_default().0;
    if !fits(&given, FIELD, limits, faults) {
        return Vec::new();
    }
    let mut fields = Vec::with_capacity(given.len() + 1);
    let mut has_host = false;
    for (name, value) in given {
        let is_host = name.eq_ignore_ascii_case(HOST);
        if let Some(fault) = fault(&name, &value) {
            faults.add(format!("{FIELD}.{}", &*name), fault);
        } else if is_host && has_host {
            faults.add(format!("{FIELD}.{}", &*name), "must be given only once");
        }
        has_host |= is_host;
        fields.push((name.0.into_owned(), value.0.into_owned()));
    }
    if let Some(implied) = implied_type
        && !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case(CONTENT_TYPE))
    {
        fields.push((CONTENT_TYPE.to_owned(), implied.to_owned()));
    }
    fields
}

/// The fields of a response that is kept for duplicates: any that can be sent.
pub(crate) fn check_stored(
    given: Option<HeaderFields<'_>>,
    field: &str,
    limits: &Limits,
    faults: &mut Faults,
) -> Vec<(String, String)> {
    let given = given.unwrap_or_default().0;
    if !fits(&given, field, limits, faults) {
        return Vec::new();
    }
    for (name, value) in &given {
        if let Some(fault) = malformed(name, value) {
            faults.add(format!("{field}.{}", &**name), fault);
        }
    }
    given.into_iter().map(|(name, value)| (name.0.into_owned(), value.0.into_owned())).collect()
}

/// Whether there are not too many fields, and not too large ones.
fn fits(given: &[(Text<'_>, Text<'_>)], field: &str, limits: &Limits, faults: &mut Faults) -> bool {
    if given.len() > limits.headers {
        faults.add(field, format!("must be at most {} fields, got {}", limits.headers, given.len()));
        return false;
    }
    let bytes: usize = given.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > limits.header_bytes {
        faults.add(field, format!("must be at most {} bytes in all, got {bytes}", limits.header_bytes));
        return false;
    }
    true
}

/// What is wrong with a field that no message can have.
fn malformed(name: &str, value: &str) -> Option<&'static str> {
    if name.is_empty() || !name.bytes().all(is_token) {
        return Some("is not a header name: letters, digits and !#$%&'*+-.^_`|~");
    }
    if value.bytes().any(|byte| byte != b'\t' && byte.is_ascii_control()) {
        return Some("must not contain control characters");
    }
    None
}

fn fault(name: &str, value: &str) -> Option<&'static str> {
    let is_any_of = |names: &[&str]| names.iter().any(|refused| name.eq_ignore_ascii_case(refused));
    if is_any_of(&OWN) {
        return Some("is set by Redrive on every attempt");
    }
    if is_any_of(&FRAMING) {
        return Some("describes the connection or frames the message: it is set when the request is sent");
    }
    if let Some(fault) = malformed(name, value) {
        return Some(fault);
    }
    if name.eq_ignore_ascii_case(HOST) && value.trim().is_empty() {
        return Some("must not be empty: leave it out to use the host of targetUrl");
    }
    // HTTP/2 has the host in the request's URI, and can send nothing else.
    if name.eq_ignore_ascii_case(HOST) && !is_host_and_port(value) {
        return Some("must be a host, or a host and a port");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Text;

    fn checked(given: &[(&str, &str)], implied: Option<&str>) -> (Vec<(String, String)>, Vec<String>) {
        let fields = given.iter().map(|(name, value)| (Text::from(*name), Text::from(*value))).collect();
        let mut faults = Faults::default();
        let fields = check(Some(HeaderFields(fields)), implied, &Limits::default(), &mut faults);
        (fields, faults.fields().into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn fields_that_are_not_the_callers_are_refused_in_any_case() {
        for name in FRAMING.iter().chain(&OWN) {
            assert_eq!(checked(&[(name, "x")], None).1, [format!("headers.{name}")]);
            let upper = name.to_uppercase();
            assert_eq!(checked(&[(&upper, "x")], None).1, [format!("headers.{upper}")]);
        }
    }

    #[test]
    fn what_cannot_be_sent_is_refused_and_the_rest_is_kept_as_given() {
        let given =
            [("X-A", "1"), ("b c", "2"), ("", "3"), ("X-Line", "a\r\nb"), ("X-Tab", "a\tb"), ("X-Word", "naïve")];
        let (fields, faults) = checked(&given, None);
        assert_eq!(faults, ["headers.b c", "headers.", "headers.X-Line"]);
        assert_eq!(fields[5], ("X-Word".to_owned(), "naïve".to_owned()));
    }

    #[test]
    fn a_host_is_given_once_and_not_empty() {
        assert_eq!(checked(&[("Host", "a.test")], None).1, [""; 0]);
        for value in ["", " ", "\t"] {
            assert_eq!(checked(&[("host", value)], None).1, ["headers.host"]);
        }
        assert_eq!(checked(&[("Host", "a.test"), ("X-A", "1"), ("host", "a.test")], None).1, ["headers.host"]);
    }

    #[test]
    fn a_host_is_a_host_or_a_host_and_a_port() {
        for value in ["a.test", "a.test:8080", "[::1]:80", "127.0.0.1"] {
            assert_eq!(checked(&[("host", value)], None).1, [""; 0], "{value}");
        }
        for value in ["a b", "a/b", "user@a.test", "a.test:x", "ä.test", "a.test "] {
            assert_eq!(checked(&[("host", value)], None).1, ["headers.host"], "{value}");
        }
    }

    #[test]
    fn the_bodys_content_type_is_added_unless_there_is_one() {
        assert_eq!(checked(&[], Some("a/b")).0, [("content-type".to_owned(), "a/b".to_owned())]);
        assert_eq!(checked(&[("Content-Type", "c/d")], Some("a/b")).0.len(), 1);
    }

    #[test]
    fn there_are_at_most_100_fields_of_32_kib() {
        let many = vec![("a", "b"); 101];
        assert_eq!(checked(&many[..100], None).1, [""; 0]);
        assert_eq!(checked(&many, None).1, ["headers"]);
        let long = "x".repeat(32 * 1024 - 1);
        assert_eq!(checked(&[("a", &long)], None).1, [""; 0]);
        assert_eq!(checked(&[("ab", &long)], None).1, ["headers"]);
    }
}
