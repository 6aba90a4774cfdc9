//! How long a policy's retries go on: what a person is told beforehand.
//!
//! Only the waits count, from the first attempt to the start of the last one, if every attempt fails. How long the
//! attempts themselves take is not part of it: each may take up to the policy's attempt timeout. A 429 or a Retry-After
//! can make any wait longer.
//!
//! Not here: the single attempts (`timetable`).

mod decorrelated;

use std::fmt;
use std::time::Duration;

use crate::duration::brief;
use crate::jitter::Jitter;
use crate::policy::Policy;
use crate::timetable::{self, FitsBudget};

/// The number of attempts of a policy, and the time over which they are spread if all of them fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySpan {
    /// The most attempts that fit into the total budget, the first one included.
    pub attempts: u32,
    /// The mean of the sum of all waits. If the total budget cuts long draws off, an upper bound of it.
    pub mean: Duration,
    /// The largest sum of all waits.
    pub most: Duration,
    /// Whether the total budget ends before some of the attempts, with long draws or always.
    pub cut_by_budget: bool,
}

impl RetrySpan {
    /// The span of a run that has the whole total budget.
    pub fn of(policy: &Policy) -> RetrySpan {
        let rows = timetable::of(policy);
        let last = rows.iter().rfind(|row| row.fits != FitsBudget::Never);
        let (attempts, at) = last.map_or((1, timetable::Range::default()), |row| (row.attempt, row.at));
        let mean = match policy.jitter {
            Jitter::Decorrelated => decorrelated::mean(&policy.backoff, attempts.saturating_sub(1)),
            // The mean of every other draw is the one in the middle.
            Jitter::Full | Jitter::Equal | Jitter::Proportional { .. } | Jitter::None => at.typical,
        };
        let most = at.latest.min(policy.total_budget);
        RetrySpan {
            attempts,
            mean: mean.min(most),
            most,
            cut_by_budget: rows.iter().any(|row| row.fits != FitsBudget::Always),
        }
    }
}

/// `6 attempts over about 15s, at most 31s`
impl fmt::Display for RetrySpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RetrySpan { attempts, mean, most, cut_by_budget } = *self;
        match (attempts, brief(mean), brief(most)) {
            (_, _, most) if cut_by_budget => {
                let plural = if attempts == 1 { "" } else { "s" };
                write!(f, "at most {attempts} attempt{plural} within {most}, the total budget")
            }
            (0 | 1, _, _) => write!(f, "1 attempt, no retries"),
            (_, mean, most) if mean == most => write!(f, "{attempts} attempts over {most}"),
            (_, mean, most) => write!(f, "{attempts} attempts over about {mean}, at most {most}"),
        }
    }
}

#[cfg(test)]
mod tests;
