//! The goals of isolation, and whether this run reached them.

use super::super::goals::{Goal, goal};
use super::burst::Burst;
use super::comparison::Comparison;
use super::{Neighbours, kind::Kind};

/// Every goal, for each measured case.
pub fn all(results: &Neighbours) -> Vec<Goal> {
    let compared = results.comparisons.iter().flat_map(|case| of_case(case.kind, case.dependencies, Some(case)));
    let skipped = results.skipped.iter().flat_map(|&(kind, dependencies)| of_case(kind, dependencies, None));
    let burst = results.burst.as_ref().map(of_burst);
    let guards = results.comparisons.iter().filter_map(of_guards);
    compared.chain(skipped).chain(guards).chain(burst.into_iter().flatten()).collect()
}

fn of_case(kind: Kind, dependencies: usize, case: Option<&Comparison>) -> [Goal; 2] {
    let name = kind.name();
    [
        goal(
            format!("beside {dependencies} {name}: deliveries/s / alone"),
            "≥ 0.90",
            case.map(|case| (case.deliveries.median, format!("{:.3}", case.deliveries.median))),
            |ratio| ratio >= 0.9,
        ),
        goal(
            format!("beside {dependencies} {name}: p99 submit → wire / alone"),
            "≤ 2.0",
            case.map(|case| (case.p99.median, format!("{:.2}", case.p99.median))),
            |ratio| ratio <= 2.0,
        ),
    ]
}

fn of_guards(case: &Comparison) -> Option<Goal> {
    let ratio = case.guards?.deliveries.median;
    let what = format!("beside {} {}: deliveries/s with guards / without", case.dependencies, case.kind.name());
    Some(goal(what, "≥ 0.95", Some((ratio, format!("{ratio:.3}"))), |ratio| ratio >= 0.95))
}

fn of_burst(burst: &Burst) -> [Goal; 3] {
    let early: usize = burst.lanes.iter().map(|lanes| lanes.early).sum();
    [
        goal(
            "20,000 tasks due at one moment: rate in 10,000 lanes / in one",
            "≥ 0.70",
            Some((burst.ratio.median, format!("{:.2}", burst.ratio.median))),
            |ratio| ratio >= 0.7,
        ),
        goal(
            "20,000 tasks due at one moment: rate in 20,000 lanes / in one",
            "≥ 0.50",
            Some((burst.ratio_apart.median, format!("{:.2}", burst.ratio_apart.median))),
            |ratio| ratio >= 0.5,
        ),
        goal(
            "20,000 tasks due at one moment: arrived before they were due",
            "0",
            Some((early as f64, early.to_string())),
            |early| early == 0.0,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::burst::tests::burst;
    use super::super::comparison::tests::comparison;
    use super::*;

    #[test]
    fn a_case_is_judged_by_its_median_ratios() {
        // deliveries/s alone and beside, p99 alone and beside, whether each goal is reached
        for (deliveries, p99, reached) in [
            ((10_000.0, 9_000.0), (4_000, 8_000), [true, true]),
            ((10_000.0, 8_999.0), (4_000, 8_001), [false, false]),
            ((15_300.0, 46.0), (5_000, 43_000_000), [false, false]),
            ((10_000.0, 11_000.0), (4_000, 9_000), [true, false]),
        ] {
            let case = comparison(&[[(deliveries.0, p99.0), (deliveries.1, p99.1)]]);
            let judged = of_case(case.kind, case.dependencies, Some(&case)).map(|goal| goal.reached);
            assert_eq!(judged, reached.map(Some), "{deliveries:?}, {p99:?}");
        }
    }

    #[test]
    fn a_case_that_could_not_be_measured_is_not_judged() {
        let goals = of_case(Kind::Dns, 300, None);
        assert!(goals.iter().all(|goal| goal.reached.is_none() && goal.measured.is_none()));
        assert_eq!(goals[0].what, "beside 300 dns: deliveries/s / alone");
    }

    #[test]
    fn a_burst_is_judged_by_the_most_lanes_and_may_never_be_early() {
        // one lane, most lanes, early, reached
        for (one, most, early, reached) in [
            (0.7, 1.0, 0, [true, true, true]),
            (0.6, 1.1, 0, [false, true, true]),
            (0.6, 2.7, 1, [false, false, false]),
        ] {
            let mut burst = burst(&[one], &[most]);
            burst.lanes[1].early = early;
            assert_eq!(of_burst(&burst).map(|goal| goal.reached), reached.map(Some), "{one} s, {most} s, {early}");
        }
    }
}
