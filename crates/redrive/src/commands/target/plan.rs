//! How a request is answered.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::follow::status_text;
use crate::output::duration;

/// The status codes of answers; those below 200 are not final.
pub(super) const STATUS: RangeInclusive<i64> = 200..=599;

/// The status of a failure, if none is named.
const UNAVAILABLE: u16 = 503;
const OK: u16 = 200;

/// Requests for this path and a code are answered with that code.
const NAMED: &str = "/status/";

/// How requests are answered.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Plan {
    /// How many requests fail, the first ones.
    pub(super) fail: Option<u64>,
    /// The status of a failure; without `fail`, of every answer.
    pub(super) status: Option<u16>,
    /// How long each answer takes.
    pub(super) delay: Duration,
    /// The seconds of the Retry-After of a failure.
    pub(super) retry_after: Option<u32>,
}

impl Plan {
    /// What is contradictory in it.
    pub(super) fn check(&self) -> Result<(), String> {
        let fails = self.fail.is_some() || self.status.is_some_and(is_failure);
        match *self {
            Plan { fail: Some(_), status: Some(status), .. } if !is_failure(status) => {
                Err(format!("--status {status} is no failure; with --fail, choose 300 or more"))
            }
            Plan { retry_after: Some(_), .. } if !fails => {
                Err("--retry-after is sent with failures; add --fail N or --status CODE".into())
            }
            _ => Ok(()),
        }
    }

    /// The status for request `number` (1 = the first) for `path`.
    pub(super) fn status(&self, number: u64, path: &str) -> u16 {
        if let Some(named) = named(path) {
            return named;
        }
        match self.fail {
            None => self.status.unwrap_or(OK),
            Some(fail) if number <= fail => self.status.unwrap_or(UNAVAILABLE),
            Some(_) => OK,
        }
    }

    /// The seconds of the Retry-After of an answer with `status`.
    pub(super) fn retry_after(&self, status: u16) -> Option<u32> {
        self.retry_after.filter(|_| is_failure(status))
    }
}

/// `answers 503 Service Unavailable to the first 3 requests, then 200 OK`
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.fail, self.status) {
            (None, status) => write!(f, "answers {}", status_text(status.unwrap_or(OK)))?,
            (Some(fail), status) => {
                let first = if fail == 1 { "first request".into() } else { format!("first {fail} requests") };
                let failure = status_text(status.unwrap_or(UNAVAILABLE));
                write!(f, "answers {failure} to the {first}, then {}", status_text(OK))?;
            }
        }
        if self.delay.is_zero() { Ok(()) } else { write!(f, ", after {}", duration(self.delay)) }
    }
}

fn is_failure(status: u16) -> bool {
    status >= 300
}

/// The status that a path names.
fn named(path: &str) -> Option<u16> {
    let code = path.strip_prefix(NAMED)?.parse().ok()?;
    STATUS.contains(&i64::from(code)).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Plan = Plan { fail: None, status: None, delay: Duration::ZERO, retry_after: None };

    #[test]
    fn the_first_requests_fail_and_the_others_succeed() {
        let three = Plan { fail: Some(3), ..PLAIN };
        let twice_500 = Plan { fail: Some(2), status: Some(500), ..PLAIN };
        let always_404 = Plan { status: Some(404), ..PLAIN };
        for (plan, expected) in [
            (PLAIN, [200, 200, 200, 200]),
            (three, [503, 503, 503, 200]),
            (twice_500, [500, 500, 200, 200]),
            (always_404, [404, 404, 404, 404]),
        ] {
            let statuses = [1, 2, 3, 4].map(|number| plan.status(number, "/hook"));
            assert_eq!(statuses, expected, "{plan:?}");
        }
    }

    #[test]
    fn a_path_can_name_its_status() {
        let always_404 = Plan { status: Some(404), ..PLAIN };
        for (path, expected) in
            [("/status/410", 410), ("/status/200", 200), ("/status/99", 404), ("/status/", 404), ("/a/status/410", 404)]
        {
            assert_eq!(always_404.status(1, path), expected, "{path}");
        }
    }

    #[test]
    fn retry_after_comes_with_failures_only() {
        let plan = Plan { fail: Some(1), retry_after: Some(5), ..PLAIN };
        assert_eq!((plan.retry_after(503), plan.retry_after(200)), (Some(5), None));
    }

    #[test]
    fn what_has_no_effect_is_refused() {
        for (plan, is_right) in [
            (PLAIN, true),
            (Plan { retry_after: Some(5), ..PLAIN }, false),
            (Plan { retry_after: Some(5), status: Some(200), ..PLAIN }, false),
            (Plan { retry_after: Some(5), fail: Some(1), ..PLAIN }, true),
            (Plan { retry_after: Some(5), status: Some(429), ..PLAIN }, true),
            (Plan { fail: Some(1), status: Some(204), ..PLAIN }, false),
            (Plan { status: Some(204), ..PLAIN }, true),
        ] {
            assert_eq!(plan.check().is_ok(), is_right, "{plan:?}");
        }
    }

    #[test]
    fn a_plan_is_said_in_words() {
        for (plan, expected) in [
            (PLAIN, "answers 200 OK"),
            (Plan { status: Some(404), ..PLAIN }, "answers 404 Not Found"),
            (Plan { fail: Some(1), ..PLAIN }, "answers 503 Service Unavailable to the first request, then 200 OK"),
            (
                Plan { fail: Some(3), delay: Duration::from_secs(2), ..PLAIN },
                "answers 503 Service Unavailable to the first 3 requests, then 200 OK, after 2s",
            ),
        ] {
            assert_eq!(plan.to_string(), expected);
        }
    }
}
