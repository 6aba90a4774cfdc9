//! What fires, and what has fired.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Rule, Rules, Severity, Signal};
use crate::id::Lane;
use crate::time::Timestamp;

/// The most alerts that are over and still remembered.
const MOST_PAST: usize = 500;

/// What an alert is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The service, or all dependencies together.
    Service,
    /// One dependency of a tenant.
    Lane(Lane),
}

/// The value of a signal.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The signal.
    pub signal: Signal,
    /// What it was read of.
    pub subject: Subject,
    /// The value. What is not read has the value 0, or 1 if the signal is bad when it is low.
    pub value: f64,
    /// What the value means, for people.
    pub why: String,
}

/// An alert that fires or has fired.
#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    /// What fires.
    pub signal: Signal,
    /// What it is about.
    pub subject: Subject,
    /// How urgent it is.
    pub severity: Severity,
    /// The last value that was read while it fired.
    pub value: f64,
    /// What that value means.
    pub why: String,
    /// When it began to fire.
    pub fired_at: Timestamp,
    /// When it was over.
    pub resolved_at: Option<Timestamp>,
}

/// Whether an alert began or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It began to fire.
    Fired,
    /// It is over.
    Resolved,
}

impl Change {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Change::Fired => "fired",
            Change::Resolved => "resolved",
        }
    }
}

/// An alert that began or ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    /// Which of both.
    pub change: Change,
    /// The alert.
    pub alert: Alert,
}

/// What fires, what is about to, and what has fired.
#[derive(Debug, Default)]
pub struct Board {
    watched: BTreeMap<(Signal, Subject), State>,
    past: VecDeque<Alert>,
}

#[derive(Debug)]
enum State {
    /// The value calls for an alert since this moment.
    Pending { since: Timestamp },
    /// The alert fires, and its value has been clear since that moment.
    Firing { alert: Alert, clear_since: Option<Timestamp> },
}

impl Board {
    /// Compares all readings of this moment with the rules. A signal in `unknown` could not be read: nothing changes for it.
    /// Of any other signal, a subject without a reading is clear.
    pub fn evaluate(
        &mut self,
        rules: &Rules,
        readings: Vec<Reading>,
        unknown: &BTreeSet<Signal>,
        now: Timestamp,
    ) -> Vec<Transition> {
        let mut transitions = Vec::new();
        let mut read = BTreeSet::new();
        for reading in readings.into_iter().filter(|reading| !unknown.contains(&reading.signal)) {
            let key = (reading.signal, reading.subject.clone());
            let rule = rules.of(reading.signal);
            read.insert(key.clone());
            transitions.extend(if rule.is_enabled && rule.fires_at(reading.value) {
                self.fires(key, rule, reading, now)
            } else if !rule.is_enabled || rule.clears_at(reading.value) {
                self.clears(&key, rule, now)
            } else {
                self.stays(&key, reading);
                None
            });
        }
        let is_unread = |key: &&(Signal, Subject)| !read.contains(*key) && !unknown.contains(&key.0);
        let unread: Vec<_> = self.watched.keys().filter(is_unread).cloned().collect();
        for key in unread {
            transitions.extend(self.clears(&key, rules.of(key.0), now));
        }
        transitions
    }

    /// Takes over alerts that fired in an earlier process. Those that are not read any more end after the time that their rule
    /// keeps them.
    pub fn restore(&mut self, alerts: impl IntoIterator<Item = Alert>) {
        for alert in alerts {
            let key = (alert.signal, alert.subject.clone());
            self.watched.entry(key).or_insert(State::Firing { alert, clear_since: None });
        }
    }

    /// Everything that fires, by signal.
    pub fn firing(&self) -> impl Iterator<Item = &Alert> {
        self.watched.values().filter_map(|state| match state {
            State::Firing { alert, .. } => Some(alert),
            State::Pending { .. } => None,
        })
    }

    /// What has fired and is over, newest first.
    pub fn past(&self) -> impl Iterator<Item = &Alert> {
        self.past.iter().rev()
    }

