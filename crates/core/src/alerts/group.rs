//! When a sink is told: the alerts of a signal are one notification.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Alert, Signal, Subject};
use crate::time::Timestamp;

/// When notifications are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How long the first notification of a group waits for more alerts.
    pub wait: Duration,
    /// The time between two notifications of a group that changes.
    pub interval: Duration,
    /// The time after which a group that still fires is told again.
    pub repeat: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        Timing { wait: Duration::from_secs(5), interval: minutes(5), repeat: minutes(4 * 60) }
    }
}

/// The longest time between two notifications of dead letters: the process that ended them must have told of them before
/// others take their alerts over.
const LONGEST_FOR_DEAD_LETTERS: Duration = Duration::from_secs(15);

impl Timing {
    /// The times for a signal.
    fn of(&self, signal: Signal) -> Timing {
        if signal != Signal::DeadLetter {
            return *self;
        }
        let bounded = |wait: Duration| wait.min(LONGEST_FOR_DEAD_LETTERS);
        Timing { wait: bounded(self.wait), interval: bounded(self.interval), repeat: self.repeat }
    }
}

/// What a sink is told about one signal.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// The signal.
    pub signal: Signal,
    /// What fires now.
    pub firing: Vec<Alert>,
    /// What the sink was told of and is over.
    pub resolved: Vec<Alert>,
}

impl Notification {
    /// The same, which says of these alerts too that they are over, unless they fire or are named already.
    #[must_use]
    pub fn with_resolved(&self, more: Vec<Alert>) -> Notification {
        let mut whole = self.clone();
        for alert in more {
            let is_same = |other: &Alert| other.subject == alert.subject && other.fired_at == alert.fired_at;
            if !whole.resolved.iter().chain(&whole.firing).any(is_same) {
                whole.resolved.push(alert);
            }
        }
        whole
    }
}

/// What one sink was told.
#[derive(Debug, Default)]
pub struct Groups(BTreeMap<Signal, Group>);

#[derive(Debug, Default)]
struct Group {
    /// What fired according to the last notification.
    told: BTreeMap<Subject, Alert>,
    told_at: Option<Timestamp>,
    /// When what fires became different from what was told.
    differs_since: Option<Timestamp>,
}

impl Groups {
    /// The notifications that are due, given everything that fires and that the sink is to be told of. With `flush` those that
    /// would still wait are due too. A notification stays due until it was [`told`](Groups::told).
    pub fn due<'a>(
        &mut self,
        firing: impl IntoIterator<Item = &'a Alert>,
        timing: &Timing,
        now: Timestamp,
        flush: bool,
    ) -> Vec<Notification> {
        let mut by_signal: BTreeMap<Signal, BTreeMap<Subject, &Alert>> = BTreeMap::new();
        for alert in firing {
            by_signal.entry(alert.signal).or_default().insert(alert.subject.clone(), alert);
        }
        for signal in by_signal.keys() {
            self.0.entry(*signal).or_default();
        }
        let none = BTreeMap::new();
        let mut due = Vec::new();
        for (signal, group) in &mut self.0 {
            let firing = by_signal.get(signal).unwrap_or(&none);
            if group.is_due(firing, &timing.of(*signal), now, flush) {
                due.push(group.notification(*signal, firing, now));
            }
        }
        due
    }

    /// Notes that a notification is sure to reach the sink.
    pub fn told(&mut self, notification: Notification, now: Timestamp) {
        let group = self.0.entry(notification.signal).or_default();
        group.told = notification.firing.into_iter().map(|alert| (alert.subject.clone(), alert)).collect();
        (group.told_at, group.differs_since) = (Some(now), None);
    }

    /// Whether the sink was told that this alert fires.
    pub fn knows(&self, alert: &Alert) -> bool {
        let group = self.0.get(&alert.signal);
        let told = group.and_then(|group| group.told.get(&alert.subject));
        told.is_some_and(|told| told.fired_at == alert.fired_at)
    }

    /// Whether a notification about this signal waits to be sent.
    pub fn is_waiting(&self, signal: Signal) -> bool {
        self.0.get(&signal).is_some_and(|group| group.differs_since.is_some())
    }
}

