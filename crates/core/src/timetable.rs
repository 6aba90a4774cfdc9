//! A policy's timetable: when each attempt comes if all before it fail.
//!
//! Attempts are assumed to fail at once, as they mostly do in an outage. In fact each may take up to the policy's
//! attempt timeout, and a 429 or a Retry-After may make any wait longer.

use std::time::Duration;

use crate::backoff;
use crate::decide::{SendCheck, before_send};
use crate::policy::Policy;
use crate::time::Timestamp;

/// One attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Its number, from 1.
    pub attempt: u32,
    /// The wait before it.
    pub wait: Range,
    /// The time from acceptance, all waits before it included.
    pub at: Range,
    /// Whether the total budget leaves room for it.
    pub fits: FitsBudget,
}

/// From the shortest draws to the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Range {
    /// With the shortest draw each time.
    pub earliest: Duration,
    /// With a draw in the middle each time.
    pub typical: Duration,
    /// With the longest draw each time.
    pub latest: Duration,
}

/// Whether an attempt comes before the policy's total budget ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FitsBudget {
    /// The attempt fits whatever is drawn.
    Always,
    /// The attempt fits only with short draws.
    Sometimes,
    /// The attempt never fits.
    Never,
}

/// Every attempt of the policy, the first one included.
pub fn of(policy: &Policy) -> Vec<Row> {
    let mut wait = Range::default();
    let mut at = Range::default();
    let mut rows = Vec::with_capacity(usize::try_from(policy.max_attempts).unwrap_or_default());
    for attempt in 1..=policy.max_attempts {
        if attempt > 1 {
            let previous = (attempt > 2).then_some(wait);
            wait = Range {
                earliest: backoff::delay(policy, attempt - 1, previous.map(|wait| wait.earliest), 0.0),
                typical: backoff::delay(policy, attempt - 1, previous.map(|wait| wait.typical), 0.5),
                latest: backoff::delay(policy, attempt - 1, previous.map(|wait| wait.latest), 1.0),
            };
            at = Range {
                earliest: at.earliest.saturating_add(wait.earliest),
                typical: at.typical.saturating_add(wait.typical),
                latest: at.latest.saturating_add(wait.latest),
            };
        }
        rows.push(Row { attempt, wait, at, fits: fits(policy, at) });
    }
    rows
}

fn fits(policy: &Policy, at: Range) -> FitsBudget {
    let accepted = Timestamp::default();
    let deadline = accepted.after(policy.total_budget);
    let goes =
        |at| before_send(deadline, Duration::ZERO, policy.attempt_timeout, accepted.after(at)) != SendCheck::TooLate;
    match (goes(at.earliest), goes(at.latest)) {
        (_, true) => FitsBudget::Always,
        (true, false) => FitsBudget::Sometimes,
        (false, false) => FitsBudget::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Context, Spec};

    fn rows(json: &str) -> Vec<Row> {
        let spec: Spec = serde_json::from_str(json).unwrap();
        of(&Policy::resolve(&spec).unwrap())
    }

    fn millis(range: Range) -> (u128, u128, u128) {
        (range.earliest.as_millis(), range.typical.as_millis(), range.latest.as_millis())
    }

    #[test]
    fn waits_add_up_from_an_immediate_first_attempt() {
        let rows = rows(r#"{ "maxAttempts": 4 }"#);
        let waits: Vec<_> = rows.iter().map(|row| millis(row.wait)).collect();
        assert_eq!(waits, [(0, 0, 0), (0, 500, 1_000), (0, 1_000, 2_000), (0, 2_000, 4_000)]);
        let ats: Vec<_> = rows.iter().map(|row| millis(row.at)).collect();
        assert_eq!(ats, [(0, 0, 0), (0, 500, 1_000), (0, 1_500, 3_000), (0, 3_500, 7_000)]);
        assert!(rows.iter().all(|row| row.fits == FitsBudget::Always));
    }

    #[test]
    fn a_webhook_keeps_close_to_its_schedule() {
        let rows = rows(r#"{ "context": "webhook-patient" }"#);
        assert_eq!(rows.len(), 5);
        assert_eq!(millis(rows[1].wait), (24_000, 30_000, 36_000));
        assert_eq!(millis(rows[4].wait), (2_880_000, 3_600_000, 4_320_000));
        assert_eq!(millis(rows[4].at).1, 4_350_000);
    }

    #[test]
    fn decorrelated_waits_build_on_the_ones_before() {
        let rows = rows(r#"{ "jitterType": "DECORRELATED", "maxAttempts": 4 }"#);
        let waits: Vec<_> = rows.iter().skip(1).map(|row| millis(row.wait)).collect();
        assert_eq!(waits, [(1_000, 2_000, 3_000), (1_000, 3_500, 9_000), (1_000, 5_750, 27_000)]);
    }

    #[test]
    fn an_attempt_that_comes_too_late_is_marked() {
        let rows = rows(r#"{ "maxAttempts": 4, "totalBudgetMs": 3000 }"#);
        let fits: Vec<_> = rows.iter().map(|row| row.fits).collect();
        assert_eq!(fits, [FitsBudget::Always, FitsBudget::Always, FitsBudget::Sometimes, FitsBudget::Sometimes]);
        let fixed = super::tests::rows(
            r#"{ "backoff": "fixed", "jitterType": "NONE", "maxAttempts": 3, "totalBudgetMs": 1500 }"#,
        );
        assert_eq!(
            fixed.iter().map(|row| row.fits).collect::<Vec<_>>(),
            [FitsBudget::Always, FitsBudget::Always, FitsBudget::Never]
        );
    }

    #[test]
    fn every_attempt_of_every_preset_fits() {
        for context in Context::ALL {
            let policy = Policy::resolve(&Spec { context: Some(context), ..Spec::default() }).unwrap();
            assert!(of(&policy).iter().all(|row| row.fits == FitsBudget::Always), "{context}");
        }
    }
}
