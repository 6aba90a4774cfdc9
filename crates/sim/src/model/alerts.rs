//! Invariant 9: the sinks are told of every dead letter, at least once, whatever crashes.
//!
//! A sink is told of alerts, not of dead letters: an alert about a lane fires while the lane has dead letters of the last
//! minutes, and it is not repeated for each of them. So a dead letter is told of by an alert about its lane that was not over
//! when the dead letter ended. A sink that was away for long may hear only that such an alert is over: that tells of it too.
//!
//! | rule | reason |
//! | --- | --- |
//! | the note of a dead letter is removed only when, for every sink, a notification is stored which says that an alert about its lane fires, and none that this alert was over before the dead letter ended | a process that dies afterwards leaves nothing else that remembers it |
//! | in the end, every sink has received a notification of such an alert, or of a later one about the lane | what is stored is delivered; a sink that was away gets the newest state |
//! | that alert began soon after the dead letter where no fault can delay it, and lasted for the window of its rule where no process dies | a later dead letter of the lane must not hide one that was forgotten |
//! | in the end, a sink that was told that an alert fires was told that it is over | also by the process after the one that told it |
//! | an alert is about a lane that has had a dead letter, and never about notifications | no false alerts, and no alerts about alerts |
//! | every notification ends | sinks are well in the end |
//!
//! Notifications are tasks, so the rules about attempts, leases and guards apply to them too. A dead letter that was asked to be
//! replayed is excused: it may be at work again before its alert.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use redrive_core::{Body, Dependency, Lane, TaskId, TenantId, Timestamp};
use redrive_engine::transport::Outbound;
use redrive_server::alerts::SYSTEM_TENANT;
use redrive_store::{NewTask, RaisedAlert};
use serde::Deserialize;

use super::Model;
use super::facts::Facts;
use super::submits::inline;
use crate::moment::Moment;

/// The rule that tells of dead letters.
const DEAD_LETTER: &str = "dead-letter";
/// A rule of which no sink is told.
const LOCAL: &str = "sink-failing";
/// The rules whose notifications are sent past the store.
const DIRECT: [&str; 3] = ["store-unavailable", "time-uncertain", "part-failed"];

/// The limits of what sinks are told.
#[derive(Debug, Clone)]
pub struct AlertRules {
    /// The names of the sinks: those of their lanes.
    pub sinks: Vec<String>,
    /// How soon a notification of a dead letter is stored where no process and no store has faults.
    pub stored_within: Option<Duration>,
    /// How long an alert fires at least after its last dead letter; `None` where a process that dies, or a clock that is set,
    /// may end it.
    pub lasts: Option<Duration>,
    /// How soon a sink is told that an alert is over, once all faults are over.
    pub over_within: Duration,
}

/// What is known of dead letters, notifications and sinks.
#[derive(Debug, Default)]
pub(super) struct Alerts {
    /// The last end of each task as a dead letter.
    dead_letters: BTreeMap<TaskId, DeadLetter>,
    /// When a task of each lane last became a dead letter.
    lanes: BTreeMap<Lane, Moment>,
    notifications: BTreeMap<TaskId, StoredNotification>,
    /// The alerts about lanes that each sink was, or will be, told of.
    told: BTreeMap<(String, Lane), BTreeMap<AlertId, ToldAlert>>,
    /// Sinks that got a document which does not list all of its alerts.
    incomplete: BTreeSet<String>,
}

#[derive(Debug)]
struct DeadLetter {
    lane: Lane,
    at: Moment,
}

/// A notification that is a task.
#[derive(Debug)]
struct StoredNotification {
    at: Moment,
}

/// An alert of a node, by when it fired.
type AlertId = (String, Timestamp);

/// What a sink was told of one alert about dead letters.
#[derive(Debug, Default)]
struct ToldAlert {
    /// When a notification was first stored which says that it fires.
    fires_stored: Option<Moment>,
    over_stored: Option<Moment>,
    fires_received: Option<Moment>,
    over_received: Option<Moment>,
}