impl Group {
    fn is_due(&mut self, firing: &BTreeMap<Subject, &Alert>, timing: &Timing, now: Timestamp, flush: bool) -> bool {
        let since_told = self.told_at.map(|told_at| now.since(told_at));
        if self.is_as_told(firing) {
            self.differs_since = None;
            return !firing.is_empty() && since_told.is_some_and(|since| since >= timing.repeat);
        }
        let differs_since = *self.differs_since.get_or_insert(now);
        // A group that was over is told of at once when it fires again; the interval is for one that goes on.
        let has_interval_passed = self.told.is_empty() || since_told.is_none_or(|since| since >= timing.interval);
        // That everything is over is worth no wait.
        let is_over = firing.is_empty();
        flush || is_over || (now.since(differs_since) >= timing.wait && has_interval_passed)
    }

    /// The same alerts: one that ended and fired again is another.
    fn is_as_told(&self, firing: &BTreeMap<Subject, &Alert>) -> bool {
        self.told.len() == firing.len()
            && self
                .told
                .iter()
                .zip(firing)
                .all(|((told, before), (subject, alert))| told == subject && before.fired_at == alert.fired_at)
    }

    fn notification(&self, signal: Signal, firing: &BTreeMap<Subject, &Alert>, now: Timestamp) -> Notification {
        let is_over = |alert: &&Alert| firing.get(&alert.subject).is_none_or(|one| one.fired_at != alert.fired_at);
        let resolved = self.told.values().filter(is_over);
        Notification {
            signal,
            firing: firing.values().map(|alert| (*alert).clone()).collect(),
            resolved: resolved.map(|alert| Alert { resolved_at: Some(now), ..alert.clone() }).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::Severity;
    use crate::id::{Dependency, Lane, TenantId};

    const TIMING: Timing =
        Timing { wait: Duration::from_secs(5), interval: Duration::from_secs(300), repeat: Duration::from_secs(4_000) };

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + seconds * 1_000)
    }

