//! When a sink is told: the alerts of a signal are one notification.

use std::collections::{BTreeMap, BTreeSet};
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
/// others take their alerts over. Also of urgent signals.
const LONGEST_IF_PRESSING: Duration = Duration::from_secs(15);

/// The most alerts that are over in one notification.
const MOST_RESOLVED: usize = 2_000;

impl Timing {
    /// The times for a signal.
    fn of(&self, signal: Signal) -> Timing {
        let bounded = |wait: Duration| wait.min(LONGEST_IF_PRESSING);
        match signal {
            Signal::DeadLetter => Timing { wait: bounded(self.wait), interval: bounded(self.interval), ..*self },
            _ if signal.is_urgent() => Timing { wait: Duration::ZERO, interval: bounded(self.interval), ..*self },
            _ => *self,
        }
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
    /// The same, which says of these alerts too that they are over, unless it says something newer of their subjects.
    #[must_use]
    pub fn with_resolved(mut self, more: Vec<Alert>) -> Notification {
        let named: BTreeSet<Subject> =
            self.resolved.iter().chain(&self.firing).map(|alert| alert.subject.clone()).collect();
        self.resolved.extend(more.into_iter().filter(|alert| !named.contains(&alert.subject)));
        self.resolved.truncate(MOST_RESOLVED);
        self
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
    /// The last notification did not arrive: what fires is told again from this moment on.
    again_at: Option<Timestamp>,
    /// Whether it is not known what the last notification said: what fires is told in any case.
    is_uncertain: bool,
}

impl Groups {
    /// The notifications that are due, given everything that fires. Of what `is_withheld`, the sink is not told that it fires,
    /// only that it is over if it was told before. With `flush` those that would still wait are due too. A notification
    /// stays due until it was [`told`](Groups::told).
    pub fn due<'a>(
        &mut self,
        firing: impl IntoIterator<Item = &'a Alert>,
        is_withheld: impl Fn(&Alert) -> bool,
        timing: &Timing,
        now: Timestamp,
        flush: bool,
    ) -> Vec<Notification> {
        let mut by_signal: BTreeMap<Signal, Firing<'a>> = BTreeMap::new();
        for alert in firing {
            let firing = by_signal.entry(alert.signal).or_default();
            let part = if is_withheld(alert) { &mut firing.withheld } else { &mut firing.wanted };
            part.insert(&alert.subject, alert);
        }
        for signal in by_signal.keys() {
            self.0.entry(*signal).or_default();
        }
        let none = Firing::default();
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
        // What is withheld stays known: that it is over is told later.
        notification.resolved.iter().for_each(|alert| drop(group.told.remove(&alert.subject)));
        group.told.extend(notification.firing.into_iter().map(|alert| (alert.subject.clone(), alert)));
        (group.told_at, group.differs_since, group.again_at) = (Some(now), None, None);
        group.is_uncertain = false;
    }

    /// Notes that the last notification about this signal did not arrive, and will not: the next one is due after the interval.
    pub fn not_delivered(&mut self, signal: Signal, timing: &Timing, now: Timestamp) {
        self.0.entry(signal).or_default().again_at.get_or_insert(now.after(timing.interval));
    }

    /// When the first notification that did not arrive is due again.
    pub fn again_at(&self) -> Option<Timestamp> {
        self.0.values().filter_map(|group| group.again_at).min()
    }

    /// What a sink was told that it fires, of all signals.
    pub fn told_to_fire(&self) -> impl Iterator<Item = &Alert> {
        self.0.values().flat_map(|group| group.told.values())
    }

    /// The groups of a sink that an earlier process told these alerts. If it `is_certain` that it did, what still fires is not told
    /// again.
    pub fn restored(alerts: impl IntoIterator<Item = Alert>, is_certain: bool, now: Timestamp) -> Self {
        let mut groups = Groups::default();
        for alert in alerts {
            let group = groups.0.entry(alert.signal).or_default();
            (group.told_at, group.is_uncertain) = (Some(now), !is_certain);
            group.told.insert(alert.subject.clone(), alert);
        }
        groups
    }

    /// Whether a notification about this signal waits to be sent.
    pub fn is_waiting(&self, signal: Signal) -> bool {
        self.0.get(&signal).is_some_and(|group| group.differs_since.is_some())
    }
}

/// What fires of one signal.
#[derive(Default)]
struct Firing<'a> {
    /// The sink is to be told of these.
    wanted: BTreeMap<&'a Subject, &'a Alert>,
    /// Of these it is not told.
    withheld: BTreeMap<&'a Subject, &'a Alert>,
}

