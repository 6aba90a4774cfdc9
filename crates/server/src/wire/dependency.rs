//! A dependency as it is shown, and what operators set for it.

use std::borrow::Cow;
use std::time::Duration;

use redrive_core::guards::breaker::{OpenedBy, State};
use redrive_core::guards::{self, BudgetState, Controls, Limits, Note};
use redrive_core::{Timestamp, counted};
use redrive_engine::{LaneReport, Latencies, WaitingFor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;
use super::text::Text;
use crate::operations::BoundedBacklog;

/// A dependency: what holds its tasks back, as this node sees it. Times are epoch milliseconds; values that do not exist
/// are `null`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Dependency")]
pub struct ShownDependency<'a> {
    /// Its name.
    pub dependency: &'a str,
    /// Whether its tasks are held back, in one word.
    #[schemars(with = "schema::DependencyStateName")]
    pub state: &'static str,
    /// The reason for that, in a sentence.
    pub why: Cow<'static, str>,
    /// What its due tasks wait for.
    #[schemars(with = "Option<schema::WaitReason>")]
    pub waiting_for: Option<&'static str>,
    /// Until when, if that is known. They may be sent earlier, for example if attempts succeed.
    pub waiting_until: Option<u64>,
    /// The circuit breaker.
    pub breaker: ShownBreaker,
    /// The retry budget; `null` if it is turned off.
    pub budget: Option<ShownBudget>,
    /// Whether the latest outcomes show a healthy dependency.
    pub healthy: bool,
    /// The latest outcomes that `healthy` is decided by.
    pub recent_outcomes: RecentOutcomes,
    /// The limit of attempts in flight.
    pub concurrency: ShownConcurrency,
    /// What this node has counted since it first saw the dependency.
    pub totals: Totals,
    /// The latency of the calls of the last one or two minutes; `null` if there were none.
    pub latency_ms: Option<LatencyMs>,
    /// When the first task that has not been sent is due.
    pub first_attempt_due_at: Option<u64>,
    /// When the first retry is due.
    pub retry_due_at: Option<u64>,
    /// The first attempt that was not answered with success (2xx) since the last one that was; `null` if the latest attempt
    /// succeeded. After 24 hours the dependency seems to be gone (`pauseOnGone` of a policy).
    pub failing_since: Option<u64>,
    /// How many of its tasks are pending, on all nodes. Left out if the store does not answer at the moment, and in the
    /// answers to changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog: Option<ShownBacklog>,
    /// What operators have set.
    pub controls: ShownControls<'a>,
}

/// Whether a dependency's tasks are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DependencyState {
    /// Nothing is held back.
    Ok,
    /// An operator paused it.
    Paused,
    /// The breaker is open.
    Open,
    /// The breaker probes.
    Probing,
    /// Retries wait for the budget.
    Budget,
    /// Due tasks wait for attempts in flight.
    Busy,
}

/// The state of a circuit breaker.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Breaker")]
pub struct ShownBreaker {
    /// `closed`: calls are made; `open`: nothing is sent; `probing`: a few calls test the dependency; `off`: there is
    /// no breaker.
    #[schemars(extend("enum" = ["closed", "open", "probing", "off"]))]
    pub state: &'static str,
    /// When it begins to probe; `null` if it is not open, or open until an operator closes it.
    pub open_until: Option<u64>,
    /// Why it opened; `null` if it is closed.
    #[schemars(with = "Option<schema::BreakerReason>")]
    pub reason: Option<&'static str>,
}

/// The state of a retry budget, over its window.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RetryBudget")]
pub struct ShownBudget {
    /// First attempts.
    pub first_attempts: u64,
    /// Retries that are in flight or did not succeed. They count against the budget.
    pub retries: u64,
    /// Retries that succeeded while the dependency was healthy. They count like first attempts.
    pub refunded: u64,
    /// How many retries may be sent now.
    pub left: u64,
    /// The part of the budget that is used: 0 is nothing, 1 is all of it.
    pub utilization: f64,
    /// The length of the window, in milliseconds.
    pub window_ms: u64,
}