    /// Whether nothing fires or is about to.
    pub fn is_quiet(&self) -> bool {
        self.watched.is_empty()
    }

    fn fires(&mut self, key: (Signal, Subject), rule: &Rule, reading: Reading, now: Timestamp) -> Option<Transition> {
        let state = self.watched.entry(key).or_insert(State::Pending { since: now });
        match state {
            State::Firing { alert, clear_since } => {
                (alert.value, alert.why, *clear_since) = (reading.value, reading.why, None);
                None
            }
            State::Pending { since } if now.since(*since) < rule.wait => None,
            State::Pending { .. } => {
                let Reading { signal, subject, value, why } = reading;
                let severity = rule.severity;
                let alert = Alert { signal, subject, severity, value, why, fired_at: now, resolved_at: None };
                *state = State::Firing { alert: alert.clone(), clear_since: None };
                Some(Transition { change: Change::Fired, alert })
            }
        }
    }

    fn clears(&mut self, key: &(Signal, Subject), rule: &Rule, now: Timestamp) -> Option<Transition> {
        match self.watched.get_mut(key)? {
            State::Pending { .. } => {}
            State::Firing { clear_since, .. } => {
                let since = *clear_since.get_or_insert(now);
                if rule.is_enabled && now.since(since) < rule.keep {
                    return None;
                }
            }
        }
        match self.watched.remove(key)? {
            State::Pending { .. } => None,
            State::Firing { mut alert, .. } => {
                alert.resolved_at = Some(now);
                if self.past.len() >= MOST_PAST {
                    self.past.pop_front();
                }
                self.past.push_back(alert.clone());
                Some(Transition { change: Change::Resolved, alert })
            }
        }
    }

