//! The series of every metric, with their labels.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use redrive_core::guards::breaker;
use redrive_core::{Reason, Timestamp};
use redrive_engine::{LaneReport, WaitingFor};
use redrive_store::CommitHistogram;

use super::catalogue::{self, Kind, Metric};
use super::counts::{ENDS, LaneCounts, OTHER, Snapshot};
use super::histogram::Histogram;
use super::readings::{LaneReading, Readings};

/// One scrape.
#[derive(Debug)]
pub(super) struct Scrape {
    pub(super) snapshot: Snapshot,
    pub(super) readings: Readings,
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut series = Series(encoder);
        self.attempts(&mut series)?;
        self.tasks(&mut series)?;
        self.dependencies(&mut series)?;
        self.queues(&mut series)?;
        self.store(&mut series)?;
        self.service(&mut series)?;
        self.process(&mut series)
    }
}

impl Scrape {
    fn attempts(&self, series: &mut Series<'_>) -> fmt::Result {
        let mut attempts = series.of(&catalogue::ATTEMPTS)?;
        for ([service, dependency], counts) in self.lanes() {
            let by_policy = counts.attempts.iter().map(|(policy, table)| (policy.as_str(), table));
            for (policy, table) in by_policy.chain([(OTHER, &counts.attempts_of_others)]) {
                for (outcome, number, count) in table.counts() {
                    attempts.counter(&[service, dependency, policy, outcome.as_str(), number], count)?;
                }
            }
        }
        let mut exhausted = series.of(&catalogue::EXHAUSTED)?;
        for ([service, dependency], counts) in self.lanes() {
            for (reason, count) in Reason::ALL.iter().zip(counts.exhausted).filter(|(_, count)| *count > 0) {
                exhausted.counter(&[service, dependency, reason.as_str()], count)?;
            }
        }
        let mut dead_letters = series.of(&catalogue::DEAD_LETTERS)?;
        self.lanes().try_for_each(|(lane, counts)| dead_letters.counter(&lane, counts.dead_letters))?;
        let mut opened = series.of(&catalogue::BREAKER_OPENED)?;
        self.lanes().try_for_each(|(lane, counts)| opened.counter(&lane, counts.breaker_opened))?;
        let mut duration = series.of(&catalogue::ATTEMPT_DURATION)?;
        self.lanes().try_for_each(|(lane, counts)| duration.histogram(&lane, &counts.duration))
    }

    fn tasks(&self, series: &mut Series<'_>) -> fmt::Result {
        let process = &self.snapshot.process;
        series.of(&catalogue::BACKOFF)?.histogram(&[], &process.backoff)?;
        let mut age = series.of(&catalogue::AGE)?;
        ENDS.iter().zip(&process.age).try_for_each(|(end, histogram)| age.histogram(&[end.as_str()], histogram))?;
        series.of(&catalogue::DUE_TO_WIRE)?.histogram(&[], &process.due_to_wire)?;
        series.of(&catalogue::SUBMIT)?.histogram(&[], &process.submit)?;
        let mut accepted = series.of(&catalogue::ACCEPTED)?;
        process.accepted.iter().try_for_each(|(tenant, count)| accepted.counter(&[tenant.as_str()], *count))?;
        let mut ended = series.of(&catalogue::ENDED)?;
        for (tenant, counts) in &process.ended {
            for (end, count) in ENDS.iter().zip(counts) {
                ended.counter(&[tenant.as_str(), end.as_str()], *count)?;
            }
        }
        series.of(&catalogue::ALERTS)?.counter(&[], process.alerts)?;
        series.of(&catalogue::TAKEN_OVER)?.counter(&[], process.taken_over)?;
        series.of(&catalogue::LEASES_LOST)?.counter(&[], process.leases_lost)?;
        series.of(&catalogue::IN_FLIGHT)?.gauge(&[], self.readings.in_flight as f64)
    }

