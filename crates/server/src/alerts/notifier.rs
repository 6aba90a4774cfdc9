//! The loop: looks at the service, and tells the sinks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redrive_core::TenantId;
use redrive_core::alerts::{Alert, Change, Groups, Notification, Severity, Signal, Subject, Timing, Transition};

use super::delivery::{self, Sent};
use super::document::{Context, document};
use super::readings::{Observations, Readings};
use super::settings::{SinkKind, SinkSettings};
use super::silences::{self, Silence};
use super::{Alerts, lock};
use crate::app::App;
use crate::operations::{NodeState, list_nodes};

/// The time between two looks while something fires or may fire soon.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The time from the first event after a quiet time to the look: events that follow each other are one look.
const LOOK_AFTER_NEWS: Duration = Duration::from_secs(1);

/// The time between two looks while nothing happens: dead letters expire without an event.
const LOOK_WHEN_QUIET: Duration = Duration::from_secs(3_600);

/// The same over a shared store: what an operator does through another node is no event here.
const LOOK_WHEN_QUIET_AND_SHARED: Duration = Duration::from_secs(60);

/// The longest time between two notifications to an Alertmanager about what still fires: it resolves by itself what it hears
/// nothing more of.
const REPEAT_TO_ALERTMANAGER: Duration = Duration::from_secs(5 * 60);

/// Compares the service with the rules and tells the sinks, until it is dropped.
pub async fn run(app: Arc<App>) {
    let mut notifier = Notifier::new(app);
    let mut is_flush = false;
    loop {
        notifier.look(is_flush).await;
        is_flush = notifier.until_next_look().await;
    }
}

struct Notifier {
    app: Arc<App>,
    alerts: Arc<Alerts>,
    /// Whose work it looks at.
    tenant: TenantId,
    observations: Observations,
    sinks: Vec<Sink>,
    /// Those that were read last.
    silences: Vec<Silence>,
    is_quiet: bool,
    /// Whether this node tells the sinks of what all nodes see.
    is_leader: bool,
}

/// What one sink was told.
struct Sink {
    settings: SinkSettings,
    timing: Timing,
    groups: Groups,
    /// The last task for each signal.
    sent: BTreeMap<Signal, Sent>,
}

impl Sink {
    fn new(settings: SinkSettings, timing: Timing) -> Self {
        let repeat = match settings.kind {
            SinkKind::Alertmanager => timing.repeat.min(REPEAT_TO_ALERTMANAGER),
            SinkKind::Webhook | SinkKind::Slack => timing.repeat,
        };
        Sink { settings, timing: Timing { repeat, ..timing }, groups: Groups::default(), sent: BTreeMap::new() }
    }
}

impl Notifier {
    fn new(app: Arc<App>) -> Self {
        let alerts = app.alerts.clone();
        let settings = alerts.settings();
        let sinks = settings.sinks.iter().map(|sink| Sink::new(sink.clone(), settings.timing)).collect();
        let app_is_alone = app.engine.store().is_exclusive();
        Notifier {
            app,
            tenant: TenantId::default_tenant(),
            observations: Observations::default(),
            sinks,
            silences: Vec::new(),
            is_quiet: true,
            is_leader: app_is_alone,
            alerts,
        }
    }

    /// Ends when it is time to look again. Returns whether what waits is to be told at once.
    async fn until_next_look(&self) -> bool {
        let (alerts, engine) = (&self.alerts, &self.app.engine);
        // Also when events call for a look: a look reads all lanes.
        tokio::select! {
            biased;
            () = alerts.hurry.notified() => return true,
            () = engine.sleep(LOOK_EVERY) => {}
        }
        if !self.is_quiet {
            return false;
        }
        let is_alone = engine.store().is_exclusive();
        let wait = if is_alone { LOOK_WHEN_QUIET } else { LOOK_WHEN_QUIET_AND_SHARED };
        tokio::select! {
            biased;
            () = alerts.hurry.notified() => return true,
            () = alerts.changed.notified() => {}
            () = engine.sleep(wait) => return false,
        }
        tokio::select! {
            biased;
            () = alerts.hurry.notified() => true,
            () = engine.sleep(LOOK_AFTER_NEWS) => false,
        }
    }

