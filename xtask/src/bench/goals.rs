//! The goals of docs/benchmarks.md, and whether this run reached them.

use serde::Serialize;

use super::feature_cost::Feature;
use super::latency::DueToWire;
use super::results::Results;

/// One goal.
#[derive(Debug, Clone, Serialize)]
pub struct Goal {
    /// What is measured.
    pub what: String,
    /// The goal in words.
    pub goal: &'static str,
    /// The measured value; `None` if this run did not measure it.
    pub measured: Option<String>,
    /// Whether the goal was reached; `None` if it was not judged.
    pub reached: Option<bool>,
}

const MIB: f64 = 1024.0 * 1024.0;

/// Every goal, in the order of the document.
pub fn all(results: &Results) -> Vec<Goal> {
    [pipeline(results), large_stores(results), idle(results)].concat()
}

/// A measured value that must not be below a bound.
fn at_least(bound: f64) -> impl Fn(f64) -> bool {
    move |value| value >= bound
}

fn pipeline(results: &Results) -> Vec<Goal> {
    let ratios = results.ratios.as_ref();
    vec![
        goal(
            "pipeline: sqlite / memory, tasks/s",
            "≥ 0.75",
            ratios.map(|ratios| (ratios.sqlite_to_memory.median, format!("{:.2}", ratios.sqlite_to_memory.median))),
            at_least(0.75),
        ),
        goal(
            "pipeline: sqlite / ceiling, tasks/s",
            "≥ 0.50",
            ratios.map(|ratios| (ratios.sqlite_to_ceiling.median, format!("{:.2}", ratios.sqlite_to_ceiling.median))),
            at_least(0.50),
        ),
        goal(
            "pipeline: postgres, one node / memory, tasks/s",
            "≥ 0.50",
            ratios
                .and_then(|ratios| ratios.postgres_to_memory.iter().find(|(name, _)| name == "postgres"))
                .map(|(_, spread)| (spread.median, format!("{:.2}", spread.median))),
            at_least(0.50),
        ),
        feature_cost("pipeline: guards on / off, tasks/s", Feature::Guards, results),
        feature_cost(
            "pipeline: metrics, scraped every second, events and log on / off, tasks/s",
            Feature::Observability,
            results,
        ),
        goal(
            "pipeline: traces on / off, tasks/s",
            "stated",
            ratio_of(Feature::Traces, results).map(|ratio| (ratio, format!("{ratio:.3}"))),
            |_| true,
        ),
        goal(
            "pipeline: scraped every second / not scraped, tasks/s",
            "≥ 0.99",
            ratio_of(Feature::Scrapes, results).map(|ratio| (ratio, format!("{ratio:.3}"))),
            at_least(0.99),
        ),
        goal(
            "pipeline: this build / another one, tasks/s",
            "≥ 0.98",
            ratio_of(Feature::Build, results).map(|ratio| (ratio, format!("{ratio:.3}"))),
            at_least(0.98),
        ),
        goal(
            "a scrape after 10,000 dependencies, MB",
            "≤ 2",
            results.scrapes.as_ref().map(|scrapes| scrapes.bytes as f64 / 1e6).map(|size| (size, format!("{size:.2}"))),
            |size| size <= 2.0,
        ),
        goal(
            "the time of such a scrape, ms",
            "≤ 100",
            results.scrapes.as_ref().map(|scrapes| (scrapes.millis.max, format!("{:.1}", scrapes.millis.max))),
            |millis| millis <= 100.0,
        ),
        due_to_wire(results.due_to_wire.as_ref()),
        goal(
            "delayed tasks that arrived before they were due",
            "0",
            results.due_to_wire.as_ref().map(|measured| (measured.early as f64, measured.early.to_string())),
            |value| value == 0.0,
        ),
    ]
}

fn feature_cost(what: &'static str, feature: Feature, results: &Results) -> Goal {
    let ratio = ratio_of(feature, results);
    goal(what, "≥ 0.95", ratio.map(|ratio| (ratio, format!("{ratio:.3}"))), at_least(0.95))
}

/// The throughput with a feature divided by that without.
fn ratio_of(feature: Feature, results: &Results) -> Option<f64> {
    results.feature_cost.as_ref().filter(|cost| cost.feature == feature).map(|cost| cost.ratio.median)
}