    fn dependencies(&self, series: &mut Series<'_>) -> fmt::Result {
        let mut gauge = |metric, read: fn(&LaneReport) -> Option<f64>| {
            let mut series = series.of(metric)?;
            for (lane, reading) in self.readings() {
                if let Some(value) = reading.report.as_ref().and_then(read) {
                    series.gauge(&lane, value)?;
                }
            }
            Ok(())
        };
        gauge(&catalogue::BUDGET_UTILIZATION, |report| Some(report.budget?.utilization))?;
        gauge(&catalogue::BREAKER_STATE, |report| {
            Some(match report.breaker? {
                breaker::State::Closed => 0.0,
                breaker::State::Probing { .. } => 1.0,
                breaker::State::Open { .. } => 2.0,
            })
        })?;
        gauge(&catalogue::CONCURRENCY_LIMIT, |report| Some(report.concurrency_limit.into()))?;
        gauge(&catalogue::LANE_IN_FLIGHT, |report| Some(report.in_flight as f64))?;
        gauge(&catalogue::PAUSED, |report| Some(if report.controls.pause.is_some() { 1.0 } else { 0.0 }))
    }

    fn queues(&self, series: &mut Series<'_>) -> fmt::Result {
        let mut due = series.of(&catalogue::QUEUE_DUE)?;
        for (lane, reading) in self.readings() {
            reading.backlog.iter().try_for_each(|backlog| due.gauge(&lane, backlog.due.into()))?;
        }
        let mut waiting = series.of(&catalogue::QUEUE_WAITING)?;
        for (lane, reading) in self.readings() {
            reading.backlog.iter().try_for_each(|backlog| waiting.gauge(&lane, backlog.waiting.into()))?;
        }
        let mut oldest = series.of(&catalogue::OLDEST_DUE)?;
        for (lane, reading) in self.readings() {
            let report = reading.report.iter();
            report.map(|report| oldest_due(report, self.readings.now)).try_for_each(|age| oldest.gauge(&lane, age))?;
        }
        let mut held_back = series.of(&catalogue::HELD_BACK)?;
        for reason in WaitingFor::ALL.into_iter().filter(|reason| *reason != WaitingFor::Backoff) {
            let is_held = |reading: &&LaneReading| {
                reading.report.as_ref().and_then(|report| report.waiting).is_some_and(|waiting| waiting.what == reason)
            };
            let tasks = self.readings.lanes.iter().filter(is_held).filter_map(|reading| reading.backlog);
            let due: u64 = tasks.map(|backlog| u64::from(backlog.due)).sum();
            held_back.gauge(&[reason.as_str()], due as f64)?;
        }
        Ok(())
    }

    fn store(&self, series: &mut Series<'_>) -> fmt::Result {
        if let Some(commits) = &self.readings.commits {
            series.of(&catalogue::COMMIT_DURATION)?.commit_histogram(&commits.seconds)?;
            series.of(&catalogue::COMMIT_CALLS)?.commit_histogram(&commits.calls)?;
        }
        let process = &self.snapshot.process;
        series.of(&catalogue::STORE_UP)?.gauge(&[], flag(!self.readings.is_store_out))?;
        series.of(&catalogue::STORE_OUTAGES)?.counter(&[], process.store_outages)?;
        let mut set_aside = series.of(&catalogue::SET_ASIDE)?;
        self.readings.rows_set_aside.iter().try_for_each(|rows| set_aside.gauge(&[], *rows as f64))
    }

    fn service(&self, series: &mut Series<'_>) -> fmt::Result {
        let readings = &self.readings;
        series.of(&catalogue::LOOPS_UP)?.gauge(&[], flag(!readings.has_dead_loop))?;
        series.of(&catalogue::TIME_CERTAIN)?.gauge(&[], flag(readings.is_time_certain))?;
        let mut alerts = series.of(&catalogue::ALERTS_FIRING)?;
        readings.alerts_firing.iter().try_for_each(|(signal, severity, count)| {
            alerts.gauge(&[signal.as_str(), severity.as_str()], *count as f64)
        })?;
        series.of(&catalogue::CONNECTIONS)?.gauge(&[], readings.connections as f64)?;
        let mut calls = series.of(&catalogue::IDEMPOTENCY)?;
        readings.idempotency.by_outcome().try_for_each(|(outcome, count)| calls.counter(&[outcome], count))?;
        let mut spans = series.of(&catalogue::SPANS)?;
        if let Some(counts) = readings.spans {
            spans.counter(&["exported"], counts.exported)?;
            spans.counter(&["dropped"], counts.dropped)?;
        }
        series.of(&catalogue::BUILD)?.gauge(&[env!("CARGO_PKG_VERSION"), &readings.node], 1.0)
    }

