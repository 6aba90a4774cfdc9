//! The engine's settings, each with a bound and a reason.

use std::time::Duration;

use redrive_core::guards;
use redrive_core::trace::{Propagators, Sampler};

/// The engine's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The most attempts at once for one lane: the load on a dependency from one tenant.
    pub lane_concurrency: usize,
    /// The most attempts at once in all.
    pub max_in_flight: usize,
    /// The most bytes of bodies in memory, of all claimed tasks.
    pub max_body_bytes: usize,
    /// How much longer than the attempt's timeout a lease lasts: the time to settle the attempt.
    pub lease_margin: Duration,
    /// How long attempts in flight may take to finish when the process stops.
    pub shutdown_grace: Duration,
    /// How long an ended task is kept; its idempotency key is remembered as long.
    pub retention: Duration,
    /// How often ended tasks are removed, and stored bodies that no task refers to.
    pub clean_every: Duration,
    /// How long a stored body is kept that no task refers to: the time from an upload to the submission that uses it.
    pub blob_grace: Duration,
    /// How often expired leases are looked for.
    pub rescue_every: Duration,
    /// How often a shared store is read for work that other processes left, and for what operators set through them. Not
    /// used on an exclusive store.
    pub look_around_every: Duration,
    /// How often this process sends a heartbeat to the others over a shared store. Not used on an exclusive store.
    pub beat_every: Duration,
    /// What the heartbeat contains about this process.
    pub presence: Presence,
    /// How much each loop takes in one step.
    pub steps: Steps,
    /// The guards of every lane.
    pub guards: guards::Settings,
    /// What is logged of attempts.
    pub log: LogOptions,
    /// What dependencies are told of traces.
    pub traces: TraceOptions,
}

/// What dependencies are told of traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceOptions {
    /// Whether attempts say which trace they belong to.
    pub propagators: Propagators,
    /// Decides which of them say that their trace is recorded.
    pub sampler: Sampler,
}

impl Default for TraceOptions {
    fn default() -> Self {
        TraceOptions { propagators: Propagators::default(), sampler: Sampler::OFF }
    }
}

/// What is logged of attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// The level of first attempts that succeed; retries and attempts that fail are logged at `info`.
    pub successes: SuccessLevel,
    /// Whether idempotency keys are logged, or a hash of each.
    pub hashes_keys: bool,
}

/// The level at which first attempts that succeed are logged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SuccessLevel {
    /// Like attempts that fail.
    Info,
    /// Only if the log shows details.
    #[default]
    Debug,
}

/// What a heartbeat contains about this process, for people to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Presence {
    /// The program's version.
    pub version: String,
    /// The address of its API.
    pub address: String,
}

/// How much each loop takes in one step. These are bounds on memory and on the duration of a single call, not tuning
/// parameters. They are settings so that a simulation can make them small and reach the second page of everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    /// The most tasks that a lane gets in one turn.
    pub turn: usize,
    /// The most tasks that one claim takes.
    pub claim: usize,
    /// The most lanes in one claim. Each costs a read of the store's index, whatever it finds.
    pub lanes_per_claim: usize,
    /// The most tasks of a lane that are claimed ahead of a slot.
    pub ahead: usize,
    /// The most tasks past their deadline that are ended at once.
    pub overdue: usize,
    /// The most leases that the rescuer reads at once, beside those of attempts that its own process still works on.
    pub rescue: usize,
    /// The most lanes that a rebuild of the schedule reads at once.
    pub rebuild: usize,
    /// The most rows that the cleaner reads in one step.
    pub clean: usize,
    /// The most alerts that are confirmed, or looked for, at once.
    pub announce: usize,
    /// The most alerts that wait for their confirmation. An alert that does not fit is found by the next look.
    pub unconfirmed: usize,
}

impl Default for Steps {
    fn default() -> Self {
        Steps {
            turn: 256,
            claim: 1_024,
            lanes_per_claim: 256,
            ahead: 256,
            overdue: 256,
            rescue: 256,
            rebuild: 1_000,
            clean: 500,
            announce: 500,
            unconfirmed: 10_000,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            lane_concurrency: 128,
            max_in_flight: 4_096,
            max_body_bytes: 256 * 1024 * 1024,
            lease_margin: Duration::from_secs(15),
            shutdown_grace: Duration::from_secs(10),
            retention: Duration::from_secs(7 * 24 * 3600),
            clean_every: Duration::from_secs(600),
            blob_grace: Duration::from_secs(24 * 3600),
            rescue_every: Duration::from_secs(5),
            look_around_every: Duration::from_secs(5),
            beat_every: Duration::from_secs(5),
            presence: Presence::default(),
            steps: Steps::default(),
            guards: guards::Settings::default(),
            log: LogOptions::default(),
            traces: TraceOptions::default(),
        }
    }
}