/// The document of a webhook.
#[derive(Debug, Clone, Deserialize)]
struct Document {
    rule: String,
    node: String,
    alerts: Vec<DocumentAlert>,
    omitted: usize,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DocumentAlert {
    status: String,
    tenant: Option<String>,
    dependency: Option<String>,
    value: f64,
    fired_at: u64,
}

impl Document {
    fn parse(body: &Body) -> Option<Self> {
        serde_json::from_slice(inline(body)).ok()
    }
}

impl DocumentAlert {
    fn lane(&self) -> Option<Lane> {
        let tenant = TenantId::try_new(self.tenant.as_ref()?.as_str()).ok()?;
        Some(Lane { tenant, dependency: Dependency::try_new(self.dependency.as_ref()?.as_str()).ok()? })
    }

    fn is_over(&self) -> bool {
        self.status == "resolved"
    }
}

/// Whether a task of this lane is a notification.
pub(super) fn is_of_notifications(lane: &Lane) -> bool {
    lane.tenant.as_str() == SYSTEM_TENANT
}

impl Alerts {
    /// Each alert about dead letters in a document to a sink.
    fn each_of(&mut self, sink: &str, document: &Document, mut note: impl FnMut(&mut ToldAlert, bool)) {
        if document.omitted > 0 {
            self.incomplete.insert(sink.to_owned());
        }
        for alert in document.alerts.iter().filter(|_| document.rule == DEAD_LETTER) {
            let Some(lane) = alert.lane() else { continue };
            let of_lane = self.told.entry((sink.to_owned(), lane)).or_default();
            let id = (document.node.clone(), Timestamp::from_millis(alert.fired_at));
            note(of_lane.entry(id).or_default(), alert.is_over());
        }
    }

    /// The alerts that a sink was, or will be, told of about this lane.
    fn of(&self, sink: &str, lane: &Lane) -> impl Iterator<Item = (&AlertId, &ToldAlert)> {
        self.told.get(&(sink.to_owned(), lane.clone())).into_iter().flatten()
    }

    /// Whether the sink has received a later alert of the same node about this lane: it need not hear that this one is over.
    fn is_superseded(&self, sink: &str, lane: &Lane, (node, _): &AlertId, alert: &ToldAlert) -> bool {
        let Some(over) = alert.over_stored else { return false };
        let is_later =
            |later: &ToldAlert| later.fires_stored.is_some_and(|stored| stored >= over) && later.is_received();
        self.of(sink, lane).any(|((of, _), later)| of == node && is_later(later))
    }
}

impl ToldAlert {
    /// Whether it was not over when something happened, as far as the stored notifications say.
    fn covers(&self, at: Moment) -> bool {
        self.over_stored.is_none_or(|over| over >= at)
    }

    fn is_received(&self) -> bool {
        self.fires_received.is_some() || self.over_received.is_some()
    }
}

impl Model {
    /// The store created a task. One of Redrive's own is a notification.
    pub fn stored(&mut self, new: &NewTask) {
        let (id, lane, now) = (new.task.id, &new.task.lane, self.now);
        if !is_of_notifications(lane) {
            return;
        }
        let sink = lane.dependency.as_str();
        let Some(document) = Document::parse(&new.request.body) else {
            return self.broken(9, Some(id), format!("a notification to {sink} is not a document of a webhook"));
        };
        self.says_what_is_true(id, &document);
        self.must(!DIRECT.contains(&document.rule.as_str()), 9, id, || {
            format!("a notification of {} depends on the store", document.rule)
        });
        self.alerts_told.each_of(sink, &document, |alert, is_over| {
            let stored = if is_over { &mut alert.over_stored } else { &mut alert.fires_stored };
            stored.get_or_insert(now);
        });
        let name = format!("a notification to {sink}");
        let key = new.task.idempotency_key.to_string();
        self.tasks.insert(id, Facts { name, key, created_at: new.task.created_at, ..Facts::default() });
        self.alerts_told.notifications.insert(id, StoredNotification { at: now });
    }

