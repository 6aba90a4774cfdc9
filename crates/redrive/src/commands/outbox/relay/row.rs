//! A row of the outbox table, and the submission that it becomes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The largest body that is read: more than a Redrive server takes unless its limits were raised, and in base64 well
/// below what it takes in one request.
pub(super) const LARGEST_BODY: i64 = 16 * 1024 * 1024;

/// How much of an invalid value is shown.
const SHOWN: usize = 100;

/// A row as it was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Row {
    pub(super) id: i64,
    /// The transaction that last wrote it: a row that was changed since is not the one that was handed over.
    pub(super) version: i64,
    pub(super) target_url: Option<String>,
    pub(super) method: Option<String>,
    /// As JSON.
    pub(super) headers: Option<String>,
    /// Nothing if it is too large to be read.
    pub(super) body: Option<Vec<u8>>,
    pub(super) body_bytes: i64,
    pub(super) policy_id: Option<String>,
    pub(super) idempotency_key: Option<String>,
    pub(super) dependency: Option<String>,
    /// In ISO 8601.
    pub(super) not_before: Option<String>,
    /// As JSON.
    pub(super) labels: Option<String>,
}

/// The task as the server wants it. What is wrong with it is for the server to say.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Submission<'a> {
    target_url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<Headers<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_id: Option<&'a str>,
    idempotency_key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dependency: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a RawValue>,
}

impl Row {
    /// The submission with this key, as JSON; or why there can be none.
    pub(super) fn submission(&self, key: &str) -> Result<String, String> {
        if self.body_bytes > LARGEST_BODY {
            return Err(format!("body must be at most {LARGEST_BODY} bytes, got {}", self.body_bytes));
        }
        let submission = Submission {
            target_url: self.target_url.as_deref().unwrap_or_default(),
            method: self.method.as_deref(),
            headers: self.headers.as_deref().map(Headers::read).transpose()?,
            body_base64: self.body.as_deref().map(|bytes| STANDARD.encode(bytes)),
            policy_id: self.policy_id.as_deref(),
            idempotency_key: key,
            dependency: self.dependency.as_deref(),
            not_before: self.not_before.as_deref(),
            labels: self.labels.as_deref().map(|text| json("labels", text)).transpose()?,
        };
        serde_json::to_string(&submission).map_err(|error| error.to_string())
    }
}

/// Header fields: what the row says, or a list of pairs as the object that the API takes, in the order of the list.
enum Headers<'a> {
    AsGiven(&'a RawValue),
    Pairs(Vec<(String, String)>),
}

impl<'a> Headers<'a> {
    fn read(text: &'a str) -> Result<Self, String> {
        if let Ok(pairs) = serde_json::from_str(text) {
            return Ok(Headers::Pairs(pairs));
        }
        let given = json("headers", text)?;
        // The server knows objects only, and would not say that a list is allowed here.
        if given.get().starts_with('{') || given.get() == "null" {
            return Ok(Headers::AsGiven(given));
        }
        let shown: String = given.get().chars().take(SHOWN).collect();
        Err(format!(
            "headers must be an object of strings or lists of strings, or a list of [name, value], got {shown}"
        ))
    }
}

impl Serialize for Headers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Headers::AsGiven(raw) => raw.serialize(serializer),
            // A name that occurs twice is twice in the object: that is how the API reads fields with their order.
            Headers::Pairs(pairs) => serializer.collect_map(pairs.iter().map(|(name, value)| (name, value))),
        }
    }
}

fn json<'a>(column: &str, text: &'a str) -> Result<&'a RawValue, String> {
    serde_json::from_str(text).map_err(|error| format!("{column} must be JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_becomes_the_submission_that_it_says() {
        let text = |text: &str| Some(text.to_owned());
        let row = Row { target_url: text("http://a.b/"), ..Row::default() };
        assert_eq!(row.submission("k").unwrap(), r#"{"targetUrl":"http://a.b/","idempotencyKey":"k"}"#);
        let full = Row {
            method: text("PUT"),
            headers: text(r#"{"x-b": "1", "x-aa": ["2", "3"]}"#),
            body: Some(vec![0, 255]),
            body_bytes: 2,
            policy_id: text("p"),
            dependency: text("d"),
            not_before: text("2030-01-02T03:04:05.678901+00:00"),
            labels: text(r#"{"a": "b"}"#),
            ..row
        };
        assert_eq!(
            full.submission("k").unwrap(),
            r#"{"targetUrl":"http://a.b/","method":"PUT","headers":{"x-b": "1", "x-aa": ["2", "3"]},"bodyBase64":"AP8=","#
                .to_owned()
                + r#""policyId":"p","idempotencyKey":"k","dependency":"d","#
                + r#""notBefore":"2030-01-02T03:04:05.678901+00:00","labels":{"a": "b"}}"#
        );
    }

    #[test]
    fn a_list_of_header_fields_keeps_its_order_and_its_repeats() {
        let headers = |text: &str| Row { headers: Some(text.to_owned()), ..Row::default() }.submission("k");
        let pairs = headers(r#"[["x-b", "1"], ["a", "2"], ["x-b", "3"]]"#).unwrap();
        assert!(pairs.contains(r#""headers":{"x-b":"1","a":"2","x-b":"3"}"#), "{pairs}");
        assert!(headers(r#"{"a": 1}"#).unwrap().contains(r#""headers":{"a": 1}"#), "for the server to refuse");
        for wrong in ["[1]", "[[1]]", r#"[["a"]]"#, "5", "\"a: b\""] {
            let told = "headers must be an object of strings or lists of strings, or a list of [name, value], got ";
            assert_eq!(headers(wrong), Err(format!("{told}{wrong}")));
        }
        assert!(headers("null").unwrap().contains(r#""headers":null"#));
    }

    #[test]
    fn what_cannot_be_submitted_says_why() {
        let large = Row { body_bytes: LARGEST_BODY + 1, ..Row::default() };
        assert_eq!(large.submission("k"), Err("body must be at most 16777216 bytes, got 16777217".into()));
        let odd = Row { labels: Some("{".into()), ..Row::default() };
        assert!(odd.submission("k").unwrap_err().starts_with("labels must be JSON"), "{odd:?}");
    }
}
