//! The options of `cargo xtask bench neighbours`.

use std::time::Duration;

use clap::Args;

use super::super::options::{Schedule, Store};
use super::super::world::Setup;
use super::kind::Kind;

/// The longest time that one arm of a round takes beside its measured seconds: start, backlog, drains.
const ARM_LIMIT: Duration = Duration::from_secs(90);

/// The options of `cargo xtask bench neighbours`.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// The store
    #[arg(long, value_enum, default_value_t = Store::Sqlite)]
    pub store: Store,
    /// With --store postgres: keep the schedule in Redis; a Redis server is started for it
    #[arg(long, value_enum)]
    pub schedule: Option<Schedule>,
    /// Measure these kinds of bad dependencies only
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KIND,…")]
    pub kind: Vec<Kind>,
    /// Measure these numbers of bad dependencies only [default: 40; slow, silent and dns also 300 and 1000]
    #[arg(long, value_delimiter = ',', value_name = "N,…", value_parser = clap::value_parser!(u16).range(1..=5_000))]
    pub count: Vec<u16>,
    /// Measure only 20,000 healthy tasks that are due at one moment, in 1, 100, 10,000 and 20,000 lanes
    #[arg(long, conflicts_with_all = ["kind", "count"])]
    pub burst: bool,
    /// Also measure beside the bad dependencies with all guards off; the burst is left out
    #[arg(long, conflicts_with = "burst")]
    pub compare_guards: bool,
    /// Rounds; in each, the healthy lanes are measured once alone and once beside the bad dependencies
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub rounds: u8,
    /// How long each of the two measurements of a round lasts
    #[arg(long, default_value_t = 4.0, value_name = "SECONDS")]
    pub seconds: f64,
    /// How long the healthy lanes are loaded before that, without measuring
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    pub warm_up: f64,
    /// How long only the bad dependencies have work before that
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
    pub settle: f64,
    /// The tasks for all bad dependencies together
    #[arg(long, default_value_t = 40_000, value_name = "TASKS")]
    pub backlog: u64,
    /// Spread the attempts of dependencies that fail at once (refuse, reset) over this time; with 0 all are due at once
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS")]
    pub spread: f64,
    /// Callers of the healthy lanes, each with one kept connection
    #[arg(long, default_value_t = 256)]
    pub callers: usize,
    /// Healthy lanes
    #[arg(long, default_value_t = 4)]
    pub lanes: usize,
    /// The size of a task's body, in bytes
    #[arg(long, default_value_t = 512, value_name = "BYTES")]
    pub body: usize,
    /// A further argument for `redrive serve`, to test a setting (repeatable)
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub serve_argument: Vec<String>,
    /// Print one JSON document on standard output; progress goes to standard error
    #[arg(long)]
    pub json: bool,
}

impl Options {
    /// The cases to measure: kinds, and how many dependencies of each.
    pub fn cases(&self) -> Vec<(Kind, usize)> {
        if self.burst {
            return Vec::new();
        }
        let kinds = Kind::ALL.into_iter().filter(|kind| self.kind.is_empty() || self.kind.contains(kind));
        kinds
            .flat_map(|kind| {
                let counts = match self.count.as_slice() {
                    [] => kind.counts().to_vec(),
                    counts => counts.iter().map(|&count| usize::from(count)).collect(),
                };
                counts.into_iter().map(move |count| (kind, count))
            })
            .collect()
    }

    /// Whether the burst is measured.
    pub fn has_burst(&self) -> bool {
        self.burst || (self.kind.is_empty() && self.count.is_empty() && !self.compare_guards)
    }

    /// The setup that the services of the run have in common.
    pub fn setup(&self) -> Setup {
        Setup { store: self.store, schedule: self.schedule, serve_arguments: self.serve_argument.clone() }
    }

    /// How long each measurement lasts.
    pub fn duration(&self) -> Duration {
        seconds(self.seconds).max(Duration::from_millis(100))
    }

    /// Longer than the whole run should take.
    pub fn time_limit(&self) -> Duration {
        let arm = ARM_LIMIT + seconds(self.warm_up) + seconds(self.settle) + self.duration() * 2;
        let arms_of_case = if self.compare_guards { 3 } else { 2 };
        let arms = (self.cases().len() * arms_of_case + 3) as u32 * u32::from(self.rounds);
        Duration::from_secs(60) + arm * arms
    }
}

/// A time from the command line.
pub fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::super::options::{Case, Options as BenchOptions};
    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        bench: BenchOptions,
    }

    fn parse(line: &str) -> Result<Options, clap::Error> {
        let line = Line::try_parse_from(["bench", "neighbours"].into_iter().chain(line.split_ascii_whitespace()))?;
        let Some(Case::Neighbours(options)) = line.bench.case else { panic!("another case") };
        Ok(options)
    }

    #[test]
    fn the_cases_are_those_of_the_goals_unless_some_are_picked() {
        let all = parse("").unwrap();
        let count = |of: usize| all.cases().iter().filter(|(_, count)| *count == of).count();
        assert_eq!((count(40), count(300), count(1_000), all.cases().len()), (6, 3, 3, 12));
        assert!(all.has_burst());
        // arguments, cases, burst
        for (line, cases, burst) in [
            ("--kind slow --count 40", vec![(Kind::Slow, 40)], false),
            ("--kind dns,reset", vec![(Kind::Reset, 40), (Kind::Dns, 40), (Kind::Dns, 300), (Kind::Dns, 1_000)], false),
            ("--kind trickle --count 7,9", vec![(Kind::Trickle, 7), (Kind::Trickle, 9)], false),
            ("--kind slow --compare-guards --count 40", vec![(Kind::Slow, 40)], false),
            ("--burst", vec![], true),
        ] {
            let options = parse(line).unwrap();
            assert_eq!((options.cases(), options.has_burst()), (cases, burst), "{line}");
        }
        assert_eq!(parse("--count 300").unwrap().cases().len(), 6, "every kind with this number");
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for line in [
            "--kind sleepy",
            "--count 0",
            "--rounds 0",
            "--burst --kind slow",
            "--burst --compare-guards",
            "--store memory",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
        let mixed = Line::try_parse_from(["bench", "--idle", "neighbours"]);
        assert!(mixed.is_err(), "options of the other measurements mean nothing here");
    }

    #[test]
    fn a_run_may_take_its_measured_time_and_more() {
        let options = parse("--kind slow --count 40 --rounds 2 --seconds 10 --warm-up 1 --settle 5").unwrap();
        assert!(options.time_limit() > Duration::from_secs(2 * (21 + 26)));
        assert_eq!(parse("--seconds -1").map(|options| options.duration()).ok(), None, "it looks like an option");
    }
}
