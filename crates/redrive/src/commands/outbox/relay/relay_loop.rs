//! The loop of the relay: read rows, submit them, delete them.

use std::time::Duration;

use redrive_core::counted;
use redrive_store_postgres::connect::Address;

use super::Args;
use super::key::Keys;
use super::pause::Pauses;
use super::row::Row;
use super::server::{BatchResult, RedriveServer, RetryLater, RowResult};
use super::size::BatchSize;
use super::source::{self, Source};
use super::stop::Stop;
use crate::exit::{Exit, ExitError};

/// How often the lock of a table that another relay has is asked for. (To wait for it in the server would be a
/// transaction as long as the wait, and no vacuum gets past that.)
const LOCK_AGAIN: Duration = Duration::from_secs(1);

/// A relay for one table.
pub(super) struct Relay {
    from: Address,
    args: Args,
    stop: Stop,
    redrive: RedriveServer,
    size: BatchSize,
    source_pauses: Pauses,
    redrive_pauses: Pauses,
    /// Whether the table could be used once: from then on, what goes wrong with it may well pass.
    has_worked: bool,
    moved: u64,
    refused: u64,
}

/// Why a session with the source ended.
enum SessionError {
    Source(source::Error),
    /// Redrive does not accept rows; only with `--once`, which does not wait.
    Redrive(RetryLater),
}

impl From<source::Error> for SessionError {
    fn from(error: source::Error) -> Self {
        SessionError::Source(error)
    }
}

impl Relay {
    pub(super) fn new(from: Address, args: Args, stop: Stop) -> anyhow::Result<Self> {
        Ok(Relay {
            from,
            stop,
            redrive: RedriveServer::new(&args.server)?,
            size: BatchSize::new(args.batch),
            source_pauses: Pauses::default(),
            redrive_pauses: Pauses::default(),
            has_worked: false,
            moved: 0,
            refused: 0,
            args,
        })
    }

    /// Relays until a signal comes, or with `--once` until everything is moved.
    pub(super) async fn run(&mut self) -> anyhow::Result<()> {
        loop {
            let error = match self.relay().await {
                Ok(()) => return Ok(()),
                Err(SessionError::Redrive(later)) => return Err(ExitError::of(later.exit, later.reason)),
                Err(SessionError::Source(error)) => error,
            };
            if self.args.once || !self.has_worked && error.is_lasting() {
                let exit = if error.is_lasting() { Exit::BadConfiguration } else { Exit::Unreachable };
                return Err(ExitError::of(
                    exit,
                    format!("cannot use the table {} of {}: {error}", self.args.table, self.args.from),
                ));
            }
            let pause = self.source_pauses.next(None);
            tracing::warn!(
                table = %self.args.table,
                from = %self.args.from,
                %error,
                backoff_ms = pause.as_millis(),
                "cannot use the outbox table; retrying"
            );
            if self.stop.or(tokio::time::sleep(pause)).await.is_none() {
                return Ok(());
            }
        }
    }

    /// Whether a signal ended it.
    pub(super) fn was_stopped(&self) -> bool {
        self.stop.signal().is_some()
    }

    /// Whether anything was done.
    pub(super) fn has_moved(&self) -> bool {
        self.moved + self.refused > 0
    }

    /// The error message about refused rows, if there are any.
    pub(super) fn refused(&self) -> Option<String> {
        let told =
            |rows: &str| format!("Redrive refused {rows}: the reason is in the column refused of {}", self.args.table);
        match self.refused {
            0 => None,
            1 => Some(told("1 row, which stays")),
            many => Some(told(&format!("{many} rows, which stay"))),
        }
    }

    /// What was done, in a line.
    pub(super) fn summary(&self) -> String {
        let ended = self.stop.signal().map_or_else(String::new, |signal| format!("{signal}: ended; "));
        format!("{ended}moved {}, refused {}", counted(self.moved, "row"), counted(self.refused, "row"))
    }

    /// One session with the source, to its end.
    async fn relay(&mut self) -> Result<(), SessionError> {
        let stop = self.stop.clone();
        let Some(source) = stop.or(Source::open(&self.from, &self.args.table)).await else { return Ok(()) };
        let source = source?;
        if !self.lock(&source).await? {
            return Ok(());
        }
        let keys = source.keys(self.args.source.as_deref()).await?;
        // Rows that come while it runs are for the next time.
        let last = if self.args.once { source.newest().await? } else { i64::MAX };
        while stop.signal().is_none() {
            let rows = source.read(self.size.now(), last).await?;
            if !rows.is_empty() {
                self.hand_over(&source, &keys, &rows).await?;
            }
            self.has_worked = true;
            self.source_pauses.over();
            if rows.is_empty() && self.args.once {
                break;
            } else if rows.is_empty() {
                // Poll, whether there was a notification or not.
                stop.or(tokio::time::timeout(self.args.poll, source.news())).await;
            }
        }
        Ok(())
    }

