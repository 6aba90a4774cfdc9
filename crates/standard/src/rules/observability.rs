//! R-10, and R-9's logs: what a service writes down of its retries, and what it must not.

use super::check::{LOGS_SECRETS, MISSING_LOG_FIELDS, MISSING_METRICS};
use super::declared::{Logging, Service};
use super::finding::{Finding, Step};
use super::word::{parts, plain};

/// What every retry is logged with.
pub(super) const LOG_FIELDS: [&str; 7] =
    ["correlation_id", "dependency", "attempt", "max_attempts", "backoff_ms", "error_type", "idempotency_key"];

/// The metrics that there must be.
pub(super) const METRICS: [&str; 5] = [
    "retry_attempts_total",
    "retry_exhausted_total",
    "retry_backoff_duration_seconds",
    "retry_budget_utilization_ratio",
    "dlq_messages_total",
];

/// Parts of a name that must not be in a log, each of them on its own.
const SECRETS: [&str; 38] = [
    "apikey",
    "authorization",
    "bearer",
    "bodies",
    "body",
    "card",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "cvc",
    "cvv",
    "email",
    "emails",
    "headers",
    "iban",
    "jwt",
    "mail",
    "pan",
    "passphrase",
    "passport",
    "passwd",
    "password",
    "passwords",
    "payload",
    "payloads",
    "phone",
    "pin",
    "pwd",
    "secret",
    "secrets",
    "session",
    "ssn",
    "token",
    "tokens",
    "birth",
    "birthday",
    "birthdate",
];
/// Parts that are personal only together.
const PAIRS: [[&str; 2]; 14] = [
    ["api", "key"],
    ["private", "key"],
    ["access", "key"],
    ["first", "name"],
    ["last", "name"],
    ["full", "name"],
    ["user", "name"],
    ["customer", "name"],
    ["client", "name"],
    ["postal", "address"],
    ["billing", "address"],
    ["shipping", "address"],
    ["client", "ip"],
    ["remote", "ip"],
];
/// Names that are a whole message.
const WHOLE: [&str; 4] = ["request", "response", "address", "ip"];
/// What a name may end in that says of a secret only how large it is or whether it is there.
const HARMLESS: [&str; 11] =
    ["bytes", "count", "hash", "kind", "length", "present", "ref", "sha256", "size", "type", "id"];

pub(super) fn observability(service: &Service) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(logging) = &service.logging {
        findings.extend(secrets(logging));
        findings.extend(log_fields(logging));
    }
    if let Some(metrics) = &service.metrics {
        findings.extend(missing(metrics, &METRICS).map(|missing| {
            let fix = format!("add {missing}");
            Finding::new(
                &MISSING_METRICS,
                [Step::Field("metrics")],
                format!("metrics that are missing: {missing}"),
                fix,
            )
        }));
    }
    findings
}

fn log_fields(logging: &Logging) -> Option<Finding> {
    let missing = missing(logging.fields.as_ref()?, &LOG_FIELDS)?;
    let at = [Step::Field("logging"), Step::Field("fields")];
    let wrong = format!("a retry is logged without: {missing}");
    Some(Finding::new(&MISSING_LOG_FIELDS, at, wrong, format!("add {missing}")))
}

fn secrets(logging: &Logging) -> Vec<Finding> {
    let mut findings = Vec::new();
    if logging.bodies == Some(true) {
        let at = [Step::Field("logging"), Step::Field("bodies")];
        findings.push(Finding::new(&LOGS_SECRETS, at, "bodies are logged", "let bodies be false"));
    }
    for field in logging.fields.iter().flatten().filter(|field| is_secret(field)) {
        let at = [Step::Field("logging"), Step::Field("fields"), Step::Item(field.clone())];
        let wrong = format!("{field} is logged");
        findings.push(Finding::new(&LOGS_SECRETS, at, wrong, format!("remove {field} from the fields")));
    }
    findings
}

/// Whether a field's name says that a body, a secret or personal data is in it.
fn is_secret(field: &str) -> bool {
    let parts = parts(field);
    if LOG_FIELDS.iter().any(|required| plain(required) == plain(field)) {
        return false;
    }
    if parts.last().is_some_and(|last| HARMLESS.contains(&last.as_str())) {
        return false;
    }
    let is_whole = parts.len() == 1 && WHOLE.contains(&parts[0].as_str());
    let is_pair = parts.windows(2).any(|pair| PAIRS.iter().any(|known| pair == known.as_slice()));
    is_whole || is_pair || parts.iter().any(|part| SECRETS.contains(&part.as_str()))
}

/// The names that are not among those that are there, as a list for people.
fn missing(there: &[String], wanted: &[&str]) -> Option<String> {
    let missing: Vec<&str> =
        wanted.iter().copied().filter(|name| !there.iter().any(|other| plain(other) == plain(name))).collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::service::tests::found_in;
    use super::*;

    fn service(rest: &str) -> Vec<(&'static str, String)> {
        found_in(&format!(r#"{{ "name": "shop", "context": "sync", {rest} }}"#))
    }

    #[test]
    fn what_is_declared_completely_is_not_found() {
        let quoted = |names: &[&str]| names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        let (fields, metrics) = (quoted(&LOG_FIELDS), quoted(&METRICS));
        assert_eq!(
            service(&format!(r#""logging": {{ "fields": [{fields}], "bodies": false }}, "metrics": [{metrics}]"#)),
            []
        );
        let camel =
            r#""correlationId", "dependency", "attempt", "maxAttempts", "backoffMs", "errorType", "idempotencyKey""#;
        assert_eq!(service(&format!(r#""logging": {{ "fields": [{camel}] }}"#)), []);
        assert_eq!(service(r#""logging": {}"#), []);
    }

    #[test]
    fn what_only_sounds_like_a_secret_is_not_one() {
        for field in [
            "idempotency_key",
            "body_size",
            "http.request.body.bytes",
            "tokenCount",
            "session_id",
            "policy_name",
            "request_id",
        ] {
            assert!(!is_secret(field), "{field}");
        }
    }

    #[test]
    fn what_is_missing_is_found() {
        assert_eq!(
            service(r#""logging": { "fields": ["attempt"] }"#),
            [("missing-log-fields", "logging.fields".into())]
        );
        assert_eq!(service(r#""metrics": []"#), [("missing-metrics", "metrics".into())]);
    }

    #[test]
    fn bodies_tokens_and_personal_data_are_found() {
        assert_eq!(service(r#""logging": { "bodies": true }"#), [("logs-secrets", "logging.bodies".into())]);
        for field in [
            "requestBody",
            "http.request.body",
            "access_token",
            "Authorization",
            "user.email",
            "x-api-key",
            "auth_token",
            "sessionToken",
            "jwt",
            "headers",
            "http.request.headers",
            "request",
            "customer_name",
            "phone_number",
            "emailAddress",
            "credit_card",
            "cvv",
            "passwd",
            "user.password_digest",
            "request_body_json",
            "raw_body",
            "http.request.body.content",
            "payloads",
            "cookies",
        ] {
            let all = LOG_FIELDS.map(|name| format!("{name:?}")).join(", ");
            let expected = [("logs-secrets", format!("logging.fields[={field}]"))];
            assert_eq!(service(&format!(r#""logging": {{ "fields": [{all}, "{field}"] }}"#)), expected);
        }
    }
}
