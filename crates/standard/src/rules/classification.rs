//! R-4, R-5 and R-9's certificates: what a dependency's calls are retried on, besides what the policy says.

use redrive_core::classify;

use super::check::{
    DNS_ATTEMPTS, IGNORES_RETRY_AFTER, RETRIES_CERTIFICATE_ERRORS, RETRIES_NON_RETRYABLE, UNLISTED_STATUS,
};
use super::declared::RetryAfter;
use super::finding::{Finding, Step};
use super::retry_on::{RetryOn, RetryRequirement};
use super::service::Call;

pub(super) fn classification(call: &Call<'_>) -> Vec<Finding> {
    let at = |index, found: Finding| Finding { at: vec![Step::Field("retryOn"), Step::Index(index)], ..found };
    let retried = call.dependency.retry_on.iter().enumerate();
    let mut findings: Vec<Finding> =
        retried.filter_map(|(index, retried)| Some(at(index, finding(retried)?))).collect();
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
    let fix = "wait for as long as it says, fail at once where that is longer than the time that is left, and declare \
        retryAfter as honoured";
    findings.push(Finding::new(&IGNORES_RETRY_AFTER, [Step::Field("retryAfter")], wrong, fix));
    findings
}

/// What is wrong with retrying something; of a list of which it is an item.
pub(super) fn finding(retried: &RetryOn) -> Option<Finding> {
    let written = &retried.written;
    let (check, wrong) = match retried.requirement {
        RetryRequirement::MustRetry => return None,
        RetryRequirement::MustNotRetry => {
            (&RETRIES_NON_RETRYABLE, format!("{written} is retried, and the standard says never"))
        }
        RetryRequirement::Unlisted => {
            (&UNLISTED_STATUS, format!("{written} is retried, and the standard does not name it"))
        }
        RetryRequirement::Certificate => {
            (&RETRIES_CERTIFICATE_ERRORS, format!("a TLS certificate error is retried ({written})"))
        }
    };
    let fix = match retried.requirement {
        RetryRequirement::Certificate => format!("remove {written} from the list, and let the error be seen at once"),
        _ => format!("remove {written} from the list"),
    };
    Some(Finding::new(check, [Step::Item(written.clone())], wrong, fix))
}

#[cfg(test)]
mod tests {
    use super::super::service::tests::{BUDGET, found};

    fn here(rest: &str) -> Vec<(&'static str, String)> {
        found("sync", &format!("{BUDGET}, {rest}"))
    }

    #[test]
    fn what_must_never_be_retried_is_found_by_number_and_by_name() {
        for item in
            ["404", "\"404\"", "409", "\"INVALID_ARGUMENT\"", "\"PermissionDenied\"", "\"token revoked\"", "5", "\"*\""]
        {
            let expected = [("retries-non-retryable", "dependencies[0].retryOn[1]".to_owned())];
            assert_eq!(here(&format!(r#""retryOn": [503, {item}]"#)), expected, "{item}");
        }
        assert_eq!(here(r#""retryOn": [410]"#), [("unlisted-status", "dependencies[0].retryOn[0]".into())]);
    }

    #[test]
    fn a_certificate_error_is_found() {
        for name in ["tls-certificate", "TLS_CERTIFICATE_ERROR", "certificateError"] {
            let expected = [("retries-certificate-errors", "dependencies[0].retryOn[0]".to_owned())];
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
