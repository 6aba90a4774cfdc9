//! Alerting: who is told of dead letters in a world, and when the sinks fail.

use std::time::Duration;

use super::family::{Families, Family};
use super::fault::{Fault, Kind, Mood};
use super::shape::{Ask, Shape};
use crate::moment::Moment;
use crate::random::Random;

const SECOND: Duration = Duration::from_secs(1);

/// The share of worlds in which every rule is used. They take more time than others.
const ALL_RULES: f64 = 0.25;

/// The share of worlds with alerts in which processes die and the store fails.
const DISTURBED: f64 = 0.5;

/// How many faults each sink has per hour, and at least.
const FAULTS_PER_HOUR: f64 = 6.0;
const LEAST_FAULTS: f64 = 2.0;
const MOST_FAULTS: f64 = 40.0;

/// Who is told of alerts.
#[derive(Debug, Clone)]
pub struct Alerting {
    /// How many sinks.
    pub sinks: usize,
    /// Whether every rule is used, or only that of dead letters.
    pub has_all_rules: bool,
    /// How long the first notification of a group waits for more alerts.
    pub wait: Duration,
    /// The time between two notifications of a group that changes.
    pub interval: Duration,
}

impl Alerting {
    /// The name of the sink with this number: also that of its lane.
    pub fn sink_name(number: usize) -> String {
        format!("sink-{number}")
    }

    /// In some worlds processes die and the store fails, and little else happens: what is left behind in the moments around a
    /// notification shows.
    pub(super) fn ask(random: &mut Random, ask: &Ask) -> Ask {
        if !random.chance(DISTURBED) {
            return ask.clone();
        }
        let disturbing = [Family::Crash, Family::Stop, Family::Store].into_iter().filter(|_| random.chance(0.8));
        let families = Families::of(disturbing).and(Family::Dependency).and(Family::Alerts);
        let hours = random.duration(120 * SECOND, 1_200 * SECOND).as_secs_f64() / 3_600.0;
        Ask { families: Some(families), hours: ask.hours.or(Some(hours)), ..ask.clone() }
    }

    pub(super) fn draw(random: &mut Random) -> Self {
        Alerting {
            sinks: *random.pick(&[1, 1, 2]),
            has_all_rules: random.chance(ALL_RULES),
            wait: *random.pick(&[Duration::ZERO, 5 * SECOND, 5 * SECOND, 60 * SECOND]),
            interval: *random.pick(&[15 * SECOND, 60 * SECOND, 300 * SECOND]),
        }
    }

    /// The faults of the sinks, numbered from `first` on.
    pub(super) fn faults(&self, random: &mut Random, shape: &Shape, first: usize) -> Vec<Fault> {
        let hours = shape.trouble.as_secs_f64() / 3_600.0;
        let count = (hours * FAULTS_PER_HOUR * (0.3 + 1.4 * random.unit())).clamp(LEAST_FAULTS, MOST_FAULTS) as usize;
        (0..count)
            .map(|place| {
                let at = Moment(random.within(0..=shape.trouble.as_micros() as u64));
                let kind = Kind::Sink { sink: random.below(self.sinks), mood: *random.pick(&Mood::OF_SINKS) };
                Fault { number: first + place, at, lasts: random.duration(SECOND, 900 * SECOND), kind }
            })
            .collect()
    }
}
