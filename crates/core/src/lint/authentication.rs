//! R-9's credentials: a retry is authenticated as the first attempt was.

use super::check::WEAKENS_AUTHENTICATION;
use super::finding::{Finding, Step};
use super::service::Call;

pub(super) fn authentication(call: &Call<'_>) -> Option<Finding> {
    let when_expired = &call.dependency.authentication.as_ref()?.when_expired;
    if ["refresh", "fail"].iter().any(|right| when_expired.eq_ignore_ascii_case(right)) {
        return None;
    }
    let at = [Step::Field("authentication"), Step::Field("whenExpired")];
    let wrong = format!("a retry whose token has expired goes on without a new one ({when_expired})");
    let fix = "get a new token of the same kind before the retry: whenExpired = \"refresh\" (or \"fail\")";
    Some(Finding::new(&WEAKENS_AUTHENTICATION, at, wrong, fix))
}

#[cfg(test)]
mod tests {
    use super::super::service::tests::{BUDGET, found};

    #[test]
    fn a_token_that_has_expired_is_refreshed_or_the_call_fails() {
        let when = |what: &str| found("sync", &format!(r#"{BUDGET}, "authentication": {{ "whenExpired": "{what}" }}"#));
        for right in ["refresh", "fail"] {
            assert_eq!(when(right), [], "{right}");
        }
        for wrong in ["reuse", "downgrade", "skip"] {
            let expected = [("weakens-authentication", "dependencies[0].authentication.whenExpired".into())];
            assert_eq!(when(wrong), expected, "{wrong}");
        }
    }
}
