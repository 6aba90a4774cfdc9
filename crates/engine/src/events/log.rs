//! The engine's log lines. Each event has at most one.
//!
//! Lines have fields, and never a body, a token or a secret. Attempts that succeed are at the level `debug`, unless the
//! settings say `info`.

use std::fmt;
use std::time::Duration;

use redrive_core::guards::Gone;
use redrive_core::guards::breaker::Change;
use redrive_core::{Attempt, IdempotencyKey, Reason, Task};

use super::{EndedBy, Event, Report, Sink};
use crate::common_clock::ClockState;
use crate::options::{LogOptions, SuccessLevel};

/// The sink that writes the log.
#[derive(Debug)]
pub(super) struct Log(pub(super) LogOptions);

impl Sink for Log {
    fn on(&self, event: &Event<'_>) {
        match *event {
            Event::AttemptEnded(task, attempt) => self.attempt_ended(task, attempt),
            Event::LeaseLost(task) => {
                tracing::warn!(task = %task.id, lane = %task.lane, "lease lost before the settle");
            }
            Event::TakenOver(task) => tracing::warn!(
                task = %task.id,
                dependency = %task.lane.dependency,
                attempt = task.attempt_in_run(),
                "took over an attempt whose lease ran out"
            ),
            Event::Ended(task, _, EndedBy::Deadline) => overdue(task),
            Event::Ended(task, _, EndedBy::Budget) => suppressed(task),
            Event::DeadLetter(task) => self.dead_letter(task),
            Event::PolicyUnavailable(task, error) => {
                let (policy, version) = (task.policy.id.as_str(), task.policy.version);
                tracing::warn!(task = %task.id, policy, version, %error, "a task's policy could not be read: it waits");
            }
            Event::PolicyLost(task, error) => {
                let (policy, version) = (task.policy.id.as_str(), task.policy.version);
                tracing::error!(task = %task.id, policy, version, %error, "a task's policy is invalid; the task ends");
            }
            Event::BodyUnavailable(task, times, error) => {
                tracing::debug!(task = %task.id, dependency = %task.lane.dependency, "the stored body could not be read");
                if let Some(times) = times {
                    tracing::warn!(times, %error, "stored bodies cannot be read: their tasks wait, and nothing is sent");
                }
            }
            Event::Breaker(lane, Change::Opened { until, why }) => tracing::warn!(
                tenant = %lane.tenant,
                dependency = %lane.dependency,
                reason = why.as_str(),
                until_ms = until.as_millis(),
                "circuit breaker opened: nothing is sent to the dependency until then"
            ),
            Event::Breaker(lane, Change::Closed) => {
                tracing::info!(tenant = %lane.tenant, dependency = %lane.dependency, "circuit breaker closed");
            }
            Event::DependencyGone(task, gone) => dependency_gone(task, gone),
            Event::PausedOnGone(task) => tracing::warn!(
                tenant = %task.lane.tenant,
                dependency = %task.lane.dependency,
                policy = task.policy.id.as_str(),
                "the dependency is paused, because the policy says pauseOnGone: nothing is sent until it is resumed"
            ),
            Event::Report(report) => log_report(report),
            // `Liveness` logs a loop that failed, together with the threads of stores.
            Event::LoopFailed(_)
            | Event::Accepted(_)
            | Event::Stored { .. }
            | Event::Claimed(_)
            | Event::Sent(_)
            | Event::Settled(..)
            | Event::Retried(..)
            | Event::HeldBack(..)
            | Event::Ended(_, _, EndedBy::Settlement | EndedBy::Cancel) => {}
        }
    }
}

/// Rule R-10: every attempt is logged with these fields; never a body, a token or a secret.
macro_rules! attempt {
    ($level:ident, $task:expr, $attempt:expr, $key:expr, $message:literal) => {
        tracing::$level!(
            correlation_id = %$task.correlation(),
            task_id = %$task.id,
            tenant = %$task.lane.tenant,
            dependency = %$task.lane.dependency,
            attempt = $task.attempt_in_run(),
            max_attempts = $task.max_attempts,
            run = $task.run,
            total_attempts = $attempt.number,
            backoff_ms = millis($attempt.backoff.unwrap_or_default()),
            error_type = $attempt.error.as_ref().map_or("none", |error| error.kind.as_str()),
            outcome = $attempt.outcome.as_str(),
            response_status = $attempt.response_status,
            duration_ms = $attempt.duration.map(millis),
            idempotency_key = %$key,
            $message
        )
    };
}

impl Log {
    fn attempt_ended(&self, task: &Task, attempt: &Attempt) {
        let key = self.key(task);
        // every retry is logged, whatever comes of it.
        let is_retry = attempt.number_in_run > 1;
        match (&attempt.error, self.0.successes) {
            (Some(_), _) => attempt!(info, task, attempt, key, "attempt failed"),
            (None, SuccessLevel::Debug) if !is_retry => attempt!(debug, task, attempt, key, "attempt succeeded"),
            (None, _) => attempt!(info, task, attempt, key, "attempt succeeded"),
        }
    }

    /// The task's idempotency key as it is logged.
    fn key<'t>(&self, task: &'t Task) -> LoggedKey<'t> {
        LoggedKey { key: &task.idempotency_key, is_hashed: self.0.hashes_keys }
    }

    /// The alert of rule R-8: this log event is written for every dead letter.
    fn dead_letter(&self, task: &Task) {
        tracing::error!(
            alert = "dead-letter",
            correlation_id = %task.correlation(),
            task_id = %task.id,
            tenant = %task.lane.tenant,
            dependency = %task.lane.dependency,
            status = task.status.as_str(),
            reason = task.reason.map(Reason::as_str),
            attempt = task.attempt_in_run(),
            max_attempts = task.max_attempts,
            run = task.run,
            total_attempts = task.attempt_number,
            idempotency_key = %self.key(task),
            "dead letter"
        );
    }
}