    /// A notification has arrived at its sink.
    pub fn sink_hears(&mut self, outbound: &Outbound) {
        let (sink, now) = (outbound.lane.dependency.as_str(), self.now);
        let Some(document) = Document::parse(&outbound.request.body) else {
            return self.broken(9, Some(outbound.task), format!("{sink} cannot read what it was sent"));
        };
        self.alerts_told.each_of(sink, &document, |alert, is_over| {
            let received = if is_over { &mut alert.over_received } else { &mut alert.fires_received };
            received.get_or_insert(now);
        });
    }

    /// Invariant 9: alerts are about what happened to other people's tasks.
    fn says_what_is_true(&mut self, id: TaskId, document: &Document) {
        let is_about_alerts = |alert: &DocumentAlert| alert.tenant.as_deref() == Some(SYSTEM_TENANT);
        let rule = &document.rule;
        self.must(rule != LOCAL && !document.alerts.iter().any(is_about_alerts), 9, id, || {
            format!("a notification of {rule} is about notifications: {document:?}")
        });
        for alert in document.alerts.iter().filter(|_| rule == DEAD_LETTER) {
            let holds =
                alert.lane().is_some_and(|lane| self.alerts_told.lanes.contains_key(&lane)) && alert.value >= 1.0;
            self.must(holds, 9, id, || format!("a sink is told of dead letters that there are not: {alert:?}"));
        }
    }

    /// A process begins to send a notification. Returns false if it is sent past the store: no task is sent then.
    pub(super) fn sends_notification(&mut self, outbound: &Outbound) -> bool {
        let (id, attempt) = (outbound.task, outbound.attempt);
        if !self.alerts_told.notifications.contains_key(&id) {
            let document = Document::parse(&outbound.request.body);
            let is_direct = document.as_ref().is_some_and(|document| DIRECT.contains(&document.rule.as_str()));
            self.must(is_direct, 9, id, || format!("a notification is sent that is not stored: {document:?}"));
            return false;
        }
        let Some(facts) = self.tasks.get(&id) else { return true };
        let last = facts.sends.iter().filter(|send| send.counts()).map(|send| send.attempt).max().unwrap_or(0);
        let (name, is_same_key) = (facts.name.clone(), facts.key == outbound.idempotency_key.as_str());
        self.must(is_same_key, 3, id, || format!("{name} was sent with another key"));
        self.must(attempt > last, 2, id, || format!("{name}: attempt {attempt} was sent after attempt {last}"));
        true
    }

    /// Whether this send is of no task.
    pub(super) fn is_direct(&self, lane: &Lane, id: TaskId) -> bool {
        is_of_notifications(lane) && !self.alerts_told.notifications.contains_key(&id)
    }

    /// The store holds this task as a dead letter from now on.
    pub(super) fn becomes_dead_letter(&mut self, lane: &Lane, id: TaskId) {
        if !is_of_notifications(lane) {
            self.alerts_told.lanes.insert(lane.clone(), self.now);
            self.alerts_told.dead_letters.insert(id, DeadLetter { lane: lane.clone(), at: self.now });
        }
    }

    /// Invariant 9: the note of a dead letter is removed only once notifications of it are stored.
    pub fn alert_confirmed(&mut self, alert: &RaisedAlert) {
        let (Some(rules), id) = (&self.rules.alerts, alert.id) else { return };
        let Some(DeadLetter { lane, at }) = self.alerts_told.dead_letters.get(&id) else { return };
        if self.may_be_replayed(id) {
            return;
        }
        let is_stored = |sink: &&String| {
            let mut alerts = self.alerts_told.of(sink, lane);
            alerts.any(|(_, alert)| alert.fires_stored.is_some() && alert.covers(*at))
        };
        let missing = rules.sinks.iter().find(|sink| !self.alerts_told.incomplete.contains(*sink) && !is_stored(sink));
        if let Some(sink) = missing {
            let what = format!("a dead letter of {lane} counts as told, and no notification to {sink} says so");
            self.broken(9, Some(id), what);
        }
    }

