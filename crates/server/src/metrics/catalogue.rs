//! Every metric: its name, type, labels and meaning. Nothing else is exposed, and `docs/metrics.md` is made from this.

/// A metric.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) labels: &'static [&'static str],
    pub(super) help: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

const LANE: &[&str] = &["service", "dependency"];
const NONE: &[&str] = &[];

macro_rules! metrics {
    ($($group:literal { $($constant:ident $kind:ident $name:literal $labels:expr, $help:literal;)* })*) => {
        $($(pub(super) static $constant: Metric =
            Metric { name: $name, kind: Kind::$kind, labels: $labels, help: $help };)*)*

        /// Every metric, by the heading that it has in the reference.
        static GROUPS: &[(&str, &[&Metric])] = &[$(($group, &[$(&$constant),*])),*];
    };
}

metrics! {
    "Attempts and tasks" {
        ATTEMPTS Counter "retry_attempts_total" &["service", "dependency", "policy", "outcome", "attempt_number"],
            "Attempts that ended, by outcome and by their number within the run of the task.";
        EXHAUSTED Counter "retry_exhausted_total" &["service", "dependency", "reason"],
            "Tasks that ended EXHAUSTED, by reason.";
        DEAD_LETTERS Counter "dlq_messages_total" &["service", "queue"],
            "Tasks that became dead letters. The queue is the dependency.";
        BACKOFF Histogram "retry_backoff_duration_seconds" NONE,
            "Waits that were drawn between two attempts of a task.";
        AGE Histogram "retry_task_age_seconds" &["status"],
            "Time from the submission of a task to its end, by the status in which it ended.";
        ATTEMPT_DURATION Histogram "redrive_attempt_duration_seconds" LANE,
            "Duration of an attempt, from the connection to the last byte of the answer.";
        DUE_TO_WIRE Histogram "redrive_due_to_wire_seconds" NONE,
            "Time from the moment at which an attempt was due to its first byte on the wire.";
        SUBMIT Histogram "redrive_submit_duration_seconds" NONE,
            "Time in which a submission became durable.";
        ACCEPTED Counter "redrive_tasks_accepted_total" &["service"],
            "Tasks that were stored.";
        ENDED Counter "redrive_tasks_ended_total" &["service", "status"],
            "Tasks that ended, by status.";
        ALERTS Counter "redrive_dead_letter_alerts_total" NONE,
            "Alerts of dead letters that were raised; after a crash the same one may be raised again.";
        TAKEN_OVER Counter "redrive_leases_taken_over_total" NONE,
            "Attempts whose lease expired and that this process settled.";
        LEASES_LOST Counter "redrive_leases_lost_total" NONE,
            "Attempts of this process that could not be settled because their lease was lost.";
        IN_FLIGHT Gauge "redrive_attempts_in_flight" NONE,
            "Claimed attempts of this process that have not ended.";
    }
    "Dependencies" {
        BUDGET_UTILIZATION Gauge "retry_budget_utilization_ratio" LANE,
            "Used part of the retry budget; over PostgreSQL that of all nodes.";
        BREAKER_STATE Gauge "redrive_breaker_state" LANE,
            "Circuit breaker: 0 is closed, 1 is probing, 2 is open.";
        BREAKER_OPENED Counter "redrive_breaker_opened_total" LANE,
            "Times that the circuit breaker opened, as this process saw it.";
        CONCURRENCY_LIMIT Gauge "redrive_concurrency_limit" LANE,
            "Attempts that may be in flight at once, from this process.";
        LANE_IN_FLIGHT Gauge "redrive_dependency_attempts_in_flight" LANE,
            "Attempts on the wire, from this process.";
        PAUSED Gauge "redrive_dependency_paused" LANE,
            "1 if an operator, or pauseOnGone, paused the dependency.";
        QUEUE_DUE Gauge "redrive_queue_due_tasks" LANE,
            "Waiting tasks that are due, on all nodes. Counted at most every 15 seconds, and up to a bound.";
        QUEUE_WAITING Gauge "redrive_queue_waiting_tasks" LANE,
            "Waiting tasks that are due later, on all nodes. Counted at most every 15 seconds, and up to a bound.";
        OLDEST_DUE Gauge "redrive_queue_oldest_due_age_seconds" LANE,
            "How long the oldest due task has waited; 0 if none is due.";
        HELD_BACK Gauge "redrive_held_back_tasks" &["reason"],
            "Due tasks whose dependency is held back, by what they wait for. Of the dependencies with series of their own.";
    }
    "Store and service" {
        COMMIT_DURATION Histogram "redrive_store_commit_duration_seconds" NONE,
            "Duration of a commit of a batch, from its first change to the end of its fsync; over PostgreSQL from its first statement to the answer to its commit.";
        COMMIT_CALLS Histogram "redrive_store_commit_calls" NONE,
            "Calls that one commit of a batch made durable. Over PostgreSQL, claims and operators' changes are not written in batches, and not counted.";
        STORE_UP Gauge "redrive_store_up" NONE,
            "0 during an outage of the store, otherwise 1.";
        STORE_OUTAGES Counter "redrive_store_outages_total" NONE,
            "Outages of the store.";
        SET_ASIDE Gauge "redrive_rows_set_aside" NONE,
            "Rows that this version cannot read; they are set aside. Counted at most every 15 seconds.";
        LOOPS_UP Gauge "redrive_loops_up" NONE,
            "1 while all background loops run. The process ends soon after one has died.";
        TIME_CERTAIN Gauge "redrive_time_certain" NONE,
            "0 while the time is uncertain and no tasks are claimed, otherwise 1.";
        ALERTS_FIRING Gauge "redrive_alerts_firing" &["rule", "severity"],
            "Alerts of this node that fire, by rule.";
        CONNECTIONS Gauge "redrive_api_connections" NONE,
            "Open connections of the API.";
        IDEMPOTENCY Counter "redrive_idempotency_calls_total" &["outcome"],
            "Calls for idempotency records and events that this process answered, by outcome.";
        SPANS Counter "redrive_spans_total" &["result"],
            "Spans of traces, by result: exported or dropped. Only if traces are on.";
        BUILD Gauge "redrive_build_info" &["version", "node"],
            "Always 1; the version and the name of this process.";
    }
    "Process" {
        CPU Counter "process_cpu_seconds_total" NONE,
            "CPU time of the process, in user and system mode.";
        RESIDENT Gauge "process_resident_memory_bytes" NONE,
            "Resident memory.";
        VIRTUAL Gauge "process_virtual_memory_bytes" NONE,
            "Virtual memory.";
        OPEN_FILES Gauge "process_open_fds" NONE,
            "Open file descriptors.";
        MOST_FILES Gauge "process_max_fds" NONE,
            "The limit of open file descriptors.";
        STARTED Gauge "process_start_time_seconds" NONE,
            "When the process was started, in seconds since 1970.";
    }
}

