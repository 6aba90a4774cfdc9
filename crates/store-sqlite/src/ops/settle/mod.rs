//! Ending or rescheduling attempts.

mod change;
mod log;
mod success;

pub(crate) use success::write;

use std::sync::Arc;
use std::time::Duration;

use redrive_core::{Attempt, Reason, Status, TaskId, TenantId, Timestamp};
use redrive_store::{Error, Next, Settled, Settlement, Token};

use crate::codec::{EncodedAnswer, millis, sequence};
use crate::ops::set_aside::{Damaged, readable, set_aside};
use crate::ops::{alerts, blobs};
use crate::sqlite_error::SqliteError;
use crate::writer::{OneOf, Writer};
use change::{Change, held, update};

/// A settlement with everything that can be computed before the writer runs it.
#[derive(Debug)]
pub(crate) struct EncodedSettlement {
    tenant: TenantId,
    id: TaskId,
    token: Token,
    attempt: Option<Attempt>,
    end: End,
    at: Timestamp,
}

#[derive(Debug)]
enum End {
    RetryAt { at: Timestamp, backoff: Option<Duration>, dns_failures: u32 },
    As { status: Status, reason: Option<Reason>, answer: Option<EncodedAnswer> },
}

impl EncodedSettlement {
    pub(crate) fn new(settlement: Settlement) -> Result<Self, Error> {
        let Settlement { tenant, id, token, attempt, next, at } = settlement;
        let end = match next {
            Next::RetryAt { at, backoff, dns_failures } => End::RetryAt { at, backoff, dns_failures },
            Next::End { status, reason, answer } => {
                debug_assert!(status.is_ended(), "a task ends in a status that is an end");
                let answer = answer.map(|answer| EncodedAnswer::new(*answer)).transpose()?;
                End::As { status, reason, answer }
            }
        };
        Ok(EncodedSettlement { tenant, id, token, attempt, end, at })
    }

    /// Whether it is a success that changes only what every success does, so that its outcome does not depend on the
    /// row.
    fn is_plain_success(&self) -> bool {
        let succeeds = matches!(self.end, End::As { status: Status::Succeeded, reason: None, .. });
        succeeds && self.attempt.as_ref().is_some_and(|attempt| attempt.error.is_none())
    }

    fn answer(&self) -> Option<&EncodedAnswer> {
        match &self.end {
            End::As { answer, .. } => answer.as_ref(),
            End::RetryAt { .. } => None,
        }
    }
}

/// A settlement whose outcome is decided.
#[derive(Debug)]
pub(crate) struct Ending {
    end: OneOf<EncodedSettlement>,
    /// Whether the stored body of its answer is kept.
    keeps_body: bool,
}

/// Decides each settlement. The changes of plain successes are written with the commit.
pub(crate) fn settle(writer: &mut Writer, ends: &Arc<[EncodedSettlement]>) -> Result<Vec<Settled>, SqliteError> {
    (0..ends.len()).map(|index| settle_one(writer, &OneOf { all: ends.clone(), index })).collect()
}

fn settle_one(writer: &mut Writer, end: &OneOf<EncodedSettlement>) -> Result<Settled, SqliteError> {
    let Some(tenant) = writer.names.tenant_key(&writer.connection, &end.tenant)? else {
        return Ok(Settled::LeaseLost);
    };
    let keeps_body = match end.answer().and_then(|answer| answer.body.stored()) {
        Some(body) => blobs::is_kept(&writer.connection, tenant, body)?,
        None => true,
    };
    let ending = Ending { end: end.clone(), keeps_body };
    let claim = writer.in_flight.take(end.id, tenant, end.token);
    if let Some(claim) = claim.filter(|_| end.is_plain_success()) {
        writer.counters.moved(tenant, claim.version, Status::InFlight, Status::Succeeded);
        writer.unwritten.successes.push(ending);
        return Ok(Settled::Done(Status::Succeeded));
    }
    writer.write_rows()?;
    let task = sequence(end.id);
    let mut damaged = Vec::new();
    let held = readable(held(&writer.connection, tenant, end), &mut damaged, |problem| Damaged::task(task, problem))?;
    set_aside(&writer.connection, &damaged)?;
    let Some(held) = held.flatten() else { return Ok(Settled::LeaseLost) };
    let change = Change::of(&held, end);
    update(&writer.connection, task, &change)?;
    log::write(&writer.connection, std::slice::from_ref(&ending))?;
    if change.status.is_dead_letter() {
        alerts::note(&writer.connection, task, millis(end.at))?;
    }
    writer.counters.moved(tenant, held.version, Status::InFlight, change.status);
    Ok(Settled::Done(change.status))
}
