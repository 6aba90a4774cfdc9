//! A dashboard for Grafana, generated from one list of panels. A test compares `ops/grafana/redrive.json` with it, and every
//! metric that a panel names with the catalogue.

use serde_json::{Value, json};

/// A panel: one chart.
struct Panel {
    title: &'static str,
    /// What is drawn; the second value is the legend.
    lines: &'static [(&'static str, &'static str)],
    unit: &'static str,
}

const PANELS: [Panel; 14] = [
    Panel {
        title: "Attempts by outcome",
        lines: &[("sum by (outcome) (rate(retry_attempts_total[$__rate_interval]))", "{{outcome}}")],
        unit: "reqps",
    },
    Panel {
        title: "Part of attempts that are retries",
        lines: &[(
            "sum(rate(retry_attempts_total{attempt_number!=\"1\"}[$__rate_interval])) / sum(rate(retry_attempts_total[$__rate_interval]))",
            "retries",
        )],
        unit: "percentunit",
    },
    Panel {
        title: "Dead letters by queue",
        lines: &[("sum by (queue) (increase(dlq_messages_total[$__rate_interval]))", "{{queue}}")],
        unit: "short",
    },
    Panel {
        title: "Tasks: accepted, and ended by status",
        lines: &[
            ("sum(rate(redrive_tasks_accepted_total[$__rate_interval]))", "accepted"),
            ("sum by (status) (rate(redrive_tasks_ended_total[$__rate_interval]))", "{{status}}"),
        ],
        unit: "reqps",
    },
    Panel {
        title: "Circuit breakers (0 closed, 1 probing, 2 open)",
        lines: &[("max by (dependency) (redrive_breaker_state) > 0", "{{dependency}}")],
        unit: "short",
    },
    Panel {
        title: "Used part of the retry budget",
        lines: &[("max by (dependency) (retry_budget_utilization_ratio)", "{{dependency}}")],
        unit: "percentunit",
    },
    Panel {
        title: "Due tasks by dependency",
        lines: &[("max by (dependency) (redrive_queue_due_tasks)", "{{dependency}}")],
        unit: "short",
    },
    Panel {
        title: "Age of the oldest due task",
        lines: &[("max by (dependency) (redrive_queue_oldest_due_age_seconds)", "{{dependency}}")],
        unit: "s",
    },
    Panel {
        title: "Duration of attempts, 99th percentile",
        lines: &[(
            "histogram_quantile(0.99, sum by (le, dependency) (rate(redrive_attempt_duration_seconds_bucket[$__rate_interval])))",
            "{{dependency}}",
        )],
        unit: "s",
    },
    Panel {
        title: "Due to wire and submissions, 99th percentile",
        lines: &[
            (
                "histogram_quantile(0.99, sum by (le) (rate(redrive_due_to_wire_seconds_bucket[$__rate_interval])))",
                "due to wire",
            ),
            (
                "histogram_quantile(0.99, sum by (le) (rate(redrive_submit_duration_seconds_bucket[$__rate_interval])))",
                "submission",
            ),
        ],
        unit: "s",
    },
    Panel {
        title: "Tasks held back, by reason",
        lines: &[("sum by (reason) (redrive_held_back_tasks)", "{{reason}}")],
        unit: "short",
    },
    Panel {
        title: "Concurrency limits and attempts in flight",
        lines: &[
            ("sum by (dependency) (redrive_concurrency_limit)", "{{dependency}} limit"),
            ("sum by (dependency) (redrive_dependency_attempts_in_flight)", "{{dependency}} in flight"),
        ],
        unit: "short",
    },
    Panel {
        title: "Store: up, and commits of batches (99th percentile)",
        lines: &[
            ("min by (instance) (redrive_store_up)", "{{instance}} up"),
            (
                "histogram_quantile(0.99, sum by (le, instance) (rate(redrive_store_commit_duration_seconds_bucket[$__rate_interval])))",
                "{{instance}} commit (s)",
            ),
        ],
        unit: "short",
    },
    Panel { title: "Resident memory", lines: &[("process_resident_memory_bytes", "{{instance}}")], unit: "bytes" },
];

/// Panels in a row, and the size of one on Grafana's grid of 24 columns.
const COLUMNS: usize = 2;
const WIDTH: usize = 12;
const HEIGHT: usize = 8;

/// The dashboard as Grafana imports it. It asks for the data source.
pub fn dashboard() -> Value {
    let source = json!({ "type": "prometheus", "uid": "${DS_PROMETHEUS}" });
    let panel = |(number, panel): (usize, &Panel)| {
        let targets = panel.lines.iter().zip('A'..).map(|((expression, legend), name)| {
            json!({ "refId": name.to_string(), "expr": expression, "legendFormat": legend, "datasource": source })
        });
        json!({
            "id": number + 1,
            "title": panel.title,
            "type": "timeseries",
            "datasource": source,
            "gridPos": { "x": number % COLUMNS * WIDTH, "y": number / COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT },
            "fieldConfig": { "defaults": { "unit": panel.unit }, "overrides": [] },
            "targets": targets.collect::<Vec<_>>(),
        })
    };
    json!({
        "__inputs": [{
            "name": "DS_PROMETHEUS",
            "label": "Prometheus",
            "type": "datasource",
            "pluginId": "prometheus",
            "pluginName": "Prometheus",
        }],
        "title": "Redrive",
        "uid": "redrive",
        "schemaVersion": 38,
        "refresh": "30s",
        "time": { "from": "now-3h", "to": "now" },
        "panels": PANELS.iter().enumerate().map(panel).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::catalogue;

    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ops/grafana/redrive.json");

    /// `REDRIVE_BLESS=1` writes the file again.
    #[test]
    fn the_file_is_this_dashboard() {
        let expected = serde_json::to_string_pretty(&dashboard()).unwrap() + "\n";
        if std::env::var_os("REDRIVE_BLESS").is_some() {
            std::fs::write(PATH, &expected).unwrap();
        }
        assert_eq!(std::fs::read_to_string(PATH).unwrap(), expected);
    }

    #[test]
    fn every_metric_of_a_panel_exists() {
        let is_name = |char: char| char.is_ascii_lowercase() || char == '_';
        let starts = ["redrive_", "retry_", "dlq_", "process_"];
        for (expression, _) in PANELS.iter().flat_map(|panel| panel.lines) {
            let words = expression
                .split(|char| !is_name(char))
                .filter(|word| starts.iter().any(|start| word.starts_with(start)));
            let mut count = 0;
            for word in words {
                let name = word.strip_suffix("_bucket").unwrap_or(word);
                assert!(catalogue::all().any(|metric| metric.name == name), "{name}");
                count += 1;
            }
            assert!(count > 0, "{expression}");
        }
    }
}