    fn may_be_replayed(&self, id: TaskId) -> bool {
        self.tasks.get(&id).is_some_and(|facts| facts.replays_asked > 0)
    }

    /// Invariant 9: every sink was told of every dead letter. Checked some time after all faults are over, and the last task has
    /// ended.
    pub fn sinks_were_told(&mut self, well_since: Moment) {
        let Some(rules) = self.rules.alerts.clone() else { return };
        let mut untold = Vec::new();
        for (id, DeadLetter { lane, at }) in &self.alerts_told.dead_letters {
            let is_due = at.after(self.rules.alerts_within) <= self.now;
            if !is_due || self.may_be_replayed(*id) {
                continue;
            }
            let by = match rules.stored_within {
                Some(within) => at.after(within),
                None => (*at).max(well_since).after(self.rules.alerts_within),
            };
            let until = at.after(rules.lasts.unwrap_or_default().saturating_sub(self.rules.slack));
            let is_told = |sink: &String| {
                let tells =
                    |alert: &ToldAlert| alert.covers(until) && alert.fires_stored.is_some_and(|stored| stored <= by);
                let mut alerts = self.alerts_told.of(sink, lane).filter(|(_, alert)| tells(alert));
                alerts.any(|(id, alert)| alert.is_received() || self.alerts_told.is_superseded(sink, lane, id, alert))
            };
            let is_incomplete = |sink: &String| self.alerts_told.incomplete.contains(sink);
            if let Some(sink) = rules.sinks.iter().find(|sink| !is_told(sink) && !is_incomplete(sink)) {
                untold.push((*id, format!("{sink} was not told of a dead letter of {lane} that ended at {at}")));
            }
        }
        untold.into_iter().for_each(|(id, what)| self.broken(9, Some(id), what));
    }

    /// Invariants 9 and 13: what sinks were told that it fires is over, and every notification has ended.
    pub fn sinks_heard_the_end(&mut self) {
        let Some(rules) = self.rules.alerts.clone() else { return };
        let (now, mut wrong) = (self.now, Vec::new());
        for ((sink, lane), alerts) in &self.alerts_told.told {
            let is_old = |at: &Moment| at.after(rules.over_within) <= now;
            if !self.alerts_told.lanes.get(lane).is_some_and(is_old) || self.alerts_told.incomplete.contains(sink) {
                continue;
            }
            for ((node, fired_at), alert) in alerts {
                let Some(fires) = alert.fires_received else { continue };
                let is_over_later = |((of, _), later): (&AlertId, &ToldAlert)| {
                    of == node && later.over_received.is_some_and(|over| over >= fires)
                };
                if alert.over_received.is_none() && !alerts.iter().any(is_over_later) {
                    let since = Moment::of_wall(*fired_at);
                    wrong.push(format!(
                        "{sink} was told by node {node} that {lane} fires since {since}, and nothing since"
                    ));
                }
            }
        }
        wrong.into_iter().for_each(|what| self.broken(9, None, what));
        let notifications = self.alerts_told.notifications.iter();
        let has_ended = |id: &TaskId| self.tasks.get(id).is_none_or(|facts| facts.end.is_some());
        let open =
            notifications.filter(|(_, one)| one.at.after(rules.over_within) <= now).find(|(id, _)| !has_ended(id));
        if let Some((id, one)) = open {
            let what = format!("a notification that was stored at {} never ended", one.at);
            self.broken(13, Some(*id), what);
        }
    }
}
