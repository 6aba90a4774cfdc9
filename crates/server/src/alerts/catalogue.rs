//! The rules in words: what each means, what to do about it, and the same rule for Prometheus.
//!
//! The reference in `docs/alerts.md` and the rules in `ops/prometheus` are generated from here, and from the defaults of the
//! rules. Tests compare them with this file.

use std::time::Duration;

use redrive_core::alerts::{Rule, Signal};
use redrive_core::duration::duration_text;

/// What a rule is about.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The signal.
    pub signal: Signal,
    /// What it means that it fires.
    pub meaning: &'static str,
    /// What to do.
    pub action: &'static str,
    /// The condition for Prometheus, if there are metrics for it by dependency. `FIRE` and `WINDOW` stand for the values of the
    /// rule. Otherwise Prometheus is told that Redrive's own rule fires.
    pub condition: Option<&'static str>,
}

/// Fewer tasks than this say nothing about a rate.
macro_rules! enough {
    ($numerator:literal, $denominator:literal) => {
        concat!($numerator, " / ", $denominator, " BEYOND FIRE and ", $denominator, " >= 20")
    };
}

/// The catalogue entry of a signal.
pub const fn entry(signal: Signal) -> Entry {
    let (meaning, action, condition) = match signal {
        Signal::DeadLetter => (
            "Tasks became dead letters.",
            "`redrive tasks list --status FAILED --status EXHAUSTED`; repair the cause, then `redrive tasks replay ID`.",
            Some(
                "(sum by (service, queue) (increase(dlq_messages_total[WINDOW])) BEYOND FIRE) \
                 or (sum by (service, queue) (dlq_messages_total) BEYOND FIRE \
                 unless sum by (service, queue) (dlq_messages_total offset WINDOW))",
            ),
        ),
        Signal::DeadLetterGrowth => (
            "Many tasks became dead letters in a short time.",
            "Look at the answers of the dependency (`redrive tasks attempts ID`). If they are all the same, pause the dependency until it is \
             repaired.",
            Some("sum by (service, queue) (increase(dlq_messages_total[WINDOW])) BEYOND FIRE"),
        ),
        Signal::RetryRate => (
            "More tasks than usual need a retry.",
            "`redrive report` names the dependency. It is slow or fails now and then: tell its owners before its breaker opens.",
            Some(enough!(
                "sum by (service, dependency) (increase(retry_attempts_total{attempt_number=\"2\"}[WINDOW]))",
                "sum by (service, dependency) (increase(retry_attempts_total{attempt_number=\"1\"}[WINDOW]))"
            )),
        ),
        Signal::DeadLetterRate => (
            "More tasks than usual become dead letters.",
            "`redrive report` names the dependency. Look at the last error of its dead letters: a 4xx is an error of the request, an \
             exhausted time budget a dependency that was down for longer than the policy allows.",
            Some(enough!(
                "sum by (service, dependency) (label_replace(increase(dlq_messages_total[WINDOW]), \"dependency\", \"$1\", \"queue\", \"(.*)\"))",
                "sum by (service, dependency) (increase(retry_attempts_total{attempt_number=\"1\"}[WINDOW]))"
            )),
        ),
        Signal::AttemptsToSuccess => (
            "A delivery takes more attempts than usual.",
            "As for `retry-rate`; compare `redrive simulate` for a policy with longer waits.",
            None,
        ),
        Signal::LongInRetry => (
            "Many tasks have been retried for more than 24 hours.",
            "The dependency has been down for long, or a pause was forgotten: `redrive dependencies list`.",
            None,
        ),
        Signal::SecondAttemptSuccess => (
            "Retries help less than usual: the failures are not transient.",
            "Look at what the dependency answers to second attempts; what fails for good should be answered with a 4xx.",
            Some(enough!(
                "sum by (service, dependency) (increase(retry_attempts_total{attempt_number=\"2\",outcome=\"success\"}[WINDOW]))",
                "sum by (service, dependency) (increase(retry_attempts_total{attempt_number=\"2\"}[WINDOW]))"
            )),
        ),
        Signal::BreakerOpen => (
            "A circuit breaker is open: nothing but probes is sent to the dependency.",
            "`redrive dependencies show NAME` says why. Tasks wait and lose no attempts, but their time budget goes on. It closes by itself \
             when probes succeed.",
            Some("max by (service, dependency) (redrive_breaker_state) BEYOND FIRE"),
        ),
        Signal::CertificateError => (
            "A dependency shows a certificate that is not trusted. The request was not sent.",
            "Treat it as an attack until it is explained. A private authority is trusted with `--extra-ca`. Its tasks are dead letters: \
             replay them when it is repaired.",
            None,
        ),
        Signal::DependencyPaused => (
            "A dependency is paused: nothing is sent to it.",
            "`redrive dependencies resume NAME` when the reason is over.",
            Some("max by (service, dependency) (redrive_dependency_paused) BEYOND FIRE"),
        ),
        Signal::BudgetExhausted => (
            "Retries have waited for the retry budget for long: more calls fail than a fifth.",
            "The dependency fails often enough to be slowed down by retries, but not often enough for its breaker. Repair it; a larger budget \
             makes it worse.",
            Some("max by (service, dependency) (retry_budget_utilization_ratio) >= 1"),
        ),
        Signal::DependencyGone => (
            "A dependency answered 410 Gone, or has had no success for 24 hours.",
            "If it is gone for good, stop sending to it and cancel what waits; `pauseOnGone` in the policy pauses it by itself.",
            None,
        ),
        Signal::RowsSetAside => (
            "Rows of the store cannot be read by this version. They are set aside, and everything else goes on.",
            "`redrive doctor` lists them. After an upgrade was undone, go forward again; otherwise restore them from a backup.",
            Some("max(redrive_rows_set_aside) BEYOND FIRE"),
        ),
        Signal::DeadLettersExpiring => (
            "Dead letters will be removed within a day, because the retention (`engine.retention`) ends.",
            "Replay them, or export them: `redrive tasks list --status FAILED --status EXHAUSTED --all --json`.",
            None,
        ),
        Signal::SinkFailing => (
            "A sink does not take notifications. Only logged and listed: no sink is told of it.",
            "`redrive alerts test SINK` shows its answer.",
            None,
        ),
        Signal::StoreUnavailable => (
            "Calls of the store fail. Nothing is accepted or claimed meanwhile.",
            "Look at the database, or at the disk of the data directory. Redrive goes on by itself when it is back.",
            Some("min by (instance) (redrive_store_up) < 1"),
        ),
        Signal::TimeUncertain => (
            "The node cannot determine the common time, or saw the database's clock step. It claims nothing.",
            "`redrive nodes` shows the clocks. Check NTP on the database's machine.",
            Some("min by (instance) (redrive_time_certain) < 1"),
        ),
        Signal::PartFailed => (
            "A part of the process has failed, and it exits.",
            "The supervisor should have started it again; nothing accepted is lost. Report the log as a bug.",
            Some("min by (instance) (redrive_loops_up) < 1"),
        ),
    };
    Entry { signal, meaning, action, condition }
}