/// How many tasks of a dependency are pending. Each number is counted up to a bound only, because a dependency may have
/// millions of tasks.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Backlog")]
pub struct ShownBacklog {
    /// Tasks that are due: a guard holds them back, or they are about to be sent.
    pub due: u32,
    /// Tasks that are due later, for example after their backoff.
    pub waiting: u32,
    /// The bound: `due` and `waiting` stop at it, so a number that is equal to it may be larger. 1,000 in the list of
    /// dependencies, 100,000 for a single one.
    pub counted_up_to: u32,
}

/// The latest outcomes of calls.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RecentOutcomes {
    /// How many are remembered.
    pub count: u32,
    /// How many of them failed.
    pub failures: u32,
}

/// Attempts in flight, of this node.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Concurrency")]
pub struct ShownConcurrency {
    /// How many attempts may be in flight, apart from the circuit breaker.
    pub limit: u32,
    /// How many are in flight.
    pub in_flight: usize,
}

/// What a node has counted since it first saw a dependency.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DependencyTotals")]
pub struct Totals {
    /// Attempts that ended.
    pub attempts: u64,
    /// Those of them that show a dependency in trouble: no answer, 429 or 5xx.
    pub failures: u64,
}

/// The latency of calls in milliseconds, within 5 %.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Latency")]
pub struct LatencyMs {
    /// Half of the calls took at most this long.
    pub p50: f64,
    /// 95 % of the calls took at most this long.
    pub p95: f64,
    /// 99 % of the calls took at most this long.
    pub p99: f64,
    /// How many calls were measured.
    pub calls: u64,
}

/// What operators have set for a dependency, on all nodes.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Controls")]
pub struct ShownControls<'a> {
    /// The pause: nothing is sent.
    pub pause: Option<ShownPause<'a>>,
    /// The circuit breaker is held open.
    pub open: Option<ShownOpen<'a>>,
    /// Limits of attempts in flight that replace those of the server.
    pub limits: Option<ShownLimits<'a>>,
}

/// A pause of a dependency.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Pause")]
pub struct ShownPause<'a> {
    /// When it was set.
    pub at: u64,
    /// Who set it.
    pub by: &'a str,
    /// The reason that was given.
    pub reason: Option<&'a str>,
}

/// A circuit breaker that is held open.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "HeldOpen")]
pub struct ShownOpen<'a> {
    /// When it was opened.
    pub at: u64,
    /// Who opened it.
    pub by: &'a str,
    /// The reason that was given.
    pub reason: Option<&'a str>,
    /// When it begins to probe; `null`: not before it is closed.
    pub until: Option<u64>,
}

/// Limits of attempts in flight, for each node.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Limits")]
pub struct ShownLimits<'a> {
    /// A fixed limit.
    pub concurrency: Option<u32>,
    /// The least that an adaptive limit goes down to.
    pub min_concurrency: Option<u32>,
    /// The most that an adaptive limit goes up to.
    pub max_concurrency: Option<u32>,
    /// When they were set.
    pub at: Option<u64>,
    /// Who set them.
    pub by: Option<&'a str>,
    /// The reason that was given.
    pub reason: Option<&'a str>,
}

/// A page of dependencies, by name.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependencyList<'a> {
    /// The dependencies that this node knows.
    pub dependencies: Vec<ShownDependency<'a>>,
    /// Where the next page begins; `null` on the last one.
    pub next_cursor: Option<String>,
}

/// Why a dependency is paused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseInput<'a> {
    /// The reason, for people: at most 300 characters.
    #[serde(borrow, default)]
    #[schemars(extend("maxLength" = 300))]
    pub reason: Option<Text<'a>>,
}

/// For how long a circuit breaker is held open, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OpenInput<'a> {
    /// The reason, for people: at most 300 characters.
    #[serde(borrow, default)]
    #[schemars(extend("maxLength" = 300))]
    pub reason: Option<Text<'a>>,
    /// When it begins to probe, in epoch milliseconds: in the future, at most 30 days ahead.
    #[serde(default)]
    pub until_ms: Option<u64>,
    /// After how many milliseconds it begins to probe, instead of `untilMs`. Without both it stays open until it is
    /// closed.
    #[serde(default)]
    #[schemars(range(min = 1, max = 2_592_000_000_u64))]
    pub for_ms: Option<u64>,
}

