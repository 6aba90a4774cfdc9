//! Rules: from which value on a signal fires, and when it is over.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::{Severity, Signal};

/// When a signal fires and when it is over. Two values and two times make it steady: a reading between the values changes
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// What it is about.
    pub signal: Signal,
    /// Whether it is used.
    pub is_enabled: bool,
    /// It fires at values beyond this one: above it, or below it if `clear` is above `fire`.
    pub fire: f64,
    /// It is over at this value and better ones.
    pub clear: f64,
    /// The time that the value covers, if the signal [has a window](Signal::has_window).
    pub window: Duration,
    /// How long the value must have been beyond `fire`.
    pub wait: Duration,
    /// How long the value must have been clear.
    pub keep: Duration,
    /// How urgent it is.
    pub severity: Severity,
}

/// The rules of all signals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules([Rule; Signal::ALL.len()]);

/// A rule that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRule {
    /// A dead letter must raise an alert, whatever else happens.
    #[error(
        "must fire at the first dead letter and at once: fire 0 and wait 0s (R-8); a sink's rules and severity leave it out"
    )]
    DeadLetterMustFire,
    /// A value is not a number.
    #[error("fire and clear must be finite numbers")]
    NotFinite,
    /// The window is too short or too long.
    #[error("window must be from 1 minute to 1 hour")]
    Window,
    /// The value at which it is over is on the wrong side.
    #[error("clear must be at or below fire ({0} is bad when it is high)", signal.as_str())]
    ClearAboveFire {
        /// The signal.
        signal: Signal,
    },
    /// The value at which it is over is on the wrong side.
    #[error("clear must be at or above fire ({0} is bad when it is low)", signal.as_str())]
    ClearBelowFire {
        /// The signal.
        signal: Signal,
    },
}

impl Rule {
    /// The rule of a signal if nothing else is configured.
    pub fn default_of(signal: Signal) -> Self {
        const MINUTE: Duration = Duration::from_secs(60);
        let rule = |fire: f64, clear: f64, wait: Duration, keep: Duration, severity| Rule {
            signal,
            is_enabled: true,
            fire,
            clear,
            window: default_window(signal),
            wait,
            keep,
            severity,
        };
        let now = Duration::ZERO;
        match signal {
            Signal::DeadLetter => rule(0.0, 0.0, now, now, Severity::Warning),
            Signal::DeadLetterGrowth => rule(10.0, 0.0, now, now, Severity::Critical),
            Signal::RetryRate => rule(0.10, 0.05, MINUTE, MINUTE, Severity::Warning),
            Signal::DeadLetterRate => rule(0.01, 0.005, MINUTE, MINUTE, Severity::Critical),
            Signal::AttemptsToSuccess => rule(2.0, 1.3, MINUTE, MINUTE, Severity::Warning),
            Signal::LongInRetry => rule(100.0, 10.0, MINUTE, MINUTE, Severity::Warning),
            Signal::SecondAttemptSuccess => rule(0.60, 0.80, MINUTE, MINUTE, Severity::Warning),
            // A breaker that is probed and opens again is one alert.
            Signal::BreakerOpen => rule(0.0, 0.0, now, MINUTE, Severity::Critical),
            Signal::CertificateError => rule(0.0, 0.0, now, now, Severity::Critical),
            Signal::DependencyPaused => rule(0.0, 0.0, now, now, Severity::Info),
            Signal::BudgetExhausted => rule(0.0, 0.0, 5 * MINUTE, MINUTE, Severity::Warning),
            Signal::DependencyGone => rule(0.0, 0.0, now, now, Severity::Critical),
            Signal::RowsSetAside => rule(0.0, 0.0, now, now, Severity::Critical),
            Signal::DeadLettersExpiring => rule(0.0, 0.0, now, now, Severity::Warning),
            Signal::SinkFailing => rule(0.0, 0.0, MINUTE, now, Severity::Critical),
            Signal::PartFailed => rule(0.0, 0.0, now, now, Severity::Critical),
            Signal::StoreUnavailable | Signal::TimeUncertain => {
                rule(0.0, 0.0, MINUTE / 2, MINUTE / 2, Severity::Critical)
            }
        }
    }

    /// Whether a value calls for the alert.
    pub(super) fn fires_at(&self, value: f64) -> bool {
        if self.is_bad_when_low() { value < self.fire } else { value > self.fire }
    }

    /// Whether a value ends the alert.
    pub(super) fn clears_at(&self, value: f64) -> bool {
        if self.is_bad_when_low() { value >= self.clear } else { value <= self.clear }
    }

