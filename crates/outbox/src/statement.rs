//! The one statement of both drivers, and its arguments.

use std::time::SystemTime;

use crate::enqueue::{Body, Enqueue};

/// Its types are ones that every driver supports without further features: JSON is text, a time is milliseconds. The id
/// is returned as text too.
pub(crate) const ENQUEUE: &str = "
SELECT redrive.enqueue(
    target_url => $1::text,
    body => $2::bytea,
    method => $3::text,
    headers => $4::text::jsonb,
    policy_id => $5::text,
    idempotency_key => $6::text,
    tenant => $7::text,
    dependency => $8::text,
    not_before => to_timestamp($9::bigint / 1000.0),
    labels => $10::text::jsonb,
    correlation_id => $11::text
)::text";

/// The arguments that differ from the fields of the request.
pub(crate) struct Written {
    pub(crate) body: Vec<u8>,
    pub(crate) headers: String,
    pub(crate) not_before_ms: Option<i64>,
    pub(crate) labels: String,
}

impl Written {
    pub(crate) fn of(enqueue: &Enqueue) -> Self {
        let (body, implied_type) = match &enqueue.body {
            Body::Empty => (Vec::new(), None),
            Body::Text(text) => (text.clone().into_bytes(), Some("text/plain; charset=utf-8")),
            Body::Json(value) => (value.to_string().into_bytes(), Some("application/json")),
            Body::Bytes(bytes) => (bytes.clone(), None),
        };
        // A list and not an object: PostgreSQL sorts an object's names, and the order of header fields counts.
        let mut fields: Vec<[&str; 2]> = enqueue.headers.iter().map(|(name, value)| [&**name, &**value]).collect();
        if let Some(implied) = implied_type
            && !fields.iter().any(|[name, _]| name.eq_ignore_ascii_case("content-type"))
        {
            fields.push(["content-type", implied]);
        }
        Written {
            body,
            headers: serde_json::Value::from_iter(fields).to_string(),
            not_before_ms: enqueue.not_before.map(millis),
            labels: serde_json::Value::from_iter(enqueue.labels.clone()).to_string(),
        }
    }
}

/// Milliseconds since the epoch; zero for a time before it.
fn millis(moment: SystemTime) -> i64 {
    let since = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_body_implies_its_content_type_unless_a_header_says_otherwise() {
        let own = || vec![("X-A".to_owned(), "1".to_owned()), ("Content-TYPE".to_owned(), "a/b".to_owned())];
        for (body, bytes, implied) in [
            (Body::Empty, &b""[..], None),
            (Body::Text("hé".into()), "hé".as_bytes(), Some("text/plain; charset=utf-8")),
            (Body::Json(json!({"a": [null], "b": 1})), br#"{"a":[null],"b":1}"#, Some("application/json")),
            (Body::Bytes(vec![0, 255]), &[0, 255], None),
        ] {
            let plain = Written::of(&Enqueue { body: body.clone(), ..Enqueue::new("x") });
            assert_eq!(plain.body, bytes);
            let expected = implied.map_or("[]".to_owned(), |implied| format!(r#"[["content-type","{implied}"]]"#));
            assert_eq!(plain.headers, expected);
            let typed = Written::of(&Enqueue { body, headers: own(), ..Enqueue::new("x") });
            assert_eq!(typed.headers, r#"[["X-A","1"],["Content-TYPE","a/b"]]"#);
        }
    }

    #[test]
    fn a_moment_is_whole_milliseconds_since_the_epoch() {
        let epoch = SystemTime::UNIX_EPOCH;
        for (moment, expected) in [
            (epoch + Duration::from_nanos(1_700_000_000_123_999_999), 1_700_000_000_123),
            (epoch, 0),
            (epoch - Duration::from_secs(1), 0),
        ] {
            assert_eq!(millis(moment), expected);
        }
    }
}
