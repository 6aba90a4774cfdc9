//! R-7: how many retries there may be among all requests.

use std::time::Duration;

use redrive_core::duration::duration_text;

use super::check::{
    BUDGET_NOT_ENFORCED, BUDGET_OVER_LIMIT, BUDGET_REFUNDS, BUDGET_SHARED, BUDGET_WINDOW, BUDGET_WITHOUT_BREAKER,
    MISSING_BUDGET,
};
use super::declared::{BudgetPer, Drain, RetryBudget, WhenSpent};
use super::finding::{Finding, Step};
use super::service::Call;

/// The part of all requests that may be retries, at most.
const LARGEST_RATIO: f64 = 0.2;
/// Over how long that is counted.
const WINDOW: Duration = Duration::from_secs(30);
const FIELD: &str = "retryBudget";

pub(super) fn budget(call: &Call<'_>) -> Vec<Finding> {
    let Some(budget) = &call.dependency.retry_budget else {
        let wrong = format!("{} has no retry budget", call.dependency.name);
        let fix = "enforce one and declare it: retryBudget with a ratio of 0.2, a window of 30s, per dependency, opensBreaker true";
        let missing = call.is_retried().then(|| Finding::new(&MISSING_BUDGET, [Step::Field(FIELD)], wrong, fix));
        return missing.into_iter().collect();
    };
    let mut findings = size(budget);
    findings.extend(enforcement(budget, call));
    if budget.opens_breaker != Some(true) {
        let wrong = "a spent budget does not open the circuit breaker";
        let fix = "open the breaker of the dependency when its budget is spent, and declare opensBreaker as true";
        findings.push(Finding::new(&BUDGET_WITHOUT_BREAKER, at("opensBreaker"), wrong, fix));
    }
    if budget.drain == Some(Drain::Earned) {
        let wrong = "retries that succeed while the dependency is healthy are refunded";
        let fix = "nothing, if a backlog is to drain quickly; otherwise count every retry, and declare drain as strict";
        findings.push(Finding::new(&BUDGET_REFUNDS, at("drain"), wrong, fix));
    }
    findings
}

fn at(field: &'static str) -> [Step; 2] {
    [Step::Field(FIELD), Step::Field(field)]
}

fn size(budget: &RetryBudget) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Also what is no number is not within the limit.
    if !(0.0..=LARGEST_RATIO).contains(&budget.ratio) {
        let wrong = format!("{} of all requests may be retries, at most {LARGEST_RATIO} is allowed", budget.ratio);
        findings.push(Finding::new(&BUDGET_OVER_LIMIT, at("ratio"), wrong, "let ratio be from 0 to 0.2"));
    }
    if let Some(window) = budget.window.filter(|window| window.0 != WINDOW) {
        let wrong = format!("the budget is counted over {} instead of a rolling 30s", duration_text(window.0));
        findings.push(Finding::new(&BUDGET_WINDOW, at("window"), wrong, "let window be 30s"));
    }
    if let Some(per) = budget.per.filter(|per| *per != BudgetPer::Dependency) {
        let whose = match per {
            BudgetPer::Service => "all dependencies of the service",
            BudgetPer::Process => "all dependencies that a process calls",
            BudgetPer::Dependency | BudgetPer::Everything => "everything",
        };
        let wrong = format!("there is one budget for {whose}");
        findings.push(Finding::new(&BUDGET_SHARED, at("per"), wrong, "keep one budget per dependency"));
    }
    findings
}

/// A durable task has time and may wait for the budget; a caller who waits must get the error.
fn enforcement(budget: &RetryBudget, call: &Call<'_>) -> Option<Finding> {
    let (wrong, fix) = match budget.when_spent? {
        WhenSpent::Suppress => return None,
        WhenSpent::Wait if !call.context.is_waited_for() => return None,
        WhenSpent::Wait => (
            "a caller waits for this, and so does a retry without budget",
            "return the original error at once, and declare whenSpent as suppress",
        ),
        WhenSpent::Retry => (
            "when the budget is spent, the retry goes on all the same",
            match call.context.is_waited_for() {
                true => "return the original error at once, and declare whenSpent as suppress",
                false => "let whenSpent be suppress, or wait",
            },
        ),
    };
    Some(Finding::new(&BUDGET_NOT_ENFORCED, at("whenSpent"), wrong, fix))
}

#[cfg(test)]
mod tests {
    use super::super::service::tests::{DEAD_LETTERS, found};

    #[test]
    fn a_budget_is_a_fifth_over_thirty_seconds_for_each_dependency() {
        let fields = r#""ratio": 0.2, "window": "30s", "per": "dependency", "whenSpent": "suppress", "opensBreaker": true, "drain": "strict""#;
        assert_eq!(found("sync", &format!(r#""retryBudget": {{ {fields} }}"#)), []);
        for (fields, check, field) in [
            (r#""ratio": 0.21, "opensBreaker": true"#, "budget-over-limit", "ratio"),
            (r#""ratio": -1, "opensBreaker": true"#, "budget-over-limit", "ratio"),
            (r#""ratio": 0.1, "window": "10s", "opensBreaker": true"#, "budget-window", "window"),
            (r#""ratio": 0.1, "per": "service", "opensBreaker": true"#, "budget-shared", "per"),
            (r#""ratio": 0.1, "whenSpent": "retry", "opensBreaker": true"#, "budget-not-enforced", "whenSpent"),
            (r#""ratio": 0.1, "whenSpent": "wait", "opensBreaker": true"#, "budget-not-enforced", "whenSpent"),
            (r#""ratio": 0.1"#, "budget-without-breaker", "opensBreaker"),
            (r#""ratio": 0.1, "opensBreaker": true, "drain": "earned""#, "budget-refunds", "drain"),
        ] {
            let expected = [(check, format!("dependencies[0].retryBudget.{field}"))];
            assert_eq!(found("sync", &format!(r#""retryBudget": {{ {fields} }}"#)), expected, "{fields}");
        }
    }

    #[test]
    fn durable_work_may_wait_for_its_budget() {
        let waits = r#""retryBudget": { "ratio": 0.2, "whenSpent": "wait", "opensBreaker": true }"#;
        assert_eq!(found("event", &format!("{waits}, {DEAD_LETTERS}")), []);
    }

    #[test]
    fn a_dependency_without_a_budget_is_found() {
        let expected = [("missing-budget", "dependencies[0].retryBudget".into())];
        assert_eq!(found("sync", r#""methods": ["GET"]"#), expected);
    }
}