impl Entry {
    /// The expression for Prometheus with the values of a rule.
    fn expression(&self, rule: &Rule) -> String {
        let Some(condition) = self.condition else {
            return format!("max by (instance) (redrive_alerts_firing{{rule=\"{}\"}}) > 0", self.signal.as_str());
        };
        let window = duration_text(rule.window);
        let beyond = if rule.signal.is_bad_when_low() { "<" } else { ">" };
        let condition = condition.replace("BEYOND", beyond).replace("FIRE", &rule.fire.to_string());
        condition.replace("WINDOW", &window)
    }
}

/// The table of all rules, in Markdown.
pub fn reference() -> String {
    let mut text = String::from(
        "| rule | severity | fires | is over | window | fires after | ends after |\n| --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for rule in Signal::ALL.map(Rule::default_of) {
        let (fires, over) = if rule.signal.is_bad_when_low() { ("below", "from") } else { ("above", "up to") };
        let window = if rule.signal.has_window() { duration_text(rule.window) } else { "-".into() };
        text += &format!(
            "| `{}` | {} | {fires} {} | {over} {} | {window} | {} | {} |\n",
            rule.signal.as_str(),
            rule.severity.as_str(),
            rule.fire,
            rule.clear,
            at_once(rule.wait),
            at_once(rule.keep),
        );
    }
    for entry in Signal::ALL.map(entry) {
        text += &format!("\n### {}\n\n{}\n\n*What to do.* {}\n", entry.signal.as_str(), entry.meaning, entry.action);
    }
    text
}

