//! The values of all signals now.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use redrive_core::alerts::{Reading, Rules, Signal, Subject};
use redrive_core::guards::{breaker, gone};
use redrive_core::health::{Figure, Health, Tally, Thresholds};
use redrive_core::{Dependency, Lane, Status, TaskId, TenantId, Timestamp, counted};
use redrive_engine::{LaneReport, WaitingFor};
use redrive_store::TaskQuery;

use super::bounded::within;
use super::noted::{ByLane, News};
use super::recent::Recent;
use crate::app::App;
use crate::operations::long_in_retry;

/// How long a budget counts as spent after retries last waited for it: tokens come one by one, so that at some moments nothing
/// waits.
const SPENT_FOR: Duration = Duration::from_secs(30);

/// How long before the cleaner removes them dead letters are told of.
const EXPIRING_WITHIN: Duration = Duration::from_secs(24 * 3_600);

/// How often the store is read for signals at the most.
const READ_STORE_EVERY: Duration = Duration::from_secs(60);

/// How often the store is read for dead letters that expire.
const READ_EXPIRING_EVERY: Duration = Duration::from_secs(3_600);

/// How many dead letters that expire are counted.
const MOST_EXPIRING: usize = 100;

/// The most pages of dead letters that are looked at whether they expire. Those that were accepted long ago and ended lately
/// do not.
const MOST_PAGES: usize = 20;

/// The longest time that a look waits for the store.
const LONGEST_READ: Duration = Duration::from_secs(2);

/// How many lanes are read from the engine at once: claims and attempts wait meanwhile.
const AT_ONCE: usize = 64;

/// The most lanes whose guards are read.
const MOST_LANES: usize = 10_000;

/// What is remembered from one look to the next.
#[derive(Debug, Default)]
pub(super) struct Observations {
    dead_letters: Recent,
    certificate_errors: Recent,
    undelivered: Recent,
    gone: BTreeSet<Lane>,
    /// When retries of a lane last waited for its budget.
    budget_spent: BTreeMap<Lane, Timestamp>,
    from_store: FromStore,
    store_read_at: Option<Timestamp>,
    expiring_read_at: Option<Timestamp>,
}

/// What the store said last; a part is `None` if the store did not answer.
#[derive(Debug, Default)]
struct FromStore {
    rows_set_aside: Option<u64>,
    long_in_retry: Option<Vec<(Dependency, u32)>>,
    expiring: Option<usize>,
}

/// All readings of a moment.
#[derive(Debug, Default)]
pub(super) struct Readings {
    pub(super) readings: Vec<Reading>,
    /// The signals that could not be read.
    pub(super) unknown: BTreeSet<Signal>,
}

impl Observations {
    /// Takes what happened, and reads everything else. Dead letters that are still owed to a sink are never too old.
    pub(super) async fn read(&mut self, app: &App, tenant: &TenantId, news: News, owes_dead_letters: bool) -> Readings {
        let (now, rules) = (app.engine.now(), &app.alerts.settings().rules);
        let window = |signal| rules.of(signal).window;
        self.dead_letters.add(news.dead_letters, window(Signal::DeadLetter), now, owes_dead_letters);
        self.certificate_errors.add(news.certificate_errors, window(Signal::CertificateError), now, false);
        self.undelivered.add(news.undelivered, window(Signal::SinkFailing), now, false);
        self.gone.extend(news.gone);
        let reports = lane_reports(app, tenant).await;
        self.read_store(app, tenant, &reports, now).await;
        let failing: BTreeSet<&Lane> =
            reports.iter().filter(|report| report.failing_since.is_some()).map(|report| &report.lane).collect();
        self.gone.retain(|lane| failing.contains(lane));
        let waiting = reports.iter().filter(|report| waits_for_budget(report));
        self.budget_spent.extend(waiting.map(|report| (report.lane.clone(), now)));
        self.budget_spent.retain(|_, at| now.since(*at) < SPENT_FOR);

        let mut readings = Readings::default();
        readings.recent(Signal::DeadLetter, &self.dead_letters, ("dead letter", "appeared"), rules);
        let what = ("attempt", "failed because the certificate is not trusted");
        readings.recent(Signal::CertificateError, &self.certificate_errors, what, rules);
        readings.recent(Signal::SinkFailing, &self.undelivered, ("notification", "could not be delivered"), rules);
        readings.sinks(&lane_reports(app, &app.alerts.system).await);
        readings.figures(app, tenant, now, &self.from_store);
        readings.growth(app, tenant, now);
        for report in &reports {
            readings.guards(report, self.gone.contains(&report.lane), now);
            if self.budget_spent.contains_key(&report.lane) {
                let why = "retries wait because the retry budget is spent";
                readings.add(Signal::BudgetExhausted, Subject::Lane(report.lane.clone()), 1.0, why.into());
            }
        }
        readings.service(app, &self.from_store);
        readings
    }

