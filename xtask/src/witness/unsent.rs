//! Attempts that were counted and never sent.
//!
//! A claim counts its attempt before the first byte is sent. A process that is killed between the two leaves an attempt
//! whose outcome is unknown and that no target received: it used up one of the task's attempts for nothing. That breaks
//! no guarantee, so it is a goal and not an invariant.

use std::collections::BTreeSet;
use std::fmt;

use super::Arrival;
use crate::api::Attempt;

/// The most unsent attempts, in percent of all attempts.
const GOAL_PERCENT: f64 = 1.0;
/// With fewer attempts the share is not judged: a short run has a kill for every few hundred attempts, and each kill
/// costs the attempts that were claimed at that moment.
const JUDGED_FROM: usize = 10_000;

/// How many attempts were counted and never sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsentAttempts {
    /// Attempts with the outcome `unknown` that the target did not receive.
    pub unsent: usize,
    /// All attempts in the log.
    pub attempts: usize,
}

/// Whether a goal was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The goal was reached.
    Reached,
    /// The goal was not reached.
    Missed,
    /// There were too few samples to judge it.
    NotJudged,
}

impl UnsentAttempts {
    /// Counts them in these attempt logs, by task, and all arrivals at the target.
    pub fn of<'a>(logs: impl IntoIterator<Item = (&'a str, &'a [Attempt])>, arrivals: &[Arrival]) -> Self {
        let seen: BTreeSet<(&str, u32)> =
            arrivals.iter().map(|arrival| (arrival.task.as_str(), arrival.attempt)).collect();
        let mut of = UnsentAttempts { unsent: 0, attempts: 0 };
        for (task, attempts) in logs {
            let is_unsent =
                |attempt: &&Attempt| attempt.outcome == "unknown" && !seen.contains(&(task, attempt.attempt_number));
            of.unsent += attempts.iter().filter(is_unsent).count();
            of.attempts += attempts.len();
        }
        of
    }

    /// Whether the share is small enough.
    pub fn verdict(self) -> Verdict {
        match self {
            UnsentAttempts { attempts, .. } if attempts < JUDGED_FROM => Verdict::NotJudged,
            _ if self.percent() <= GOAL_PERCENT => Verdict::Reached,
            _ => Verdict::Missed,
        }
    }

    fn percent(self) -> f64 {
        self.unsent as f64 * 100.0 / self.attempts.max(1) as f64
    }
}

impl fmt::Display for UnsentAttempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnsentAttempts { unsent, attempts } = self;
        let percent = self.percent();
        write!(f, "{unsent} of {attempts} attempts ({percent:.2} %) were counted and never reached the wire")?;
        write!(f, "; goal: at most {GOAL_PERCENT} %")?;
        match self.verdict() {
            Verdict::NotJudged => write!(f, " of at least {JUDGED_FROM}"),
            Verdict::Reached | Verdict::Missed => Ok(()),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Reached => "goal reached",
            Verdict::Missed => "GOAL MISSED",
            Verdict::NotJudged => "not judged",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(attempt_number: u32, outcome: &str) -> Attempt {
        Attempt { attempt_number, started_at: 0, outcome: outcome.to_owned(), response_status: None }
    }

    fn arrival(task: &str, attempt: u32) -> Arrival {
        let (key, target) = (task.to_owned(), "POST /".to_owned());
        Arrival { at: 0, task: task.to_owned(), attempt, key, target, body_hash: 0, answered: None }
    }

    #[test]
    fn an_attempt_is_unsent_if_its_outcome_is_unknown_and_the_target_did_not_see_it() {
        let a = [attempt(1, "unknown"), attempt(2, "unknown"), attempt(3, "success")];
        // Without an answer and without an arrival, but not interrupted: the connection failed.
        let b = [attempt(1, "retryable"), attempt(2, "unknown")];
        let arrivals = [arrival("a", 2), arrival("a", 3)];
        let of = UnsentAttempts::of([("a", a.as_slice()), ("b", b.as_slice())], &arrivals);
        assert_eq!(of, UnsentAttempts { unsent: 2, attempts: 5 }, "attempt 1 of a and attempt 2 of b");
        let seen: Vec<Arrival> = arrivals.into_iter().chain([arrival("a", 1), arrival("b", 2)]).collect();
        let of = UnsentAttempts::of([("a", a.as_slice()), ("b", b.as_slice())], &seen);
        assert_eq!(of, UnsentAttempts { unsent: 0, attempts: 5 });
    }

    #[test]
    fn the_share_is_judged_from_ten_thousand_attempts_on() {
        for (unsent, attempts, verdict) in [
            (0, 0, Verdict::NotJudged),
            (9_999, 9_999, Verdict::NotJudged),
            (100, 10_000, Verdict::Reached),
            (101, 10_000, Verdict::Missed),
            (2_101, 18_797, Verdict::Missed),
        ] {
            assert_eq!(UnsentAttempts { unsent, attempts }.verdict(), verdict, "{unsent} of {attempts}");
        }
    }

    #[test]
    fn the_report_says_how_many_of_how_many() {
        let text = UnsentAttempts { unsent: 2_101, attempts: 18_797 }.to_string();
        assert!(text.starts_with("2101 of 18797 attempts (11.18 %)"), "{text}");
        let text = UnsentAttempts { unsent: 1, attempts: 10 }.to_string();
        assert!(text.ends_with("at most 1 % of at least 10000"), "{text}");
    }
}
