//! The recent outcomes of a lane: whether its dependency is healthy enough for retries to be refunded.
//!
//! The last 50 outcomes are one bit each. A lane is *healthy* from the moment when at least 90 % of them (and at least
//! 5) succeeded, until fewer than 80 % did. The gap between the two limits keeps a lane at the edge from changing back
//! and forth. A new lane is not healthy: it has to show it. Five outcomes are fewer than the budget's floor of 10, so
//! that a lane without first attempts can show it with retries alone.

/// How many outcomes are remembered; at most 64 fit.
const REMEMBERED: u32 = 50;
/// A lane needs this many outcomes to be healthy.
const LEAST: u32 = 5;
/// A lane becomes healthy when at least this share of its outcomes succeeded, in percent.
const HEALTHY_PERCENT: u32 = 90;
/// A lane stops being healthy when a smaller share than this succeeded, in percent.
const UNHEALTHY_PERCENT: u32 = 80;

/// The last outcomes of a lane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecentOutcomes {
    /// One bit per outcome, the latest lowest: set if it failed.
    failed: u64,
    count: u32,
    is_healthy: bool,
}

impl RecentOutcomes {
    /// Records an outcome.
    pub fn record(&mut self, succeeded: bool) {
        self.failed = (self.failed << 1 | u64::from(!succeeded)) & ((1 << REMEMBERED) - 1);
        self.count = (self.count + 1).min(REMEMBERED);
        let succeeded = 100 * (self.count - self.failures());
        self.is_healthy = match self.is_healthy {
            true => succeeded >= UNHEALTHY_PERCENT * self.count,
            false => self.count >= LEAST && succeeded >= HEALTHY_PERCENT * self.count,
        };
    }

    /// Records the outcomes of others, oldest first; of more than are remembered, the latest.
    pub(super) fn record_all(&mut self, others: &RecentOutcomes) {
        (0..others.count).rev().for_each(|age| self.record(others.failed >> age & 1 == 0));
    }

    /// Whether the dependency is healthy.
    pub fn is_healthy(&self) -> bool {
        self.is_healthy
    }

    /// How many of the remembered outcomes failed.
    pub fn failures(&self) -> u32 {
        self.failed.count_ones()
    }

    /// How many outcomes are remembered.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The outcomes as numbers, for [`RecentOutcomes::from_parts`]: the bits, their number, and whether it is healthy.
    pub(super) fn parts(&self) -> (u64, u32, bool) {
        (self.failed, self.count, self.is_healthy)
    }

    pub(super) fn from_parts((failed, count, is_healthy): (u64, u32, bool)) -> Self {
        let count = count.min(REMEMBERED);
        let failed = failed & ((1 << count) - 1);
        RecentOutcomes { failed, count, is_healthy: is_healthy && count >= LEAST }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After these outcomes: `+` succeeded, `-` failed.
    fn after(outcomes: &str) -> RecentOutcomes {
        let mut recent = RecentOutcomes::default();
        outcomes.chars().for_each(|outcome| recent.record(outcome == '+'));
        recent
    }

    #[test]
    fn a_lane_is_healthy_from_nine_tenths_of_at_least_five_until_less_than_four_fifths() {
        let cases = [
            ("", false),
            ("++++", false),
            ("+++++", true),
            ("-+++++++", false),
            ("-+++++++++", true),
            ("+++++-", true),
            ("+++++--", false),
            ("-----", false),
        ];
        for (outcomes, expected) in cases {
            assert_eq!(after(outcomes).is_healthy(), expected, "{outcomes:?}");
        }
    }

    #[test]
    fn only_the_last_fifty_count() {
        let (good, bad) = ("+".repeat(50), "-".repeat(50));
        for (failures, expected) in [(10, true), (11, false)] {
            let recent = after(&format!("{good}{}", "-".repeat(failures)));
            assert_eq!((recent.is_healthy(), recent.failures()), (expected, failures as u32));
        }
        for (successes, expected) in [(44, false), (45, true)] {
            let recent = after(&format!("{bad}{}", "+".repeat(successes)));
            assert_eq!((recent.is_healthy(), recent.count()), (expected, 50), "{successes} successes");
        }
    }

    #[test]
    fn it_is_restored_from_its_parts_and_from_nothing_worse() {
        let recent = after("+++++-+");
        assert_eq!(RecentOutcomes::from_parts(recent.parts()), recent);
        let odd = RecentOutcomes::from_parts((u64::MAX, u32::MAX, true));
        assert_eq!((odd.count(), odd.failures()), (50, 50));
        assert!(!RecentOutcomes::from_parts((0, 4, true)).is_healthy());
    }
}
