//! Classification: what an answer or an error means for its task.
//!
//! Several layers are asked in turn, each with three answers: retry, never, no opinion. The first opinion counts. The
//! policy's own list comes before the standard's table of single codes, and that before the rule for the whole class.
//!
//! One file per protocol: `http` for answers, `network` for what went wrong without one. Another protocol is another
//! file here, and one more function that asks it.
//!
//! Not here: whether the task may still be retried (`decide`).

mod http;
mod network;

pub use http::{NON_RETRYABLE_STATUS, RETRYABLE_STATUS};
pub use network::DNS_ATTEMPTS;

use std::time::Duration;

use crate::attempt::{Answer, ErrorType, Outcome};
use crate::policy::Policy;
use crate::retry_after;
use crate::time::Timestamp;

/// What an attempt's end means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The dependency accepted the request.
    Success,
    /// A later attempt may do better.
    Retry {
        /// The wait that the dependency asked for (Retry-After).
        after: Option<Duration>,
        /// The most attempts that a failure of this kind is worth, where that is fewer than the policy's.
        max_attempts: Option<u32>,
    },
    /// No retry can mend this.
    Never,
    /// There is nothing left to send.
    BodyLost,
    /// What is to be sent could not be had, so nothing was: this was no attempt.
    NotSent,
}

impl Verdict {
    /// What the attempt log says of it.
    pub const fn outcome(&self) -> Outcome {
        match self {
            Verdict::Success => Outcome::Success,
            Verdict::Retry { .. } | Verdict::NotSent => Outcome::Retryable,
            Verdict::Never | Verdict::BodyLost => Outcome::Permanent,
        }
    }
}

/// What `answer`, received at `now`, means under `policy`.
pub fn answer(policy: &Policy, answer: &Answer, now: Timestamp) -> Verdict {
    if http::is_success(answer.status) {
        return Verdict::Success;
    }
    match http::opinion(policy.retryable_status_codes.as_ref(), answer.status) {
        Opinion::Retry => Verdict::Retry { after: retry_after::of(answer, now), max_attempts: None },
        Opinion::Never | Opinion::None => Verdict::Never,
    }
}

/// What an attempt that ended without an answer means.
pub fn error(kind: ErrorType) -> Verdict {
    network::verdict(kind)
}

/// What one layer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opinion {
    Retry,
    Never,
    None,
}

impl Opinion {
    /// This opinion, or else what the next, more general layer says.
    fn or_else(self, next: impl FnOnce() -> Opinion) -> Opinion {
        match self {
            Opinion::None => next(),
            opinion => opinion,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Body;

    const NOW: Timestamp = Timestamp::from_millis(784_111_777_000);
    const RETRY: Verdict = Verdict::Retry { after: None, max_attempts: None };

    fn status(status: u16) -> Answer {
        Answer { status, headers: Vec::new(), body: Body::default(), truncated: false }
    }

    fn asking(code: u16, retry_after: &str) -> Answer {
        Answer { headers: vec![("Retry-After".to_owned(), retry_after.to_owned())], ..status(code) }
    }

    fn with_list(codes: impl IntoIterator<Item = u16>) -> Policy {
        Policy { retryable_status_codes: Some(codes.into_iter().collect()), ..Policy::default() }
    }

    #[test]
    fn the_standard_decides_where_the_policy_has_no_list() {
        let retried = [408, 429, 500, 501, 502, 503, 504, 505, 507, 511, 520, 599];
        let never = [
            0,
            100,
            101,
            103,
            199,
            300,
            301,
            302,
            304,
            307,
            308,
            399,
            400,
            401,
            402,
            403,
            404,
            405,
            409,
            410,
            413,
            418,
            422,
            423,
            425,
            428,
            431,
            451,
            499,
            600,
            999,
            u16::MAX,
        ];
        let policy = Policy::default();
        for code in retried {
            assert_eq!(answer(&policy, &status(code), NOW), RETRY, "{code}");
        }
        for code in never {
            assert_eq!(answer(&policy, &status(code), NOW), Verdict::Never, "{code}");
        }
        for code in 200..300 {
            assert_eq!(answer(&policy, &status(code), NOW), Verdict::Success, "{code}");
        }
    }

    #[test]
    fn a_list_is_retried_exactly() {
        let policy = with_list([302, 404, 409, 503]);
        for code in (0..200).chain(300..700) {
            let expected = if [302, 404, 409, 503].contains(&code) { RETRY } else { Verdict::Never };
            assert_eq!(answer(&policy, &status(code), NOW), expected, "{code}");
        }
        assert_eq!(answer(&with_list([]), &status(503), NOW), Verdict::Never);
    }

    #[test]
    fn a_success_is_one_under_every_list() {
        for policy in [with_list([]), with_list([503]), with_list([200, 204])] {
            assert_eq!(answer(&policy, &status(204), NOW), Verdict::Success);
        }
    }

    #[test]
    fn an_answer_that_is_retried_brings_its_retry_after() {
        let after = |seconds| Verdict::Retry { after: Some(Duration::from_secs(seconds)), max_attempts: None };
        let cases = [
            (asking(429, "60"), after(60)),
            (asking(503, "0"), after(0)),
            (asking(500, "Sun, 06 Nov 1994 08:49:47 GMT"), after(10)),
            (asking(503, "soon"), RETRY),
            (asking(404, "60"), Verdict::Never),
            (asking(301, "60"), Verdict::Never),
            (asking(202, "60"), Verdict::Success),
        ];
        for (given, expected) in cases {
            assert_eq!(answer(&Policy::default(), &given, NOW), expected, "{given:?}");
        }
        assert_eq!(answer(&with_list([404]), &asking(404, "60"), NOW), after(60));
    }

    #[test]
    fn each_kind_of_error_has_its_verdict() {
        for kind in ErrorType::ALL {
            let expected = match kind.as_str() {
                "dns" => Verdict::Retry { after: None, max_attempts: Some(2) },
                "tls-certificate" | "invalid-request" | "http-status" => Verdict::Never,
                "body-missing" | "body-damaged" => Verdict::BodyLost,
                "body-unavailable" => Verdict::NotSent,
                _ => RETRY,
            };
            assert_eq!(error(kind), expected, "{kind:?}");
        }
    }

    #[test]
    fn a_verdict_has_its_outcome_in_the_attempt_log() {
        for (verdict, expected) in [
            (Verdict::Success, Outcome::Success),
            (RETRY, Outcome::Retryable),
            (Verdict::Never, Outcome::Permanent),
            (Verdict::BodyLost, Outcome::Permanent),
            (Verdict::NotSent, Outcome::Retryable),
        ] {
            assert_eq!(verdict.outcome(), expected);
        }
    }

    #[test]
    fn the_first_opinion_counts() {
        assert_eq!(Opinion::Retry.or_else(|| Opinion::Never), Opinion::Retry);
        assert_eq!(Opinion::Never.or_else(|| Opinion::Retry), Opinion::Never);
        assert_eq!(Opinion::None.or_else(|| Opinion::Retry), Opinion::Retry);
    }
}