    /// Whether there is something that will change by time alone.
    pub(super) fn is_quiet(&self) -> bool {
        let recent = [&self.dead_letters, &self.certificate_errors, &self.undelivered];
        recent.iter().all(|recent| recent.is_empty()) && self.budget_spent.is_empty()
    }

    /// Reads the store if it is time. A store that is slow delays a look by [`LONGEST_READ`] at the most; what it does not
    /// say is unknown.
    async fn read_store(&mut self, app: &App, tenant: &TenantId, reports: &[LaneReport], now: Timestamp) {
        let is_due = |read_at: Option<Timestamp>, every| read_at.is_none_or(|read_at| now.since(read_at) >= every);
        let is_store_due = is_due(self.store_read_at, READ_STORE_EVERY);
        // Again soon after a read that failed, and while some expire: an operator may replay them.
        let every = if self.from_store.expiring == Some(0) { READ_EXPIRING_EVERY } else { READ_STORE_EVERY };
        let is_expiring_due = is_due(self.expiring_read_at, every);
        let dependencies: Vec<Dependency> = reports.iter().map(|report| report.lane.dependency.clone()).collect();
        let rows = async {
            let set_aside = within(app, LONGEST_READ, app.engine.store().health().set_aside(0)).await;
            set_aside.and_then(Result::ok).map(|set_aside| set_aside.count)
        };
        let store = async {
            if !is_store_due {
                return None;
            }
            Some(tokio::join!(rows, long_in_retry(app, tenant, &dependencies, now)))
        };
        let expiring = async {
            if !is_expiring_due {
                return None;
            }
            Some(within(app, LONGEST_READ, expiring(app, tenant, now)).await.flatten())
        };
        let (store, expiring) = tokio::join!(store, expiring);
        if let Some((rows_set_aside, counts)) = store {
            self.store_read_at = Some(now);
            self.from_store.rows_set_aside = rows_set_aside;
            self.from_store.long_in_retry = counts.map(|counts| dependencies.into_iter().zip(counts).collect());
        }
        if let Some(expiring) = expiring {
            self.expiring_read_at = Some(now);
            self.from_store.expiring = expiring;
        }
    }
}

impl Readings {
    fn add(&mut self, signal: Signal, subject: Subject, value: f64, why: String) {
        self.readings.push(Reading { signal, subject, value, why });
    }

    /// What happened in the window, such as ("dead letter", "appeared").
    fn recent(&mut self, signal: Signal, recent: &Recent, (noun, what): (&str, &str), rules: &Rules) {
        let ByLane { lanes, others } = recent.sums();
        let when = in_the_last(rules.of(signal).window);
        for (lane, count) in lanes {
            let why = format!("{} {what} {when}", counted(count, noun));
            self.add(signal, Subject::Lane(lane), count.into(), why);
        }
        if others > 0 {
            let why = format!("{} of further dependencies {what} {when}", counted(others, noun));
            self.add(signal, Subject::Service, others.into(), why);
        }
    }

    /// Sinks that do not answer with success, by the lanes of their notifications.
    fn sinks(&mut self, reports: &[LaneReport]) {
        for report in reports.iter().filter(|report| report.failing_since.is_some()) {
            let subject = Subject::Lane(report.lane.clone());
            let is_read = |reading: &Reading| reading.signal == Signal::SinkFailing && reading.subject == subject;
            if !self.readings.iter().any(is_read) {
                self.add(
                    Signal::SinkFailing,
                    subject,
                    1.0,
                    "it does not take notifications, which are tried again".into(),
                );
            }
        }
    }