    async fn look(&mut self, is_flush: bool) {
        let alerts = self.alerts.clone();
        // Taken before anything is read: what is noted from here on belongs to the next look.
        let (news, dead_letters) = lock(&alerts.noted).take();
        let Readings { readings, unknown } = self.observations.read(&self.app, &self.tenant, news).await;
        let now = self.app.engine.now();
        let (transitions, firing) = {
            let mut board = lock(&alerts.board);
            let transitions = board.evaluate(&alerts.settings().rules, readings, &unknown, now);
            (transitions, board.firing().cloned().collect::<Vec<Alert>>())
        };
        transitions.iter().for_each(log);
        if !firing.is_empty() && !self.sinks.is_empty() {
            self.read_silences().await;
            self.is_leader = self.leads().await;
        }
        let mut sinks = std::mem::take(&mut self.sinks);
        // At once: one that hangs must not delay the others.
        join_all(sinks.iter_mut().map(|sink| self.tell(sink, &firing, is_flush))).await;
        self.sinks = sinks;
        if !self.sinks.iter().any(|sink| sink.groups.is_waiting(Signal::DeadLetter)) {
            alerts.relayed.change(|relayed| *relayed = dead_letters);
        }
        let is_told =
            self.sinks.iter().all(|sink| Signal::ALL.into_iter().all(|signal| !sink.groups.is_waiting(signal)));
        self.is_quiet = is_told && firing.is_empty() && lock(&alerts.board).is_quiet() && self.observations.is_quiet();
        alerts.looks.change(|looks| *looks += 1);
    }

    async fn read_silences(&mut self) {
        match silences::read(&self.app).await {
            Ok(silences) => self.silences = silences,
            // The last ones hold on. What the store does not say is logged as its outage.
            Err(error) => self.app.engine.store_failed("reading silences", &error),
        }
    }

    /// Whether this node is the first by name of those that are alive.
    async fn leads(&self) -> bool {
        if self.app.engine.store().is_exclusive() {
            return true;
        }
        match list_nodes(&self.app).await {
            Ok(nodes) => {
                let first = nodes.iter().find(|node| node.state == NodeState::Alive);
                first.is_none_or(|first| first.node.id.as_str() == self.app.node)
            }
            // An outage of the store has an alert of its own.
            Err(_) => self.is_leader,
        }
    }

    /// Tells a sink what is due, given everything that fires.
    async fn tell(&self, sink: &mut Sink, firing: &[Alert], is_flush: bool) {
        let now = self.app.engine.now();
        let is_silenced = |alert: &Alert| self.silences.iter().any(|silence| silence.covers(alert, now));
        let is_told_elsewhere = |alert: &Alert| alert.signal.is_shared() && !self.is_leader;
        let wanted: Vec<&Alert> = firing
            .iter()
            .filter(|alert| sink.settings.is_told_of(alert))
            // Of what the sink knows already it is told when it is over.
            .filter(|alert| sink.groups.knows(alert) || !(is_silenced(alert) || is_told_elsewhere(alert)))
            .collect();
        for notification in sink.groups.due(wanted, &sink.timing, now, is_flush) {
            match self.send(sink, &notification).await {
                Ok(()) => sink.groups.told(notification, now),
                Err(why) => tracing::warn!(
                    sink = %sink.settings.name,
                    rule = notification.signal.as_str(),
                    error = why,
                    "a notification could not be sent and is tried again"
                ),
            }
        }
    }

    /// Sees to it that a notification reaches the sink: once this has succeeded, it is durable. About what may keep the store
    /// from working the sink is told directly.
    async fn send(&self, sink: &mut Sink, notification: &Notification) -> Result<(), String> {
        let context = Context { node: &self.app.node, now: self.app.engine.now(), repeat: sink.timing.repeat };
        let Sink { settings, sent, .. } = sink;
        if notification.signal.is_direct() {
            let document = document(settings.kind, notification, &context);
            return delivery::send_directly(&self.app, &self.alerts.system, settings, document).await.map(drop);
        }
        let before = sent.get(&notification.signal);
        let unsent = delivery::undelivered(&self.app, &self.alerts.system, before).await;
        let whole = notification.with_resolved(unsent);
        let document = document(settings.kind, &whole, &context);
        let task = delivery::enqueue(&self.app, &self.alerts.system, settings, notification.signal, document).await?;
        // Only now: there is always one that says what fires.
        delivery::withdraw(&self.app, &self.alerts.system, before).await;
        sent.insert(notification.signal, Sent { task, resolved: whole.resolved });
        Ok(())
    }
}

/// The log is told of every change.
fn log(transition: &Transition) {
    let Alert { signal, subject, severity, value, why, .. } = &transition.alert;
    let (tenant, dependency) = match subject {
        Subject::Lane(lane) => (Some(lane.tenant.as_str()), Some(lane.dependency.as_str())),
        Subject::Service => (None, None),
    };
    let (rule, urgency) = (signal.as_str(), severity.as_str());
    macro_rules! line {
        ($level:ident, $message:literal) => {
            tracing::$level!(rule, severity = urgency, tenant, dependency, value, why, $message)
        };
    }
    match (transition.change, severity) {
        (Change::Resolved, _) => line!(info, "an alert is over"),
        (Change::Fired, Severity::Info) => line!(info, "an alert fires"),
        (Change::Fired, Severity::Warning) => line!(warn, "an alert fires"),
        (Change::Fired, Severity::Critical) => line!(error, "an alert fires"),
    }
}
