//! When the first attempt may begin.

use std::time::Duration;

use redrive_core::Timestamp;

use super::faults::Faults;
use crate::wire::Moment;

const DELAY: &str = "delayMs";
const NOT_BEFORE: &str = "notBefore";

/// The moment before which nothing is sent; `None` for now. `budget` is the policy's, if it is known.
pub(crate) fn check(
    delay_ms: Option<u64>,
    not_before: Option<Moment>,
    now: Timestamp,
    budget: Option<Duration>,
    faults: &mut Faults,
) -> Option<Timestamp> {
    let (field, start) = match (delay_ms, not_before) {
        (None, None) => return None,
        (Some(delay), None) => (DELAY, now.after(Duration::from_millis(delay))),
        (None, Some(Moment(at))) => (NOT_BEFORE, at),
        (Some(_), Some(_)) => {
            for field in [DELAY, NOT_BEFORE] {
                faults.add(field, format!("must be the only one of {DELAY} and {NOT_BEFORE}"));
            }
            return None;
        }
    };
    if let Some(budget) = budget
        && start >= now.after(budget)
    {
        let budget = budget.as_millis();
        faults.add(field, format!("must leave time for an attempt within the policy's totalBudgetMs ({budget})"));
    }
    (start > now).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_a_delay_or_a_moment_within_the_budget() {
        let now = Timestamp::from_millis(1_000_000);
        let budget = Some(Duration::from_millis(500));
        let none: &[&str] = &[];
        for (delay, not_before, start, faulty) in [
            (None, None, None, none),
            (Some(0), None, None, none),
            (Some(499), None, Some(1_000_499), none),
            (Some(500), None, Some(1_000_500), &["delayMs"]),
            (Some(u64::MAX), None, Some(Timestamp::MAX.as_millis()), &["delayMs"]),
            (None, Some(5), None, none),
            (None, Some(1_000_001), Some(1_000_001), none),
            (None, Some(1_000_500), Some(1_000_500), &["notBefore"]),
            (Some(1), Some(1), None, &["delayMs", "notBefore"]),
        ] {
            let mut faults = Faults::default();
            let moment = not_before.map(|millis| Moment(Timestamp::from_millis(millis)));
            let checked = check(delay, moment, now, budget, &mut faults);
            assert_eq!(checked.map(Timestamp::as_millis), start, "{delay:?} {not_before:?}");
            assert_eq!(faults.fields(), faulty, "{delay:?} {not_before:?}");
        }
    }
}