impl Group {
    fn is_due(&mut self, firing: &Firing<'_>, timing: &Timing, now: Timestamp, flush: bool) -> bool {
        let since_told = self.told_at.map(|told_at| now.since(told_at));
        if self.is_as_told(firing) {
            self.differs_since = None;
            let is_repeat = since_told.is_some_and(|since| since >= timing.repeat);
            let is_again = self.again_at.is_some_and(|again_at| now >= again_at);
            return is_again || (is_repeat && !firing.wanted.is_empty());
        }
        let differs_since = *self.differs_since.get_or_insert(now);
        // A group that was over is told of at once when it fires again; the interval is for one that goes on.
        let has_interval_passed = self.told.is_empty() || since_told.is_none_or(|since| since >= timing.interval);
        // That everything is over is worth no wait.
        let is_over = firing.wanted.is_empty();
        flush || is_over || (now.since(differs_since) >= timing.wait && has_interval_passed)
    }

    /// Everything that is wanted was told, and everything that was told still fires. One that ended and fired again is another.
    fn is_as_told(&self, firing: &Firing<'_>) -> bool {
        if self.is_uncertain && !firing.wanted.is_empty() {
            return false;
        }
        let is_told =
            |alert: &&Alert| self.told.get(&alert.subject).is_some_and(|told| told.fired_at == alert.fired_at);
        firing.wanted.values().all(is_told) && !self.told.values().any(|alert| firing.is_over(alert))
    }

    fn notification(&self, signal: Signal, firing: &Firing<'_>, now: Timestamp) -> Notification {
        let resolved = self.told.values().filter(|alert| firing.is_over(alert));
        Notification {
            signal,
            firing: firing.wanted.values().map(|alert| (*alert).clone()).collect(),
            resolved: resolved.map(|alert| Alert { resolved_at: Some(now), ..alert.clone() }).collect(),
        }
    }
}