/// An idempotency key, or a hash of it. It is hashed only if the line is written.
struct LoggedKey<'t> {
    key: &'t IdempotencyKey,
    is_hashed: bool,
}

impl fmt::Display for LoggedKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_hashed {
            true => f.write_str(&self.key.hashed()),
            false => f.write_str(self.key.as_str()),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn dependency_gone(task: &Task, gone: Gone) {
    let since = match gone {
        Gone::Answered => None,
        Gone::NoSuccessSince(since) => Some(since.as_millis()),
    };
    tracing::warn!(
        alert = "dependency-gone",
        tenant = %task.lane.tenant,
        dependency = %task.lane.dependency,
        reason = gone.as_str(),
        since_ms = since,
        correlation_id = %task.correlation(),
        task_id = %task.id,
        "the dependency seems to be gone for good"
    );
}

fn overdue(task: &Task) {
    tracing::info!(
        correlation_id = %task.correlation(),
        task_id = %task.id,
        tenant = %task.lane.tenant,
        dependency = %task.lane.dependency,
        attempts = task.attempt_in_run(),
        max_attempts = task.max_attempts,
        "task ended: it waited past its deadline"
    );
}

fn suppressed(task: &Task) {
    tracing::info!(
        correlation_id = %task.correlation(),
        task_id = %task.id,
        tenant = %task.lane.tenant,
        dependency = %task.lane.dependency,
        attempts = task.attempt_in_run(),
        max_attempts = task.max_attempts,
        "task ended: its caller waits, and the retry budget is spent"
    );
}

fn log_report(report: Report<'_>) {
    match report {
        Report::StoreCallFailed(doing, error) => tracing::debug!(doing, %error, "a call of the store failed"),
        Report::StoreOutageBegan(doing, error) => {
            tracing::error!(doing, %error, "the store fails: trying again until it works");
        }
        Report::StoreOutageGoesOn(times, doing, error) => {
            tracing::error!(times, doing, %error, "the store still fails");
        }
        Report::StoreOutageEnded(times, lasted) => {
            tracing::info!(times, seconds = lasted.as_secs(), "the store works again");
        }
        Report::AlertsFound(dead_letters) => {
            tracing::warn!(dead_letters, "dead letters had been left without their alert");
        }
        Report::AlertsUnconfirmed(alerts, error) => tracing::warn!(%error, alerts, "confirming alerts failed"),
        Report::OverdueAtStart(ended) => {
            tracing::warn!(ended, "tasks passed their deadline while no process ran, or the clock was set");
        }
        Report::Unsettled(task, error) => {
            tracing::debug!(%task, %error, "an attempt could not be settled; its lease will run out");
        }
        Report::Cleaned(removed) => tracing::info!(removed, "removed ended tasks after their retention"),
        Report::RecordsCleaned(removed) => tracing::info!(removed, "removed idempotency records that had expired"),
        Report::CleaningFailed(error) => tracing::warn!(%error, "cleaning failed, trying again later"),
        Report::WrongBodyLocation(error) => {
            tracing::warn!(%error, "stored bodies are not collected: this is not the place that they are kept in");
        }
        Report::BodiesDeleted(deleted) => tracing::info!(deleted, "deleted stored bodies that no task refers to"),
        Report::CollectingFailed(error) => {
            tracing::warn!(%error, "collecting stored bodies failed, trying again later");
        }
        Report::BodyNotDeleted(error) => {
            tracing::warn!(%error, "a stored body could not be deleted, trying again later");
        }
        Report::UploadsDeleted(deleted) => tracing::info!(deleted, "deleted what uploads that broke off had left"),
        Report::UploadsNotDeleted(error) => {
            tracing::warn!(%error, "deleting unfinished uploads failed, trying again later");
        }
        Report::ClockUnread(error) => tracing::debug!(%error, "reading the store's clock failed, trying again"),
        Report::MachineClock(state, is_shared) => machine_clock(state, is_shared),
        Report::CommonTime(state) => common_time(state),
        Report::LeavingFailed(error) => {
            tracing::warn!(%error, "leaving failed; this process will be listed as gone silent");
        }
        Report::AttemptsGivenUp(attempts) => {
            tracing::warn!(attempts, "giving up the attempts that did not finish in time");
        }
        Report::StoreSilent(doing) => {
            tracing::warn!(
                doing,
                "the store does not answer; what is left will be found after the leases have run out"
            );
        }
        Report::CallerGone => tracing::debug!("a caller went away before its answer"),
    }
}

fn machine_clock(state: ClockState, is_shared: bool) {
    let ahead_ms = state.ahead_ms;
    match (state.is_machine_off(), is_shared) {
        (false, _) => tracing::info!(ahead_ms, "the machine's clock is right again"),
        (true, true) => tracing::warn!(
            ahead_ms,
            "the machine's clock differs from the database's: this process works on the database's time; set the clock right"
        ),
        (true, false) => tracing::warn!(
            ahead_ms,
            "the machine's clock was set while this process runs: it goes on with its own time until it is started again"
        ),
    }
}

fn common_time(state: ClockState) {
    let ClockState { is_certain, stepped_ms, ahead_ms } = state;
    match (is_certain, stepped_ms) {
        (true, _) => tracing::info!(ahead_ms, "the time is certain again: claiming tasks"),
        (false, Some(stepped_ms)) => tracing::error!(
            stepped_ms,
            ahead_ms,
            "the database's clock has stepped: claiming no tasks until it is back, or agrees with this machine's clock"
        ),
        (false, None) => tracing::error!("the database's time cannot be determined: claiming no tasks until it can"),
    }
}
