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
pub use network::{BODY_PAUSE, DNS_ATTEMPTS, LOCAL_PAUSE};

use std::time::Duration;

use crate::attempt::{Answer, ErrorType, Outcome};
use crate::policy::Policy;
use crate::retry_after;
use crate::time::Timestamp;

/// What the end of an attempt means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The dependency accepted the request.
    Success,
    /// A later attempt may succeed.
    Retry {
        /// The wait that the dependency asked for (Retry-After).
        after: Option<Duration>,
        /// The cause, as far as it limits the retries.
        cause: Cause,
    },
    /// The dependency asks for fewer requests (429). It is retried, and is distinguished from a failure.
    Overloaded {
        /// The wait that the dependency asked for (Retry-After).
        after: Option<Duration>,
    },
    /// No retry can fix this.
    Never,
    /// The stored body is lost, so there is nothing to send.
    BodyLost,
    /// Nothing was sent, for a reason other than the dependency: this does not count as an attempt.
    NotSent {
        /// How long the task waits, unless its deadline is near.
        pause: Duration,
    },
}

/// The cause of a retryable failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Any failure without a limit of its own: only the task's attempts bound it.
    Failure,
    /// The dependency's name could not be resolved: at most [`DNS_ATTEMPTS`] attempts of a run may fail by it.
    Dns,
}

impl Verdict {
    /// The outcome in the attempt log.
    pub const fn outcome(&self) -> Outcome {
        match self {
            Verdict::Success => Outcome::Success,
            Verdict::Retry { .. } | Verdict::NotSent { .. } => Outcome::Retryable,
            Verdict::Overloaded { .. } => Outcome::Overloaded,
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
        Opinion::Retry => http::retried(answer.status, retry_after::of(answer, now)),
        Opinion::Never | Opinion::None => Verdict::Never,
    }
}

/// What an attempt that ended without an answer means.
pub fn error(kind: ErrorType) -> Verdict {
    network::verdict(kind)
}

/// The answer of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opinion {
    /// The layer says that it is retried.
    Retry,
    /// The layer says that it is never retried.
    Never,
    /// The layer does not know it.
    None,
}

impl Opinion {
    /// This opinion, or that of the next, more general layer if there is none.
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
    const RETRY: Verdict = Verdict::Retry { after: None, cause: Cause::Failure };
    const OVERLOADED: Verdict = Verdict::Overloaded { after: None };

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
        let retried = [408, 500, 501, 502, 503, 504, 505, 507, 511, 520, 599];
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
        assert_eq!(answer(&policy, &status(429), NOW), OVERLOADED);
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
    fn a_429_is_overloaded_wherever_it_is_retried() {
        let asked = |seconds| Verdict::Overloaded { after: Some(Duration::from_secs(seconds)) };
        let cases = [
            (Policy::default(), status(429), OVERLOADED),
            (Policy::default(), asking(429, "60"), asked(60)),
            (Policy::default(), asking(429, "0"), asked(0)),
            // A Retry-After that cannot be parsed counts as none.
            (Policy::default(), asking(429, "soon"), OVERLOADED),
            (with_list([429]), status(429), OVERLOADED),
            (with_list([429]), asking(429, "60"), asked(60)),
            (with_list([503]), asking(429, "60"), Verdict::Never),
            (with_list([]), status(429), Verdict::Never),
            // 503 is a failure, also where it says when to come back.
            (with_list([429, 503]), status(503), RETRY),
        ];
        for (policy, given, expected) in cases {
            assert_eq!(answer(&policy, &given, NOW), expected, "{:?}, {given:?}", policy.retryable_status_codes);
        }
    }

    #[test]
    fn a_success_is_one_under_every_list() {
        for policy in [with_list([]), with_list([503]), with_list([200, 204])] {
            assert_eq!(answer(&policy, &status(204), NOW), Verdict::Success);
        }
    }

    #[test]
    fn an_answer_that_is_retried_brings_its_retry_after() {
        let after = |seconds| Verdict::Retry { after: Some(Duration::from_secs(seconds)), cause: Cause::Failure };
        let cases = [
            (asking(503, "60"), after(60)),
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
                "dns" => Verdict::Retry { after: None, cause: Cause::Dns },
                "tls-certificate" | "invalid-request" | "http-status" => Verdict::Never,
                "body-missing" | "body-damaged" => Verdict::BodyLost,
                "body-unavailable" => Verdict::NotSent { pause: Duration::from_secs(15) },
                "not-sent" => Verdict::NotSent { pause: Duration::from_secs(1) },
                "connection-refused"
                | "connection-reset"
                | "connect-timeout"
                | "connect-failed"
                | "read-timeout"
                | "tls-handshake-timeout"
                | "tls-handshake"
                | "malformed-answer"
                | "body-incomplete"
                | "interrupted" => RETRY,
                other => panic!("no verdict is expected for {other}"),
            };
            assert_eq!(error(kind), expected, "{kind:?}");
        }
    }

    #[test]
    fn a_verdict_has_its_outcome_in_the_attempt_log() {
        for (verdict, expected) in [
            (Verdict::Success, Outcome::Success),
            (RETRY, Outcome::Retryable),
            (Verdict::Retry { after: None, cause: Cause::Dns }, Outcome::Retryable),
            (OVERLOADED, Outcome::Overloaded),
            (Verdict::Never, Outcome::Permanent),
            (Verdict::BodyLost, Outcome::Permanent),
            (Verdict::NotSent { pause: LOCAL_PAUSE }, Outcome::Retryable),
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