impl Metric {
    /// Its name without the suffix that the format adds to counters.
    pub(super) fn family(&self) -> &'static str {
        match self.kind {
            Kind::Counter => self.name.trim_end_matches("_total"),
            Kind::Gauge | Kind::Histogram => self.name,
        }
    }
}

/// Every metric.
pub(super) fn all() -> impl Iterator<Item = &'static Metric> {
    GROUPS.iter().flat_map(|(_, metrics)| metrics.iter().copied())
}

/// The reference of all metrics, as tables in Markdown.
pub fn reference() -> String {
    let table = |(group, metrics): &(&str, &[&Metric])| {
        let rows: String = metrics.iter().map(|metric| row(metric)).collect();
        format!("### {group}\n\n| metric | type | labels | |\n| --- | --- | --- | --- |\n{rows}\n")
    };
    GROUPS.iter().map(table).collect()
}

fn row(metric: &Metric) -> String {
    let kind = match metric.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
    format!("| `{}` | {kind} | {} | {} |\n", metric.name, labels.join(", "), metric.help)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_tell_their_type() {
        let names: BTreeSet<&str> = all().map(|metric| metric.name).collect();
        assert_eq!(names.len(), all().count());
        for Metric { name, kind, help, .. } in all() {
            assert_eq!(name.ends_with("_total"), *kind == Kind::Counter, "{name}");
            assert!(help.ends_with('.') && !help.contains(['\n', '\\', '"']), "{name}: {help}");
        }
    }

    /// `REDRIVE_BLESS=1` writes the reference again.
    #[test]
    fn the_document_has_this_reference() {
        const BEGIN: &str = "<!-- generated: the reference -->\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        let document = std::fs::read_to_string(path).unwrap();
        let (before, _) = document.split_once(BEGIN).unwrap();
        let expected = format!("{before}{BEGIN}\n{}", reference().trim_end().to_owned() + "\n");
        if std::env::var_os("REDRIVE_BLESS").is_some() {
            std::fs::write(path, &expected).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), expected);
    }

    #[test]
    fn the_names_of_the_standard_are_there() {
        for (name, labels) in [
            ("retry_attempts_total", "service dependency policy outcome attempt_number"),
            ("retry_exhausted_total", "service dependency reason"),
            ("retry_backoff_duration_seconds", ""),
            ("retry_budget_utilization_ratio", "service dependency"),
            ("dlq_messages_total", "service queue"),
            ("retry_task_age_seconds", "status"),
        ] {
            let metric = all().find(|metric| metric.name == name).unwrap();
            assert_eq!(metric.labels.join(" "), labels, "{name}");
        }
    }
}