    fn is_bad_when_low(&self) -> bool {
        self.signal.is_bad_when_low()
    }

    /// Checks the values.
    pub fn validate(&self) -> Result<(), InvalidRule> {
        if !self.fire.is_finite() || !self.clear.is_finite() {
            return Err(InvalidRule::NotFinite);
        }
        if self.signal.has_window() && !WINDOWS.contains(&self.window) {
            return Err(InvalidRule::Window);
        }
        if self.signal == Signal::DeadLetter && (self.fire != 0.0 || !self.wait.is_zero()) {
            return Err(InvalidRule::DeadLetterMustFire);
        }
        match (self.is_bad_when_low(), self.clear < self.fire, self.clear > self.fire) {
            (true, true, _) => Err(InvalidRule::ClearBelowFire { signal: self.signal }),
            (false, _, true) => Err(InvalidRule::ClearAboveFire { signal: self.signal }),
            _ => Ok(()),
        }
    }
}

/// The windows that a rule may have.
const WINDOWS: RangeInclusive<Duration> = Duration::from_secs(60)..=Duration::from_secs(3_600);

const fn default_window(signal: Signal) -> Duration {
    match signal {
        Signal::DeadLetter | Signal::CertificateError | Signal::SinkFailing => Duration::from_secs(5 * 60),
        Signal::DeadLetterGrowth => Duration::from_secs(10 * 60),
        _ if signal.has_window() => Duration::from_secs(3_600),
        _ => Duration::ZERO,
    }
}

impl Default for Rules {
    fn default() -> Self {
        Rules(Signal::ALL.map(Rule::default_of))
    }
}

impl Rules {
    /// The rule of a signal.
    pub fn of(&self, signal: Signal) -> &Rule {
        &self.0[signal as usize]
    }

    /// Replaces the rule of a signal.
    pub fn set(&mut self, rule: Rule) {
        self.0[rule.signal as usize] = rule;
    }

    /// Every rule, in the order of [`Signal::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_in_the_order_of_the_signals() {
        for (rule, signal) in Rules::default().iter().zip(Signal::ALL) {
            assert_eq!((rule.signal, rule.validate()), (signal, Ok(())));
            assert_eq!(Rules::default().of(signal), rule);
        }
    }

    #[test]
    fn clear_must_be_on_the_better_side_of_fire() {
        let rule = |signal, fire, clear| Rule { fire, clear, ..Rule::default_of(signal) }.validate();
        assert_eq!(rule(Signal::RetryRate, 0.1, 0.1), Ok(()));
        let wrong = rule(Signal::RetryRate, 0.1, 0.2).unwrap_err();
        assert_eq!(wrong.to_string(), "clear must be at or below fire (retry-rate is bad when it is high)");
        let wrong = rule(Signal::SecondAttemptSuccess, 0.6, 0.5).unwrap_err();
        assert_eq!(wrong.to_string(), "clear must be at or above fire (second-attempt-success is bad when it is low)");
        assert_eq!(rule(Signal::RetryRate, f64::NAN, 0.0), Err(InvalidRule::NotFinite));
    }

    #[test]
    fn every_dead_letter_must_raise_an_alert() {
        let rule = Rule::default_of(Signal::DeadLetter);
        for (rule, expected) in [
            (Rule { fire: 1.0, ..rule }, Err(InvalidRule::DeadLetterMustFire)),
            (Rule { wait: Duration::from_secs(1), ..rule }, Err(InvalidRule::DeadLetterMustFire)),
            (Rule { keep: Duration::from_secs(60), severity: Severity::Critical, ..rule }, Ok(())),
            (Rule { is_enabled: false, ..rule }, Ok(())),
        ] {
            assert_eq!(rule.validate(), expected, "{rule:?}");
        }
    }

    #[test]
    fn a_window_is_a_minute_to_an_hour_where_there_is_one() {
        let rule = |signal, seconds| {
            Rule { window: Duration::from_secs(seconds), ..Rule::default_of(signal) }.validate().is_ok()
        };
        for (signal, seconds, is_valid) in [
            (Signal::RetryRate, 59, false),
            (Signal::RetryRate, 60, true),
            (Signal::RetryRate, 3_600, true),
            (Signal::RetryRate, 3_601, false),
            (Signal::BreakerOpen, 0, true),
        ] {
            assert_eq!(rule(signal, seconds), is_valid, "{signal:?} over {seconds} s");
        }
    }
}
