//! R-4, R-5 and R-9's certificates: what a dependency's calls are retried on, besides what the policy says.

use super::check::{DNS_ATTEMPTS, IGNORES_RETRY_AFTER, RETRIES_CERTIFICATE_ERRORS, RETRIES_NON_RETRYABLE};
use super::declared::{RetryAfter, RetryOn};
use super::finding::{Finding, Step};
use super::policy::status;
use super::service::Call;
use crate::classify;

/// What the standard says must never be retried, by name: gRPC codes and other errors, as [`plain`] writes them.
const NEVER: [&str; 9] = [
    "invalid-argument",
    "not-found",
    "permission-denied",
    "unauthenticated",
    "unimplemented",
    "serialization",
    "serialization-error",
    "invalid-configuration",
    "token-revoked",
];

/// What a certificate error may be called.
const CERTIFICATE: [&str; 5] =
    ["tls-certificate", "tls-certificate-error", "certificate", "certificate-error", "ssl-certificate-error"];

pub(super) fn classification(call: &Call<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = call.dependency.retry_on.iter().filter_map(retried).collect();
    findings = findings.into_iter().map(|finding| finding.within(&[Step::Field("retryOn")])).collect();
    if let Some(attempts) = call.dependency.dns_attempts.filter(|attempts| *attempts > classify::DNS_ATTEMPTS) {
        let most = classify::DNS_ATTEMPTS;
        let wrong = format!("a name that does not resolve is tried {attempts} times, {most} are allowed");
        let at = [Step::Field("dnsAttempts")];
        findings.push(Finding::new(&DNS_ATTEMPTS, at, wrong, format!("let dnsAttempts be {most}")));
    }
    let wrong = match call.dependency.retry_after {
        None | Some(RetryAfter::Honoured) => return findings,
        Some(RetryAfter::Capped) => "a Retry-After beyond a limit is not waited for, and the call is retried early",
        Some(RetryAfter::Ignored) => "a Retry-After is ignored",
    };
    let fix =
        "wait for as long as it says, and fail at once where that is longer than the time that is left: \"honoured\"";
    findings.push(Finding::new(&IGNORES_RETRY_AFTER, [Step::Field("retryAfter")], wrong, fix));
    findings
}

fn retried(what: &RetryOn) -> Option<Finding> {
    let name = match what {
        RetryOn::Status(code) => return status(*code),
        RetryOn::Named(name) => name,
    };
    let at = [Step::Item(name.clone())];
    let plain = plain(name);
    if CERTIFICATE.contains(&plain.as_str()) {
        let fix = format!("remove {name} from the list, and let the error be seen at once");
        return Some(Finding::new(&RETRIES_CERTIFICATE_ERRORS, at, "a TLS certificate error is retried", fix));
    }
    if NEVER.contains(&plain.as_str()) {
        let wrong = format!("{name} is retried, and the standard says never");
        return Some(Finding::new(&RETRIES_NON_RETRYABLE, at, wrong, format!("remove {name} from the list")));
    }
    // A status code as a text is still one.
    status(name.parse().ok()?).map(|finding| Finding { at: at.to_vec(), ..finding })
}

/// A name in one spelling: `INVALID_ARGUMENT` and `InvalidArgument` are `invalid-argument`.
fn plain(name: &str) -> String {
    let mut plain = String::with_capacity(name.len() + 2);
    let mut after_small = false;
    for c in name.trim().chars() {
        if matches!(c, '_' | ' ' | '-' | '.') {
            plain.push('-');
        } else {
            if after_small && c.is_uppercase() {
                plain.push('-');
            }
            plain.extend(c.to_lowercase());
        }
        after_small = c.is_lowercase();
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::super::service::tests::{BUDGET, found};

    fn here(rest: &str) -> Vec<(&'static str, String)> {
        found("sync", &format!("{BUDGET}, {rest}"))
    }

    #[test]
    fn what_must_never_be_retried_is_found_by_number_and_by_name() {
        for (item, path) in [
            ("404", "404"),
            ("\"404\"", "404"),
            ("409", "409"),
            ("\"INVALID_ARGUMENT\"", "INVALID_ARGUMENT"),
            ("\"PermissionDenied\"", "PermissionDenied"),
            ("\"token revoked\"", "token revoked"),
        ] {
            let expected = [("retries-non-retryable", format!("dependencies[0].retryOn[{path}]"))];
            assert_eq!(here(&format!(r#""retryOn": [503, {item}]"#)), expected, "{item}");
        }
        assert_eq!(here(r#""retryOn": [410]"#), [("unlisted-status", "dependencies[0].retryOn[410]".into())]);
    }

    #[test]
    fn a_certificate_error_is_found() {
        for name in ["tls-certificate", "TLS_CERTIFICATE_ERROR", "certificateError"] {
            let expected = [("retries-certificate-errors", format!("dependencies[0].retryOn[{name}]"))];
            assert_eq!(here(&format!(r#""retryOn": ["{name}"]"#)), expected);
        }
    }

    #[test]
    fn what_is_retried_rightly_is_not_found() {
        let names =
            r#"408, 429, 500, 599, "UNAVAILABLE", "ABORTED", "connection-refused", "dns", "tls-handshake-timeout""#;
        assert_eq!(here(&format!(r#""retryOn": [{names}], "dnsAttempts": 2, "retryAfter": "honoured""#)), []);
    }

    #[test]
    fn names_are_tried_twice_at_most_and_a_retry_after_is_waited_for() {
        assert_eq!(here(r#""dnsAttempts": 3"#), [("dns-attempts", "dependencies[0].dnsAttempts".into())]);
        for how in ["capped", "ignored"] {
            let expected = [("ignores-retry-after", "dependencies[0].retryAfter".into())];
            assert_eq!(here(&format!(r#""retryAfter": "{how}""#)), expected);
        }
    }
}
