//! The five figures, their thresholds, and what a value means.

use super::Tally;
use crate::counted;

/// The fewest tasks from which a rate is computed: of fewer, one bad task would be a catastrophe.
const FEWEST: u32 = 20;

/// A figure of health.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Figure {
    /// The share of tasks that took more than one attempt.
    RetryRate,
    /// The share of tasks that became dead letters.
    DeadLetterRate,
    /// The mean number of attempts of tasks that were delivered.
    AttemptsToSuccess,
    /// The number of tasks that are retried and were accepted more than 24 hours ago.
    LongInRetry,
    /// The share of retried tasks that were delivered by their second attempt.
    SecondAttemptSuccess,
}

/// What a value means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Health {
    /// Too little happened to say anything.
    Silent,
    /// The value is usual.
    Green,
    /// The value is unusual and calls for no action yet.
    Yellow,
    /// The value calls for action.
    Red,
}

/// The thresholds of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Whether low values are bad; otherwise high ones are.
    pub is_bad_when_low: bool,
    /// Values up to this one are usual.
    pub healthy: f64,
    /// Whether this value itself is usual.
    pub includes_healthy: bool,
    /// Values beyond this one call for action.
    pub alert: f64,
}

/// The thresholds of all figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds([Bounds; Figure::ALL.len()]);

/// A figure, its value and what that means.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessment {
    /// The figure.
    pub figure: Figure,
    /// Its value; `None` if there is none.
    pub value: Option<f64>,
    /// The number of tasks that the value was computed from; `None` for a figure that is a number of tasks.
    pub sample: Option<u32>,
    /// What it means.
    pub health: Health,
    /// The reason, for people.
    pub why: String,
}

impl Figure {
    /// Every figure.
    pub const ALL: [Figure; 5] = [
        Figure::RetryRate,
        Figure::DeadLetterRate,
        Figure::AttemptsToSuccess,
        Figure::LongInRetry,
        Figure::SecondAttemptSuccess,
    ];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Figure::RetryRate => "retryRate",
            Figure::DeadLetterRate => "deadLetterRate",
            Figure::AttemptsToSuccess => "attemptsToSuccess",
            Figure::LongInRetry => "longInRetry",
            Figure::SecondAttemptSuccess => "secondAttemptSuccess",
        }
    }

    /// The sums that its value is the quotient of; `None` if it is not one.
    fn quotient(self, tally: &Tally) -> Option<(u32, u32)> {
        match self {
            Figure::RetryRate => Some((tally.retried, tally.ended)),
            Figure::DeadLetterRate => Some((tally.dead_letters, tally.ended)),
            Figure::AttemptsToSuccess => Some((tally.attempts_of_delivered, tally.delivered())),
            Figure::SecondAttemptSuccess => Some((tally.delivered_by_second, tally.retried)),
            Figure::LongInRetry => None,
        }
    }

    /// What was measured, in words.
    fn measured(self, value: f64, sample: u32) -> String {
        match self {
            Figure::RetryRate => format!("{} of {sample} tasks were retried", percent(value)),
            Figure::DeadLetterRate => format!("{} of {sample} tasks became dead letters", percent(value)),
            Figure::AttemptsToSuccess => format!("{value:.2} attempts on average for {sample} delivered tasks"),
            Figure::LongInRetry if value == 1.0 => "1 task has been retried for more than 24 hours".into(),
            Figure::LongInRetry => format!("{value:.0} tasks have been retried for more than 24 hours"),
            Figure::SecondAttemptSuccess => {
                format!("{} of {sample} retried tasks were delivered by their second attempt", percent(value))
            }
        }
    }

    /// A threshold, in words.
    fn threshold(self, value: f64) -> String {
        match self {
            Figure::AttemptsToSuccess | Figure::LongInRetry => format!("{value}"),
            Figure::RetryRate | Figure::DeadLetterRate | Figure::SecondAttemptSuccess => percent(value),
        }
    }
}

impl Health {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Health::Silent => "silent",
            Health::Green => "green",
            Health::Yellow => "yellow",
            Health::Red => "red",
        }
    }
}

impl Bounds {
    /// What a value means.
    pub fn judge(&self, value: f64) -> Health {
        let is_beyond = |bound: f64| if self.is_bad_when_low { value < bound } else { value > bound };
        if is_beyond(self.alert) {
            Health::Red
        } else if is_beyond(self.healthy) || (value == self.healthy && !self.includes_healthy) {
            Health::Yellow
        } else {
            Health::Green
        }
    }