impl Firing<'_> {
    /// Whether this alert does not fire any more.
    fn is_over(&self, alert: &Alert) -> bool {
        let is_same = |part: &BTreeMap<&Subject, &Alert>| {
            part.get(&alert.subject).is_some_and(|firing| firing.fired_at == alert.fired_at)
        };
        !is_same(&self.wanted) && !is_same(&self.withheld)
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
        let due = groups.due(firing, |_| false, &TIMING, at(second), false);
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
        assert_eq!(groups.due(&firing, |_| false, &TIMING, at(0), false), []);
        for second in [5, 6] {
            assert_eq!(groups.due(&firing, |_| false, &TIMING, at(second), false).len(), 2);
        }
        let due = groups.due(&firing, |_| false, &TIMING, at(7), false);
        groups.told(due.into_iter().next().unwrap(), at(7));
        assert_eq!(groups.due(&firing, |_| false, &TIMING, at(8), false).len(), 1);
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
        let whole = notification.with_resolved(vec![b.clone(), c.clone(), earlier]);
        assert_eq!((&whole.firing, &whole.resolved), (&vec![a], &vec![b, c]), "a fires again: that is newer");
        let many = (0..5_000).map(|number| alert(Signal::BreakerOpen, &format!("d{number}"), 0)).collect();
        assert_eq!(whole.with_resolved(many).resolved.len(), MOST_RESOLVED);
    }

    #[test]
    fn of_what_is_withheld_a_sink_hears_only_that_it_is_over() {
        let mut groups = Groups::default();
        let (a, b) = (alert(Signal::BreakerOpen, "a", 0), alert(Signal::BreakerOpen, "b", 0));
        let is_b = |alert: &Alert| alert.subject == b.subject;
        let both = [a.clone(), b.clone()];
        let mut told = |firing: &[Alert], is_withheld: &dyn Fn(&Alert) -> bool, second| {
            let due = groups.due(firing, is_withheld, &TIMING, at(second), false);
            let sizes: Vec<_> = due.iter().map(|one| (one.firing.len(), one.resolved.len())).collect();
            due.into_iter().for_each(|one| groups.told(one, at(second)));
            sizes
        };
        assert_eq!(told(&both, &is_b, 0), []);
        assert_eq!(told(&both, &is_b, 5), [(1, 0)], "a silence from the beginning");
        assert_eq!(told(&both, &|_| false, 305), []);
        assert_eq!(told(&both, &|_| false, 310), [(2, 0)], "the silence is over");
        assert_eq!(told(&both, &|_| true, 9_000), [], "what is silenced after it was told is not told again");
        assert_eq!(told(&both, &is_b, 9_001), [(1, 0)], "what is not silenced is");
        assert_eq!(told(std::slice::from_ref(&a), &|_| true, 9_400), [(0, 1)]);
        assert_eq!(told(&[], &|_| true, 9_800), [(0, 1)]);
    }

    #[test]
    fn what_did_not_arrive_is_told_again_after_the_interval() {
        let mut groups = Groups::default();
        let firing = [alert(Signal::BreakerOpen, "a", 0)];
        tell(&mut groups, &firing, 0);
        assert_eq!(tell(&mut groups, &firing, 5).len(), 1);
        groups.not_delivered(Signal::BreakerOpen, &TIMING, at(10));
        assert!(!groups.is_waiting(Signal::BreakerOpen), "its first notification was durable");
        assert_eq!(tell(&mut groups, &firing, 309), []);
        assert_eq!(tell(&mut groups, &firing, 310), [(names(&["a"]), vec![])]);
        assert_eq!(tell(&mut groups, &firing, 700), []);
        assert_eq!(tell(&mut groups, &[], 701), [(vec![], names(&["a"]))]);
        groups.not_delivered(Signal::BreakerOpen, &TIMING, at(702));
        assert_eq!(tell(&mut groups, &[], 1_001), []);
        assert_eq!(tell(&mut groups, &[], 1_002), [(vec![], vec![])], "what it said is added by the caller");
        assert_eq!(tell(&mut groups, &[], 9_000), []);
    }

    #[test]
    fn a_process_goes_on_from_what_the_one_before_has_told() {
        let (a, b) = (alert(Signal::BreakerOpen, "a", 0), alert(Signal::RetryRate, "b", 0));
        let mut groups = Groups::restored([a.clone(), b.clone()], true, at(100));
        assert_eq!(groups.told_to_fire().cloned().collect::<Vec<_>>(), [b.clone(), a.clone()]);
        assert_eq!(tell(&mut groups, &[a.clone(), b], 101), []);
        assert_eq!(tell(&mut groups, &[a], 102), [(vec![], names(&["b"]))]);
    }

    #[test]
    fn what_the_process_before_may_not_have_told_is_told_if_it_fires() {
        let a = alert(Signal::DeadLetter, "a", 0);
        let mut groups = Groups::restored([a.clone()], false, at(100));
        assert_eq!(tell(&mut groups, std::slice::from_ref(&a), 114), []);
        assert!(groups.is_waiting(Signal::DeadLetter), "it is owed until it is told");
        assert_eq!(tell(&mut groups, std::slice::from_ref(&a), 119), [(names(&["a"]), vec![])]);
        assert_eq!(tell(&mut groups, std::slice::from_ref(&a), 200), []);
        let mut groups = Groups::restored([a], false, at(100));
        assert_eq!(tell(&mut groups, &[], 101), [(vec![], names(&["a"]))]);
    }

    #[test]
    fn a_notification_of_the_process_before_that_did_not_arrive_is_due_again() {
        let mut groups = Groups::default();
        groups.not_delivered(Signal::BreakerOpen, &TIMING, at(0));
        assert_eq!(groups.again_at(), Some(at(300)));
        assert_eq!(tell(&mut groups, &[], 299), []);
        assert_eq!(tell(&mut groups, &[], 300), [(vec![], vec![])], "what it said is added by the caller");
        assert_eq!(groups.again_at(), None);
    }

    #[test]
    fn an_urgent_signal_waits_for_no_others() {
        for (signal, notifications) in
            [(Signal::CertificateError, 1), (Signal::StoreUnavailable, 1), (Signal::BreakerOpen, 0)]
        {
            let told = tell(&mut Groups::default(), &[alert(signal, "a", 0)], 0);
            assert_eq!(told.len(), notifications, "{signal:?}");
        }
    }

    #[test]
    fn a_flush_does_not_wait() {
        let mut groups = Groups::default();
        let firing = [alert(Signal::DeadLetter, "a", 0)];
        assert_eq!(groups.due(&firing, |_| false, &TIMING, at(0), true).len(), 1);
    }

    #[test]
    fn what_ended_before_it_was_told_is_never_told() {
        let mut groups = Groups::default();
        let firing = [alert(Signal::BreakerOpen, "a", 0)];
        assert_eq!(groups.due(&firing, |_| false, &TIMING, at(0), false), []);
        assert_eq!(groups.due(&[], |_| false, &TIMING, at(3), false), []);
        assert_eq!(groups.due(&[], |_| false, &TIMING, at(9), true), []);
    }
}
