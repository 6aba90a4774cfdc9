//! What the tables show of a dependency. Lenient like the other views: a newer server may say more, an older one less.

use serde::Deserialize;

/// A dependency.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Dependency {
    /// Its name.
    pub dependency: String,
    /// Whether its tasks are held back, in one word.
    pub state: String,
    /// The reason for that.
    pub why: String,
    /// Until when its due tasks wait, if that is known.
    pub waiting_until: Option<u64>,
    /// The circuit breaker.
    pub breaker: Breaker,
    /// The retry budget, if there is one.
    pub budget: Option<Budget>,
    /// Whether the latest outcomes show a healthy dependency.
    pub healthy: bool,
    /// The latest outcomes.
    pub recent_outcomes: Outcomes,
    /// The limit of attempts in flight.
    pub concurrency: Concurrency,
    /// What the node has counted.
    pub totals: Totals,
    /// The latency of its calls.
    pub latency_ms: Option<Latency>,
    /// When the first task that has not been sent is due.
    pub first_attempt_due_at: Option<u64>,
    /// When the first retry is due.
    pub retry_due_at: Option<u64>,
    /// The first attempt without success since the last success; an older server does not say.
    pub failing_since: Option<u64>,
    /// Its pending tasks; an older server does not count them.
    pub backlog: Option<Backlog>,
    /// What operators have set.
    pub controls: Controls,
}

/// Pending tasks, each number counted up to a bound.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Backlog {
    /// Tasks that are due.
    pub due: u64,
    /// Tasks that are due later.
    pub waiting: u64,
    /// The bound.
    pub counted_up_to: u64,
}

impl Backlog {
    /// The tasks that are due: `1000+` if there may be more.
    pub fn due_text(&self) -> String {
        self.text(self.due)
    }

    /// The tasks that are due later.
    pub fn waiting_text(&self) -> String {
        self.text(self.waiting)
    }

    fn text(&self, tasks: u64) -> String {
        let more = if tasks > 0 && tasks >= self.counted_up_to { "+" } else { "" };
        format!("{tasks}{more}")
    }
}

/// A circuit breaker.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Breaker {
    /// `closed`, `open`, `probing` or `off`.
    pub state: String,
    /// When it begins to probe.
    pub open_until: Option<u64>,
}

/// A retry budget.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Budget {
    /// First attempts in its window.
    pub first_attempts: u64,
    /// Retries that count against it.
    pub retries: u64,
    /// Retries that succeeded.
    pub refunded: u64,
    /// How many retries may be sent now.
    pub left: u64,
    /// The length of its window.
    pub window_ms: u64,
}

/// The latest outcomes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Outcomes {
    /// How many are remembered.
    pub count: u32,
    /// How many of them failed.
    pub failures: u32,
}

/// Attempts in flight.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Concurrency {
    /// How many may be.
    pub limit: u32,
    /// How many are.
    pub in_flight: u64,
}

/// What a node has counted since it first saw the dependency.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Attempts that ended.
    pub attempts: u64,
    /// Those of them that failed.
    pub failures: u64,
}

/// The latency of calls.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// Half of the calls took at most this long.
    pub p50: f64,
    /// 95 % of the calls did.
    pub p95: f64,
    /// 99 % of the calls did.
    pub p99: f64,
}

/// What operators have set.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Controls {
    /// The pause.
    pub pause: Option<Control>,
    /// The breaker is held open.
    pub open: Option<Control>,
    /// Other limits of attempts in flight.
    pub limits: Option<Control>,
}

/// Something that an operator has set; each kind of it has some of these.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Control {
    /// When.
    pub at: u64,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: Option<String>,
    /// Until when.
    pub until: Option<u64>,
    /// A fixed limit.
    pub concurrency: Option<u32>,
    /// The least of an adaptive limit.
    pub min_concurrency: Option<u32>,
    /// The most of an adaptive limit.
    pub max_concurrency: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::Backlog;

    #[test]
    fn a_number_that_reaches_the_bound_may_be_larger() {
        for (due, counted_up_to, text) in [(0, 0, "0"), (0, 9, "0"), (8, 9, "8"), (9, 9, "9+")] {
            let backlog = Backlog { due, waiting: 0, counted_up_to };
            assert_eq!((backlog.due_text().as_str(), backlog.waiting_text().as_str()), (text, "0"));
        }
    }
}