    /// The reason for a judgement, for people: what was measured, and the threshold that it passed.
    fn why(&self, figure: Figure, health: Health, measured: String) -> String {
        let (above, below) = if self.is_bad_when_low { ("below", "above") } else { ("above", "below") };
        let usual = match (self.includes_healthy, self.is_bad_when_low) {
            (false, _) => below,
            (true, false) => "up to",
            (true, true) => "at least",
        };
        match health {
            Health::Red => format!("{measured}; the alert is {above} {}", figure.threshold(self.alert)),
            Health::Yellow => format!("{measured}; usual is {usual} {}", figure.threshold(self.healthy)),
            Health::Green | Health::Silent => measured,
        }
    }
}

impl Default for Thresholds {
    /// Those of the webhook delivery guide.
    fn default() -> Self {
        let bounds = |figure| {
            let (healthy, alert) = match figure {
                Figure::RetryRate => (0.05, 0.10),
                Figure::DeadLetterRate => (0.005, 0.01),
                Figure::AttemptsToSuccess => (1.3, 2.0),
                Figure::LongInRetry => (10.0, 100.0),
                Figure::SecondAttemptSuccess => (0.80, 0.60),
            };
            // The guide has "1.0 to 1.3", and "below 5 %" and so on for the others.
            let includes_healthy = figure == Figure::AttemptsToSuccess;
            Bounds { is_bad_when_low: figure == Figure::SecondAttemptSuccess, healthy, includes_healthy, alert }
        };
        Thresholds(Figure::ALL.map(bounds))
    }
}

impl Thresholds {
    /// The thresholds of a figure.
    pub fn of(&self, figure: Figure) -> Bounds {
        self.0[figure as usize]
    }

    /// Sets up to which value a figure is usual, this value included, and beyond which it calls for action. Nothing changes if
    /// both are as they are.
    pub fn set(&mut self, figure: Figure, healthy: f64, alert: f64) {
        let bounds = &mut self.0[figure as usize];
        if (bounds.healthy, bounds.alert) != (healthy, alert) {
            *bounds = Bounds { healthy, includes_healthy: true, alert, ..*bounds };
        }
    }

    /// Judges all figures. `long_in_retry` is `None` if it could not be counted.
    pub fn judge(&self, tally: &Tally, long_in_retry: Option<u32>) -> Vec<Assessment> {
        let judge = |figure: Figure| match figure.quotient(tally) {
            Some((part, sample)) => self.rate(figure, part, sample),
            None => self.count(figure, long_in_retry),
        };
        Figure::ALL.map(judge).into()
    }

    fn rate(&self, figure: Figure, part: u32, sample: u32) -> Assessment {
        if sample < FEWEST {
            let are = if sample == 1 { "is" } else { "are" };
            let why = format!("{} {are} too few to say: at least {FEWEST} are needed", counted(sample, "task"));
            let value = (sample > 0).then(|| f64::from(part) / f64::from(sample));
            return Assessment { figure, value, sample: Some(sample), health: Health::Silent, why };
        }
        self.assess(figure, f64::from(part) / f64::from(sample), Some(sample))
    }

    fn count(&self, figure: Figure, count: Option<u32>) -> Assessment {
        match count {
            Some(count) => self.assess(figure, count.into(), None),
            None => Assessment {
                figure,
                value: None,
                sample: None,
                health: Health::Silent,
                why: "the store does not answer".into(),
            },
        }
    }

    fn assess(&self, figure: Figure, value: f64, sample: Option<u32>) -> Assessment {
        let bounds = self.of(figure);
        let health = bounds.judge(value);
        let why = bounds.why(figure, health, figure.measured(value, sample.unwrap_or_default()));
        Assessment { figure, value: Some(value), sample, health, why }
    }
}

