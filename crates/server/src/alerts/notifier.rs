//! The loop: looks at the service, and tells the sinks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redrive_core::alerts::{Alert, Change, Groups, Notification, Severity, Signal, Subject, Timing, Transition};
use redrive_core::{TenantId, Timestamp};

use super::bounded::within;
use super::delivery::{self, Fate, Sent};
use super::document::{Context, documents};
use super::readings::{Observations, Readings};
use super::settings::{SinkKind, SinkSettings};
use super::silences::{self, Silence};
use super::told::{self, Told};
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

/// The longest time that a look waits for one thing that it wants to know.
const LONGEST_READ: Duration = Duration::from_secs(2);

/// The longest time that one notification may take until it is durable. It is tried again with the next look.
const LONGEST_SEND: Duration = Duration::from_secs(15);

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
    /// Whether a sink is still to be told of dead letters.
    owes_dead_letters: bool,
    /// Whether it is known what the process before told the sinks.
    is_restored: bool,
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
    /// How often what it was told was kept.
    sequence: u64,
    /// Whether what it was told is still to be kept for the process after this one.
    is_unkept: bool,
}

impl Sink {
    fn new(settings: SinkSettings, timing: Timing) -> Self {
        let most = match settings.kind {
            SinkKind::Alertmanager => REPEAT_TO_ALERTMANAGER,
            SinkKind::Webhook | SinkKind::Slack => Duration::MAX,
        };
        // The interval too: a group that keeps changing is not repeated.
        let timing = Timing { repeat: timing.repeat.min(most), interval: timing.interval.min(most), ..timing };
        Sink { settings, timing, groups: Groups::default(), sent: BTreeMap::new(), sequence: 0, is_unkept: false }
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
            owes_dead_letters: false,
            is_restored: false,
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
        let longest = if is_alone { LOOK_WHEN_QUIET } else { LOOK_WHEN_QUIET_AND_SHARED };
        let again_at = self.sinks.iter().filter_map(|sink| sink.groups.again_at()).min();
        let wait = again_at.map_or(longest, |again_at| longest.min(again_at.since(engine.now())));
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
        self.restore().await;
        // Taken before anything is read: what is noted from here on belongs to the next look.
        let (news, dead_letters) = lock(&alerts.noted).take();
        let is_followed_up = self.follow_up().await;
        let Readings { readings, unknown } =
            self.observations.read(&self.app, &self.tenant, news, self.owes_dead_letters).await;
        let now = self.app.engine.now();
        let (transitions, firing) = {
            let mut board = lock(&alerts.board);
            let transitions = board.evaluate(&alerts.settings().rules, readings, &unknown, now);
            (transitions, board.firing().cloned().collect::<Vec<Alert>>())
        };
        for transition in &transitions {
            log(transition);
            self.app.live_events.tell_alert(transition, &self.tenant);
        }
        if !firing.is_empty() && !self.sinks.is_empty() {
            self.read_silences().await;
            self.is_leader = self.leads().await;
        }
        let mut sinks = std::mem::take(&mut self.sinks);
        // At once: one that hangs must not delay the others.
        join_all(sinks.iter_mut().map(|sink| self.tell(sink, &firing, is_flush))).await;
        self.sinks = sinks;
        // Also until it is kept: otherwise the process after this one would not tell the sink that it is over.
        let owes = |sink: &Sink| sink.groups.is_waiting(Signal::DeadLetter) || sink.is_unkept;
        self.owes_dead_letters = self.sinks.iter().any(owes);
        if !self.owes_dead_letters {
            alerts.relayed.change(|relayed| *relayed = dead_letters);
        }
        let is_told =
            |sink: &Sink| !sink.is_unkept && Signal::ALL.into_iter().all(|signal| !sink.groups.is_waiting(signal));
        let is_told = self.sinks.iter().all(is_told);
        let is_known = self.is_restored && is_followed_up;
        let is_over = firing.is_empty() && lock(&alerts.board).is_quiet() && self.observations.is_quiet();
        self.is_quiet = is_known && is_told && is_over;
    }

    /// Finds out what the process before told the sinks, so that they are told when it is over. Until the store says so, nothing
    /// is told that needs the store.
    async fn restore(&mut self) {
        if self.is_restored {
            return;
        }
        let now = self.app.engine.now();
        let reads = self.sinks.iter().map(|sink| told::read(&self.app, &sink.settings.name));
        let Some(told) = within(&self.app, LONGEST_READ, join_all(reads)).await else { return };
        let Ok(told) = told.into_iter().collect::<Result<Vec<Told>, _>>() else { return };
        self.is_restored = true;
        for (sink, told) in self.sinks.iter_mut().zip(told) {
            lock(&self.alerts.board).restore(told.firing.clone());
            sink.groups = Groups::restored(told.firing, told.is_certain, now);
            (sink.sequence, sink.sent) = (told.sequence, told.sent);
        }
    }

    /// Finds out what became of the last notifications, and has sinks told again whose notification ended undelivered. They are
    /// asked for, because another node may have delivered them, or this process before it died. Returns whether the store said it
    /// all.
    async fn follow_up(&mut self) -> bool {
        let (app, system, now) = (&self.app, &self.alerts.system, self.app.engine.now());
        for sink in &mut self.sinks {
            for (signal, sent) in sink.sent.iter_mut().filter(|(_, sent)| !sent.is_delivered) {
                let fate = within(app, LONGEST_READ, delivery::fate(app, system, sent)).await;
                match fate.unwrap_or(Fate::Unknown) {
                    Fate::Delivered => sent.is_delivered = true,
                    Fate::Lost => sink.groups.not_delivered(*signal, &sink.timing, now),
                    Fate::Open => {}
                    // The next look asks again.
                    Fate::Unknown => return false,
                }
            }
        }
        true
    }