    /// The value is between both thresholds: what fires goes on, what was about to fire does not.
    fn stays(&mut self, key: &(Signal, Subject), reading: Reading) {
        match self.watched.get_mut(key) {
            Some(State::Firing { alert, clear_since }) => {
                (alert.value, alert.why, *clear_since) = (reading.value, reading.why, None);
            }
            Some(State::Pending { .. }) => {
                self.watched.remove(key);
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NONE: BTreeSet<Signal> = BTreeSet::new();

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + seconds * 1_000)
    }

    fn rate(value: f64) -> Vec<Reading> {
        vec![Reading { signal: Signal::RetryRate, subject: Subject::Service, value, why: format!("{value}") }]
    }

    /// What happens at each moment, as the second and `+` or `-`.
    fn history(rules: &Rules, steps: &[(u64, Option<f64>)]) -> Vec<String> {
        let mut board = Board::default();
        let step = |(second, value): &(u64, Option<f64>)| {
            let readings = value.map(rate).unwrap_or_default();
            let transitions = board.evaluate(rules, readings, &NONE, at(*second));
            transitions
                .into_iter()
                .map(|transition| match transition.change {
                    Change::Fired => format!("{second}+"),
                    Change::Resolved => format!("{second}-"),
                })
                .collect::<Vec<_>>()
        };
        steps.iter().flat_map(step).collect()
    }

    /// Fires above 0.10 for a minute, clears at 0.05 for a minute.
    fn rules() -> Rules {
        Rules::default()
    }

    #[test]
    fn an_alert_fires_after_its_wait_and_ends_after_its_keep() {
        let steps = |values: &[(u64, f64)]| values.iter().map(|(at, value)| (*at, Some(*value))).collect::<Vec<_>>();
        for (values, expected) in [
            (steps(&[(0, 0.2), (59, 0.2)]), vec![]),
            (steps(&[(0, 0.2), (60, 0.2)]), vec!["60+"]),
            (steps(&[(0, 0.2), (30, 0.1), (60, 0.2), (119, 0.2)]), vec![]),
            (steps(&[(0, 0.2), (60, 0.2), (70, 0.05), (129, 0.05), (130, 0.05)]), vec!["60+", "130-"]),
            // Between the thresholds it goes on, and its keep begins anew.
            (steps(&[(0, 0.2), (60, 0.2), (70, 0.05), (120, 0.08), (130, 0.05), (189, 0.05)]), vec!["60+"]),
            (steps(&[(0, 0.2), (60, 0.2), (70, 0.05), (120, 0.2), (130, 0.05), (190, 0.05)]), vec!["60+", "190-"]),
            (steps(&[(0, 0.2), (60, 0.2), (70, 0.0), (130, 0.0), (140, 0.2), (200, 0.2)]), vec!["60+", "130-", "200+"]),
        ] {
            assert_eq!(history(&rules(), &values), expected, "{values:?}");
        }
        let unread = [(0, Some(0.2)), (60, Some(0.2)), (70, None), (130, None)];
        assert_eq!(history(&rules(), &unread), ["60+", "130-"], "without a reading it is clear");
    }

    #[test]
    fn what_could_not_be_read_does_not_change() {
        let (mut board, rules) = (Board::default(), rules());
        board.evaluate(&rules, rate(0.2), &NONE, at(0));
        assert_eq!(board.evaluate(&rules, rate(0.2), &NONE, at(60)).len(), 1);
        let unknown = BTreeSet::from([Signal::RetryRate]);
        for second in [70, 10_000] {
            assert_eq!(board.evaluate(&rules, Vec::new(), &unknown, at(second)), []);
        }
        assert_eq!(board.firing().count(), 1);
        board.evaluate(&rules, Vec::new(), &NONE, at(10_010));
        assert_eq!(board.evaluate(&rules, Vec::new(), &NONE, at(10_070)).len(), 1);
        assert!(board.is_quiet());
        assert_eq!(board.past().next().unwrap().resolved_at, Some(at(10_070)));
    }

    #[test]
    fn a_rule_that_is_switched_off_ends_its_alert_at_once() {
        let (mut board, mut rules) = (Board::default(), rules());
        board.evaluate(&rules, rate(0.2), &NONE, at(0));
        board.evaluate(&rules, rate(0.2), &NONE, at(60));
        rules.set(Rule { is_enabled: false, ..*rules.of(Signal::RetryRate) });
        let ended = board.evaluate(&rules, rate(0.2), &NONE, at(61));
        assert_eq!(ended.iter().map(|one| one.change).collect::<Vec<_>>(), [Change::Resolved]);
    }

    #[test]
    fn what_an_earlier_process_saw_fire_goes_on_or_ends() {
        let (rules, alert) = (rules(), |signal| Alert {
            signal,
            subject: Subject::Service,
            severity: Severity::Warning,
            value: 1.0,
            why: String::new(),
            fired_at: at(0),
            resolved_at: None,
        });
        let mut board = Board::default();
        board.restore([alert(Signal::RetryRate), alert(Signal::BreakerOpen)]);
        assert_eq!(board.evaluate(&rules, rate(0.2), &NONE, at(100)), [], "one goes on, the other is kept for a while");
        let ended = board.evaluate(&rules, rate(0.2), &NONE, at(160));
        let ended: Vec<_> = ended.iter().map(|one| (one.change, one.alert.signal, one.alert.fired_at)).collect();
        assert_eq!(ended, [(Change::Resolved, Signal::BreakerOpen, at(0))]);
        assert_eq!(board.firing().map(|alert| alert.fired_at).collect::<Vec<_>>(), [at(0)]);
    }

    #[test]
    fn past_alerts_are_bounded() {
        let (mut board, mut rules) = (Board::default(), rules());
        let rule = Rule { wait: Duration::ZERO, keep: Duration::ZERO, ..*rules.of(Signal::RetryRate) };
        rules.set(rule);
        for second in 0..2 * MOST_PAST as u64 + 100 {
            board.evaluate(&rules, rate(if second % 2 == 0 { 0.2 } else { 0.0 }), &NONE, at(second));
        }
        assert_eq!(board.past().count(), MOST_PAST);
        let newest = board.past().next().unwrap();
        assert_eq!(newest.fired_at, at(2 * MOST_PAST as u64 + 98));
    }
}
