//! A task as a caller submits it.

use std::collections::BTreeMap;

use redrive_core::policy;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::headers::HeaderFields;
use super::labels;
use super::moment::Moment;
use super::object;
use super::text::Text;

/// A task to submit: where to send the request, what to send, and how to retry it.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Submission<'a> {
    /// The absolute `http` or `https` URL to call, at most 8 KiB.
    #[serde(borrow)]
    #[schemars(example = &"https://example.com/hooks", extend("format" = "uri", "pattern" = "^[Hh][Tt][Tt][Pp][Ss]?://[!\"$-~]+$"))]
    pub target_url: Text<'a>,
    /// The method, sent as given. `POST` if left out.
    #[serde(borrow, default)]
    #[schemars(example = &"POST")]
    pub method: Option<Text<'a>>,
    /// Header fields to send, at most 100 and 32 KiB. Those that frame a message or that Redrive sets itself
    /// (`Idempotency-Key`, `Redrive-Task-Id`, `Redrive-Attempt`) are refused. `traceparent` names the trace that the task
    /// continues; every attempt sends its own.
    #[serde(borrow, default)]
    pub headers: Option<HeaderFields<'a>>,
    /// The body as text; implies `content-type: text/plain; charset=utf-8` unless a header says otherwise.
    #[serde(borrow, default)]
    pub body: Option<Text<'a>>,
    /// The body as any JSON, sent byte for byte as written here; implies `content-type: application/json` unless a
    /// header says otherwise.
    #[serde(borrow, default, deserialize_with = "present")]
    #[schemars(with = "serde_json::Value")]
    pub body_json: Option<&'a RawValue>,
    /// The body as base64, for bytes of any kind.
    #[serde(borrow, default)]
    #[schemars(extend("contentEncoding" = "base64"))]
    pub body_base64: Option<Text<'a>>,
    /// A body that was uploaded before, by the `bodyRef` that the upload was answered with.
    #[serde(borrow, default)]
    #[schemars(extend("pattern" = "^sha256:[0-9a-f]{64}$"))]
    pub body_ref: Option<Text<'a>>,
    /// The policy to retry by: one that is registered, or a preset: `sync`, `event`, `webhook`, `webhook-patient`, `batch`, `grpc`.
    /// `default` if left out.
    #[serde(borrow, default)]
    #[schemars(example = &"default")]
    pub policy_id: Option<Text<'a>>,
    /// Fields of the policy to change for this task only.
    #[serde(default, deserialize_with = "object::optional")]
    pub policy: Option<policy::Spec>,
    /// The key that every attempt carries and that makes submitting again safe: 1 to 64 visible ASCII characters. The
    /// `Idempotency-Key` header may be used instead. One is generated if there is none.
    #[serde(borrow, default)]
    #[schemars(example = &"order-1234", extend("minLength" = 1, "maxLength" = 64))]
    pub idempotency_key: Option<Text<'a>>,
    /// Your own id of the work that the task belongs to, for logs and events: 1 to 128 visible ASCII characters. It is not
    /// part of the request: the same key with another one is the same task, which keeps the first.
    #[serde(borrow, default)]
    #[schemars(example = &"checkout-7f3a", extend("minLength" = 1, "maxLength" = 128))]
    pub correlation_id: Option<Text<'a>>,
    /// The dependency that the target belongs to. The target's origin if left out.
    #[serde(borrow, default)]
    #[schemars(example = &"billing")]
    pub dependency: Option<Text<'a>>,
    /// How long to wait before the first attempt, in milliseconds.
    #[serde(default)]
    pub delay_ms: Option<u64>,
    /// When the first attempt may begin, instead of `delayMs`.
    #[serde(default)]
    pub not_before: Option<Moment>,
    /// Names and values to find the task by: at most 20; names of at most 64 letters, digits, `.`, `_`, `-`;
    /// values of at most 256 characters.
    #[serde(borrow, default, deserialize_with = "labels::optional")]
    pub labels: Option<BTreeMap<Text<'a>, Text<'a>>>,
}

/// `null` is a JSON body like any other, not the absence of one.
pub(super) fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Many tasks to accept in one durable commit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch<'a> {
    /// The tasks, at most 1,000. Each is validated by itself: an invalid one does not affect the others.
    #[serde(borrow)]
    #[schemars(with = "Vec<Submission<'a>>")]
    pub tasks: Vec<&'a RawValue>,
}