/// Limits of attempts in flight, for each node: a fixed one, or bounds of the adaptive one. Without any, the limits of
/// the server apply again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimitsInput<'a> {
    /// A fixed limit, never above `engine.lane_concurrency` of the server.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100_000))]
    pub concurrency: Option<u32>,
    /// The least that the adaptive limit goes down to.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100_000))]
    pub min_concurrency: Option<u32>,
    /// The most that the adaptive limit goes up to, never above `engine.lane_concurrency` of the server.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100_000))]
    pub max_concurrency: Option<u32>,
    /// The reason, for people: at most 300 characters.
    #[serde(borrow, default)]
    #[schemars(extend("maxLength" = 300))]
    pub reason: Option<Text<'a>>,
}

impl DependencyState {
    /// Every state.
    pub const ALL: [DependencyState; 6] = [
        DependencyState::Ok,
        DependencyState::Paused,
        DependencyState::Open,
        DependencyState::Probing,
        DependencyState::Budget,
        DependencyState::Busy,
    ];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            DependencyState::Ok => "ok",
            DependencyState::Paused => "paused",
            DependencyState::Open => "open",
            DependencyState::Probing => "probing",
            DependencyState::Budget => "budget",
            DependencyState::Busy => "busy",
        }
    }

    /// What holds most of the dependency's tasks back.
    pub fn of(report: &LaneReport) -> Self {
        match (report.breaker, report.waiting.map(|waiting| waiting.what)) {
            _ if report.controls.pause.is_some() => DependencyState::Paused,
            (Some(State::Open { .. }), _) => DependencyState::Open,
            (Some(State::Probing { .. }), _) => DependencyState::Probing,
            (_, Some(WaitingFor::Budget)) => DependencyState::Budget,
            (_, Some(WaitingFor::Concurrency | WaitingFor::Capacity)) => DependencyState::Busy,
            _ => DependencyState::Ok,
        }
    }
}

impl<'a> ShownDependency<'a> {
    /// The dependency as this node sees it at `now`, with these settings of its guards.
    pub fn new(report: &'a LaneReport, settings: &guards::Settings, now: Timestamp) -> Self {
        let state = DependencyState::of(report);
        let (outcomes, failures) = report.outcomes;
        ShownDependency {
            dependency: report.lane.dependency.as_str(),
            state: state.as_str(),
            why: why(state, report),
            waiting_for: report.waiting.map(|waiting| waiting.what.as_str()),
            waiting_until: report.waiting.and_then(|waiting| waiting.until).map(Timestamp::as_millis),
            breaker: ShownBreaker::new(report.breaker),
            budget: report.budget.zip(settings.budget).map(|(state, of)| ShownBudget::new(state, of.window)),
            healthy: report.is_healthy,
            recent_outcomes: RecentOutcomes { count: outcomes, failures },
            concurrency: ShownConcurrency { limit: report.concurrency_limit, in_flight: report.in_flight },
            totals: Totals { attempts: report.totals.attempts, failures: report.totals.failures },
            latency_ms: report.latency.map(LatencyMs::from),
            first_attempt_due_at: report.first_attempt_due.map(Timestamp::as_millis),
            retry_due_at: report.retry_due.map(Timestamp::as_millis),
            failing_since: report.failing_since.map(Timestamp::as_millis),
            backlog: None,
            controls: ShownControls::new(&report.controls, now),
        }
    }

    /// The same with its backlog.
    pub fn with_backlog(self, backlog: Option<BoundedBacklog>) -> Self {
        ShownDependency { backlog: backlog.map(ShownBacklog::from), ..self }
    }
}

/// The reason for the state, in a sentence.
fn why(state: DependencyState, report: &LaneReport) -> Cow<'static, str> {
    match state {
        DependencyState::Ok => "Nothing is held back.".into(),
        DependencyState::Paused => {
            let (by, reason) = noted(report.controls.pause.as_ref());
            format!("Paused{by}{reason}. Nothing is sent until it is resumed.").into()
        }
        DependencyState::Open => {
            let (cause, end) = (opened_because(report), opened_until(report.breaker));
            format!("The circuit breaker is open because {cause}. Nothing is sent until {end}.").into()
        }
        DependencyState::Probing => "The circuit breaker lets a few calls through to test the dependency; if they \
            succeed, it closes."
            .into(),
        DependencyState::Budget => "The retry budget is spent: retries wait, first attempts are sent.".into(),
        DependencyState::Busy => match report.waiting.map(|waiting| waiting.what) {
            Some(WaitingFor::Concurrency) => format!(
                "Due tasks wait for a slot: at most {} may be in flight, and a slot rests for a moment after a \
                 failure.",
                counted(report.concurrency_limit, "attempt")
            )
            .into(),
            _ => "The capacity of this node, which all dependencies share, is used up: due tasks wait.".into(),
        },
    }
}

