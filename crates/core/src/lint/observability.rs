//! R-10, and R-9's logs: what a service writes down of its retries, and what it must not.

use super::check::{LOGS_SECRETS, MISSING_LOG_FIELDS, MISSING_METRICS};
use super::declared::{Logging, Service};
use super::finding::{Finding, Step};

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

/// What must not be in a log: the last part of a field's name, as [`plain`] writes it.
const SECRETS: [&str; 22] = [
    "body",
    "requestbody",
    "responsebody",
    "payload",
    "authorization",
    "token",
    "accesstoken",
    "refreshtoken",
    "bearertoken",
    "idtoken",
    "apikey",
    "password",
    "secret",
    "clientsecret",
    "cookie",
    "setcookie",
    "email",
    "phone",
    "ssn",
    "cardnumber",
    "iban",
    "dateofbirth",
];

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

fn is_secret(field: &str) -> bool {
    let last = field.rsplit(['.', '/', ':']).next().unwrap_or(field);
    SECRETS.contains(&plain(last).as_str())
}

/// The names that are not among those that are there, as a list for people.
fn missing(there: &[String], wanted: &[&str]) -> Option<String> {
    let missing: Vec<&str> =
        wanted.iter().copied().filter(|name| !there.iter().any(|other| plain(other) == plain(name))).collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}

/// A name in one spelling: `backoffMs` and `backoff_ms` are the same.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
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
        for field in ["requestBody", "http.request.body", "access_token", "Authorization", "user.email"] {
            let all = LOG_FIELDS.map(|name| format!("{name:?}")).join(", ");
            let expected = [("logs-secrets", format!("logging.fields[{field}]"))];
            assert_eq!(service(&format!(r#""logging": {{ "fields": [{all}, "{field}"] }}"#)), expected);
        }
    }
}