#[cfg(test)]
mod tests {
    use super::super::parse::{Malformed, parse};
    use super::*;

    #[test]
    fn what_is_wrong_is_named_by_its_path() {
        for (document, expected) in [
            (r#"{"method":"GET"}"#, Some("targetUrl")),
            (r#"{"targetUrl":5}"#, Some("targetUrl")),
            (r#"{"targetUrl":"x","colour":"red"}"#, Some("colour")),
            (r#"{"targetUrl":"x","targetUrl":"y"}"#, Some("targetUrl")),
            (r#"{"targetUrl":"x","headers":{"a":"b","c":7}}"#, Some("headers.c")),
            (r#"{"targetUrl":"x","headers":{"a":["b",{}]}}"#, Some("headers.a[1]")),
            (r#"{"targetUrl":"x","headers":[]}"#, Some("headers")),
            (r#"{"targetUrl":"x","policy":{"maxAttempts":"many"}}"#, Some("policy.maxAttempts")),
            (r#"{"targetUrl":"x","policy":{"maxTries":5}}"#, Some("policy.maxTries")),
            (r#"{"targetUrl":"x","policy":{"jitterType":"SOME"}}"#, Some("policy.jitterType")),
            (r#"{"targetUrl":"x","delayMs":-1}"#, Some("delayMs")),
            (r#"{"targetUrl":"x","notBefore":"soon"}"#, Some("notBefore")),
            (r#"{"targetUrl":"x","notBefore":"123"}"#, Some("notBefore")),
            (r#"{"targetUrl":"x","labels":{"a":1}}"#, Some("labels.a")),
            (r#"{"targetUrl":"x","labels":{"a":"1","b":"2","\u0061":"1"}}"#, Some("labels.a")),
            (r#"{"targetUrl":"x","policy":[5]}"#, Some("policy")),
            (r#"["https://example.com"]"#, None),
            (r#""text""#, None),
        ] {
            match parse::<Submission<'_>>(document.as_bytes()) {
                Err(Malformed::Shape { field, message }) => {
                    assert_eq!(field.as_deref(), expected, "{document} {message}");
                    assert!(!message.contains("line"), "{message}");
                }
                other => panic!("{document}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_text_in_the_wrong_place_is_not_repeated() {
        for document in [
            r#"{"targetUrl":"x","delayMs":"s3cret"}"#,
            r#"{"targetUrl":"x","headers":"Bearer s3cret"}"#,
            r#"{"targetUrl":"x","labels":"s3cret, expected nothing"}"#,
            r#"{"targetUrl":"x","policy":{"maxAttempts":"s3cret"}}"#,
        ] {
            let malformed = parse::<Submission<'_>>(document.as_bytes()).unwrap_err().to_string();
            assert!(!malformed.contains("s3cret") && malformed.contains("expected"), "{malformed}");
        }
    }

    #[test]
    fn what_is_no_json_is_a_syntax_error_even_behind_a_wrong_type() {
        for document in ["", "{", r#"{"targetUrl":"x"} trailing"#, r#"{"targetUrl":5,}"#, "\u{1}"] {
            assert!(matches!(parse::<Submission<'_>>(document.as_bytes()), Err(Malformed::Syntax(_))), "{document:?}");
        }
    }

    #[test]
    fn a_json_null_is_a_body() {
        let submission: Submission<'_> = parse(br#"{"targetUrl":"x","bodyJson":null,"body":null}"#).unwrap();
        assert_eq!(submission.body_json.map(RawValue::get), Some("null"));
        assert_eq!(submission.body, None);
    }

    #[test]
    fn a_batch_names_its_own_faults() {
        for (document, expected) in [(r#"{"tasks":{}}"#, "tasks"), (r#"{}"#, "tasks"), (r#"{"tasks":[],"a":1}"#, "a")] {
            let malformed = parse::<Batch<'_>>(document.as_bytes()).unwrap_err();
            assert!(
                matches!(malformed, Malformed::Shape { field: Some(field), .. } if field == expected),
                "{document}"
            );
        }
    }
}