/// A share, with the digits that matter for it.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == percent.round() { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assessed(figure: Figure, tally: Tally, long_in_retry: Option<u32>) -> Assessment {
        Thresholds::default().judge(&tally, long_in_retry).into_iter().find(|one| one.figure == figure).unwrap()
    }

    #[test]
    fn every_figure_has_the_thresholds_of_the_guide() {
        // Of 1,000 tasks or of 1,000 that count for the figure.
        let of = |ended, retried, dead_letters, attempts_of_delivered, delivered_by_second| Tally {
            ended,
            retried,
            dead_letters,
            attempts_of_delivered,
            delivered_by_second,
        };
        let retried = |retried| of(1_000, retried, 0, 1_000, retried);
        let dead = |dead| of(1_000, 0, dead, 1_000 - dead, 0);
        let attempts = |attempts| of(1_000, 1_000, 0, attempts, 1_000);
        let second = |second| of(10_000, 1_000, 0, 10_000, second);
        use Figure::*;
        use Health::*;
        for (figure, tally, health, why) in [
            (RetryRate, retried(0), Green, "0 % of 1000 tasks were retried"),
            (RetryRate, retried(49), Green, "4.9 % of 1000 tasks were retried"),
            (RetryRate, retried(50), Yellow, "5 % of 1000 tasks were retried; usual is below 5 %"),
            (RetryRate, retried(100), Yellow, "10 % of 1000 tasks were retried; usual is below 5 %"),
            (RetryRate, retried(101), Red, "10.1 % of 1000 tasks were retried; the alert is above 10 %"),
            (DeadLetterRate, dead(4), Green, "0.4 % of 1000 tasks became dead letters"),
            (DeadLetterRate, dead(5), Yellow, "0.5 % of 1000 tasks became dead letters; usual is below 0.5 %"),
            (DeadLetterRate, dead(11), Red, "1.1 % of 1000 tasks became dead letters; the alert is above 1 %"),
            (AttemptsToSuccess, attempts(1_300), Green, "1.30 attempts on average for 1000 delivered tasks"),
            (
                AttemptsToSuccess,
                attempts(1_310),
                Yellow,
                "1.31 attempts on average for 1000 delivered tasks; usual is up to 1.3",
            ),
            (
                AttemptsToSuccess,
                attempts(2_010),
                Red,
                "2.01 attempts on average for 1000 delivered tasks; the alert is above 2",
            ),
            (
                SecondAttemptSuccess,
                second(801),
                Green,
                "80.1 % of 1000 retried tasks were delivered by their second attempt",
            ),
            (
                SecondAttemptSuccess,
                second(800),
                Yellow,
                "80 % of 1000 retried tasks were delivered by their second attempt; usual is above 80 %",
            ),
            (
                SecondAttemptSuccess,
                second(599),
                Red,
                "59.9 % of 1000 retried tasks were delivered by their second attempt; the alert is below 60 %",
            ),
        ] {
            let assessment = assessed(figure, tally, Some(0));
            assert_eq!((assessment.health, assessment.why.as_str()), (health, why), "{figure:?}");
        }
        for (tasks, health, why) in [
            (9, Green, "9 tasks have been retried for more than 24 hours"),
            (10, Yellow, "10 tasks have been retried for more than 24 hours; usual is below 10"),
            (100, Yellow, "100 tasks have been retried for more than 24 hours; usual is below 10"),
            (101, Red, "101 tasks have been retried for more than 24 hours; the alert is above 100"),
        ] {
            let assessment = assessed(LongInRetry, Tally::default(), Some(tasks));
            assert_eq!((assessment.health, assessment.why.as_str()), (health, why));
        }
    }

    #[test]
    fn thresholds_that_were_set_keep_the_direction_of_their_figure() {
        use Health::*;
        let judged = |figure, (healthy, alert), value| {
            let mut thresholds = Thresholds::default();
            thresholds.set(figure, healthy, alert);
            thresholds.of(figure).judge(value)
        };
        for (figure, bounds, value, health) in [
            // Equal values have no side of their own.
            (Figure::SecondAttemptSuccess, (0.9, 0.9), 0.95, Green),
            (Figure::SecondAttemptSuccess, (0.9, 0.9), 0.9, Green),
            (Figure::SecondAttemptSuccess, (0.9, 0.9), 0.3, Red),
            (Figure::RetryRate, (0.2, 0.2), 0.2, Green),
            (Figure::RetryRate, (0.2, 0.2), 0.21, Red),
            (Figure::DeadLetterRate, (0.0, 0.0), 0.0, Green),
            (Figure::DeadLetterRate, (0.0, 0.0), 0.001, Red),
            // Those of the guide stay as the guide has them.
            (Figure::RetryRate, (0.05, 0.10), 0.05, Yellow),
        ] {
            assert_eq!(judged(figure, bounds, value), health, "{figure:?} {bounds:?} {value}");
        }
    }

    #[test]
    fn rates_of_fewer_than_twenty_tasks_are_silent() {
        for (ended, health) in [(0, Health::Silent), (19, Health::Silent), (20, Health::Red)] {
            let tally = Tally { ended, dead_letters: ended, ..Tally::default() };
            let assessment = assessed(Figure::DeadLetterRate, tally, None);
            assert_eq!(assessment.health, health, "{ended}");
            assert_eq!(assessment.value, (ended > 0).then_some(1.0));
            let attempts = assessed(Figure::AttemptsToSuccess, tally, None);
            assert_eq!((attempts.health, attempts.sample), (Health::Silent, Some(0)), "none was delivered");
        }
        assert_eq!(assessed(Figure::LongInRetry, Tally::default(), None).health, Health::Silent);
    }
}