    fn process(&self, series: &mut Series<'_>) -> fmt::Result {
        let Some(process) = &self.readings.process else { return Ok(()) };
        series.of(&catalogue::CPU)?.seconds(process.cpu_seconds)?;
        series.of(&catalogue::RESIDENT)?.gauge(&[], process.resident_bytes as f64)?;
        series.of(&catalogue::VIRTUAL)?.gauge(&[], process.virtual_bytes as f64)?;
        series.of(&catalogue::OPEN_FILES)?.gauge(&[], process.open_files as f64)?;
        let mut most_files = series.of(&catalogue::MOST_FILES)?;
        process.most_files.iter().try_for_each(|files| most_files.gauge(&[], *files as f64))?;
        series.of(&catalogue::STARTED)?.gauge(&[], process.started_at)
    }

    /// The lanes with series of their own, and those that share one, with their labels.
    fn lanes(&self) -> impl Iterator<Item = ([&str; 2], &LaneCounts)> {
        let named = self.snapshot.named.iter();
        let named = named.map(|(lane, counts)| ([lane.tenant.as_str(), lane.dependency.as_str()], counts));
        let others = self.snapshot.others.iter();
        named.chain(others.map(|(tenant, counts)| ([tenant.as_str(), OTHER], counts)))
    }

    /// What was read of the lanes with series of their own.
    fn readings(&self) -> impl Iterator<Item = ([&str; 2], &LaneReading)> {
        self.lanes().map(|(labels, _)| labels).zip(&self.readings.lanes)
    }
}

/// How long the oldest due task of the lane has waited, in seconds.
fn oldest_due(report: &LaneReport, now: Timestamp) -> f64 {
    let oldest = report.first_attempt_due.into_iter().chain(report.retry_due).min();
    oldest.map_or(0.0, |due| now.since(due).as_secs_f64())
}

fn flag(is_set: bool) -> f64 {
    if is_set { 1.0 } else { 0.0 }
}

/// Writes metrics.
struct Series<'e>(DescriptorEncoder<'e>);

/// Writes the series of one metric.
struct MetricSeries<'e> {
    encoder: MetricEncoder<'e>,
    labels: &'static [&'static str],
}

impl Series<'_> {
    /// Begins a metric. All of its series follow.
    fn of(&mut self, metric: &'static Metric) -> Result<MetricSeries<'_>, fmt::Error> {
        let kind = match metric.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram => MetricType::Histogram,
        };
        let help = metric.help;
        let encoder = self.0.encode_descriptor(metric.family(), help, None, kind)?;
        Ok(MetricSeries { encoder, labels: metric.labels })
    }
}

impl MetricSeries<'_> {
    fn counter(&mut self, values: &[&str], count: u64) -> fmt::Result {
        self.with(values, |encoder| encoder.encode_counter::<NoLabelSet, _, u64>(&count, None))
    }

    fn seconds(&mut self, seconds: f64) -> fmt::Result {
        self.with(&[], |encoder| encoder.encode_counter::<NoLabelSet, _, u64>(&seconds, None))
    }

    fn gauge(&mut self, values: &[&str], value: f64) -> fmt::Result {
        self.with(values, |encoder| encoder.encode_gauge(&value))
    }

    fn histogram(&mut self, values: &[&str], histogram: &Histogram) -> fmt::Result {
        let (sum, count, buckets) = (histogram.sum(), histogram.count(), histogram.buckets());
        self.with(values, |encoder| encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None))
    }

    fn commit_histogram(&mut self, histogram: &CommitHistogram) -> fmt::Result {
        let count = histogram.buckets.iter().map(|(_, count)| count).sum();
        self.with(&[], |encoder| encoder.encode_histogram::<NoLabelSet>(histogram.sum, count, &histogram.buckets, None))
    }

    /// Writes one series with the metric's labels.
    fn with(&mut self, values: &[&str], write: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result) -> fmt::Result {
        debug_assert_eq!(self.labels.len(), values.len());
        if values.is_empty() {
            return write(&mut self.encoder);
        }
        let labels: Vec<(&str, &str)> = self.labels.iter().copied().zip(values.iter().copied()).collect();
        let mut series = self.encoder.encode_family(&labels)?;
        write(&mut series)
    }
}