/// The goals for stores with many tasks.
fn large_stores(results: &Results) -> Vec<Goal> {
    let (ended, pending, dead_lane) = (results.ended.as_ref(), results.pending.as_ref(), results.dead_lane.as_ref());
    vec![
        goal(
            "life cycles/s of the store with 5 million tasks / empty",
            "≥ 0.80",
            ended.map(|ended| (ended.store_ratio.median, format!("{:.2}", ended.store_ratio.median))),
            at_least(0.80),
        )
        .only_with(5_000_000, ended.map(|ended| ended.tasks)),
        goal(
            "10 million pending: resident memory",
            "≤ 1 GiB",
            pending.map(|pending| {
                (pending.peak_rss_bytes as f64, format!("{:.0} MiB", pending.peak_rss_bytes as f64 / MIB))
            }),
            |value| value <= 1024.0 * MIB,
        )
        .only_with(10_000_000, pending.map(|pending| pending.tasks)),
        goal(
            "10 million pending: from start to the first send",
            "≤ 5 s",
            pending.map(|pending| (pending.first_send_seconds, format!("{:.2} s", pending.first_send_seconds))),
            |value| value <= 5.0,
        )
        .only_with(10_000_000, pending.map(|pending| pending.tasks)),
        goal(
            "beside a dead lane with 1 million due tasks / without",
            "≥ 0.90",
            dead_lane.map(|lane| (lane.ratio.median, format!("{:.2}", lane.ratio.median))),
            at_least(0.90),
        )
        .only_with(1_000_000, dead_lane.map(|lane| lane.tasks)),
    ]
}

fn idle(results: &Results) -> Vec<Goal> {
    vec![
        goal(
            "idle: part of a core",
            "< 1 %",
            results.idle.as_ref().map(|idle| {
                let text = format!("{:.2} %, {:.1} wake-ups/s", idle.core * 100.0, idle.wakeups_per_second);
                (idle.core, text)
            }),
            |value| value < 0.01,
        ),
        goal(
            "idle on postgres: queries per second and node",
            "< 2",
            results
                .idle
                .as_ref()
                .and_then(|idle| idle.transactions_per_second)
                .map(|rate| (rate, format!("{rate:.2}"))),
            |value| value < 2.0,
        ),
    ]
}

/// Judged only at half of the top rate, not at a given rate.
fn due_to_wire(measured: Option<&DueToWire>) -> Goal {
    let (text, limit) = match measured {
        Some(measured) if measured.store == "postgres" => ("≤ 10 ms", 10.0),
        _ => ("≤ 5 ms", 5.0),
    };
    let p99 = measured.filter(|measured| measured.top_rate.is_some()).map(|measured| {
        let p99 = measured.delayed.p99_us as f64 / 1e3;
        (p99, format!("{p99:.1} ms"))
    });
    goal("due → on the wire at half the top rate of delayed tasks, p99", text, p99, |value| value <= limit)
}

/// A goal, judged by the measured figure, if there is one.
pub fn goal(
    what: impl Into<String>,
    goal: &'static str,
    measured: Option<(f64, String)>,
    is_reached: impl FnOnce(f64) -> bool,
) -> Goal {
    let (value, measured) = measured.unzip();
    Goal { what: what.into(), goal, measured, reached: value.map(is_reached) }
}

impl Goal {
    /// Leaves the goal unjudged if there were fewer tasks than it requires.
    fn only_with(mut self, tasks: u64, measured_with: Option<u64>) -> Self {
        if let Some(fewer) = measured_with.filter(|&measured_with| measured_with < tasks) {
            self.reached = None;
            self.measured = self.measured.map(|measured| format!("{measured} (with only {fewer} tasks)"));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Latency;

    #[test]
    fn due_to_wire_has_the_goal_of_its_store_and_is_judged_at_half_the_top_rate_only() {
        let measured = |store: &str, p99_us, top_rate| DueToWire {
            store: store.to_owned(),
            rate: 100.0,
            top_rate,
            early: 0,
            delayed: Latency { p99_us, ..Latency::default() },
            at_once: Latency::default(),
            submit: Latency::default(),
        };
        // store, p99 in µs, top rate, reached
        for (store, p99_us, top, reached) in [
            ("sqlite", 5_000, Some(200.0), Some(true)),
            ("sqlite", 5_001, Some(200.0), Some(false)),
            ("postgres", 10_000, Some(200.0), Some(true)),
            ("postgres", 10_001, Some(200.0), Some(false)),
            ("sqlite", 1_000, None, None),
        ] {
            assert_eq!(due_to_wire(Some(&measured(store, p99_us, top))).reached, reached, "{store}, {p99_us} µs");
        }
    }

    #[test]
    fn a_goal_is_judged_only_at_its_size() {
        let measured = || goal("what", "≥ 0.80", Some((0.9, "0.90".to_owned())), |value| value >= 0.8);
        assert_eq!(measured().only_with(5, Some(5)).reached, Some(true));
        let smaller = measured().only_with(5, Some(4));
        assert_eq!((smaller.reached, smaller.measured.as_deref()), (None, Some("0.90 (with only 4 tasks)")));
    }
}