fn opened_because(report: &LaneReport) -> String {
    match report.breaker {
        Some(State::Open { why: OpenedBy::Operator, .. }) => {
            let (by, reason) = noted(report.controls.open.as_ref().map(|open| &open.note));
            if by.is_empty() { "an operator opened it".into() } else { format!("it was opened{by}{reason}") }
        }
        Some(State::Open { why, .. }) => schema::opened_by(why).into(),
        _ => String::new(),
    }
}

fn opened_until(breaker: Option<State>) -> &'static str {
    match breaker {
        Some(State::Open { until, .. }) if until >= Timestamp::MAX => "it is closed",
        _ => "it probes the dependency",
    }
}

/// ` by NAME` and `: REASON`, as far as they are known.
fn noted(note: Option<&Note>) -> (String, String) {
    let by = note.map(|note| format!(" by {}", note.by)).unwrap_or_default();
    let reason =
        note.and_then(|note| note.reason.as_deref()).map(|reason| format!(": {}", reason.trim_end_matches('.')));
    (by, reason.unwrap_or_default())
}

impl ShownBreaker {
    fn new(state: Option<State>) -> Self {
        match state {
            None => ShownBreaker { state: "off", open_until: None, reason: None },
            Some(State::Closed) => ShownBreaker { state: "closed", open_until: None, reason: None },
            Some(State::Open { until, why }) => {
                let open_until = (until < Timestamp::MAX).then(|| until.as_millis());
                ShownBreaker { state: "open", open_until, reason: Some(why.as_str()) }
            }
            Some(State::Probing { why }) => {
                ShownBreaker { state: "probing", open_until: None, reason: Some(why.as_str()) }
            }
        }
    }
}

impl ShownBudget {
    fn new(state: BudgetState, window: Duration) -> Self {
        ShownBudget {
            first_attempts: state.counts.firsts,
            retries: state.counts.charged,
            refunded: state.counts.refunded,
            left: state.left,
            utilization: rounded(state.utilization, 1_000.0),
            window_ms: u64::try_from(window.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl From<BoundedBacklog> for ShownBacklog {
    fn from(BoundedBacklog { backlog, counted_up_to }: BoundedBacklog) -> Self {
        ShownBacklog { due: backlog.due, waiting: backlog.waiting, counted_up_to }
    }
}

impl From<Latencies> for LatencyMs {
    fn from(latencies: Latencies) -> Self {
        let millis = |latency: Duration| rounded(latency.as_secs_f64() * 1_000.0, 10.0);
        let Latencies { calls, p50, p95, p99 } = latencies;
        LatencyMs { p50: millis(p50), p95: millis(p95), p99: millis(p99), calls }
    }
}

/// `value` in whole parts of `parts` to 1.
fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

impl<'a> ShownControls<'a> {
    /// What is set at `now`: a breaker whose time is over is not held open any more.
    fn new(controls: &'a Controls, now: Timestamp) -> Self {
        let Controls { pause, open, limits, limits_note } = controls;
        let open = open.as_ref().filter(|open| open.until.is_none_or(|until| until > now));
        ShownControls {
            pause: pause.as_ref().map(|note| ShownPause {
                at: note.at.as_millis(),
                by: &note.by,
                reason: note.reason.as_deref(),
            }),
            open: open.map(|open| ShownOpen {
                at: open.note.at.as_millis(),
                by: &open.note.by,
                reason: open.note.reason.as_deref(),
                until: open.until.map(Timestamp::as_millis),
            }),
            limits: limits.map(|Limits { concurrency, min_concurrency, max_concurrency }| ShownLimits {
                concurrency,
                min_concurrency,
                max_concurrency,
                at: limits_note.as_ref().map(|note| note.at.as_millis()),
                by: limits_note.as_ref().map(|note| &*note.by),
                reason: limits_note.as_ref().and_then(|note| note.reason.as_deref()),
            }),
        }
    }
}