fn at_once(wait: Duration) -> String {
    if wait.is_zero() { "at once".into() } else { duration_text(wait) }
}

/// The rules for Prometheus, with the same names as the alerts that are sent to an Alertmanager.
pub fn prometheus_rules() -> String {
    let mut text = String::from(
        "# Generated from Redrive's own rules and their defaults; a test compares it with them. docs/alerts.md says what they mean.\n\
         groups:\n  - name: redrive\n    rules:\n      - alert: RedriveDown\n        expr: \"up{job=\\\"redrive\\\"} == 0\"\n        \
         for: 1m\n        labels: { severity: critical }\n        annotations:\n          summary: \"A node cannot be scraped.\"\n",
    );
    for rule in Signal::ALL.map(Rule::default_of) {
        let entry = entry(rule.signal);
        let expression = entry.expression(&rule);
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        text += &format!("      - alert: {}\n        expr: {}\n", rule.signal.alert_name(), quoted(&expression));
        for (name, time) in [("for", rule.wait), ("keep_firing_for", rule.keep)] {
            // Redrive's own rule has waited already.
            if !time.is_zero() && entry.condition.is_some() {
                text += &format!("        {name}: {}\n", duration_text(time));
            }
        }
        text += &format!("        labels: {{ severity: {} }}\n", rule.severity.as_str());
        text += &format!("        annotations:\n          summary: {}\n", quoted(entry.meaning));
        text += &format!("          description: {}\n", quoted(&entry.action.replace('`', "'")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

    /// Compares a file with what it should be; `REDRIVE_BLESS=1` writes it.
    fn is(path: &str, expected: &str) {
        let path = format!("{ROOT}/{path}");
        if std::env::var_os("REDRIVE_BLESS").is_some() {
            std::fs::write(&path, expected).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected, "{path}");
    }

    #[test]
    fn the_document_has_this_reference() {
        const BEGIN: &str = "<!-- generated: the reference -->\n";
        let document = std::fs::read_to_string(format!("{ROOT}/docs/alerts.md")).unwrap();
        let (before, _) = document.split_once(BEGIN).unwrap();
        is("docs/alerts.md", &format!("{before}{BEGIN}\n{}", reference()));
    }

    #[test]
    fn the_rules_for_prometheus_are_these() {
        is("ops/prometheus/redrive.rules.yml", &prometheus_rules());
    }

    #[test]
    fn a_metric_that_a_rule_names_exists() {
        let metrics = std::fs::read_to_string(format!("{ROOT}/docs/metrics.md")).unwrap();
        for entry in Signal::ALL.map(entry) {
            let condition = entry.expression(&Rule::default_of(entry.signal));
            let is_name = |char: char| char.is_ascii_lowercase() || char == '_';
            let words = condition.split(|char| !is_name(char));
            for name in words.filter(|word| ["redrive_", "retry_", "dlq_"].iter().any(|start| word.starts_with(start)))
            {
                assert!(metrics.contains(&format!("| `{name}` |")), "{name}");
            }
        }
    }

    #[test]
    fn an_expression_has_the_values_of_its_rule() {
        let expression = |signal| entry(signal).expression(&Rule::default_of(signal));
        assert_eq!(
            expression(Signal::DeadLetterGrowth),
            "sum by (service, queue) (increase(dlq_messages_total[10m])) > 10"
        );
        let seconds = expression(Signal::SecondAttemptSuccess);
        assert!(seconds.contains(" < 0.6 and ") && seconds.contains("[1h]"), "{seconds}");
        assert_eq!(
            expression(Signal::SinkFailing),
            "max by (instance) (redrive_alerts_firing{rule=\"sink-failing\"}) > 0"
        );
    }
}