    /// Waits for the table's lock. `false` if it is not to be had: there is a signal, or no time to wait.
    async fn lock(&self, source: &Source) -> Result<bool, source::Error> {
        let table = source.table();
        let mut waits = false;
        while !source.try_lock().await? {
            if self.args.once {
                tracing::info!(table, "another relay is running for this table; nothing to do");
                return Ok(false);
            }
            if !waits {
                tracing::info!(table, "another relay is running for this table; waiting until it ends");
                waits = true;
            }
            if self.stop.or(tokio::time::sleep(LOCK_AGAIN)).await.is_none() {
                return Ok(false);
            }
        }
        tracing::info!(table, server = %self.redrive.address(), "relaying");
        Ok(true)
    }

    /// Hands rows over, and does with them what the answer says.
    async fn hand_over(&mut self, source: &Source, keys: &Keys, rows: &[Row]) -> Result<(), SessionError> {
        let mut submissions = Vec::with_capacity(rows.len());
        let mut refused_here = Vec::with_capacity(rows.len());
        for row in rows {
            match row.submission(&key(keys, row)) {
                Ok(submission) => {
                    submissions.push(submission);
                    refused_here.push(None);
                }
                Err(reason) => refused_here.push(Some(reason)),
            }
        }
        let answered = match submissions.is_empty() {
            true => BatchResult::Each(Vec::new()),
            false => self.redrive.submit(&submissions).await,
        };
        let judgements = match answered {
            BatchResult::Each(judgements) => {
                self.size.taken();
                judgements
            }
            BatchResult::Refused(reason) if submissions.len() > 1 => {
                tracing::debug!(
                    rows = submissions.len(),
                    reason,
                    "Redrive refused the whole batch; retrying with fewer rows"
                );
                self.size.too_large(rows.len());
                return Ok(());
            }
            BatchResult::Refused(reason) => vec![RowResult::Refused(reason)],
            BatchResult::Later(later) => return self.put_off(later).await,
        };
        let mut answers = judgements.into_iter();
        let outcomes = refused_here.into_iter().map(|reason| match reason {
            Some(reason) => RowResult::Refused(reason),
            None => answers.next().unwrap_or_else(RowResult::none),
        });
        self.settle(source, keys, rows, &outcomes.collect::<Vec<_>>()).await
    }

    /// Deletes what Redrive has, notes what it refused, and leaves the rest for another time.
    async fn settle(
        &mut self,
        source: &Source,
        keys: &Keys,
        rows: &[Row],
        outcomes: &[RowResult],
    ) -> Result<(), SessionError> {
        let (mut accepted, mut refused, mut reasons, mut put_off) = (Vec::new(), Vec::new(), Vec::new(), None);
        for (row, outcome) in rows.iter().zip(outcomes) {
            match outcome {
                RowResult::Accepted => accepted.push(row),
                RowResult::Refused(reason) => {
                    refused.push(row);
                    reasons.push(reason.as_str());
                }
                RowResult::Later(later) => put_off = put_off.or(Some(later.clone())),
            }
        }
        self.delete(source, &accepted).await?;
        for (row, reason) in refused.iter().zip(&reasons) {
            let key = key(keys, row);
            tracing::warn!(
                table = source.table(),
                id = row.id,
                key,
                reason,
                "Redrive refused a row; it stays in the table"
            );
        }
        if !refused.is_empty() {
            self.refused += source.refuse(&refused, &reasons).await?;
        }
        match put_off {
            Some(later) => self.put_off(later).await,
            None => {
                self.redrive_pauses.over();
                Ok(())
            }
        }
    }

    async fn delete(&mut self, source: &Source, rows: &[&Row]) -> Result<(), source::Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let (table, deleted) = (source.table(), source.delete(rows).await?);
        self.moved += deleted;
        tracing::debug!(table, rows = deleted, "moved");
        let changed = rows.len() as u64 - deleted;
        if changed > 0 {
            tracing::warn!(table, rows = changed, "rows changed while they were submitted; submitting them again");
        }
        Ok(())
    }

    /// Redrive takes nothing now. Nothing was deleted; everything is handed over again.
    async fn put_off(&mut self, later: RetryLater) -> Result<(), SessionError> {
        if self.args.once {
            return Err(SessionError::Redrive(later));
        }
        let pause = self.redrive_pauses.next(later.retry_after);
        tracing::warn!(
            server = %self.redrive.address(),
            reason = later.reason,
            backoff_ms = pause.as_millis(),
            "Redrive does not accept rows; retrying"
        );
        self.stop.or(tokio::time::sleep(pause)).await;
        Ok(())
    }
}

/// The row's own key, or the one that is made for it.
fn key(keys: &Keys, row: &Row) -> String {
    row.idempotency_key.clone().unwrap_or_else(|| keys.of(row.id))
}