    async fn read_silences(&mut self) {
        let engine = &self.app.engine;
        match within(&self.app, LONGEST_READ, silences::read(&self.app)).await {
            Some(Ok(silences)) => {
                engine.store_worked("reading silences");
                self.silences = silences;
            }
            // The last ones hold on. What the store does not say is logged as its outage.
            Some(Err(error)) => engine.store_failed("reading silences", &error),
            None => {}
        }
    }

    /// Whether this node is the first by name of those that are alive.
    async fn leads(&self) -> bool {
        if self.app.engine.store().is_exclusive() {
            return true;
        }
        match within(&self.app, LONGEST_READ, list_nodes(&self.app)).await {
            Some(Ok(nodes)) => {
                let first = nodes.iter().find(|node| node.state == NodeState::Alive);
                first.is_none_or(|first| first.node.id.as_str() == self.app.node)
            }
            // An outage of the store has an alert of its own.
            Some(Err(_)) | None => self.is_leader,
        }
    }

    /// Tells a sink what is due, given everything that fires.
    async fn tell(&self, sink: &mut Sink, firing: &[Alert], is_flush: bool) {
        let now = self.app.engine.now();
        let is_silenced = |alert: &Alert| self.silences.iter().any(|silence| silence.covers(alert, now));
        let is_told_elsewhere = |alert: &Alert| alert.signal.is_shared() && !self.is_leader;
        let is_withheld = |alert: &Alert| is_silenced(alert) || is_told_elsewhere(alert);
        let wanted = firing.iter().filter(|alert| sink.settings.is_told_of(alert));
        let due = sink.groups.due(wanted, is_withheld, &sink.timing, now, is_flush);
        // First what does not need the store, which may be what is slow.
        let (direct, stored): (Vec<_>, Vec<_>) = due.into_iter().partition(|one| one.signal.is_direct());
        for notification in direct {
            self.tell_one(sink, notification, now).await;
        }
        if !self.is_restored {
            return;
        }
        if !stored.is_empty() {
            sink.is_unkept = true;
            // If this process dies before it knows that the sink was told, the one after it says that it is over.
            if !self.remember(sink, &stored).await {
                return;
            }
        }
        for notification in stored {
            self.tell_one(sink, notification, now).await;
        }
        if sink.is_unkept {
            sink.is_unkept = !self.remember(sink, &[]).await;
        }
    }

    async fn tell_one(&self, sink: &mut Sink, notification: Notification, now: Timestamp) {
        let sent = within(&self.app, LONGEST_SEND, self.send(sink, &notification)).await;
        match sent.unwrap_or_else(|| Err("the store does not answer".into())) {
            Ok(()) => sink.groups.told(notification, now),
            Err(why) => tracing::warn!(
                sink = %sink.settings.name,
                rule = notification.signal.as_str(),
                error = why,
                "a notification could not be sent and is tried again"
            ),
        }
    }

    /// Keeps what the sink was told, and is about to be told, for the process after this one. Returns whether it is kept. What is
    /// not is tried again with the next look.
    async fn remember(&self, sink: &mut Sink, due: &[Notification]) -> bool {
        let about_to_fire = due.iter().flat_map(|notification| &notification.firing);
        let firing = sink.groups.told_to_fire().chain(about_to_fire).filter(|alert| !alert.signal.is_direct());
        let firing: BTreeMap<(Signal, &Subject), &Alert> =
            firing.map(|alert| ((alert.signal, &alert.subject), alert)).collect();
        let (name, sequence) = (&sink.settings.name, sink.sequence + 1);
        let written = told::write(&self.app, name, (sequence, due.is_empty()), firing.into_values(), &sink.sent);
        match within(&self.app, LONGEST_SEND, written).await {
            Some(Ok(())) => {
                sink.sequence = sequence;
                return true;
            }
            Some(Err(error)) => tracing::warn!(%error, sink = %name, "what a sink was told could not be kept"),
            None => tracing::warn!(sink = %name, "what a sink was told could not be kept in time"),
        }
        false
    }

    /// Sees to it that a notification reaches the sink: once this has succeeded, it is durable. About what may keep the store
    /// from working the sink is told directly.
    async fn send(&self, sink: &mut Sink, notification: &Notification) -> Result<(), String> {
        let (app, system, signal) = (&self.app, &self.alerts.system, notification.signal);
        let context = Context::new(&app.node, app.engine.now(), sink.timing.repeat);
        let Sink { settings, sent, .. } = sink;
        if signal.is_direct() {
            for document in documents(settings.kind, notification, &context) {
                delivery::send_directly(app, system, settings, document).await?;
            }
            return Ok(());
        }
        let before = sent.get(&signal);
        // A notification takes the place of the one before, so it says again what that one said is over. Saying it twice is
        // better than not at all.
        let unsaid = match before {
            Some(before) if !before.resolved.is_empty() && !before.is_delivered => {
                let is_delivered = delivery::fate(app, system, before).await == Fate::Delivered;
                if is_delivered { Vec::new() } else { before.resolved.clone() }
            }
            _ => Vec::new(),
        };
        let whole = notification.clone().with_resolved(unsaid);
        if whole.firing.is_empty() && whole.resolved.is_empty() {
            sent.remove(&signal);
            return Ok(());
        }
        let documents = documents(settings.kind, &whole, &context);
        let tasks = delivery::enqueue(app, system, settings, signal, documents).await?;
        // Only now: there is always one that says what fires.
        delivery::withdraw(app, system, before).await;
        sent.insert(signal, Sent { tasks, resolved: whole.resolved, is_delivered: false });
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
