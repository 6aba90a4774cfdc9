//! Which traces are recorded: the samplers of OpenTelemetry.
//!
//! A decision depends on nothing but the task, so it is the same for all spans of a task, after a restart and on every node.

use super::id::TraceId;
use super::spans::trace_of;
use crate::task::Task;

/// Decides whether the spans of a task are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampler {
    /// Whether the caller's decision is followed, if the caller named a trace.
    pub follows_parent: bool,
    /// What is decided otherwise.
    pub otherwise: Undecided,
}

/// The decision about a trace whose caller has not decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undecided {
    /// All are recorded.
    Always,
    /// None is recorded.
    Never,
    /// A part of them is recorded.
    Ratio(Ratio),
}

/// A part of all traces, chosen by the last 7 bytes of a trace's id: these are random in ids of tasks, and in the ids of
/// callers that follow Level 2 of the W3C rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    /// Traces whose last 7 bytes are below this are not recorded.
    rejected_below: u64,
}

/// How many values the random part of a trace's id has.
const RANDOM_VALUES: u64 = 1 << 56;

impl Ratio {
    /// The part `ratio` of all traces; `None` unless it is from 0 to 1.
    pub fn try_new(ratio: f64) -> Option<Self> {
        let is_ratio = (0.0..=1.0).contains(&ratio);
        let rejected_below = ((1.0 - ratio) * RANDOM_VALUES as f64) as u64;
        is_ratio.then_some(Ratio { rejected_below })
    }

    /// The ratio as a number, to 12 decimal places: 0.1 is 0.1 again.
    pub fn as_f64(self) -> f64 {
        let ratio = 1.0 - self.rejected_below as f64 / RANDOM_VALUES as f64;
        (ratio * 1e12).round() / 1e12
    }

    fn has(self, trace: TraceId) -> bool {
        trace.as_u128() as u64 % RANDOM_VALUES >= self.rejected_below
    }
}

impl Sampler {
    /// Follows the caller's decision, and records nothing by itself.
    pub const OFF: Sampler = Sampler { follows_parent: true, otherwise: Undecided::Never };

    /// Follows the caller's decision, and records everything else: OpenTelemetry's default.
    pub const DEFAULT: Sampler = Sampler { follows_parent: true, otherwise: Undecided::Always };

    /// Whether the spans of this task are recorded.
    pub fn samples(&self, task: &Task) -> bool {
        match (task.trace_parent, self.otherwise) {
            (Some(parent), _) if self.follows_parent => parent.flags.is_sampled,
            (_, Undecided::Always) => true,
            (_, Undecided::Never) => false,
            (_, Undecided::Ratio(ratio)) => ratio.has(trace_of(task)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TaskId;

    fn task(flags: Option<&str>) -> Task {
        let parent = flags.map(|flags| format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}"));
        Task { trace_parent: parent.and_then(|parent| parent.parse().ok()), ..crate::task::tests::dead_letter() }
    }

    #[test]
    fn a_parents_decision_is_followed_by_the_samplers_that_say_so() {
        // follows the parent, otherwise; decided for: no parent, a parent that is not sampled, a parent that is
        for (follows_parent, otherwise, expected) in [
            (true, Undecided::Always, [true, false, true]),
            (true, Undecided::Never, [false, false, true]),
            (false, Undecided::Always, [true, true, true]),
            (false, Undecided::Never, [false, false, false]),
        ] {
            let sampler = Sampler { follows_parent, otherwise };
            let decided = [None, Some("00"), Some("01")].map(|flags| sampler.samples(&task(flags)));
            assert_eq!(decided, expected, "{sampler:?}");
        }
    }

    #[test]
    fn a_ratio_of_the_tasks_is_recorded_by_the_random_part_of_their_ids() {
        for (ratio, expected) in [(0.0, 0), (0.25, 250), (0.5, 500), (1.0, 1_000)] {
            let sampler = Sampler { follows_parent: true, otherwise: Undecided::Ratio(Ratio::try_new(ratio).unwrap()) };
            let evenly = (0..1_000).map(|n| TaskId::from_parts(7, n * (RANDOM_VALUES / 1_000)));
            let recorded = evenly.filter(|id| sampler.samples(&Task { id: *id, ..task(None) }));
            assert!(recorded.count().abs_diff(expected) <= 1, "{ratio}");
        }
        let has = |ratio, random: u64| {
            let trace = TraceId::from_u128(1 << 127 | u128::from(random)).unwrap();
            Ratio::try_new(ratio).unwrap().has(trace)
        };
        assert!(has(1.0, 0) && !has(0.0, RANDOM_VALUES - 1), "all and none, without an exception");
        assert!(has(0.5, RANDOM_VALUES / 2) && !has(0.5, RANDOM_VALUES / 2 - 1));
        for wrong in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Ratio::try_new(wrong), None);
        }
        for ratio in [0.0, 0.001, 0.01, 0.1, 0.25, 0.7, 0.999, 1.0] {
            assert_eq!(Ratio::try_new(ratio).map(Ratio::as_f64), Some(ratio));
        }
    }
}