    fn alert(signal: Signal, dependency: &str, fired: u64) -> Alert {
        let lane = Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new(dependency).unwrap() };
        let (value, why) = (1.0, "because".into());
        let severity = Severity::Warning;
        Alert { signal, subject: Subject::Lane(lane), severity, value, why, fired_at: at(fired), resolved_at: None }
    }

    /// The names in each notification: what fires, and what is over.
    fn tell(groups: &mut Groups, firing: &[Alert], second: u64) -> Vec<(Vec<String>, Vec<String>)> {
        let due = groups.due(firing, &TIMING, at(second), false);
        let names = |alerts: &[Alert]| {
            let name = |alert: &Alert| match &alert.subject {
                Subject::Lane(lane) => lane.dependency.to_string(),
                Subject::Service => "service".to_owned(),
            };
            alerts.iter().map(name).collect::<Vec<_>>()
        };
        let told = due.iter().map(|one| (names(&one.firing), names(&one.resolved))).collect();
        due.into_iter().for_each(|one| groups.told(one, at(second)));
        told
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn alerts_of_one_signal_that_follow_each_other_are_one_notification() {
        let mut groups = Groups::default();
        let dead = |dependency, fired| alert(Signal::BreakerOpen, dependency, fired);
        let (a, b, c) = (dead("a", 0), dead("b", 3), dead("c", 10));
        assert_eq!(tell(&mut groups, std::slice::from_ref(&a), 0), []);
        assert!(groups.is_waiting(Signal::BreakerOpen));
        assert_eq!(tell(&mut groups, &[a.clone(), b.clone()], 4), []);
        assert_eq!(tell(&mut groups, &[a.clone(), b.clone()], 5), [(names(&["a", "b"]), vec![])]);
        assert!(!groups.is_waiting(Signal::BreakerOpen));
        // A third one waits for the interval.
        let three = [a.clone(), b.clone(), c.clone()];
        assert_eq!(tell(&mut groups, &three, 10), []);
        assert_eq!(tell(&mut groups, &three, 304), []);
        assert_eq!(tell(&mut groups, &three, 305), [(names(&["a", "b", "c"]), vec![])]);
        assert_eq!(tell(&mut groups, &three, 4_304), []);
        assert_eq!(tell(&mut groups, &three, 4_305), [(names(&["a", "b", "c"]), vec![])], "told again");
        assert_eq!(tell(&mut groups, std::slice::from_ref(&b), 4_600), []);
        assert_eq!(tell(&mut groups, std::slice::from_ref(&b), 4_605), [(names(&["b"]), names(&["a", "c"]))]);
        assert_eq!(tell(&mut groups, &[], 4_606), [(vec![], names(&["b"]))], "that it is over is told at once");
        assert_eq!(tell(&mut groups, &[], 9_999), []);
    }

    #[test]
    fn dead_letters_wait_less_than_others() {
        let mut groups = Groups::default();
        let (a, b) = (alert(Signal::DeadLetter, "a", 0), alert(Signal::DeadLetter, "b", 6));
        assert_eq!(tell(&mut groups, std::slice::from_ref(&a), 0), []);
        assert_eq!(tell(&mut groups, std::slice::from_ref(&a), 5).len(), 1);
        let both = [a, b];
        assert_eq!(tell(&mut groups, &both, 6), []);
        assert_eq!(tell(&mut groups, &both, 19), []);
        assert_eq!(tell(&mut groups, &both, 20).len(), 1);
    }

    #[test]
    fn one_that_ended_and_fired_again_is_told_as_both() {
        let mut groups = Groups::default();
        let first = alert(Signal::BreakerOpen, "a", 0);
        assert_eq!(tell(&mut groups, std::slice::from_ref(&first), 0), []);
        assert_eq!(tell(&mut groups, &[first], 5).len(), 1);
        let second = alert(Signal::BreakerOpen, "a", 100);
        assert_eq!(tell(&mut groups, std::slice::from_ref(&second), 100), []);
        assert_eq!(tell(&mut groups, &[second], 305), [(names(&["a"]), names(&["a"]))]);
    }

    #[test]
    fn a_notification_stays_due_until_it_is_told_and_signals_do_not_wait_for_each_other() {
        let mut groups = Groups::default();
        let firing = [alert(Signal::DeadLetter, "a", 0), alert(Signal::BreakerOpen, "a", 0)];
        assert_eq!(groups.due(&firing, &TIMING, at(0), false), []);
        for second in [5, 6] {
            assert_eq!(groups.due(&firing, &TIMING, at(second), false).len(), 2);
        }
        let due = groups.due(&firing, &TIMING, at(7), false);
        groups.told(due.into_iter().next().unwrap(), at(7));
        assert_eq!(groups.due(&firing, &TIMING, at(8), false).len(), 1);
    }

    #[test]
    fn what_an_undelivered_notification_said_is_over_is_said_again_once() {
        let (a, b, c) = (
            alert(Signal::BreakerOpen, "a", 0),
            alert(Signal::BreakerOpen, "b", 0),
            alert(Signal::BreakerOpen, "c", 0),
        );
        let notification =
            Notification { signal: Signal::BreakerOpen, firing: vec![a.clone()], resolved: vec![b.clone()] };
        let earlier = alert(Signal::BreakerOpen, "a", 9);
        let whole = notification.with_resolved(vec![a, b.clone(), c.clone(), earlier.clone()]);
        assert_eq!((whole.firing, whole.resolved), (notification.firing, vec![b, c, earlier]));
    }

    #[test]
    fn a_sink_knows_what_it_was_told_until_it_is_told_that_it_is_over() {
        let mut groups = Groups::default();
        let (first, second) = (alert(Signal::BreakerOpen, "a", 0), alert(Signal::BreakerOpen, "a", 7));
        assert!(!groups.knows(&first));
        tell(&mut groups, std::slice::from_ref(&first), 0);
        tell(&mut groups, std::slice::from_ref(&first), 5);
        assert_eq!((groups.knows(&first), groups.knows(&second)), (true, false));
        tell(&mut groups, &[], 6);
        assert!(!groups.knows(&first));
    }

    #[test]
    fn a_flush_does_not_wait() {
        let mut groups = Groups::default();
        let firing = [alert(Signal::DeadLetter, "a", 0)];
        assert_eq!(groups.due(&firing, &TIMING, at(0), true).len(), 1);
    }

    #[test]
    fn what_ended_before_it_was_told_is_never_told() {
        let mut groups = Groups::default();
        let firing = [alert(Signal::DeadLetter, "a", 0)];
        assert_eq!(groups.due(&firing, &TIMING, at(0), false), []);
        assert_eq!(groups.due(&[], &TIMING, at(3), false), []);
        assert_eq!(groups.due(&[], &TIMING, at(9), true), []);
    }
}