/// A setting that is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} {problem}")]
pub struct InvalidOption {
    /// The field of [`Options`].
    pub name: &'static str,
    /// What is wrong with it and what would be valid.
    pub problem: String,
}

impl Options {
    /// The least memory for bodies: the largest body that a task may have, in each of the pools that lanes share.
    pub const MIN_BODY_BYTES: usize = 16 * 1024 * 1024;
    /// The shortest lease margin: a settle on a slow disk must not lose its lease.
    pub const MIN_LEASE_MARGIN: Duration = Duration::from_secs(1);
    /// The shortest retention: idempotency keys must be remembered for a day at least (rule R-6).
    pub const MIN_RETENTION: Duration = Duration::from_secs(24 * 3600);

    /// Every invalid setting.
    pub fn problems(&self) -> Vec<InvalidOption> {
        let mut problems = Vec::new();
        let mut refuse = |name, problem: String| problems.push(InvalidOption { name, problem });
        if self.lane_concurrency == 0 {
            refuse("lane_concurrency", "must be at least 1: with no room nothing is ever sent".into());
        }
        if self.max_in_flight < self.lane_concurrency {
            refuse(
                "max_in_flight",
                format!("must be at least lane_concurrency ({}), got {}", self.lane_concurrency, self.max_in_flight),
            );
        }
        if self.max_body_bytes < Self::MIN_BODY_BYTES {
            refuse("max_body_bytes", format!("must be at least {}, got {}", Self::MIN_BODY_BYTES, self.max_body_bytes));
        }
        if self.lease_margin < Self::MIN_LEASE_MARGIN {
            refuse(
                "lease_margin",
                format!(
                    "must be at least {:?}, got {:?}: a lease has to outlast the attempt, or a slow attempt is sent again",
                    Self::MIN_LEASE_MARGIN,
                    self.lease_margin
                ),
            );
        }
        if self.retention < Self::MIN_RETENTION {
            refuse(
                "retention",
                format!("must be at least {:?}: idempotency keys are remembered as long", Self::MIN_RETENTION),
            );
        }
        let Steps { turn, claim, lanes_per_claim, ahead, overdue, rescue, rebuild, clean, announce, unconfirmed } =
            self.steps;
        let steps = [turn, claim, lanes_per_claim, ahead, overdue, rescue, rebuild, clean, announce, unconfirmed];
        if steps.contains(&0) {
            refuse("steps", "must each be at least 1: a step that takes nothing never comes to an end".into());
        }
        for (name, every) in [
            ("clean_every", self.clean_every),
            ("rescue_every", self.rescue_every),
            ("look_around_every", self.look_around_every),
            ("beat_every", self.beat_every),
        ] {
            if every < Duration::from_millis(10) {
                refuse(name, format!("must be at least 10ms, got {every:?}"));
            }
        }
        problems
    }

    /// Returns the first invalid setting as an error.
    pub fn validate(&self) -> Result<(), InvalidOption> {
        self.problems().into_iter().next().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_make_sense() {
        assert_eq!(Options::default().problems(), []);
    }

    #[test]
    fn invalid_options_are_named() {
        let wrong = Options {
            lane_concurrency: 0,
            lease_margin: Duration::ZERO,
            retention: Duration::from_secs(3600),
            rescue_every: Duration::ZERO,
            steps: Steps { rescue: 0, ..Steps::default() },
            ..Options::default()
        };
        let names: Vec<_> = wrong.problems().into_iter().map(|problem| problem.name).collect();
        assert_eq!(names, ["lane_concurrency", "lease_margin", "retention", "steps", "rescue_every"]);
        let crowded = Options { lane_concurrency: 10, max_in_flight: 9, ..Options::default() };
        assert_eq!(crowded.validate().unwrap_err().name, "max_in_flight");
    }
}