    /// The figures of the health report, with the same words.
    fn figures(&mut self, app: &App, tenant: &TenantId, now: Timestamp, store: &FromStore) {
        let rules = &app.alerts.settings().rules;
        let lane = |dependency: Dependency| Subject::Lane(Lane { tenant: tenant.clone(), dependency });
        let rates = Figure::ALL.map(signal_of).into_iter().filter(|signal| signal.has_window());
        let windows: BTreeSet<Duration> = rates.map(|signal| rules.of(signal).window).collect();
        for window in windows {
            let ended = app.health.last(window, tenant, now);
            let is_wanted = |signal: Signal| signal.has_window() && rules.of(signal).window == window;
            self.judge(&app.thresholds, Subject::Service, &ended.overall, None, is_wanted);
            for (dependency, tally) in ended.dependencies {
                self.judge(&app.thresholds, lane(dependency), &tally, None, is_wanted);
            }
        }
        let Some(late) = &store.long_in_retry else {
            self.unknown.insert(Signal::LongInRetry);
            return;
        };
        let is_late = |signal| signal == Signal::LongInRetry;
        let all = late.iter().map(|(_, count)| *count).sum();
        self.judge(&app.thresholds, Subject::Service, &Tally::default(), Some(all), is_late);
        for (dependency, count) in late.iter().filter(|(_, count)| *count > 0) {
            self.judge(&app.thresholds, lane(dependency.clone()), &Tally::default(), Some(*count), is_late);
        }
    }

    fn judge(
        &mut self,
        thresholds: &Thresholds,
        subject: Subject,
        tally: &Tally,
        long_in_retry: Option<u32>,
        is_wanted: impl Fn(Signal) -> bool,
    ) {
        for figure in thresholds.judge(tally, long_in_retry) {
            let signal = signal_of(figure.figure);
            // What is silent has no reading: it is clear.
            if let (Some(value), true) = (figure.value, figure.health > Health::Silent && is_wanted(signal)) {
                self.add(signal, subject.clone(), value, figure.why);
            }
        }
    }

    fn growth(&mut self, app: &App, tenant: &TenantId, now: Timestamp) {
        let window = app.alerts.settings().rules.of(Signal::DeadLetterGrowth).window;
        let last = app.health.last(window, tenant, now);
        let all = [(Subject::Service, last.overall)].into_iter();
        let lane = |dependency| Subject::Lane(Lane { tenant: tenant.clone(), dependency });
        let each = last.dependencies.into_iter().map(|(dependency, tally)| (lane(dependency), tally));
        for (subject, tally) in all.chain(each).filter(|(_, tally)| tally.dead_letters > 0) {
            let dead_letters = counted(tally.dead_letters, "dead letter");
            let why = format!("{dead_letters} appeared {}", in_the_last(window));
            self.add(Signal::DeadLetterGrowth, subject, tally.dead_letters.into(), why);
        }
    }

    fn guards(&mut self, report: &LaneReport, has_said_gone: bool, now: Timestamp) {
        let mut flag = |signal, why: String| self.add(signal, Subject::Lane(report.lane.clone()), 1.0, why);
        match &report.breaker {
            Some(breaker::State::Open { why, .. }) => {
                flag(Signal::BreakerOpen, format!("the circuit breaker is open: {}", why.as_str()));
            }
            Some(breaker::State::Probing { .. }) => {
                flag(Signal::BreakerOpen, "the circuit breaker lets probes through".into());
            }
            Some(breaker::State::Closed) | None => {}
        }
        if let Some(pause) = &report.controls.pause {
            let reason = pause.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
            flag(Signal::DependencyPaused, format!("paused by {}{reason}", pause.by));
        }
        match report.failing_since {
            Some(_) if has_said_gone => flag(Signal::DependencyGone, "it answered 410 Gone".into()),
            Some(since) if now.since(since) >= gone::NO_SUCCESS_FOR => {
                flag(Signal::DependencyGone, "no attempt has succeeded for more than 24 hours".into());
            }
            _ => {}
        }
    }

