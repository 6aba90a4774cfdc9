//! R-9's credentials: a retry is authenticated as the first attempt was.

use super::check::WEAKENS_AUTHENTICATION;
use super::declared::WhenExpired;
use super::finding::{Finding, Step};
use super::service::Call;

pub(super) fn authentication(call: &Call<'_>) -> Option<Finding> {
    let wrong = match call.dependency.authentication.as_ref()?.when_expired {
        WhenExpired::Refresh | WhenExpired::Fail => return None,
        WhenExpired::Reuse => "a retry is sent with a token that has expired",
        WhenExpired::Downgrade => "a retry whose token has expired is sent with a weaker credential",
        WhenExpired::Skip => "a retry whose token has expired is sent without any",
    };
    let at = [Step::Field("authentication"), Step::Field("whenExpired")];
    let fix = "get a new token of the same kind before the retry, and declare whenExpired as refresh (or fail)";
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