    fn service(&mut self, app: &App, store: &FromStore) {
        let mut count = |signal: Signal, count: Option<u64>, noun: &str, why: &str| match count {
            Some(0) => {}
            Some(count) => {
                self.add(signal, Subject::Service, count as f64, format!("{} {why}", counted(count, noun)));
            }
            None => {
                self.unknown.insert(signal);
            }
        };
        let why = "of the store cannot be read by this version";
        count(Signal::RowsSetAside, store.rows_set_aside, "row", why);
        let expiring = store.expiring.map(|expiring| expiring as u64);
        let why = "or more will be removed within a day, because the retention ends";
        count(Signal::DeadLettersExpiring, expiring, "dead letter", why);
        if app.engine.is_store_failing() {
            self.add(Signal::StoreUnavailable, Subject::Service, 1.0, "calls of the store fail".into());
        }
        if !app.engine.clock_state().is_certain {
            let why = "the time is uncertain: nothing is claimed, ended or cleaned".into();
            self.add(Signal::TimeUncertain, Subject::Service, 1.0, why);
        }
    }
}

fn waits_for_budget(report: &LaneReport) -> bool {
    report.waiting.is_some_and(|waiting| waiting.what == WaitingFor::Budget)
}

/// A window, in words.
fn in_the_last(window: Duration) -> String {
    match window.as_secs().div_ceil(60) {
        1 => "in the last minute".into(),
        60 => "in the last hour".into(),
        minutes => format!("in the last {minutes} minutes"),
    }
}

/// The signal of a figure.
fn signal_of(figure: Figure) -> Signal {
    match figure {
        Figure::RetryRate => Signal::RetryRate,
        Figure::DeadLetterRate => Signal::DeadLetterRate,
        Figure::AttemptsToSuccess => Signal::AttemptsToSuccess,
        Figure::LongInRetry => Signal::LongInRetry,
        Figure::SecondAttemptSuccess => Signal::SecondAttemptSuccess,
    }
}

/// The thresholds of the health report are those of the rules: red is what an alert fires at.
pub(super) fn thresholds(rules: &Rules) -> Thresholds {
    let mut thresholds = Thresholds::default();
    for figure in Figure::ALL {
        let rule = rules.of(signal_of(figure));
        thresholds.set(figure, rule.clear, rule.fire);
    }
    thresholds
}

/// The lanes that the engine knows. Others run in between.
async fn lane_reports(app: &App, tenant: &TenantId) -> Vec<LaneReport> {
    let mut reports: Vec<LaneReport> = Vec::new();
    while reports.len() < MOST_LANES {
        let read = app.engine.lane_reports(tenant, reports.last().map(|report| &report.lane.dependency), AT_ONCE);
        let is_end = read.len() < AT_ONCE;
        reports.extend(read);
        if is_end {
            break;
        }
        tokio::task::yield_now().await;
    }
    reports
}

/// How many dead letters the cleaner will remove within a day, up to [`MOST_EXPIRING`]; `None` if the store does not answer.
async fn expiring(app: &App, tenant: &TenantId, now: Timestamp) -> Option<usize> {
    let removed_before = now.after(EXPIRING_WITHIN).before(app.engine.retention());
    let is_expiring = |ended_at: &Timestamp| *ended_at < removed_before;
    let mut count = 0;
    // A task ended after it was accepted.
    let mut below = Some(TaskId::from_parts(TaskId::first_sequence(removed_before), 0));
    for _ in 0..MOST_PAGES {
        let query = TaskQuery {
            tenant: tenant.clone(),
            statuses: vec![Status::Failed, Status::Exhausted],
            dependency: None,
            policy: None,
            labels: BTreeMap::new(),
            created_from: None,
            created_before: None,
            id_prefix: None,
            below,
            limit: MOST_EXPIRING,
        };
        let page = app.engine.store().reads().list(query).await.ok()?;
        count += page.tasks.iter().filter(|detail| detail.task.ended_at.as_ref().is_some_and(is_expiring)).count();
        below = page.next;
        if below.is_none() || count >= MOST_EXPIRING {
            break;
        }
    }
    Some(count.min(MOST_EXPIRING))
}
